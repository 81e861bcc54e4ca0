//! Commits that come at the same time: one of them does the work of all that wait, the first of those that come meanwhile that of
//! the next ones. Each is woken once.

use parking_lot::{Condvar, Mutex};
use std::mem;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct CommitQueue<T>(Mutex<Queue<T>>);

#[derive(Debug)]
struct Queue<T> {
    waiting: Vec<Arc<Waiting<T>>>,
    has_leader: bool,
}

#[derive(Debug)]
struct Waiting<T> {
    commit: Arc<T>,
    turn: Mutex<Turn>,
    has_turned: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Waits,
    Leads,
    IsDone,
}

#[derive(Debug)]
pub(super) struct Leader<'q, T> {
    queue: &'q CommitQueue<T>,
    taken: Vec<Arc<Waiting<T>>>,
}

impl<T> Default for CommitQueue<T> {
    fn default() -> Self {
        Self(Mutex::new(Queue { waiting: Vec::new(), has_leader: false }))
    }
}

impl<T> CommitQueue<T> {
    /// Adds a commit. A leader does the work of all; the others return when the leader that took theirs has ended. Blocks.
    pub(super) fn join(&self, commit: &Arc<T>) -> Option<Leader<'_, T>> {
        let (turn, has_turned) = (Mutex::new(Turn::Waits), Condvar::new());
        let this = Arc::new(Waiting { commit: Arc::clone(commit), turn, has_turned });
        let leads = {
            let mut queue = self.0.lock();
            queue.waiting.push(Arc::clone(&this));
            !mem::replace(&mut queue.has_leader, true)
        };
        (leads || this.wait() == Turn::Leads).then(|| Leader { queue: self, taken: Vec::new() })
    }
}

impl<T> Waiting<T> {
    fn put(&self, turn: Turn) {
        *self.turn.lock() = turn;
        self.has_turned.notify_one();
    }

    fn wait(&self) -> Turn {
        let mut turn = self.turn.lock();
        while *turn == Turn::Waits {
            self.has_turned.wait(&mut turn);
        }
        *turn
    }
}

impl<T> Leader<'_, T> {
    /// All commits that wait by now, in their order. They come back when this ends.
    pub(super) fn take(&mut self) -> Vec<Arc<T>> {
        let taken = mem::take(&mut self.queue.0.lock().waiting);
        let commits = taken.iter().map(|waiting| Arc::clone(&waiting.commit)).collect();
        self.taken.extend(taken);
        commits
    }
}

/// Also after a panic: nobody waits for a leader that is gone.
impl<T> Drop for Leader<'_, T> {
    fn drop(&mut self) {
        self.taken.iter().for_each(|waiting| waiting.put(Turn::IsDone));
        let mut queue = self.queue.0.lock();
        match queue.waiting.first() {
            Some(next) => next.put(Turn::Leads),
            None => queue.has_leader = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    #[test]
    fn those_that_come_meanwhile_are_done_together() {
        for breaks in [false, true] {
            let queue = CommitQueue::default();
            let groups = Mutex::new(Vec::new());
            let join = |number: usize| {
                if let Some(mut leader) = queue.join(&Arc::new(number)) {
                    groups.lock().push(leader.take().len());
                }
            };
            let mut first = queue.join(&Arc::new(0)).expect("nobody else is there");
            assert_eq!(*first.take()[0], 0);
            thread::scope(|scope| {
                let others: Vec<_> = (1..=8).map(|number| scope.spawn(move || join(number))).collect();
                while queue.0.lock().waiting.len() < others.len() {
                    thread::yield_now();
                }
                if breaks {
                    let broken = catch_unwind(AssertUnwindSafe(move || {
                        let _leader = first;
                        panic!("the leader breaks down");
                    }));
                    assert!(broken.is_err());
                } else {
                    drop(first);
                }
            });
            assert_eq!(*groups.lock(), [8]);
            assert!(queue.join(&Arc::new(9)).is_some_and(|mut leader| leader.take().len() == 1));
        }
    }
}
