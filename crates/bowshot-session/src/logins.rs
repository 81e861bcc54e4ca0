//! Logins wait for their password checks in an order in which guessing does not pay: whoever has been wrong least often from
//! an address, and then for a user, comes first. Nobody is locked out, and a wrong answer comes the later the more of them
//! there were.

use bowshot_api::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Logins that may wait.
const MAX_WAITING: usize = 4_096;
/// Pairs of address and user of which is known how often they were wrong.
const MAX_KNOWN: usize = 10_000;
/// After this time without another one, wrong attempts are forgotten.
const MEMORY: Duration = Duration::from_secs(60);
/// Wrong attempts that cost nothing: people mistype.
const FREE_ATTEMPTS: u32 = 3;
/// The first delay, which doubles up to the longest.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(3);

/// Where a login comes from, and whose it says to be.
pub(crate) type From = (Option<IpAddr>, String);

/// See the module.
#[derive(Debug)]
pub(crate) struct Logins {
    places: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    inside: usize,
    waiting: Vec<Waiter>,
    wrong: HashMap<From, Wrong>,
    /// Wrong attempts without the password itself. They are apart, since they are known only of users who have logged in lately: that
    /// nobody may learn from how late an answer is.
    scrambles: HashMap<From, Wrong>,
    next: u64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    from: From,
    tell: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Wrong {
    times: u32,
    last: Instant,
}

/// The right to check a password.
#[derive(Debug)]
pub(crate) struct Check<'a>(&'a Logins);

impl Logins {
    pub(crate) fn new(places: usize) -> Self {
        Self { places, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is this one's turn.
    ///
    /// # Errors
    /// `LimitReached` when too many wait, of which this one has been wrong most often.
    pub(crate) async fn enter(&self, from: &From) -> Result<Check<'_>> {
        let wait = {
            let mut state = self.lock();
            if state.inside < self.places && state.waiting.is_empty() {
                state.inside += 1;
                return Ok(Check(self));
            }
            if state.waiting.len() >= MAX_WAITING {
                state.send_worst_away(from)?;
            }
            let (tell, wait) = oneshot::channel();
            let number = state.next;
            state.next += 1;
            state.waiting.push(Waiter { number, from: from.clone(), tell });
            wait
        };
        // Who leaves meanwhile is passed over when the turn comes.
        wait.await.map_err(|_| crowded())?;
        Ok(Check(self))
    }

    /// Notes a wrong attempt; tells how long the answer is to wait.
    fn was_wrong(&self, from: &From) -> Duration {
        let (mut state, now) = (self.lock(), Instant::now());
        if state.wrong.len() >= MAX_KNOWN {
            state.wrong.retain(|_, wrong| now.duration_since(wrong.last) < MEMORY);
        }
        if state.wrong.len() >= MAX_KNOWN && !state.wrong.contains_key(from) {
            return LONGEST_DELAY;
        }
        match count(&mut state.wrong, from, now).checked_sub(FREE_ATTEMPTS + 1) {
            None => Duration::ZERO,
            Some(more) => FIRST_DELAY.saturating_mul(1_u32 << more.min(10)).min(LONGEST_DELAY),
        }
    }

    /// The outcome of a check, which comes the later the more often it was wrong.
    pub(crate) async fn answer<T>(&self, from: &From, outcome: Result<T>) -> Result<T> {
        match &outcome {
            Ok(_) => self.was_right(from),
            Err(error) if error.kind() == ErrorKind::Unauthenticated => {
                tokio::time::sleep(self.was_wrong(from)).await;
            }
            Err(_) => {}
        }
        outcome
    }

    /// Whether one who has tried without the password itself, and with this outcome, is taken at its word. After a few wrong
    /// attempts nobody is, right or not, so that there is no guessing beside the checks that wait; the answer is never late,
    /// so that it tells nothing but that.
    pub(crate) fn take_at_once(&self, from: &From, is_right: bool) -> bool {
        let (mut state, now) = (self.lock(), Instant::now());
        if state.scrambles.len() >= MAX_KNOWN {
            state.scrambles.retain(|_, wrong| now.duration_since(wrong.last) < MEMORY);
        }
        let is_crowded = |known: &HashMap<From, Wrong>| known.len() >= MAX_KNOWN && !known.contains_key(from);
        if is_crowded(&state.wrong) || is_crowded(&state.scrambles) {
            return false;
        }
        if state.times(from).max(times(&state.scrambles, from)) >= FREE_ATTEMPTS {
            return false;
        }
        if is_right {
            state.forget(from);
        } else {
            count(&mut state.scrambles, from, now);
        }
        is_right
    }

    /// Forgets the wrong attempts of one who was right.
    fn was_right(&self, from: &From) {
        self.lock().forget(from);
    }
}

impl State {
    fn forget(&mut self, from: &From) {
        self.wrong.remove(from);
        self.scrambles.remove(from);
    }

    fn times(&self, from: &From) -> u32 {
        times(&self.wrong, from)
    }

    fn send_worst_away(&mut self, from: &From) -> Result<()> {
        let waiting = self.waiting.iter().enumerate();
        let worst = waiting.max_by_key(|(_, waiter)| (self.times(&waiter.from), waiter.number));
        match worst.map(|(at, waiter)| (at, self.times(&waiter.from))) {
            Some((at, times)) if times > self.times(from) => {
                self.waiting.remove(at);
                Ok(())
            }
            _ => Err(crowded()),
        }
    }

    fn next_in_line(&mut self) -> Option<Waiter> {
        let waiting = self.waiting.iter().enumerate();
        let best = waiting.min_by_key(|(_, waiter)| (self.times(&waiter.from), waiter.number));
        let at = best.map(|(at, _)| at)?;
        Some(self.waiting.remove(at))
    }
}

impl Drop for Check<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        while let Some(next) = state.next_in_line() {
            // The place goes on to the first who is still there.
            if next.tell.send(()).is_ok() {
                return;
            }
        }
        state.inside = state.inside.saturating_sub(1);
    }
}

/// Counts a wrong attempt; how many there were lately.
fn count(known: &mut HashMap<From, Wrong>, from: &From, now: Instant) -> u32 {
    let wrong = known.entry(from.clone()).or_insert(Wrong { times: 0, last: now });
    if now.duration_since(wrong.last) >= MEMORY {
        wrong.times = 0;
    }
    wrong.times = wrong.times.saturating_add(1);
    wrong.last = now;
    wrong.times
}

/// How many wrong attempts there were lately.
fn times(known: &HashMap<From, Wrong>, from: &From) -> u32 {
    known.get(from).filter(|wrong| wrong.last.elapsed() < MEMORY).map_or(0, |wrong| wrong.times)
}

fn crowded() -> Error {
    Error::new(ErrorKind::LimitReached, "too many logins with a password at once")
        .with_hint("log in once and use the bearer token that the server returns")
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn from(address: [u8; 4], user: &str) -> From {
        (Some(IpAddr::from(address)), user.to_owned())
    }

    #[tokio::test]
    async fn who_guesses_comes_last_and_late() {
        let logins = Logins::new(1);
        let (eve, ann) = (from([10, 0, 0, 1], "ann"), from([10, 0, 0, 2], "ann"));
        let delays: Vec<Duration> = (0..8).map(|_| logins.was_wrong(&eve)).collect();
        assert_eq!(delays[2], Duration::ZERO);
        assert!(delays[3] > Duration::ZERO && delays[4] == delays[3] * 2 && delays[7] <= LONGEST_DELAY);
        let held = logins.enter(&ann).await.unwrap();
        let mut guesses = Box::pin(logins.enter(&eve));
        assert!((&mut guesses).now_or_never().is_none());
        let mut right = Box::pin(logins.enter(&ann));
        assert!((&mut right).now_or_never().is_none());
        drop(held);
        let held = (&mut right).now_or_never().unwrap().unwrap();
        assert!((&mut guesses).now_or_never().is_none());
        drop(held);
        assert!((&mut guesses).now_or_never().unwrap().is_ok());
        logins.was_right(&eve);
        assert_eq!(logins.was_wrong(&eve), Duration::ZERO);
    }

    #[test]
    fn guesses_without_the_password_are_few() {
        let logins = Logins::new(1);
        let (eve, ann) = (from([10, 0, 0, 1], "ann"), from([10, 0, 0, 2], "ann"));
        assert!(logins.take_at_once(&ann, true) && !logins.take_at_once(&eve, false));
        assert!(logins.take_at_once(&eve, true), "one that was wrong costs nothing");
        for _ in 0..FREE_ATTEMPTS {
            assert!(!logins.take_at_once(&eve, false));
        }
        assert!(!logins.take_at_once(&eve, true), "too many were wrong");
        assert!(logins.take_at_once(&ann, true), "another address");
        for _ in 0..FREE_ATTEMPTS {
            assert_eq!(logins.was_wrong(&eve), Duration::ZERO, "they tell nobody who is known here");
        }
        assert!(logins.was_wrong(&eve) > Duration::ZERO);
        logins.was_right(&eve);
        assert!(logins.take_at_once(&eve, true));
    }

    #[tokio::test]
    async fn who_has_left_is_passed_over() {
        let logins = Logins::new(1);
        let ann = from([10, 0, 0, 2], "ann");
        let held = logins.enter(&ann).await.unwrap();
        let mut left = Box::pin(logins.enter(&ann));
        assert!((&mut left).now_or_never().is_none());
        drop(left);
        let mut next = Box::pin(logins.enter(&ann));
        assert!((&mut next).now_or_never().is_none());
        drop(held);
        drop((&mut next).now_or_never().unwrap().unwrap());
        assert!(logins.enter(&ann).now_or_never().is_some());
    }
}
