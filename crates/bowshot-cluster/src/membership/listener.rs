//! The internal port: a connection has a few seconds to authenticate, and few may do so at once. Refused ones cost a log line now and then.

use crate::membership::frame::{read_frame, write_frame};
use crate::membership::message::Answer;
use crate::membership::node_state::NodeState;
use crate::membership::security::{Purpose, accept, refuse};
use crate::membership::stream::{Wire, WorkStream};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, TryAcquireError};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long authentication may take.
const PROOF_TIMEOUT: Duration = Duration::from_secs(5);
/// Most connections that have not authenticated, in total and by address.
const MAX_UNPROVEN: usize = 256;
const MAX_UNPROVEN_OF_ADDRESS: usize = 64;
/// Most authenticated connections for heartbeats.
const MAX_SESSIONS: usize = 2_000;
/// How often refused connections are logged.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Pause after a failed accept, which may be short of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections for ever. Dropping it ends those for heartbeats.
pub(crate) async fn run(state: Arc<NodeState>, listener: TcpListener) {
    let handler = Arc::new(Handler {
        state,
        unproven: Mutex::default(),
        refusals: Mutex::default(),
        sessions: Semaphore::new(MAX_SESSIONS),
    });
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, from)) => {
                    if let Some(permit) = HandshakePermit::take(&handler, from.ip()) {
                        connections.spawn(Arc::clone(&handler).receive(socket, from, permit));
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection of a node");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

#[derive(Debug)]
struct Handler {
    state: Arc<NodeState>,
    unproven: Mutex<HashMap<IpAddr, usize>>,
    refusals: Mutex<Refusals>,
    sessions: Semaphore,
}

impl Handler {
    async fn receive(self: Arc<Self>, socket: TcpStream, from: SocketAddr, permit: HandshakePermit) {
        let proven = timeout(PROOF_TIMEOUT, self.state.keys.listen(socket)).await;
        let proven = proven.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        drop(permit);
        match proven {
            Ok((wire, Purpose::Members)) => self.answer_heartbeats(wire).await,
            Ok((wire, Purpose::Work(id))) => _ = timeout(PROOF_TIMEOUT, self.hand_over(wire, id)).await,
            Err(error) => self.note_refusal(from.ip(), &error.to_string()),
        }
    }

    /// Answers heartbeats until they end.
    async fn answer_heartbeats(&self, mut wire: Wire) {
        let _session = match self.sessions.try_acquire() {
            Ok(session) => session,
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => {
                _ = timeout(PROOF_TIMEOUT, refuse(&mut wire, "too many connections of nodes")).await;
                return;
            }
        };
        let patience = self.state.settings.dead_after.max(PROOF_TIMEOUT) * 2;
        if !matches!(timeout(PROOF_TIMEOUT, accept(&mut wire)).await, Ok(Ok(()))) {
            return;
        }
        while let Ok(Ok(beat)) = timeout(patience, read_frame(&mut wire)).await {
            let answer = self.state.receive(beat);
            let written = timeout(PROOF_TIMEOUT, write_frame(&mut wire, &answer)).await;
            if let Answer::Refused { reason } = answer {
                tracing::debug!(%reason, "a node was refused");
                return;
            }
            if !matches!(written, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Hands a connection for work over.
    async fn hand_over(&self, mut wire: Wire, id: uuid::Uuid) -> io::Result<()> {
        if let Err(reason) = self.state.check_work_of(id) {
            return refuse(&mut wire, reason).await;
        }
        let Ok(permit) = self.state.work.try_reserve() else {
            return refuse(&mut wire, "this node does not accept more work").await;
        };
        accept(&mut wire).await?;
        permit.send(WorkStream::new(wire, id));
        Ok(())
    }

    /// Counts refusals, and logs them now and then.
    fn note_refusal(&self, from: IpAddr, reason: &str) {
        metrics::counter!("bowshot_cluster_refused_connections_total").increment(1);
        let mut refusals = self.refusals.lock();
        refusals.unreported += 1;
        if refusals.reported.is_none_or(|reported| reported.elapsed() >= REPORT_INTERVAL) {
            let connections = std::mem::take(&mut refusals.unreported);
            refusals.reported = Some(Instant::now());
            tracing::warn!(%from, reason, connections, "connections to the cluster's port were refused");
        }
    }
}

#[derive(Debug, Default)]
struct Refusals {
    reported: Option<Instant>,
    unreported: u64,
}

/// Permission to authenticate.
#[derive(Debug)]
struct HandshakePermit {
    handler: Arc<Handler>,
    from: IpAddr,
}

impl HandshakePermit {
    fn take(handler: &Arc<Handler>, from: IpAddr) -> Option<Self> {
        let mut unproven = handler.unproven.lock();
        let all: usize = unproven.values().sum();
        let of_address = unproven.entry(from).or_default();
        if all >= MAX_UNPROVEN || *of_address >= MAX_UNPROVEN_OF_ADDRESS {
            drop(unproven);
            handler.note_refusal(from, "too many connections that have not authenticated");
            return None;
        }
        *of_address += 1;
        Some(Self { handler: Arc::clone(handler), from })
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        let mut unproven = self.handler.unproven.lock();
        if let Some(number) = unproven.get_mut(&self.from) {
            *number = number.saturating_sub(1);
            if *number == 0 {
                unproven.remove(&self.from);
            }
        }
    }
}
