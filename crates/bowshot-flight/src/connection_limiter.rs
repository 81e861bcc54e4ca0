//! Limits connections in total and per network. When permits run out, unauthenticated connections are closed, the
//! oldest first.

use bowshot_api::Network;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// How long a new connection waits for an evicted one to close.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    all: Arc<Semaphore>,
    per_network: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    networks: HashMap<Network, usize>,
    unauthenticated: VecDeque<EvictionHandle>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct EvictionHandle {
    known: Arc<AtomicBool>,
    leave: CancellationToken,
}

impl EvictionHandle {
    pub(crate) fn mark_authenticated(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    pub(crate) async fn evicted(&self) {
        self.leave.cancelled().await;
    }
}

/// A permit; dropping it releases it.
#[derive(Debug)]
pub(crate) struct Permit {
    limiter: Arc<ConnectionLimiter>,
    network: Option<Network>,
    eviction: EvictionHandle,
    slot: Option<OwnedSemaphorePermit>,
}

impl Permit {
    pub(crate) fn eviction(&self) -> &EvictionHandle {
        &self.eviction
    }
}

impl ConnectionLimiter {
    pub(crate) fn new(all: usize, per_network: usize) -> Arc<Self> {
        let all = Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { all, per_network, state: Mutex::default() })
    }

    /// A permit, at once or by evicting an unauthenticated connection; `None` if all are authenticated or the network
    /// has too many.
    pub(crate) fn try_acquire(self: &Arc<Self>, address: Option<IpAddr>) -> Option<PendingPermit> {
        let (eviction, network) = (EvictionHandle::default(), address.map(Network::from));
        {
            let mut state = self.state.lock();
            if let Some(network) = network {
                let taken = state.networks.entry(network).or_default();
                if *taken >= self.per_network {
                    return None;
                }
                *taken += 1;
            }
            state.unauthenticated.retain(|EvictionHandle { known, .. }| {
                !known.load(Ordering::Relaxed) && Arc::strong_count(known) > 1
            });
            state.unauthenticated.push_back(eviction.clone());
        }
        let mut permit = Permit { limiter: Arc::clone(self), network, eviction, slot: None };
        if let Ok(slot) = Arc::clone(&self.all).try_acquire_owned() {
            permit.slot = Some(slot);
            return Some(PendingPermit { permit, waits: false });
        }
        let oldest = {
            let mut state = self.state.lock();
            // The last entry is the new connection.
            if state.unauthenticated.len() > 1 { state.unauthenticated.pop_front() } else { None }
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
    pub(crate) async fn permit(self) -> Option<Permit> {
        let mut permit = self.permit;
        if self.waits {
            let slot = Arc::clone(&permit.limiter.all).acquire_owned();
            permit.slot = Some(tokio::time::timeout(EVICTION_TIMEOUT, slot).await.ok()?.ok()?);
        }
        Some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(network) = self.network else { return };
        let mut state = self.limiter.state.lock();
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
    async fn a_network_has_a_limit() {
        let limiter = ConnectionLimiter::new(4, 2);
        let first = limiter.try_acquire(HERE).unwrap().permit().await.unwrap();
        let _second = limiter.try_acquire(HERE).unwrap().permit().await.unwrap();
        assert!(limiter.try_acquire(HERE).is_none());
        assert!(limiter.try_acquire(Some("10.0.0.1".parse().unwrap())).is_some());
        drop(first);
        assert!(limiter.try_acquire(HERE).is_some());
    }

    #[tokio::test]
    async fn unauthenticated_connections_are_evicted() {
        let limiter = ConnectionLimiter::new(2, 10);
        let known = limiter.try_acquire(HERE).unwrap().permit().await.unwrap();
        known.eviction().mark_authenticated();
        let evicted = limiter.try_acquire(HERE).unwrap().permit().await.unwrap();
        let next = limiter.try_acquire(HERE).unwrap();
        evicted.eviction().evicted().await;
        drop(evicted);
        let next = next.permit().await.unwrap();
        next.eviction().mark_authenticated();
        assert!(limiter.try_acquire(HERE).is_none());
    }
}
