//! The internal port: who comes in has a few seconds to prove that it is a node, and few can be at that at once. All that is
//! known of the others is their address, so that they cost a line of the log now and then, and nothing else.

use crate::membership::frame::{read_frame, write_frame};
use crate::membership::message::Answer;
use crate::membership::security::{Purpose, accept, refuse};
use crate::membership::shared::Shared;
use crate::membership::stream::{Wire, WorkStream};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, TryAcquireError};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long a connection may take to prove what it is.
const PROOF_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that have not, all together and of one address.
const MAX_STRANGERS: usize = 256;
const MAX_STRANGERS_OF_ADDRESS: usize = 64;
/// Connections that have, for messages about membership.
const MAX_TALKS: usize = 2_000;
/// How often refused connections are told of.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// How long an accept that failed, for want of files perhaps, is not tried again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Lets connections in, for ever. Dropping it ends those that are about membership.
pub(crate) async fn run(shared: Arc<Shared>, listener: TcpListener) {
    let door = Arc::new(Door {
        shared,
        strangers: Mutex::default(),
        refusals: Mutex::default(),
        talks: Semaphore::new(MAX_TALKS),
    });
    let mut guests = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, from)) => {
                    if let Some(place) = Place::take(&door, from.ip()) {
                        guests.spawn(Arc::clone(&door).receive(socket, from, place));
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection of a node was not taken");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = guests.join_next() => {}
        }
    }
}

#[derive(Debug)]
struct Door {
    shared: Arc<Shared>,
    strangers: Mutex<HashMap<IpAddr, usize>>,
    refusals: Mutex<Refusals>,
    talks: Semaphore,
}

impl Door {
    async fn receive(self: Arc<Self>, socket: TcpStream, from: SocketAddr, place: Place) {
        let proven = timeout(PROOF_TIMEOUT, self.shared.keys.listen(socket)).await;
        let proven = proven.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        drop(place);
        match proven {
            Ok((wire, Purpose::Members)) => self.talk(wire).await,
            Ok((wire, Purpose::Work(id))) => _ = timeout(PROOF_TIMEOUT, self.hand_over(wire, id)).await,
            Err(error) => self.note_refusal(from.ip(), &error.to_string()),
        }
    }

    /// Answers heartbeats as long as they come.
    async fn talk(&self, mut wire: Wire) {
        let _talk = match self.talks.try_acquire() {
            Ok(talk) => talk,
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => {
                _ = timeout(PROOF_TIMEOUT, refuse(&mut wire, "too many nodes talk to this one")).await;
                return;
            }
        };
        let patience = self.shared.settings.dead_after.max(PROOF_TIMEOUT) * 2;
        if !matches!(timeout(PROOF_TIMEOUT, accept(&mut wire)).await, Ok(Ok(()))) {
            return;
        }
        while let Ok(Ok(beat)) = timeout(patience, read_frame(&mut wire)).await {
            let answer = self.shared.hear(beat);
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

    /// Gives a connection to whoever serves work.
    async fn hand_over(&self, mut wire: Wire, id: uuid::Uuid) -> io::Result<()> {
        if let Err(reason) = self.shared.check_work_of(id) {
            return refuse(&mut wire, reason).await;
        }
        let Ok(place) = self.shared.work.try_reserve() else {
            return refuse(&mut wire, "this node has no place for more work").await;
        };
        accept(&mut wire).await?;
        place.send(WorkStream::new(wire, id));
        Ok(())
    }

    /// Counts, and says so now and then.
    fn note_refusal(&self, from: IpAddr, reason: &str) {
        metrics::counter!("bowshot_cluster_refused_connections_total").increment(1);
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.untold += 1;
        if refusals.told.is_none_or(|told| told.elapsed() >= REPORT_INTERVAL) {
            let connections = std::mem::take(&mut refusals.untold);
            refusals.told = Some(Instant::now());
            tracing::warn!(%from, reason, connections, "connections to the cluster's port were refused");
        }
    }
}

#[derive(Debug, Default)]
struct Refusals {
    told: Option<Instant>,
    untold: u64,
}

/// A connection that has proven nothing yet.
#[derive(Debug)]
struct Place {
    door: Arc<Door>,
    from: IpAddr,
}

impl Place {
    fn take(door: &Arc<Door>, from: IpAddr) -> Option<Self> {
        let mut strangers = door.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = strangers.values().sum();
        let of_address = strangers.entry(from).or_default();
        if all >= MAX_STRANGERS || *of_address >= MAX_STRANGERS_OF_ADDRESS {
            drop(strangers);
            door.note_refusal(from, "too many connections at once that have not said who they are");
            return None;
        }
        *of_address += 1;
        Some(Self { door: Arc::clone(door), from })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut strangers = self.door.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = strangers.get_mut(&self.from) {
            *number = number.saturating_sub(1);
            if *number == 0 {
                strangers.remove(&self.from);
            }
        }
    }
}
