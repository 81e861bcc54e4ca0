//! The shared memory of one connection: mapped by the client, or returned and reusable. It is not shared between
//! connections, since old content stays behind new rows.

use super::SharedLimits;
use crate::metrics;
use bowshot_ipc::shared::SharedMemory;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long unused memory is pooled.
pub(crate) const IDLE: Duration = Duration::from_secs(2);

/// Shared memory of all connections.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: SharedLimits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: u64,
    users: HashMap<String, u64>,
}

impl Budget {
    pub(crate) fn new(limits: SharedLimits) -> Self {
        Self { limits, taken: Mutex::default() }
    }

    /// Room for so many bytes of a user on a connection that has `of`, if there is some.
    fn reserve(self: &Arc<Self>, user: &str, of: &Arc<AtomicU64>, bytes: usize) -> Option<Reservation> {
        let bytes = bytes as u64;
        if of.load(Ordering::Relaxed).saturating_add(bytes) > self.limits.connection_bytes {
            return None;
        }
        let mut taken = self.taken.lock();
        let of_user = taken.users.get(user).copied().unwrap_or(0).saturating_add(bytes);
        let all = taken.all.saturating_add(bytes);
        if of_user > self.limits.user_bytes || all > self.limits.total_bytes {
            return None;
        }
        taken.all = all;
        taken.users.insert(user.to_owned(), of_user);
        metrics::shared_bytes().set(all as f64);
        of.fetch_add(bytes, Ordering::Relaxed);
        Some(Reservation { budget: Arc::clone(self), user: user.to_owned(), of: Arc::clone(of), bytes })
    }
}

/// Bytes in the budget, until this is dropped.
#[derive(Debug)]
struct Reservation {
    budget: Arc<Budget>,
    user: String,
    of: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
        let mut taken = self.budget.taken.lock();
        taken.all = taken.all.saturating_sub(self.bytes);
        let left = taken.users.get(&self.user).copied().unwrap_or(0).saturating_sub(self.bytes);
        if left == 0 {
            taken.users.remove(&self.user);
        } else {
            taken.users.insert(self.user.clone(), left);
        }
        metrics::shared_bytes().set(taken.all as f64);
    }
}

#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) shared: SharedMemory,
    _reserved: Reservation,
}

#[derive(Debug)]
pub(crate) struct Pool {
    budget: Arc<Budget>,
    /// Bytes of all memory of the connection.
    bytes: Arc<AtomicU64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    user: String,
    next: u32,
    held: HashMap<u32, Memory>,
    idle: Vec<(Memory, Instant)>,
}

impl Pool {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, bytes: Arc::default(), state: Mutex::default() }
    }

    /// Sets the user of the memory; memory of another user is dropped.
    pub(crate) fn belongs_to(&self, user: &str) {
        let mut state = self.state.lock();
        if state.user != user {
            user.clone_into(&mut state.user);
            state.idle.clear();
        }
    }

    /// Memory filled with these bytes; `None` if the limits do not allow it.
    pub(crate) fn fill(&self, pieces: &[Bytes], length: usize) -> io::Result<Option<Memory>> {
        if let Some(mut memory) = self.take_idle(length) {
            memory.shared.refill(pieces)?;
            return Ok(Some(memory));
        }
        let capacity = SharedMemory::capacity_for(length);
        let Some(reserved) = self.reserve(capacity) else { return Ok(None) };
        Ok(Some(Memory { shared: SharedMemory::new(pieces)?, _reserved: reserved }))
    }

    /// The smallest that fits, and is not much too large.
    fn take_idle(&self, length: usize) -> Option<Memory> {
        let mut state = self.state.lock();
        let most = length.saturating_mul(2).max(SharedMemory::capacity_for(length));
        let fits = |memory: &Memory| (length..=most).contains(&memory.shared.capacity());
        let found = state.idle.iter().enumerate().filter(|(_, (memory, _))| fits(memory));
        let (index, _) = found.min_by_key(|(_, (memory, _))| memory.shared.capacity())?;
        Some(state.idle.swap_remove(index).0)
    }

    fn reserve(&self, capacity: usize) -> Option<Reservation> {
        let mut state = self.state.lock();
        let reserve = |user: &str| self.budget.reserve(user, &self.bytes, capacity);
        reserve(&state.user).or_else(|| {
            // Free unsuitable memory.
            state.idle.clear();
            reserve(&state.user)
        })
    }

    /// The number under which the client will give the memory back.
    pub(crate) fn number(&self) -> u32 {
        let mut state = self.state.lock();
        state.next = state.next.wrapping_add(1);
        state.next
    }

    /// The client has the memory from now on.
    pub(crate) fn hold(&self, number: u32, memory: Memory) {
        self.state.lock().held.insert(number, memory);
    }

    /// The client has given back memory with these numbers, four bytes for each; others mean nothing.
    pub(crate) fn release(&self, numbers: &[u8]) {
        let mut state = self.state.lock();
        let (numbers, _) = numbers.as_chunks::<4>();
        for number in numbers {
            if let Some(memory) = state.held.remove(&u32::from_le_bytes(*number)) {
                state.idle.push((memory, Instant::now()));
            }
        }
    }

    /// Drops memory that was unused too long; returns whether some is left.
    pub(crate) fn tidy(&self) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        state.idle.retain(|(_, since)| now.duration_since(*since) < IDLE);
        !state.idle.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn pool(limits: SharedLimits) -> Pool {
        let pool = Pool::new(Arc::new(Budget::new(limits)));
        pool.belongs_to("ada");
        pool
    }

    fn filled(pool: &Pool) -> Option<u32> {
        let memory = pool.fill(&[Bytes::from_static(b"abc")], 3).unwrap()?;
        let number = pool.number();
        pool.hold(number, memory);
        Some(number)
    }

    #[test]
    fn memory_that_was_given_back_is_filled_again() {
        let pool =
            pool(SharedLimits { connection_bytes: 2 * MIB, user_bytes: 9 * MIB, total_bytes: 9 * MIB });
        let long = vec![Bytes::from(vec![1; 700_000])];
        let memory = pool.fill(&long, 700_000).unwrap().unwrap();
        pool.hold(1, memory);
        pool.release(&[1_u32.to_le_bytes(), 77_u32.to_le_bytes()].concat());
        assert!(pool.tidy());
        assert!(pool.fill(&long, 700_000).unwrap().is_some());
        assert!(!pool.tidy(), "it was taken");
        pool.release(b"abc");
    }

    #[test]
    fn each_limit_counts() {
        for (connection, user, total) in [(2, 9, 9), (9, 2, 9), (9, 9, 2)] {
            let limits = SharedLimits {
                connection_bytes: connection * MIB,
                user_bytes: user * MIB,
                total_bytes: total * MIB,
            };
            let pool = pool(limits);
            let first = filled(&pool).unwrap();
            assert!(filled(&pool).is_some());
            assert!(filled(&pool).is_none(), "{limits:?}");
            pool.release(&first.to_le_bytes());
            assert!(filled(&pool).is_some());
            let budget = Arc::clone(&pool.budget);
            drop(pool);
            assert_eq!(budget.taken.lock().all, 0);
            assert!(budget.taken.lock().users.is_empty());
        }
    }

    #[test]
    fn another_user_gets_new_memory() {
        let pool =
            pool(SharedLimits { connection_bytes: 9 * MIB, user_bytes: 9 * MIB, total_bytes: 9 * MIB });
        let number = filled(&pool).unwrap();
        pool.release(&number.to_le_bytes());
        pool.belongs_to("bob");
        assert!(!pool.tidy());
        assert_eq!(pool.budget.taken.lock().all, 0);
    }
}
