//! Who may have a connection, or a request in the works: a limited number, and a limited part of it for each address. The same
//! for all front ends but Flight SQL, where those without credentials give way.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places, some of which are taken.
#[derive(Debug)]
pub struct Places {
    all: usize,
    of_address: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    addresses: HashMap<IpAddr, usize>,
}

/// A place; dropping it gives it back.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    /// So many places, and at most so many for one address.
    pub fn new(all: usize, of_address: usize) -> Arc<Self> {
        Arc::new(Self { all, of_address, taken: Mutex::default() })
    }

    /// A place for somebody at this address; `None` if there is none for them.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut taken = self.lock();
        let here = taken.addresses.get(&address).copied().unwrap_or(0);
        if taken.all >= self.all || here >= self.of_address {
            return None;
        }
        taken.all += 1;
        taken.addresses.insert(address, here + 1);
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
        if let Some(here) = taken.addresses.get_mut(&self.address) {
            *here = here.saturating_sub(1);
            if *here == 0 {
                taken.addresses.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_few_and_fewer_for_one_address() {
        let (here, there) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 1]));
        let places = Places::new(3, 2);
        let first = places.take(here).unwrap();
        let _second = places.take(here).unwrap();
        assert!(places.take(here).is_none());
        let _third = places.take(there).unwrap();
        assert!(places.take(there).is_none());
        drop(first);
        assert!(places.take(there).is_some());
        assert!(places.take(here).is_some());
    }
}
