//! A result whose rows other nodes hand out. This node follows the plan until all endpoints have ended, and polls
//! what their readers do: nodes do not know each other's readers, and a client may read endpoints one after another.

use super::QueryResult;
use crate::partition::Partition;
use bowshot_api::{BatchStream, Error, Location};
use bowshot_engine::endpoints::{EndpointState, ResultEndpoints};
use bowshot_query_task::checked;
use futures::StreamExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Poll interval, and timeout of one poll.
const ASKED_EVERY: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(5);

/// The endpoints of a result, with their last statistics.
#[derive(Debug)]
pub(super) struct RemoteResult {
    pub(super) endpoints: Arc<dyn ResultEndpoints>,
    pub(super) locations: Vec<Location>,
    rows: AtomicU64,
    bytes: AtomicU64,
    /// Whether all nodes have received the failure.
    failure_sent: Arc<watch::Sender<bool>>,
}

impl RemoteResult {
    pub(super) fn new(endpoints: Arc<dyn ResultEndpoints>) -> Self {
        let (locations, rows, bytes) = (endpoints.locations(), AtomicU64::new(0), AtomicU64::new(0));
        Self { endpoints, locations, rows, bytes, failure_sent: Arc::new(watch::Sender::new(false)) }
    }

    /// Rows and bytes so far.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.rows.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    pub(super) fn fail(&self, runtime: &tokio::runtime::Handle, error: Error) {
        let (endpoints, failure_sent) = (Arc::clone(&self.endpoints), Arc::clone(&self.failure_sent));
        runtime.spawn(async move {
            endpoints.fail(&error).await;
            failure_sent.send_replace(true);
        });
    }

    async fn states(&self) -> Option<Vec<EndpointState>> {
        // The plan detects lost nodes.
        let states = timeout(PATIENCE, self.endpoints.states()).await.ok()?.ok()?;
        self.rows.store(states.iter().map(|state| state.rows).sum(), Ordering::Relaxed);
        self.bytes.store(states.iter().map(|state| state.bytes).sum(), Ordering::Relaxed);
        Some(states)
    }
}

/// Follows a plan without local rows.
pub(super) async fn follow(query: Weak<QueryResult>, partition: Arc<Partition>, stream: BatchStream) {
    let mut stream = checked(stream);
    let (mut ticks, mut paused) = (interval(ASKED_EVERY), false);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = loop {
        tokio::select! {
            rows = stream.next() => match rows {
                Some(Ok(_)) => {}
                Some(Err(error)) => break Err(error),
                None => break Ok(()),
            },
            _ = ticks.tick() => {
                let Some(query) = query.upgrade() else { return };
                query.poll_readers(&mut paused).await;
            }
        }
    };
    drop(stream);
    let Some(query) = query.upgrade() else { return };
    if let Some(remote) = &query.remote {
        remote.states().await;
    }
    if paused {
        query.one_more_active();
    }
    match end {
        Ok(()) => {
            partition.producer_done();
            query.one_less_active();
            query.settle();
        }
        Err(error) => query.fail(error),
    }
}

impl QueryResult {
    /// Waits, with a timeout, until all nodes have received the failure: then no reader gets more rows.
    pub(crate) async fn wait_until_failed_remotely(&self) {
        if let Some(remote) = self.remote.as_ref().filter(|_| self.failure().is_some()) {
            let mut failure_sent = remote.failure_sent.subscribe();
            // The sender is alive; the timeout covers nodes that do not answer.
            let _ = timeout(PATIENCE, failure_sent.wait_for(|failure_sent| *failure_sent)).await;
        }
    }

    /// Polls the readers of all nodes, and ends the query if they have stalled or the result has expired.
    async fn poll_readers(&self, paused: &mut bool) {
        let Some(remote) = &self.remote else { return };
        let Some(states) = remote.states().await else { return };
        let waits = states.iter().all(|state| state.waits);
        match (waits, *paused) {
            (true, false) => self.one_less_active(),
            (false, true) => self.one_more_active(),
            _ => {}
        }
        *paused = waits;
        if states.iter().any(|state| state.is_read) {
            self.touch();
            let limit = self.context.limits.reader_timeout;
            let idle = states.iter().filter(|state| state.claimed).map(|state| state.idle).min();
            let rows_ready = states.iter().any(|state| state.rows_ready);
            if !limit.is_zero() && rows_ready && idle.is_some_and(|idle| idle >= limit) {
                self.fail(super::lifetime::not_taken(limit));
            }
        } else if Instant::now() >= self.expires() {
            let reason = format!("the result of query {} is not found: it has expired", self.id);
            self.fail(Error::not_found(reason));
        }
    }
}
