//! Admission control: limits running and queued statements in total, per user and per session. A free slot goes to
//! the user with the fewest.

use bowshot_api::{Error, ErrorKind, Limits, Result, SessionId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// Paused statements per slot.
const PAUSED: usize = 4;

#[derive(Debug)]
pub(crate) struct Admission {
    queue: Arc<WaitQueue>,
    timeout: Duration,
}

/// The user and session of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) user: Arc<str>,
    pub(crate) session: SessionId,
}

/// A slot for one running statement; dropping it admits the next one.
#[derive(Debug)]
pub(crate) struct Slot {
    queue: Arc<WaitQueue>,
    requester: Requester,
    paused: AtomicBool,
}

#[derive(Debug)]
struct WaitQueue {
    state: Mutex<State>,
    limits: SlotLimits,
}

#[derive(Debug, Clone, Copy)]
struct SlotLimits {
    running: usize,
    running_of_user: usize,
    running_of_session: usize,
    waiting: usize,
    waiting_of_user: usize,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    paused: usize,
    paused_users: HashMap<Arc<str>, usize>,
    users: HashMap<Arc<str>, usize>,
    sessions: HashMap<SessionId, usize>,
    waiting: Vec<Waiter>,
    next: u64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    requester: Requester,
    tell: oneshot::Sender<Slot>,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        let running = limits.max_running_queries.max(1);
        let within = |limit: usize| limit.clamp(1, running);
        let slots = SlotLimits {
            running,
            running_of_user: within(limits.max_running_queries_per_user),
            running_of_session: within(limits.max_running_queries_per_session),
            waiting: limits.max_queued_queries,
            waiting_of_user: limits.max_queued_queries_per_user.min(limits.max_queued_queries),
        };
        let queue = Arc::new(WaitQueue { state: Mutex::default(), limits: slots });
        Self { queue, timeout: limits.queue_timeout }
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// `LimitReached` when the line is full, `Timeout` when it does not move in time.
    pub(crate) async fn enter(&self, requester: &Requester) -> Result<Slot> {
        let (waiting, number) = match self.queue.enter(requester)? {
            Ok(slot) => return Ok(slot),
            Err(waiting) => waiting,
        };
        let left = LeaveQueue { queue: &self.queue, number };
        let entered = tokio::time::timeout(self.timeout, waiting).await;
        drop(left);
        match entered {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_closed)) => Err(Error::new(ErrorKind::Unavailable, "the server is stopping")),
            Err(_elapsed) => Err(Error::new(ErrorKind::Timeout, "no slot became free in time").with_hint(
                "try again later, or raise `limits.max_running_queries` or `limits.queue_timeout`",
            )),
        }
    }

    /// Statements with a slot, paused ones included.
    pub(crate) fn running(&self) -> usize {
        let state = self.queue.state.lock();
        state.running + state.paused
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.state.lock().waiting.len()
    }
}

/// Removes a waiter from the queue when it is dropped.
struct LeaveQueue<'a> {
    queue: &'a WaitQueue,
    number: u64,
}

impl Drop for LeaveQueue<'_> {
    fn drop(&mut self) {
        self.queue.state.lock().waiting.retain(|waiter| waiter.number != self.number);
    }
}

type Waiting = (oneshot::Receiver<Slot>, u64);

impl WaitQueue {
    /// A slot if one is free and no waiter is eligible for it, else a position in the queue.
    fn enter(self: &Arc<Self>, requester: &Requester) -> Result<Result<Slot, Waiting>> {
        let mut state = self.state.lock();
        if state.has_free_slot(requester, self.limits)
            && !state.waiting.iter().any(|other| state.has_free_slot(&other.requester, self.limits))
        {
            state.count(requester);
            return Ok(Ok(self.slot(requester)));
        }
        let of_user = state.waiting.iter().filter(|waiter| waiter.requester.user == requester.user).count();
        if state.waiting.len() >= self.limits.waiting {
            return Err(full("too many queries are running and queued", "limits.max_queued_queries"));
        }
        if of_user >= self.limits.waiting_of_user {
            return Err(full(
                "too many queries of this user are running and queued",
                "limits.max_queued_queries_per_user",
            ));
        }
        let (tell, waiting) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        state.waiting.push(Waiter { number, requester: requester.clone(), tell });
        Ok(Err((waiting, number)))
    }

    fn slot(self: &Arc<Self>, requester: &Requester) -> Slot {
        Slot { queue: Arc::clone(self), requester: requester.clone(), paused: AtomicBool::new(false) }
    }

    /// Gives free slots to waiters.
    fn admit_waiting(self: &Arc<Self>) {
        loop {
            let waiter = {
                let mut state = self.state.lock();
                let Some(at) = state.next_waiter(self.limits) else { return };
                let waiter = state.waiting.remove(at);
                state.count(&waiter.requester);
                waiter
            };
            // A waiter that has left drops the slot, which admits the next one.
            let _left = waiter.tell.send(self.slot(&waiter.requester));
        }
    }
}

impl State {
    fn has_free_slot(&self, requester: &Requester, limits: SlotLimits) -> bool {
        self.running < limits.running
            && self.of_user(requester) < limits.running_of_user
            && self.sessions.get(&requester.session).copied().unwrap_or(0) < limits.running_of_session
    }

    fn of_user(&self, requester: &Requester) -> usize {
        self.users.get(&requester.user).copied().unwrap_or(0)
    }

    /// The first eligible waiter of the user with the fewest slots.
    fn next_waiter(&self, limits: SlotLimits) -> Option<usize> {
        let waiting = self.waiting.iter().enumerate();
        let fitting = waiting.filter(|(_, waiter)| self.has_free_slot(&waiter.requester, limits));
        fitting.min_by_key(|(_, waiter)| (self.of_user(&waiter.requester), waiter.number)).map(|(at, _)| at)
    }

    fn count(&mut self, requester: &Requester) {
        self.running += 1;
        *self.users.entry(Arc::clone(&requester.user)).or_default() += 1;
        *self.sessions.entry(requester.session).or_default() += 1;
    }

    fn may_pause(&self, requester: &Requester, limits: SlotLimits) -> bool {
        let of_user = self.paused_users.get(&requester.user).copied().unwrap_or(0);
        self.paused < limits.running.saturating_mul(PAUSED)
            && of_user < limits.running_of_user.saturating_mul(PAUSED)
    }

    fn end_pause(&mut self, requester: &Requester) {
        self.paused = self.paused.saturating_sub(1);
        one_less(&mut self.paused_users, &requester.user);
    }

    fn discount(&mut self, requester: &Requester) {
        self.running = self.running.saturating_sub(1);
        one_less(&mut self.users, &requester.user);
        one_less(&mut self.sessions, &requester.session);
    }
}

fn one_less<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

fn full(message: &str, limit: &str) -> Error {
    Error::new(ErrorKind::LimitReached, message).with_hint(format!("try again later, or raise `{limit}`"))
}

impl Slot {
    /// Lends the slot while the statement waits for its client, unless too many are paused: each holds its results.
    pub(crate) fn pause(&self) {
        let mut state = self.queue.state.lock();
        if self.is_paused() || !state.may_pause(&self.requester, self.queue.limits) {
            return;
        }
        self.paused.store(true, Ordering::Release);
        state.discount(&self.requester);
        state.paused += 1;
        *state.paused_users.entry(Arc::clone(&self.requester.user)).or_default() += 1;
        drop(state);
        self.queue.admit_waiting();
    }

    /// Takes the slot back without queueing, even above the limit.
    pub(crate) fn resume(&self) {
        let mut state = self.queue.state.lock();
        if self.paused.swap(false, Ordering::AcqRel) {
            state.end_pause(&self.requester);
            state.count(&self.requester);
        }
    }

    fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        if self.is_paused() {
            state.end_pause(&self.requester);
        } else {
            state.discount(&self.requester);
        }
        drop(state);
        self.queue.admit_waiting();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn admission() -> Admission {
        Admission::new(&Limits {
            max_running_queries: 4,
            max_running_queries_per_user: 3,
            max_running_queries_per_session: 2,
            max_queued_queries: 4,
            max_queued_queries_per_user: 2,
            ..Limits::default()
        })
    }

    fn requester(user: &str, session: SessionId) -> Requester {
        Requester { user: Arc::from(user), session }
    }

    fn now(admission: &Admission, requester: &Requester) -> Option<Result<Slot>> {
        admission.enter(requester).now_or_never()
    }

    #[tokio::test]
    async fn nobody_takes_the_last_place() {
        let admission = admission();
        let [a, b] = [requester("eve", SessionId::random()), requester("eve", SessionId::random())];
        let mut held: Vec<Slot> = (0..2).map(|_| now(&admission, &a).unwrap().unwrap()).collect();
        assert!(now(&admission, &a).is_none(), "a session has its limit");
        held.push(now(&admission, &b).unwrap().unwrap());
        assert!(now(&admission, &b).is_none(), "a user has a limit");
        held.push(now(&admission, &requester("ann", SessionId::random())).unwrap().unwrap());
        assert!(now(&admission, &requester("bob", SessionId::random())).is_none(), "the server has a limit");
        assert_eq!((admission.running(), admission.waiting()), (4, 0), "who left the line is not in it");
        drop(held);
        assert_eq!(admission.running(), 0);
    }

    #[tokio::test]
    async fn who_has_the_fewest_is_next() {
        let admission = admission();
        let (eve, ann) = (requester("eve", SessionId::random()), requester("ann", SessionId::random()));
        let other = requester("eve", SessionId::random());
        let mut held: Vec<Slot> = (0..2).map(|_| now(&admission, &eve).unwrap().unwrap()).collect();
        held.extend((0..2).map(|_| now(&admission, &ann).unwrap().unwrap()));
        let mut waiting: Vec<_> = [&other, &other, &requester("bob", SessionId::random())]
            .map(|requester| {
                let (admission, requester) = (&admission, requester.clone());
                Box::pin(async move { admission.enter(&requester).await })
            })
            .into();
        for wait in &mut waiting {
            assert!(wait.now_or_never().is_none());
        }
        assert_eq!(now(&admission, &other).unwrap().unwrap_err().kind(), ErrorKind::LimitReached);
        held.pop();
        let bob = waiting.pop().unwrap().now_or_never().unwrap();
        assert_eq!(&*bob.unwrap().requester.user, "bob");
    }

    #[tokio::test]
    async fn whoever_leaves_gives_the_slot_back() {
        let admission = admission();
        let eve = requester("eve", SessionId::random());
        for _ in 0..16 {
            let held: Vec<Slot> = (0..2).map(|_| now(&admission, &eve).unwrap().unwrap()).collect();
            let (mut told, mut next) = (Box::pin(admission.enter(&eve)), Box::pin(admission.enter(&eve)));
            assert!((&mut told).now_or_never().is_none() && (&mut next).now_or_never().is_none());
            // After it got the slot, before its next poll.
            drop(held);
            drop(told);
            drop((&mut next).now_or_never().unwrap().unwrap());
            assert_eq!((admission.running(), admission.waiting()), (0, 0));
        }
    }

    #[tokio::test]
    async fn who_waits_for_a_client_leaves_the_place_to_others() {
        let admission = admission();
        let eve = requester("eve", SessionId::random());
        let held: Vec<Slot> = (0..2).map(|_| now(&admission, &eve).unwrap().unwrap()).collect();
        let mut next = Box::pin(admission.enter(&eve));
        assert!((&mut next).now_or_never().is_none());
        held[0].pause();
        let third = (&mut next).now_or_never().unwrap().unwrap();
        held[0].resume();
        assert_eq!(admission.running(), 3);
        assert!(now(&admission, &eve).is_none());
        drop((held, third));
        assert_eq!(admission.running(), 0);
    }
}
