//! Queues password checks so that guessing is slow: a network has few permits, and only one after failed attempts.
//! Nobody is locked out; answers are delayed more after each failure. An attempt counts as failed until it succeeds,
//! so disconnecting does not help.

use bowshot_api::{Error, ErrorKind, Network, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Waiting logins: in total, of networks with failures, and of one network.
const MAX_WAITING: usize = 4_096;
const MAX_WAITING_DOUBTFUL: usize = MAX_WAITING / 2;
const MAX_WAITING_OF_NETWORK: usize = 1_024;
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Networks and users whose failures are remembered.
const MAX_KNOWN: usize = 10_000;
/// Characters of a user name that count; the name is chosen by the unauthenticated client.
const MAX_NAME: usize = 128;
/// Failures are forgotten after this time without another.
const MEMORY: Duration = Duration::from_secs(60);
/// Failures without delay: people mistype.
const FREE_ATTEMPTS: u32 = 3;
/// Failures without delay of a whole network, against attempts over many names.
const FREE_ATTEMPTS_OF_NETWORK: u32 = 32;
/// The first delay; doubled up to the longest.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(3);

/// The network and the user name of a login.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    network: Option<Network>,
    user: String,
}

impl Source {
    pub(crate) fn new(address: Option<IpAddr>, user: &str) -> Self {
        Self { network: address.map(Network::from), user: user.chars().take(MAX_NAME).collect() }
    }
}

#[derive(Debug)]
pub(crate) struct LoginLimiter {
    checks: Arc<Semaphore>,
    waiting: Semaphore,
    /// Waiters with too many failures. The other permits are reserved for the rest.
    doubtful: Semaphore,
    places: usize,
    patience: Duration,
    queues: Mutex<HashMap<Option<Network>, Weak<Queue>>>,
    attempts: Mutex<Attempts>,
}

#[derive(Debug)]
struct Queue {
    waiting: Semaphore,
    checks: Arc<Semaphore>,
    /// Attempts after too many failures are checked one at a time.
    doubtful: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Attempts {
    wrong: HashMap<Source, Wrong>,
    networks: HashMap<Network, Wrong>,
    /// Failed scrambles. Counted separately, since they exist only for users who logged in lately; the delay of a
    /// password check must not reveal that.
    scrambles: HashMap<Source, Wrong>,
}

#[derive(Debug)]
struct Wrong {
    times: u32,
    last: Instant,
}

/// A permit for a password check, held until the check ends.
#[derive(Debug)]
#[must_use]
pub(crate) struct Permit {
    _permits: Vec<OwnedSemaphorePermit>,
    _queue: Arc<Queue>,
}

impl LoginLimiter {
    pub(crate) fn new(places: usize) -> Self {
        let places = places.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            checks: Arc::new(Semaphore::new(places)),
            waiting: Semaphore::new(MAX_WAITING),
            doubtful: Semaphore::new(MAX_WAITING_DOUBTFUL),
            places,
            patience: LONGEST_WAIT,
            queues: Mutex::default(),
            attempts: Mutex::default(),
        }
    }

    /// Counts an attempt and waits until it may be checked. Report the outcome to [`LoginLimiter::answer`].
    ///
    /// # Errors
    /// `LimitReached` when too many wait, or for too long.
    pub(crate) async fn enter(&self, source: &Source) -> Result<Permit> {
        let is_doubtful = self.count(source);
        let queue = self.queue(source.network);
        let doubtful = is_doubtful.then(|| self.doubtful.try_acquire()).transpose();
        let entered = match (queue.waiting.try_acquire(), self.waiting.try_acquire(), doubtful) {
            (Ok(_of_network), Ok(_of_all), Ok(_of_doubtful)) => {
                tokio::time::timeout(self.patience, self.wait(&queue, is_doubtful)).await
            }
            _ => {
                self.uncount(source);
                return Err(crowded());
            }
        };
        match entered {
            Ok(Ok(permits)) => Ok(Permit { _permits: permits, _queue: queue }),
            Ok(Err(_closed)) => Err(Error::new(ErrorKind::Unavailable, "the server is stopping")),
            Err(_elapsed) => {
                self.uncount(source);
                Err(crowded())
            }
        }
    }

    /// The network's permit first: waiters of one network do not block others.
    async fn wait(
        &self,
        queue: &Queue,
        is_doubtful: bool,
    ) -> std::result::Result<Vec<OwnedSemaphorePermit>, AcquireError> {
        let mut permits = Vec::with_capacity(3);
        if is_doubtful {
            permits.push(Arc::clone(&queue.doubtful).acquire_owned().await?);
        }
        permits.push(Arc::clone(&queue.checks).acquire_owned().await?);
        permits.push(Arc::clone(&self.checks).acquire_owned().await?);
        Ok(permits)
    }

    fn queue(&self, network: Option<Network>) -> Arc<Queue> {
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get(&network).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(Queue {
            waiting: Semaphore::new(MAX_WAITING_OF_NETWORK),
            checks: Arc::new(Semaphore::new(self.places)),
            doubtful: Arc::new(Semaphore::new(1)),
        });
        queues.insert(network, Arc::downgrade(&queue));
        queue
    }

    /// Counts an attempt as failed; returns whether there were too many before.
    pub(crate) fn count(&self, source: &Source) -> bool {
        let (mut attempts, now) = (self.attempts.lock(), Instant::now());
        let before = count(&mut attempts.wrong, source, now);
        let of_network = source.network.map(|network| count(&mut attempts.networks, &network, now));
        before.is_none_or(|before| before >= FREE_ATTEMPTS)
            || of_network.is_some_and(|before| before.is_none_or(|before| before >= FREE_ATTEMPTS_OF_NETWORK))
    }

    /// Undoes the count of an attempt without an outcome.
    fn uncount(&self, source: &Source) {
        self.attempts.lock().subtract(source, 1);
    }

    /// Returns the outcome of a counted attempt, delayed by its failures.
    pub(crate) async fn answer<T>(&self, source: &Source, outcome: Result<T>) -> Result<T> {
        match &outcome {
            Ok(_) => self.attempts.lock().forget(source),
            Err(error) if error.kind() == ErrorKind::Unauthenticated => {
                let delay = self.attempts.lock().delay(source);
                tokio::time::sleep(delay).await;
            }
            Err(_) => self.uncount(source),
        }
        outcome
    }

    /// Whether the outcome of a scramble counts. After a few failures none does, right or wrong, so that scrambles
    /// give no second way to guess; the answer is never delayed.
    pub(crate) fn take_at_once(&self, source: &Source, is_right: bool) -> bool {
        let mut attempts = self.attempts.lock();
        let wrong = attempts.wrong.get(source);
        let is_full = attempts.wrong.len() >= MAX_KNOWN && wrong.is_none();
        if is_full || wrong.is_some_and(|wrong| wrong.lately() >= FREE_ATTEMPTS) {
            return false;
        }
        let before = count(&mut attempts.scrambles, source, Instant::now());
        let is_taken = is_right && before.is_some_and(|before| before < FREE_ATTEMPTS);
        if is_taken {
            attempts.forget(source);
        }
        is_taken
    }
}

impl Wrong {
    fn lately(&self) -> u32 {
        if self.last.elapsed() < MEMORY { self.times } else { 0 }
    }
}

impl Attempts {
    /// Forgets the failures after a success.
    fn forget(&mut self, source: &Source) {
        self.subtract(source, u32::MAX);
        self.scrambles.remove(source);
    }

    fn subtract(&mut self, source: &Source, most: u32) {
        let Some(wrong) = self.wrong.get_mut(source) else { return };
        let less = wrong.times.min(most);
        wrong.times -= less;
        if wrong.times == 0 {
            self.wrong.remove(source);
        }
        if let Some(wrong) = source.network.and_then(|network| self.networks.get_mut(&network)) {
            wrong.times = wrong.times.saturating_sub(less);
        }
    }

    fn delay(&self, source: &Source) -> Duration {
        let Some(wrong) = self.wrong.get(source) else { return LONGEST_DELAY };
        match wrong.times.checked_sub(FREE_ATTEMPTS + 1) {
            None => Duration::ZERO,
            Some(more) => FIRST_DELAY.saturating_mul(1_u32 << more.min(10)).min(LONGEST_DELAY),
        }
    }
}

/// Counts a failure and returns the recent ones before it. `None` if the map is full.
fn count<K: Clone + Eq + Hash>(known: &mut HashMap<K, Wrong>, key: &K, now: Instant) -> Option<u32> {
    if known.len() >= MAX_KNOWN && !known.contains_key(key) {
        known.retain(|_, wrong| now.duration_since(wrong.last) < MEMORY);
        if known.len() >= MAX_KNOWN {
            return None;
        }
    }
    let wrong = known.entry(key.clone()).or_insert(Wrong { times: 0, last: now });
    if now.duration_since(wrong.last) >= MEMORY {
        wrong.times = 0;
    }
    let before = wrong.times;
    (wrong.times, wrong.last) = (before.saturating_add(1), now);
    Some(before)
}

fn crowded() -> Error {
    Error::new(ErrorKind::LimitReached, "too many logins with a password at once")
        .with_hint("try again later; log in once and use the bearer token that the server returns")
}

#[cfg(test)]
mod tests;
