//! Permits to plan. DataFusion's optimizer cannot be interrupted, so where the text or the plan is large, the other tasks of
//! the thread move to another one meanwhile. How many statements are planned at once is limited, for all and for each user.
//! A planning whose query task is over is orphaned: it gives its permit back, unless too many are orphaned already.

use super::{QueryTask, run_blocking};
use bowshot_api::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Statements that are planned at once, for each processor, and at least.
const PERMITS_PER_THREAD: usize = 4;
const MIN_PERMITS: usize = 8;
/// Places that one user leaves to others.
const RESERVE: usize = 2;
/// Plannings that go on although their query tasks are over, and no longer count.
const MAX_ORPHANED: usize = 32;

/// The places in which statements are planned.
#[derive(Debug)]
pub struct Planning {
    places: Arc<Semaphore>,
    users: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
    capacity: usize,
    orphaned: AtomicUsize,
}

impl Planning {
    pub fn new(threads: usize) -> Arc<Self> {
        let capacity = threads.saturating_mul(PERMITS_PER_THREAD).max(MIN_PERMITS);
        Arc::new(Self {
            places: Arc::new(Semaphore::new(capacity)),
            users: Mutex::default(),
            capacity,
            orphaned: AtomicUsize::new(0),
        })
    }

    /// Statements that are being planned and that somebody waits for.
    pub fn busy(&self) -> usize {
        self.capacity - self.places.available_permits().min(self.capacity)
    }

    /// Statements that are still planned although nobody waits for them.
    pub fn orphaned(&self) -> usize {
        self.orphaned.load(Ordering::Relaxed)
    }

    fn of_user(&self, user: &Arc<str>) -> Arc<Semaphore> {
        let mut users = self.users.lock();
        if let Some(places) = users.get(user).and_then(Weak::upgrade) {
            return places;
        }
        users.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.capacity - RESERVE));
        users.insert(Arc::clone(user), Arc::downgrade(&places));
        places
    }

    async fn enter(self: &Arc<Self>, user: &Arc<str>) -> Result<PlanningPermit> {
        let stopping = |_| Error::new(ErrorKind::Unavailable, "the server is stopping");
        // In this order: who waits for a place of his own keeps nobody else from one.
        let own = self.of_user(user).acquire_owned().await.map_err(stopping)?;
        let shared = Arc::clone(&self.places).acquire_owned().await.map_err(stopping)?;
        Ok(PlanningPermit {
            planning: Arc::clone(self),
            permits: Some([own, shared]),
            since: Instant::now(),
            is_orphaned: false,
        })
    }
}

/// A statement that is being planned.
#[derive(Debug)]
pub(super) struct PlanningPermit {
    planning: Arc<Planning>,
    permits: Option<[OwnedSemaphorePermit; 2]>,
    since: Instant,
    is_orphaned: bool,
}

impl PlanningPermit {
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Nobody waits for it any more.
    pub(super) fn orphan(&mut self) {
        if self.is_orphaned {
            return;
        }
        self.is_orphaned = true;
        if self.planning.orphaned.fetch_add(1, Ordering::Relaxed) < MAX_ORPHANED {
            self.permits = None;
        }
    }
}

impl Drop for PlanningPermit {
    fn drop(&mut self) {
        if self.is_orphaned {
            self.planning.orphaned.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Gives the permit back when planning ends, however it does.
struct Leaving<'a>(&'a QueryTask);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let place = self.0.place.lock().take();
        drop(place);
    }
}

/// Plans: waits for a place, and leaves the thread's other tasks to another thread. A part of planning that plans too has the
/// place already.
///
/// # Errors
/// Those of the work; `Cancelled` and `Timeout` of the query task.
pub async fn run_planning<T>(work: impl Future<Output = Result<T>> + Send) -> Result<T> {
    with_planning_permit(run_blocking_if(true, work)).await
}

/// The same for work that leaves the thread's other tasks to another thread where it takes long ([`run_blocking_if`]): waking
/// one takes as long as all of a small statement.
///
/// # Errors
/// As [`run_planning`].
pub async fn with_planning_permit<T>(work: impl Future<Output = Result<T>> + Send) -> Result<T> {
    let Some(task) = QueryTask::current() else { return work.await };
    if task.place.lock().is_some() {
        return work.await;
    }
    let place = task.planning.enter(&task.user).await?;
    task.check()?;
    *task.place.lock() = Some(place);
    let leaving = Leaving(&task);
    if task.stopped().is_some() {
        return Err(task
            .check()
            .err()
            .unwrap_or_else(|| Error::new(ErrorKind::Cancelled, "the query was cancelled")));
    }
    let planned = work.await;
    drop(leaving);
    // What nobody waits for is not begun.
    task.check()?;
    planned
}

/// Work that, where it is long, is done to its end here while another thread does what waits for this one.
pub async fn run_blocking_if<T>(is_long: bool, work: impl Future<Output = T> + Send) -> T {
    match Handle::try_current() {
        Ok(runtime) if is_long && runtime.runtime_flavor() == RuntimeFlavor::MultiThread => {
            run_blocking(|| runtime.block_on(work))
        }
        _ => work.await,
    }
}
