//! Who may have a connection, or a request in the works: a limited number, and a limited part of it for each network. The same
//! for all front ends but Flight SQL, where those without credentials give way.

use crate::Network;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places, some of which are taken.
#[derive(Debug)]
pub struct Places {
    all: usize,
    of_network: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    networks: HashMap<Network, usize>,
}

/// A place; dropping it gives it back.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    /// So many places, and at most so many for one network.
    pub fn new(all: usize, of_network: usize) -> Arc<Self> {
        Arc::new(Self { all, of_network, taken: Mutex::default() })
    }

    /// A place for somebody at this address; `None` if there is none for them.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let (mut taken, network) = (self.lock(), Network::from(address));
        let here = taken.networks.get(&network).copied().unwrap_or(0);
        if taken.all >= self.all || here >= self.of_network {
            return None;
        }
        taken.all += 1;
        taken.networks.insert(network, here + 1);
        drop(taken);
        Some(Place { places: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whose it is.
    pub fn address(&self) -> IpAddr {
        self.address
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all = taken.all.saturating_sub(1);
        let network = Network::from(self.address);
        if let Some(here) = taken.networks.get_mut(&network) {
            *here = here.saturating_sub(1);
            if *here == 0 {
                taken.networks.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_few_and_fewer_for_one_network() {
        let [here, beside, there] =
            ["2001:db8::1", "2001:db8::2", "10.0.0.1"].map(|address| address.parse().unwrap());
        let places = Places::new(3, 2);
        let first = places.take(here).unwrap();
        let _second = places.take(here).unwrap();
        assert!(places.take(here).is_none());
        assert!(places.take(beside).is_none(), "an address of the same network");
        let _third = places.take(there).unwrap();
        assert!(places.take(there).is_none());
        drop(first);
        assert!(places.take(there).is_some());
        assert!(places.take(here).is_some());
    }
}
