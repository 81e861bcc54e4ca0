//! Locks of rows of all transactions, by primary key. They are given in the order in which they are asked for, and held until the
//! transaction ends, however it does. Who would wait for somebody that waits for it gets an error instead.

use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_engine::{RowKey, WatchList};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Locks of all transactions, each of about 100 bytes.
const MAX_LOCKS: usize = 1 << 20;
const MAX_WAITING: usize = 10_000;

#[derive(Debug)]
pub(crate) struct RowLocks {
    state: Mutex<State>,
    max_locks: usize,
}

#[derive(Debug, Default)]
struct State {
    rows: HashMap<RowKey, Row>,
    waiting: HashMap<u64, RowKey>,
    next_owner: u64,
}

#[derive(Debug)]
struct Row {
    owner: u64,
    queue: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    owner: u64,
    granted: oneshot::Sender<()>,
}

/// The locks of one transaction. Dropping it gives them to those that wait.
#[derive(Debug)]
pub(crate) struct HeldLocks {
    locks: Arc<RowLocks>,
    owner: u64,
    rows: Vec<RowKey>,
    watched: WatchList,
}

/// What a transaction had locked and watched at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LocksMark {
    rows: usize,
    watched: usize,
}

#[derive(Debug)]
pub(crate) enum Asked {
    /// It is there now, or was before.
    Held { is_new: bool },
    /// Another transaction has it.
    Busy,
}

/// A lock that another transaction has. Dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    held: &'a mut HeldLocks,
    row: RowKey,
    granted: oneshot::Receiver<()>,
}

impl Default for RowLocks {
    fn default() -> Self {
        Self { state: Mutex::default(), max_locks: MAX_LOCKS }
    }
}

impl RowLocks {
    /// A new transaction, without locks.
    pub(crate) fn owner(self: &Arc<Self>) -> HeldLocks {
        let mut state = self.state.lock();
        state.next_owner += 1;
        let (locks, owner) = (Arc::clone(self), state.next_owner);
        HeldLocks { locks, owner, rows: Vec::new(), watched: WatchList::default() }
    }
}

impl HeldLocks {
    /// Takes a lock, unless another transaction has it.
    ///
    /// # Errors
    /// `LimitReached` with too many locks, of all transactions or of this one: it leaves half of them to others.
    pub(crate) fn take(&mut self, row: RowKey) -> Result<Asked> {
        {
            let mut state = self.locks.state.lock();
            let most = self.locks.max_locks;
            let is_full = state.rows.len() >= most || self.rows.len() >= most / 2;
            match state.rows.get(&row) {
                Some(there) if there.owner == self.owner => return Ok(Asked::Held { is_new: false }),
                Some(_) => return Ok(Asked::Busy),
                None if is_full => return Err(too_many("rows are locked")),
                None => drop(state.rows.insert(row, Row::new(self.owner))),
            }
        }
        self.rows.push(row);
        Ok(Asked::Held { is_new: true })
    }

    /// Waits for a lock that was busy.
    ///
    /// # Errors
    /// `Conflict` where its owner waits for this transaction, and `LimitReached` with too many that wait.
    pub(crate) fn queue(&mut self, row: RowKey) -> Result<Waiting<'_>> {
        let (tell, granted) = oneshot::channel();
        let mut state = self.locks.state.lock();
        if state.waiting.len() >= MAX_WAITING {
            return Err(too_many("statements wait for locked rows"));
        }
        if state.waits_for(self.owner, row) {
            return Err(deadlock());
        }
        if let Some(there) = state.rows.get_mut(&row) {
            there.queue.push_back(Waiter { owner: self.owner, granted: tell });
            state.waiting.insert(self.owner, row);
        } else {
            // It was given back meanwhile.
            state.rows.insert(row, Row::new(self.owner));
            let _ = tell.send(());
        }
        drop(state);
        Ok(Waiting { held: self, row, granted })
    }

    /// What it has locked and watches by now, for [`HeldLocks::return_to`].
    pub(crate) fn mark(&self) -> LocksMark {
        LocksMark { rows: self.rows.len(), watched: self.watched.count() }
    }

    /// Gives the locks that it has taken since to those that wait, and forgets the rows that it watches since.
    pub(crate) fn return_to(&mut self, mark: LocksMark) {
        let mut state = self.locks.state.lock();
        let kept = mark.rows.min(self.rows.len());
        for row in self.rows.drain(kept..) {
            state.give_back(row);
        }
        self.watched.truncate(mark.watched);
    }

    /// The rows that nobody else may have changed.
    pub(crate) fn watched(&mut self) -> &mut WatchList {
        &mut self.watched
    }
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        self.return_to(LocksMark::default());
    }
}

impl Row {
    fn new(owner: u64) -> Self {
        Self { owner, queue: VecDeque::new() }
    }
}

impl Waiting<'_> {
    pub(crate) async fn granted(mut self) {
        // A sender goes only after it has sent.
        let _ = (&mut self.granted).await;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.held.locks.state.lock();
        state.waiting.remove(&self.held.owner);
        let Some(row) = state.rows.get_mut(&self.row) else { return };
        if row.owner == self.held.owner {
            // Also where nobody waits for it any more: it goes with the transaction.
            drop(state);
            self.held.rows.push(self.row);
        } else {
            row.queue.retain(|waiter| waiter.owner != self.held.owner);
        }
    }
}

impl State {
    fn give_back(&mut self, row: RowKey) {
        let Some(there) = self.rows.get_mut(&row) else { return };
        let Some(next) = there.queue.pop_front() else {
            self.rows.remove(&row);
            return;
        };
        there.owner = next.owner;
        self.waiting.remove(&next.owner);
        // Who has stopped to wait finds that it is the owner.
        let _ = next.granted.send(());
    }

    /// Whether those that have a row, or will have it before, wait for an owner.
    fn waits_for(&self, owner: u64, row: RowKey) -> bool {
        let mut seen = HashSet::new();
        let mut rows = vec![(row, None)];
        while let Some((row, waiter)) = rows.pop() {
            let Some(there) = self.rows.get(&row) else { continue };
            let before = there.queue.iter().map(|waiting| waiting.owner);
            let before = before.take_while(|other| Some(*other) != waiter);
            for other in before.chain([there.owner]) {
                if other == owner {
                    return true;
                }
                if seen.insert(other) {
                    rows.extend(self.waiting.get(&other).map(|row| (*row, Some(other))));
                }
            }
        }
        false
    }
}

fn deadlock() -> Error {
    Error::new(ErrorKind::Conflict, "deadlock detected: transactions wait for rows of one another")
        .with_reason(Reason::Deadlock)
        .with_hint("run the transaction again; lock rows in the same order everywhere to avoid deadlocks")
}

fn too_many(what: &str) -> Error {
    Error::new(ErrorKind::LimitReached, format!("too many {what}"))
        .with_hint("commit earlier, or change many rows by one statement, which locks none")
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn row(key: u64) -> RowKey {
        RowKey { table: [0; 16], key }
    }

    fn is_held(held: &mut HeldLocks, key: u64) -> bool {
        matches!(held.take(row(key)), Ok(Asked::Held { .. }))
    }

    #[tokio::test]
    async fn locks_are_given_in_order_and_go_with_their_owner() {
        let locks = Arc::new(RowLocks::default());
        let [mut first, mut second, mut third, mut fourth] = [(); 4].map(|()| locks.owner());
        assert!(is_held(&mut first, 1) && is_held(&mut first, 1) && is_held(&mut second, 2));
        assert!(!is_held(&mut second, 1));
        let mut waits = Box::pin(second.queue(row(1)).unwrap().granted());
        let mut left = Box::pin(third.queue(row(1)).unwrap().granted());
        let mut last = Box::pin(fourth.queue(row(1)).unwrap().granted());
        assert!((&mut waits).now_or_never().is_none());
        assert!((&mut left).now_or_never().is_none());
        assert!((&mut last).now_or_never().is_none());
        drop(left);
        drop(first);
        assert!((&mut last).now_or_never().is_none());
        // It has got the lock, and leaves before it hears of it.
        drop(waits);
        assert!(is_held(&mut second, 1));
        drop(second);
        last.now_or_never().expect("is next");
        assert!(is_held(&mut fourth, 1) && is_held(&mut third, 2));
        drop((third, fourth));
        let state = locks.state.lock();
        assert!(state.rows.is_empty() && state.waiting.is_empty());
    }

    #[tokio::test]
    async fn who_closes_a_cycle_gets_an_error() {
        let locks = Arc::new(RowLocks::default());
        let mut all: Vec<HeldLocks> = (0..4).map(|_| locks.owner()).collect();
        for (key, held) in all.iter_mut().enumerate() {
            assert!(is_held(held, key as u64));
        }
        let mut last = all.pop().expect("is there");
        let waiting: Vec<Waiting<'_>> =
            all.iter_mut().enumerate().map(|(key, held)| held.queue(row(key as u64 + 1)).unwrap()).collect();
        let error = last.queue(row(0)).unwrap_err();
        assert_eq!((error.kind(), error.reason()), (ErrorKind::Conflict, Some(Reason::Deadlock)));
        // Behind somebody who waits for it, too.
        let error = last.queue(row(2)).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::Deadlock));
        drop(waiting);
        assert!(last.queue(row(0)).is_ok(), "nobody waits any more");
    }

    #[test]
    fn locks_are_few() {
        let locks = Arc::new(RowLocks { max_locks: 4, ..RowLocks::default() });
        let [mut first, mut second, mut third] = [(); 3].map(|()| locks.owner());
        assert!(is_held(&mut first, 1) && is_held(&mut first, 2) && is_held(&mut second, 3));
        assert_eq!(first.take(row(4)).unwrap_err().kind(), ErrorKind::LimitReached);
        assert!(is_held(&mut second, 4));
        assert_eq!(third.take(row(5)).unwrap_err().kind(), ErrorKind::LimitReached);
        drop(first);
        assert!(is_held(&mut third, 5));
    }
}
