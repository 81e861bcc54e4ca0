//! How many statements run at once, and how many may wait in line: on the whole, for each user and for each session, so that
//! nobody takes the last place. When a place becomes free, it goes to the user who has the fewest.

use bowshot_api::{Error, ErrorKind, Limits, Result, SessionId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Statements that may wait for their clients without a slot, for each slot.
const PAUSED: usize = 4;

/// The gate in front of the engine.
#[derive(Debug)]
pub(crate) struct Admission {
    line: Arc<Line>,
    timeout: Duration,
}

/// Who wants to run something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) user: Arc<str>,
    pub(crate) session: SessionId,
}

/// The right to run; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Slot {
    line: Arc<Line>,
    who: Who,
    paused: AtomicBool,
}

#[derive(Debug)]
struct Line {
    state: Mutex<State>,
    most: Most,
}

#[derive(Debug, Clone, Copy)]
struct Most {
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
    who: Who,
    tell: oneshot::Sender<Slot>,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        let running = limits.max_running_queries.max(1);
        let within = |limit: usize| limit.clamp(1, running);
        let most = Most {
            running,
            running_of_user: within(limits.max_running_queries_per_user),
            running_of_session: within(limits.max_running_queries_per_session),
            waiting: limits.max_queued_queries,
            waiting_of_user: limits.max_queued_queries_per_user.min(limits.max_queued_queries),
        };
        let line = Arc::new(Line { state: Mutex::default(), most });
        Self { line, timeout: limits.queue_timeout }
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// `LimitReached` when the line is full, `Timeout` when it does not move in time.
    pub(crate) async fn enter(&self, who: &Who) -> Result<Slot> {
        let (waiting, number) = match self.line.enter(who)? {
            Ok(slot) => return Ok(slot),
            Err(waiting) => waiting,
        };
        let left = LeaveLine { line: &self.line, number };
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

    /// Statements that hold a slot, and those that have left it to others while they wait for their clients.
    pub(crate) fn running(&self) -> usize {
        let state = self.line.lock();
        state.running + state.paused
    }

    pub(crate) fn waiting(&self) -> usize {
        self.line.lock().waiting.len()
    }
}

/// Takes a waiter out of the line who does not wait any more.
struct LeaveLine<'a> {
    line: &'a Line,
    number: u64,
}

impl Drop for LeaveLine<'_> {
    fn drop(&mut self) {
        self.line.lock().waiting.retain(|waiter| waiter.number != self.number);
    }
}

/// A waiter's place in the line.
type Waiting = (oneshot::Receiver<Slot>, u64);

impl Line {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot if there is one for this user and nobody comes before, else a place in the line.
    fn enter(self: &Arc<Self>, who: &Who) -> Result<Result<Slot, Waiting>> {
        let mut state = self.lock();
        if state.has_room(who, self.most)
            && !state.waiting.iter().any(|other| state.has_room(&other.who, self.most))
        {
            state.count(who);
            return Ok(Ok(self.slot(who)));
        }
        let of_user = state.waiting.iter().filter(|waiter| waiter.who.user == who.user).count();
        if state.waiting.len() >= self.most.waiting {
            return Err(full("too many queries run and wait", "limits.max_queued_queries"));
        }
        if of_user >= self.most.waiting_of_user {
            return Err(full(
                "too many queries of this user run and wait",
                "limits.max_queued_queries_per_user",
            ));
        }
        let (tell, waiting) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        state.waiting.push(Waiter { number, who: who.clone(), tell });
        Ok(Err((waiting, number)))
    }

    fn slot(self: &Arc<Self>, who: &Who) -> Slot {
        Slot { line: Arc::clone(self), who: who.clone(), paused: AtomicBool::new(false) }
    }

    /// Lets those in for whom there is room now.
    fn let_in(self: &Arc<Self>) {
        loop {
            let waiter = {
                let mut state = self.lock();
                let Some(at) = state.next_in_line(self.most) else { return };
                let waiter = state.waiting.remove(at);
                state.count(&waiter.who);
                waiter
            };
            // One who has left gives the slot back at once, which lets the next one in.
            let _left = waiter.tell.send(self.slot(&waiter.who));
        }
    }
}

impl State {
    fn has_room(&self, who: &Who, most: Most) -> bool {
        self.running < most.running
            && self.of_user(who) < most.running_of_user
            && self.sessions.get(&who.session).copied().unwrap_or(0) < most.running_of_session
    }

    fn of_user(&self, who: &Who) -> usize {
        self.users.get(&who.user).copied().unwrap_or(0)
    }

    /// Of those for whom there is room, the first one of the user who has the fewest slots.
    fn next_in_line(&self, most: Most) -> Option<usize> {
        let waiting = self.waiting.iter().enumerate();
        let fitting = waiting.filter(|(_, waiter)| self.has_room(&waiter.who, most));
        fitting.min_by_key(|(_, waiter)| (self.of_user(&waiter.who), waiter.number)).map(|(at, _)| at)
    }

    fn count(&mut self, who: &Who) {
        self.running += 1;
        *self.users.entry(Arc::clone(&who.user)).or_default() += 1;
        *self.sessions.entry(who.session).or_default() += 1;
    }

    fn may_pause(&self, who: &Who, most: Most) -> bool {
        let of_user = self.paused_users.get(&who.user).copied().unwrap_or(0);
        self.paused < most.running.saturating_mul(PAUSED)
            && of_user < most.running_of_user.saturating_mul(PAUSED)
    }

    fn end_pause(&mut self, who: &Who) {
        self.paused = self.paused.saturating_sub(1);
        one_less(&mut self.paused_users, &who.user);
    }

    fn discount(&mut self, who: &Who) {
        self.running = self.running.saturating_sub(1);
        one_less(&mut self.users, &who.user);
        one_less(&mut self.sessions, &who.session);
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
    /// Lets others run while this one waits for its client, unless too many wait so already: each holds what it has computed.
    pub(crate) fn pause(&self) {
        let mut state = self.line.lock();
        if self.is_paused() || !state.may_pause(&self.who, self.line.most) {
            return;
        }
        self.paused.store(true, Ordering::Release);
        state.discount(&self.who);
        state.paused += 1;
        *state.paused_users.entry(Arc::clone(&self.who.user)).or_default() += 1;
        drop(state);
        self.line.let_in();
    }

    /// Goes on at once: what has begun does not stand in line again, though there may be more than the limit then.
    pub(crate) fn resume(&self) {
        let mut state = self.line.lock();
        if self.paused.swap(false, Ordering::AcqRel) {
            state.end_pause(&self.who);
            state.count(&self.who);
        }
    }

    fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.line.lock();
        if self.is_paused() {
            state.end_pause(&self.who);
        } else {
            state.discount(&self.who);
        }
        drop(state);
        self.line.let_in();
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

    fn who(user: &str, session: SessionId) -> Who {
        Who { user: Arc::from(user), session }
    }

    fn now(admission: &Admission, who: &Who) -> Option<Result<Slot>> {
        admission.enter(who).now_or_never()
    }

    #[tokio::test]
    async fn nobody_takes_the_last_place() {
        let gate = admission();
        let [a, b] = [who("eve", SessionId::random()), who("eve", SessionId::random())];
        let mut held: Vec<Slot> = (0..2).map(|_| now(&gate, &a).unwrap().unwrap()).collect();
        assert!(now(&gate, &a).is_none(), "a session has its limit");
        held.push(now(&gate, &b).unwrap().unwrap());
        assert!(now(&gate, &b).is_none(), "a user has a limit");
        held.push(now(&gate, &who("ann", SessionId::random())).unwrap().unwrap());
        assert!(now(&gate, &who("bob", SessionId::random())).is_none(), "the server has a limit");
        assert_eq!((gate.running(), gate.waiting()), (4, 0), "who left the line is not in it");
        drop(held);
        assert_eq!(gate.running(), 0);
    }

    #[tokio::test]
    async fn who_has_the_fewest_is_next() {
        let gate = admission();
        let (eve, ann) = (who("eve", SessionId::random()), who("ann", SessionId::random()));
        let other = who("eve", SessionId::random());
        let mut held: Vec<Slot> = (0..2).map(|_| now(&gate, &eve).unwrap().unwrap()).collect();
        held.extend((0..2).map(|_| now(&gate, &ann).unwrap().unwrap()));
        let mut waiting: Vec<_> = [&other, &other, &who("bob", SessionId::random())]
            .map(|who| {
                let (gate, who) = (&gate, who.clone());
                Box::pin(async move { gate.enter(&who).await })
            })
            .into();
        for wait in &mut waiting {
            assert!(wait.now_or_never().is_none());
        }
        assert_eq!(now(&gate, &other).unwrap().unwrap_err().kind(), ErrorKind::LimitReached);
        held.pop();
        let bob = waiting.pop().unwrap().now_or_never().unwrap();
        assert_eq!(&*bob.unwrap().who.user, "bob");
    }

    #[tokio::test]
    async fn whoever_leaves_gives_the_slot_back() {
        let gate = admission();
        let eve = who("eve", SessionId::random());
        for _ in 0..16 {
            let held: Vec<Slot> = (0..2).map(|_| now(&gate, &eve).unwrap().unwrap()).collect();
            let (mut told, mut next) = (Box::pin(gate.enter(&eve)), Box::pin(gate.enter(&eve)));
            assert!((&mut told).now_or_never().is_none() && (&mut next).now_or_never().is_none());
            // Between its turn and the next poll.
            drop(held);
            drop(told);
            drop((&mut next).now_or_never().unwrap().unwrap());
            assert_eq!((gate.running(), gate.waiting()), (0, 0));
        }
    }

    #[tokio::test]
    async fn who_waits_for_a_client_leaves_the_place_to_others() {
        let gate = admission();
        let eve = who("eve", SessionId::random());
        let held: Vec<Slot> = (0..2).map(|_| now(&gate, &eve).unwrap().unwrap()).collect();
        let mut next = Box::pin(gate.enter(&eve));
        assert!((&mut next).now_or_never().is_none());
        held[0].pause();
        let third = (&mut next).now_or_never().unwrap().unwrap();
        held[0].resume();
        assert_eq!(gate.running(), 3);
        assert!(now(&gate, &eve).is_none());
        drop((held, third));
        assert_eq!(gate.running(), 0);
    }
}
