//! Limits connections, or concurrent requests, in total and per network. Flight SQL has its own limiter, which evicts
//! unauthenticated connections.

use crate::Network;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// A limit on concurrent connections, in total and per network.
#[derive(Debug)]
pub struct ConnectionLimiter {
    total: usize,
    per_network: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    total: usize,
    networks: HashMap<Network, usize>,
}

/// A permit; dropping it releases it.
#[derive(Debug)]
pub struct Permit {
    limiter: Arc<ConnectionLimiter>,
    address: IpAddr,
}

impl ConnectionLimiter {
    /// A limiter with `total` permits, of which one network may hold `per_network`.
    pub fn new(total: usize, per_network: usize) -> Arc<Self> {
        Arc::new(Self { total, per_network, held: Mutex::default() })
    }

    /// A permit for a client at this address; `None` if the limit is reached.
    pub fn try_acquire(self: &Arc<Self>, address: IpAddr) -> Option<Permit> {
        let (mut held, network) = (self.held.lock(), Network::from(address));
        let count = held.networks.get(&network).copied().unwrap_or(0);
        if held.total >= self.total || count >= self.per_network {
            return None;
        }
        held.total += 1;
        held.networks.insert(network, count + 1);
        drop(held);
        Some(Permit { limiter: Arc::clone(self), address })
    }
}

impl Permit {
    /// The address of the client.
    pub fn address(&self) -> IpAddr {
        self.address
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = self.limiter.held.lock();
        held.total = held.total.saturating_sub(1);
        let network = Network::from(self.address);
        if let Some(count) = held.networks.get_mut(&network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                held.networks.remove(&network);
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
        let limiter = ConnectionLimiter::new(3, 2);
        let first = limiter.try_acquire(here).unwrap();
        let _second = limiter.try_acquire(here).unwrap();
        assert!(limiter.try_acquire(here).is_none());
        assert!(limiter.try_acquire(beside).is_none(), "an address of the same network");
        let _third = limiter.try_acquire(there).unwrap();
        assert!(limiter.try_acquire(there).is_none());
        drop(first);
        assert!(limiter.try_acquire(there).is_some());
        assert!(limiter.try_acquire(here).is_some());
    }
}
