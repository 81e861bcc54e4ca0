//! Planning takes as long as it takes: DataFusion's optimiser cannot be interrupted. So it happens where it was called, and
//! where the text or the plan is large, the tasks of that thread go to another one meanwhile. How many statements are planned
//! at the same time is limited, for all and for each user, so that there is always a place for others.
//!
//! What goes on although its job is over burns: it gives its place back, so that others are planned beside it, unless too
//! many burn already.

use super::{Job, aside, lock};
use bowshot_api::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Statements that are planned at once, for each processor, and at least.
const PLACES_PER_THREAD: usize = 4;
const LEAST_PLACES: usize = 8;
/// Places that one user leaves to others.
const RESERVE: usize = 2;
/// Plannings that go on although their jobs are over, and do not count any more.
const MAX_BURNING: usize = 32;

/// The places in which statements are planned.
#[derive(Debug)]
pub struct Planning {
    places: Arc<Semaphore>,
    users: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
    capacity: usize,
    burning: AtomicUsize,
}

impl Planning {
    pub(crate) fn new(threads: usize) -> Arc<Self> {
        let capacity = threads.saturating_mul(PLACES_PER_THREAD).max(LEAST_PLACES);
        Arc::new(Self {
            places: Arc::new(Semaphore::new(capacity)),
            users: Mutex::default(),
            capacity,
            burning: AtomicUsize::new(0),
        })
    }

    /// Statements that are being planned and that somebody waits for.
    pub fn busy(&self) -> usize {
        self.capacity - self.places.available_permits().min(self.capacity)
    }

    /// Statements that are still planned although nobody waits for them.
    pub fn burning(&self) -> usize {
        self.burning.load(Ordering::Relaxed)
    }

    fn of_user(&self, user: &Arc<str>) -> Arc<Semaphore> {
        let mut users = lock(&self.users);
        if let Some(places) = users.get(user).and_then(Weak::upgrade) {
            return places;
        }
        users.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.capacity - RESERVE));
        users.insert(Arc::clone(user), Arc::downgrade(&places));
        places
    }

    async fn enter(self: &Arc<Self>, user: &Arc<str>) -> Result<Place> {
        let stopping = |_| Error::new(ErrorKind::Unavailable, "the server is stopping");
        // In this order: who waits for a place of his own keeps nobody else from one.
        let own = self.of_user(user).acquire_owned().await.map_err(stopping)?;
        let shared = Arc::clone(&self.places).acquire_owned().await.map_err(stopping)?;
        Ok(Place {
            planning: Arc::clone(self),
            permits: Some([own, shared]),
            since: Instant::now(),
            burns: false,
        })
    }
}

/// A statement that is being planned.
#[derive(Debug)]
pub(super) struct Place {
    planning: Arc<Planning>,
    permits: Option<[OwnedSemaphorePermit; 2]>,
    since: Instant,
    burns: bool,
}

impl Place {
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Nobody waits for it any more.
    pub(super) fn burn(&mut self) {
        if self.burns {
            return;
        }
        self.burns = true;
        if self.planning.burning.fetch_add(1, Ordering::Relaxed) < MAX_BURNING {
            self.permits = None;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.burns {
            self.planning.burning.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Gives the place back when planning ends, however it does.
struct Leaving<'a>(&'a Job);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let place = lock(&self.0.place).take();
        drop(place);
    }
}

/// Plans: waits for a place, and leaves the thread's other tasks to another thread. A part of planning that plans too has the
/// place already.
///
/// # Errors
/// Those of the work; `Cancelled` and `Timeout` of the job.
pub async fn apart<T>(work: impl Future<Output = Result<T>> + Send) -> Result<T> {
    placed(leaving_others(true, work)).await
}

/// The same for work that leaves the thread's other tasks to another thread where it takes long ([`leaving_others`]): waking
/// one takes as long as all of a small statement.
///
/// # Errors
/// As [`apart`].
pub async fn placed<T>(work: impl Future<Output = Result<T>> + Send) -> Result<T> {
    let Some(job) = Job::current() else { return work.await };
    if lock(&job.place).is_some() {
        return work.await;
    }
    let place = job.planning.enter(&job.user).await?;
    job.check()?;
    *lock(&job.place) = Some(place);
    let leaving = Leaving(&job);
    if job.stopped().is_some() {
        return Err(job
            .check()
            .err()
            .unwrap_or_else(|| Error::new(ErrorKind::Cancelled, "the query was cancelled")));
    }
    let planned = work.await;
    drop(leaving);
    // What nobody waits for is not begun.
    job.check()?;
    planned
}

/// Work that, where it is long, is done to its end here while another thread does what waits for this one.
pub(crate) async fn leaving_others<T>(is_long: bool, work: impl Future<Output = T> + Send) -> T {
    match Handle::try_current() {
        Ok(runtime) if is_long && runtime.runtime_flavor() == RuntimeFlavor::MultiThread => {
            aside(|| runtime.block_on(work))
        }
        _ => work.await,
    }
}
