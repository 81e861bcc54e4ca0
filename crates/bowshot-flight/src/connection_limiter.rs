//! Limits connections in total and per network. When permits run out, unauthenticated connections are closed, the
//! oldest first.

use crate::auth::lock;
use bowshot_api::Network;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// How long a new connection waits for an evicted one to close.
const HANDING_OVER: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    all: Arc<Semaphore>,
    of_network: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    networks: HashMap<Network, usize>,
    strangers: VecDeque<Stranger>,
}

/// A connection that may be unauthenticated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stranger {
    known: Arc<AtomicBool>,
    leave: CancellationToken,
}

impl Stranger {
    /// Marks the connection as authenticated.
    pub(crate) fn is_known(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    /// Waits until the connection is evicted.
    pub(crate) async fn has_to_leave(&self) {
        self.leave.cancelled().await;
    }

    fn may_stay(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }
}

/// A permit; dropping it releases it.
#[derive(Debug)]
pub(crate) struct Permit {
    limiter: Arc<ConnectionLimiter>,
    network: Option<Network>,
    stranger: Stranger,
    permit: Option<OwnedSemaphorePermit>,
}

impl Permit {
    /// Whose it is.
    pub(crate) fn stranger(&self) -> &Stranger {
        &self.stranger
    }
}

impl ConnectionLimiter {
    pub(crate) fn new(all: usize, of_network: usize) -> Arc<Self> {
        let all = Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { all, of_network, state: Mutex::default() })
    }

    /// A permit, at once or by evicting an unauthenticated connection; `None` if all are authenticated or the network
    /// has too many.
    pub(crate) fn take(self: &Arc<Self>, address: Option<IpAddr>) -> Option<PendingPermit> {
        let (stranger, network) = (Stranger::default(), address.map(Network::from));
        {
            let mut state = lock(&self.state);
            if let Some(network) = network {
                let taken = state.networks.entry(network).or_default();
                if *taken >= self.of_network {
                    return None;
                }
                *taken += 1;
            }
            state.strangers.retain(|stranger| !stranger.may_stay() && Arc::strong_count(&stranger.known) > 1);
            state.strangers.push_back(stranger.clone());
        }
        let mut permit = Permit { limiter: Arc::clone(self), network, stranger, permit: None };
        if let Ok(permit) = Arc::clone(&self.all).try_acquire_owned() {
            permit.permit = Some(permit);
            return Some(PendingPermit { permit, waits: false });
        }
        let oldest = {
            let mut state = lock(&self.state);
            // The last entry is the new connection.
            if state.strangers.len() > 1 { state.strangers.pop_front() } else { None }
        };
        oldest.map(|oldest| {
            oldest.leave.cancel();
            PendingPermit { permit, waits: true }
        })
    }
}

/// A permit that may have to wait for an evicted connection.
#[derive(Debug)]
pub(crate) struct PendingPermit {
    permit: Permit,
    waits: bool,
}

impl PendingPermit {
    /// Waits for the permit.
    pub(crate) async fn permit(self) -> Option<Permit> {
        let mut permit = self.permit;
        if self.waits {
            let permit = Arc::clone(&permit.limiter.all).acquire_owned();
            permit.permit = Some(tokio::time::timeout(HANDING_OVER, permit).await.ok()?.ok()?);
        }
        Some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(network) = self.network else { return };
        let mut state = lock(&self.limiter.state);
        if let Some(taken) = state.networks.get_mut(&network) {
            *taken = taken.saturating_sub(1);
            if *taken == 0 {
                state.networks.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    #[tokio::test]
    async fn a_network_has_a_part_of_the_places() {
        let limiter = ConnectionLimiter::new(4, 2);
        let first = limiter.take(HERE).unwrap().permit().await.unwrap();
        let _second = limiter.take(HERE).unwrap().permit().await.unwrap();
        assert!(limiter.take(HERE).is_none());
        assert!(limiter.take(Some("10.0.0.1".parse().unwrap())).is_some());
        drop(first);
        assert!(limiter.take(HERE).is_some());
    }

    #[tokio::test]
    async fn strangers_give_way_and_known_callers_stay() {
        let limiter = ConnectionLimiter::new(2, 10);
        let known = limiter.take(HERE).unwrap().permit().await.unwrap();
        known.stranger().is_known();
        let stranger = limiter.take(HERE).unwrap().permit().await.unwrap();
        let next = limiter.take(HERE).unwrap();
        stranger.stranger().has_to_leave().await;
        drop(stranger);
        let next = next.permit().await.unwrap();
        next.stranger().is_known();
        assert!(limiter.take(HERE).is_none());
    }
}
