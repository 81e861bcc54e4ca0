//! Who may have a connection: a limited number, a limited part of it for each network, and when places run short, those who
//! have a place and have not said who they are give it up, the oldest first.

use crate::auth::lock;
use bowshot_api::Network;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// How long somebody new waits for the place of one who has to go.
const HANDING_OVER: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    of_network: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    networks: HashMap<Network, usize>,
    strangers: VecDeque<Stranger>,
}

/// Somebody who has a place and may still be unknown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stranger {
    known: Arc<AtomicBool>,
    leave: CancellationToken,
}

impl Stranger {
    /// The caller has said who it is.
    pub(crate) fn is_known(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    /// Waits until the place is wanted by somebody else.
    pub(crate) async fn has_to_leave(&self) {
        self.leave.cancelled().await;
    }

    fn may_stay(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }
}

/// A place; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    network: Option<Network>,
    stranger: Stranger,
    permit: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// Whose it is.
    pub(crate) fn stranger(&self) -> &Stranger {
        &self.stranger
    }
}

impl Places {
    pub(crate) fn new(all: usize, of_network: usize) -> Arc<Self> {
        let all = Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { all, of_network, state: Mutex::default() })
    }

    /// A place if there is one, or one that somebody has to give up; `None` if all are taken by those who are known, or
    /// too many by this network.
    pub(crate) fn take(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Claim> {
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
        let mut place = Place { places: Arc::clone(self), network, stranger, permit: None };
        if let Ok(permit) = Arc::clone(&self.all).try_acquire_owned() {
            place.permit = Some(permit);
            return Some(Claim { place, waits: false });
        }
        let oldest = {
            let mut state = lock(&self.state);
            // The last one is the new one.
            if state.strangers.len() > 1 { state.strangers.pop_front() } else { None }
        };
        oldest.map(|oldest| {
            oldest.leave.cancel();
            Claim { place, waits: true }
        })
    }
}

/// A place, or the right to the next one.
#[derive(Debug)]
pub(crate) struct Claim {
    place: Place,
    waits: bool,
}

impl Claim {
    /// Waits for the place if somebody is about to give it up.
    pub(crate) async fn place(self) -> Option<Place> {
        let mut place = self.place;
        if self.waits {
            let permit = Arc::clone(&place.places.all).acquire_owned();
            place.permit = Some(tokio::time::timeout(HANDING_OVER, permit).await.ok()?.ok()?);
        }
        Some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(network) = self.network else { return };
        let mut state = lock(&self.places.state);
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
        let places = Places::new(4, 2);
        let first = places.take(HERE).unwrap().place().await.unwrap();
        let _second = places.take(HERE).unwrap().place().await.unwrap();
        assert!(places.take(HERE).is_none());
        assert!(places.take(Some("10.0.0.1".parse().unwrap())).is_some());
        drop(first);
        assert!(places.take(HERE).is_some());
    }

    #[tokio::test]
    async fn strangers_give_way_and_known_callers_stay() {
        let places = Places::new(2, 10);
        let known = places.take(HERE).unwrap().place().await.unwrap();
        known.stranger().is_known();
        let stranger = places.take(HERE).unwrap().place().await.unwrap();
        let next = places.take(HERE).unwrap();
        stranger.stranger().has_to_leave().await;
        drop(stranger);
        let next = next.place().await.unwrap();
        next.stranger().is_known();
        assert!(places.take(HERE).is_none());
    }
}
