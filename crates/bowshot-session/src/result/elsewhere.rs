//! A result whose rows other nodes hand out: this node has none of them. It follows the plan to its end, which is when all
//! endpoints have ended, and asks now and then what their readers do: nodes do not know of one another's, and a client may
//! read one endpoint after another.

use super::QueryResult;
use crate::partition::Partition;
use bowshot_api::{BatchStream, Error, Location};
use bowshot_engine::endpoints::{EndpointState, ResultEndpoints};
use bowshot_query_task::checked;
use futures::{FutureExt, StreamExt};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How often the nodes are asked, and how long they may take.
const ASKED_EVERY: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(5);

/// The endpoints of a result, and what was last heard of them.
#[derive(Debug)]
pub(super) struct Elsewhere {
    pub(super) endpoints: Arc<dyn ResultEndpoints>,
    pub(super) locations: Vec<Location>,
    rows: AtomicU64,
    bytes: AtomicU64,
    /// Whether the nodes know that it has failed.
    told: Arc<watch::Sender<bool>>,
}

impl Elsewhere {
    pub(super) fn new(endpoints: Arc<dyn ResultEndpoints>) -> Self {
        let (locations, rows, bytes) = (endpoints.locations(), AtomicU64::new(0), AtomicU64::new(0));
        Self { endpoints, locations, rows, bytes, told: Arc::new(watch::Sender::new(false)) }
    }

    /// Rows and bytes that were made so far.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.rows.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    /// Ends all endpoints.
    pub(super) fn fail(&self, runtime: &tokio::runtime::Handle, error: Error) {
        let (endpoints, told) = (Arc::clone(&self.endpoints), Arc::clone(&self.told));
        runtime.spawn(async move {
            endpoints.fail(&error).await;
            told.send_replace(true);
        });
    }

    async fn states(&self) -> Option<Vec<EndpointState>> {
        // A node that is lost is noticed by the plan.
        let states = timeout(PATIENCE, self.endpoints.states()).await.ok()?.ok()?;
        self.rows.store(states.iter().map(|state| state.rows).sum(), Ordering::Relaxed);
        self.bytes.store(states.iter().map(|state| state.bytes).sum(), Ordering::Relaxed);
        Some(states)
    }
}

/// Follows a plan that gives no rows here; a panic ends the query.
pub(super) async fn follow(query: Weak<QueryResult>, partition: Arc<Partition>, stream: BatchStream) {
    let work = AssertUnwindSafe(to_its_end(Weak::clone(&query), partition, stream));
    if work.catch_unwind().await.is_err()
        && let Some(query) = query.upgrade()
    {
        query.fail(Error::internal("the query broke down: an operator panicked"));
    }
}

async fn to_its_end(query: Weak<QueryResult>, partition: Arc<Partition>, stream: BatchStream) {
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
                query.ask(&mut paused).await;
            }
        }
    };
    drop(stream);
    let Some(query) = query.upgrade() else { return };
    if let Some(elsewhere) = &query.elsewhere {
        elsewhere.states().await;
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
    /// Waits, for a while, until all nodes know what it has failed with: then no reader gets more of it.
    pub(crate) async fn told(&self) {
        if let Some(elsewhere) = self.elsewhere.as_ref().filter(|_| self.failure().is_some()) {
            let mut told = elsewhere.told.subscribe();
            // The sender is here; nodes that do not answer end it by themselves.
            let _ = timeout(PATIENCE, told.wait_for(|told| *told)).await;
        }
    }

    /// Asks the nodes what the readers do, and ends the query if nobody wants its rows any more.
    async fn ask(&self, paused: &mut bool) {
        let Some(elsewhere) = &self.elsewhere else { return };
        let Some(states) = elsewhere.states().await else { return };
        let waits = states.iter().all(|state| state.waits);
        match (waits, *paused) {
            (true, false) => self.one_less_active(),
            (false, true) => self.one_more_active(),
            _ => {}
        }
        *paused = waits;
        if states.iter().any(|state| state.is_read) {
            self.touch();
            let limit = self.house.limits.reader_timeout;
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
