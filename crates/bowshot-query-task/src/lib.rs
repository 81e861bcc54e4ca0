//! The task of one statement: its user, deadline, cancellation and memory. It travels with the work from thread to thread, so
//! that every long step can check whether it should go on. No thread is ever killed: a step that checks ends by itself; one
//! that cannot runs on, and what it held for others is free.

mod memory;
mod planning;
mod propagate;
mod runtime;

pub use memory::Budget;
pub use planning::{Planning, run_blocking_if, run_planning, with_planning_permit};
pub use propagate::propagate;
pub use runtime::QueryRuntime;

use bowshot_api::{Error, ErrorKind, QueryId, Result};
use bowshot_ipc::os::thread_bytes;
use datafusion::error::DataFusionError;
use futures::stream::{self, Stream, StreamExt};
use parking_lot::Mutex;
use planning::PlanningPermit;
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;
use tokio::task::block_in_place;

/// A poll that has lasted this long hands the tasks of its thread to another one.
const LONG_POLL: Duration = Duration::from_millis(10);

/// A task whose poll has lasted this long is polled beside others from then on, where more statements are at work than these: as
/// many find threads that are free. What wakes another task from beside wakes a thread too, so windows over all rows take a
/// quarter longer.
const LONG_TASK: Duration = Duration::from_millis(50);
const FEW_TASKS: usize = 2;

/// Why a query task is over before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Somebody cancelled it, or its client has left.
    Cancelled,
    /// Its time was up.
    Late,
    /// It ended, or failed, and nobody wants what is still at work for it.
    Over,
}

/// The work of one statement. Clones of the [`Arc`] are the same query task.
pub struct QueryTask {
    user: Arc<str>,
    query: OnceLock<QueryId>,
    deadline: Option<Instant>,
    stopped: AtomicU8,
    stop: Notify,
    /// What others wait for, such as a slot: given back at the end even if the work itself goes on.
    held: Mutex<Vec<Box<dyn Any + Send>>>,
    place: Mutex<Option<PlanningPermit>>,
    planning: Arc<Planning>,
    budget: Arc<Budget>,
    bytes: AtomicI64,
    /// Whether a poll of its work has kept its thread for [`LONG_TASK`].
    is_long: AtomicBool,
}

impl QueryTask {
    /// A query task of a user that should end until `deadline`.
    pub fn new(
        user: &str,
        deadline: Option<Instant>,
        (planning, budget): (&Arc<Planning>, &Arc<Budget>),
    ) -> Arc<Self> {
        budget.entered();
        Arc::new(Self {
            user: Arc::from(user),
            query: OnceLock::new(),
            deadline,
            stopped: AtomicU8::new(0),
            stop: Notify::new(),
            held: Mutex::default(),
            place: Mutex::default(),
            planning: Arc::clone(planning),
            budget: Arc::clone(budget),
            bytes: AtomicI64::new(0),
            is_long: AtomicBool::new(false),
        })
    }

    /// The query task that this thread works on.
    pub fn current() -> Option<Arc<Self>> {
        CURRENT
            .try_with(|current| current.borrow().as_ref().map(|inside| Arc::clone(&inside.task)))
            .ok()
            .flatten()
    }

    /// It is the work of this statement. The first one counts.
    pub fn is_for(&self, query: QueryId) {
        let _ = self.query.set(query);
    }

    /// The statement whose work it is, if it is one's.
    pub fn query(&self) -> Option<QueryId> {
        self.query.get().copied()
    }

    /// When it should have ended.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Since when it is being planned, if it is.
    pub fn planning_since(&self) -> Option<Instant> {
        self.place.lock().as_ref().map(PlanningPermit::since)
    }

    /// Bytes of memory that its work has taken and not given back.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Rows of so many bytes have gone to somebody else, who counts them.
    pub fn handed_over(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as i64, Ordering::Relaxed);
    }

    /// Keeps something until the query task is over.
    pub fn hold(&self, thing: impl Any + Send) {
        let mut held = self.held.lock();
        if self.stopped().is_none() {
            held.push(Box::new(thing));
        }
    }

    /// Gives back what it keeps of a kind.
    pub fn release<T: Any + Send>(&self) -> Option<T> {
        let mut held = self.held.lock();
        let at = held.iter().position(|thing| thing.is::<T>())?;
        held.remove(at).downcast::<T>().ok().map(|thing| *thing)
    }

    /// Ends it: everybody who asks is told, and what it held for others is free. The first reason counts.
    pub fn stop(&self, why: Stop) {
        let code = match why {
            Stop::Cancelled => 1,
            Stop::Late => 2,
            Stop::Over => 3,
        };
        if self.stopped.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        let held = std::mem::take(&mut *self.held.lock());
        drop(held);
        if let Some(place) = self.place.lock().as_mut() {
            place.orphan();
        }
        self.stop.notify_waiters();
    }

    /// Why it is over, if it is.
    pub fn stopped(&self) -> Option<Stop> {
        match self.stopped.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Stop::Cancelled),
            2 => Some(Stop::Late),
            _ => Some(Stop::Over),
        }
    }

    /// Waits until somebody stops it.
    pub async fn until_stopped(&self) -> Stop {
        loop {
            let stop = self.stop.notified();
            tokio::pin!(stop);
            stop.as_mut().enable();
            if let Some(why) = self.stopped() {
                return why;
            }
            stop.await;
        }
    }

    /// Whether its work should go on: nobody has stopped it, it is in time, and there is memory.
    ///
    /// # Errors
    /// `Cancelled`, `Timeout` or `LimitReached`.
    pub fn check(&self) -> Result<()> {
        match self.stopped() {
            Some(Stop::Late) => return Err(late()),
            Some(Stop::Cancelled | Stop::Over) => {
                return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
            }
            None => {}
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(late());
        }
        let here = CURRENT.try_with(|current| current.borrow().as_ref().map_or(0, Here::net)).unwrap_or(0);
        self.budget.check(self.bytes.load(Ordering::Relaxed).saturating_add(here))
    }

    /// Whether a piece of memory of so many bytes may be taken.
    ///
    /// # Errors
    /// `LimitReached`.
    pub fn check_piece(&self, bytes: u64) -> Result<()> {
        self.budget.check_piece(bytes)
    }

    /// The same work as a part of this query task.
    pub fn inside<F: Future>(self: &Arc<Self>, work: F) -> Inside<F> {
        Inside { task: Arc::clone(self), polls: Polls::default(), work: Box::pin(work) }
    }
}

fn late() -> Error {
    Error::new(ErrorKind::Timeout, "the statement exceeded its time limit").with_hint(
        "raise the session option `statement_timeout_ms`, `limits.statement_timeout` or `limits.planning_timeout`",
    )
}

impl Drop for QueryTask {
    fn drop(&mut self) {
        self.budget.left();
    }
}

impl fmt::Debug for QueryTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryTask")
            .field("user", &self.user)
            .field("stopped", &self.stopped())
            .finish_non_exhaustive()
    }
}

/// To be called between the steps of something long: ends it where its query task is over, and where it has kept its thread for
/// long, lets another one do what waits for the thread.
///
/// # Errors
/// As [`QueryTask::check`].
pub fn step<T>(work: impl FnOnce() -> datafusion::error::Result<T>) -> datafusion::error::Result<T> {
    let Ok(Some((task, began))) = CURRENT
        .try_with(|current| current.borrow().as_ref().map(|here| (Arc::clone(&here.task), here.began)))
    else {
        return work();
    };
    task.check().map_err(|error| DataFusionError::External(Box::new(error)))?;
    if began.elapsed() < LONG_POLL { work() } else { run_blocking(work) }
}

/// Rows that end where their query task does.
pub fn checked<T>(
    rows: impl Stream<Item = Result<T>> + Unpin + Send,
) -> impl Stream<Item = Result<T>> + Unpin + Send {
    let (task, mut rows) = (QueryTask::current(), rows);
    stream::poll_fn(move |cx| match task.as_ref().map_or(Ok(()), |task| task.check()) {
        Ok(()) => rows.poll_next_unpin(cx),
        Err(error) => Poll::Ready(Some(Err(error))),
    })
}

/// Runs something long on this thread, while another thread takes over the tasks that wait for it.
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current() {
        Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => block_in_place(work),
        _ => work(),
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Here>> = const { RefCell::new(None) };
}

/// A poll of a query task's work on this thread.
struct Here {
    task: Arc<QueryTask>,
    began: Instant,
    /// See [`thread_bytes`].
    bytes: i64,
}

impl Here {
    fn net(&self) -> i64 {
        thread_bytes().wrapping_sub(self.bytes)
    }
}

/// A query task is worked on until this is dropped.
struct Entered {
    before: Option<Here>,
}

impl Entered {
    fn new(task: &Arc<QueryTask>) -> Self {
        let here = Here { task: Arc::clone(task), began: Instant::now(), bytes: thread_bytes() };
        let before = CURRENT.try_with(|current| current.replace(Some(here))).ok().flatten();
        Self { before }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.before.take();
        let here = CURRENT.try_with(|current| current.replace(before)).ok().flatten();
        if let Some(here) = here {
            here.task.bytes.fetch_add(here.net(), Ordering::Relaxed);
        }
    }
}

/// What the polls of a task of a query task tell of the next one. An operator that works on large values, or takes batch after batch
/// without giving any, keeps its thread for as long as it likes, and nothing that it calls may ask for [`step`]s: with as many
/// such tasks as threads nobody else would be served. So a task that has kept its thread for long, and one that begins in a
/// query task where another has, is polled while another thread does what waits for this one.
#[derive(Debug, Default)]
enum Polls {
    #[default]
    None,
    Short,
    Long,
}

impl Polls {
    fn next<T>(&mut self, task: &Arc<QueryTask>, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        let _entered = Entered::new(task);
        let began = Instant::now();
        let is_long = match self {
            Self::None => task.is_long.load(Ordering::Relaxed),
            Self::Short => false,
            Self::Long => true,
        };
        let polled = match is_long.then(|| task.budget.thread_permit(FEW_TASKS)).flatten() {
            Some(_place) => poll_blocking(poll),
            None => poll(),
        };
        *self = if began.elapsed() < LONG_TASK { Self::Short } else { Self::Long };
        if matches!(self, Self::Long) {
            task.is_long.store(true, Ordering::Relaxed);
        }
        polled
    }
}

/// Polls here, while another thread does what waits for this one. What blocks in its place has no budget after which it must
/// return to the scheduler, so it gets one as what is blocked on has.
fn poll_blocking<T>(poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
    match Handle::try_current() {
        Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => {
            block_in_place(|| runtime.block_on(async { poll() }))
        }
        _ => poll(),
    }
}

/// A future that is a part of a query task.
pub struct Inside<F> {
    task: Arc<QueryTask>,
    polls: Polls,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for Inside<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { task, polls, work } = self.get_mut();
        polls.next(task, || work.as_mut().poll(cx))
    }
}

impl<F> fmt::Debug for Inside<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").field("task", &self.task).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
