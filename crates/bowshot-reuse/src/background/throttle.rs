//! Background work pauses while queries run. A low priority is not enough: threads of one core, and all cores of one memory, slow each other
//! down. So before each batch that it reads, background work waits for a moment without a running query thread; by its processor time, it
//! may take a share of the time in which queries run.

use bowshot_ipc::os::thread_time;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// How often it checks for running queries.
const LOOK: Duration = Duration::from_millis(2);
/// Checks in a row without a query before it continues: a client leaves gaps between its queries.
const QUIET_LOOKS: u32 = 2;
/// Longest pause; the rest is added to the next one.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Largest debt after one long step.
const MAX_DEBT: Duration = Duration::from_secs(60);
/// Resolution of a time limit.
const LEAST_LEFT: Duration = Duration::from_millis(10);

/// Pauses for the queries of one runtime. Used by one job at a time.
#[derive(Debug)]
pub(crate) struct Throttle {
    queries: Handle,
    /// Percent of the time in which queries run.
    share: u32,
    clock: Mutex<Clock>,
    /// Queries that wait for the background.
    urgent: AtomicUsize,
    /// Notified when the job moves to another thread.
    moved: Notify,
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Clock {
    /// Processor time of the thread at the last pause, and which thread it was.
    worked: Duration,
    thread: Option<ThreadId>,
    /// How long it has to wait while queries run.
    debt: Duration,
    /// Partitions of the plan that pause now, and since when there is one.
    waiting: usize,
    since: Option<Instant>,
    /// Time that other partitions have worked since then.
    beside: Duration,
    /// Total pause before that.
    waited: Duration,
}

impl Clock {
    /// Total pause of the plan, without the time that other partitions worked.
    fn waited(&self) -> Duration {
        self.waited + self.since.map_or(Duration::ZERO, |since| since.elapsed().saturating_sub(self.beside))
    }

    /// Time worked since the last call; 0 if the thread has changed.
    fn advance(&mut self) -> Duration {
        let (now, here) = (thread_time(), std::thread::current().id());
        let worked = if self.thread == Some(here) { now.saturating_sub(self.worked) } else { Duration::ZERO };
        (self.worked, self.thread) = (now, Some(here));
        if self.waiting > 0 {
            self.beside += worked;
        }
        worked
    }
}

/// Exists while a query waits for the background.
#[derive(Debug)]
pub(crate) struct Urgent<'a>(&'a Throttle);

impl Drop for Urgent<'_> {
    fn drop(&mut self) {
        self.0.urgent.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Held by a job while it runs, since pauses are measured for one job at a time.
pub(crate) type Turn<'a> = tokio::sync::MutexGuard<'a, ()>;

impl Throttle {
    /// Limits work to `share` percent of one processor while threads of `queries` run; 100 is no limit.
    pub(crate) fn new(queries: Handle, share: usize) -> Self {
        let share = u32::try_from(share).unwrap_or(100).clamp(1, 100);
        let (clock, turn) = (Mutex::default(), tokio::sync::Mutex::new(()));
        Self { queries, share, clock, urgent: AtomicUsize::new(0), moved: Notify::new(), turn }
    }

    pub(crate) async fn turn(&self) -> Turn<'_> {
        self.turn.lock().await
    }

    /// There are no pauses while the returned value exists: a query waits.
    pub(crate) fn urgent(&self) -> Urgent<'_> {
        self.urgent.fetch_add(1, Ordering::Relaxed);
        Urgent(self)
    }

    /// Whether a query waits for the background.
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent.load(Ordering::Relaxed) > 0
    }

    /// Continues a paused job on its new thread: its timer belongs to the old one.
    pub(crate) fn moved(&self) {
        self.moved.notify_waiters();
    }

    /// Pauses while queries run, in proportion to the work since the last pause.
    pub(crate) async fn pass(&self) {
        let mut waiting = Waiting { throttle: self, wait: self.wait() };
        while waiting.wait.goes_on(self.somebody_runs()) {
            let _ = tokio::time::timeout(LOOK, self.moved.notified()).await;
        }
    }

    pub(crate) fn pass_blocking(&self) {
        let mut waiting = Waiting { throttle: self, wait: self.wait() };
        while waiting.wait.goes_on(self.somebody_runs()) {
            std::thread::sleep(LOOK);
        }
    }

    /// The total pause, which is not a cost of the work.
    pub(crate) fn waited(&self) -> Duration {
        self.clock.lock().waited()
    }

    /// Runs a job with a time limit that excludes pauses; `None` if it takes longer.
    pub(crate) async fn within<T>(&self, limit: Duration, job: impl Future<Output = T>) -> Option<T> {
        let (started, before) = (Instant::now(), self.waited());
        let mut job = std::pin::pin!(job);
        loop {
            let worked = started.elapsed().saturating_sub(self.waited().saturating_sub(before));
            let left = limit.checked_sub(worked).filter(|left| !left.is_zero())?;
            if let Ok(done) = tokio::time::timeout(left.max(LEAST_LEFT), job.as_mut()).await {
                return Some(done);
            }
        }
    }

    fn wait(&self) -> Wait {
        let mut clock = self.clock.lock();
        self.charge(&mut clock);
        clock.waiting += 1;
        clock.since.get_or_insert_with(Instant::now);
        Wait { started: Instant::now(), longest: clock.debt.min(MAX_WAIT), looks: 0, quiet: 0 }
    }

    fn ended(&self, wait: &Wait) {
        let waited = wait.started.elapsed();
        let mut clock = self.clock.lock();
        self.charge(&mut clock);
        clock.waiting = clock.waiting.saturating_sub(1);
        if clock.waiting == 0 {
            clock.waited = clock.waited();
            (clock.since, clock.beside) = (None, Duration::ZERO);
        }
        clock.debt = if wait.is_quiet() { Duration::ZERO } else { clock.debt.saturating_sub(waited) };
    }

    /// Adds the worked time to the debt.
    fn charge(&self, clock: &mut Clock) {
        let more = clock.advance().saturating_mul(100 - self.share) / self.share;
        clock.debt = clock.debt.saturating_add(more).min(MAX_DEBT);
    }

    /// Whether a query thread runs now, and no query waits for the background.
    fn somebody_runs(&self) -> bool {
        let threads = self.queries.metrics();
        // The count is odd while a thread sleeps.
        let runs = |thread| threads.worker_park_unpark_count(thread).is_multiple_of(2);
        !self.is_urgent() && (0..threads.num_workers()).any(runs)
    }
}

/// A pause that is counted until it ends.
struct Waiting<'a> {
    throttle: &'a Throttle,
    wait: Wait,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.throttle.ended(&self.wait);
    }
}

#[derive(Debug)]
struct Wait {
    started: Instant,
    longest: Duration,
    looks: u32,
    /// Checks in a row without a query.
    quiet: u32,
}

impl Wait {
    /// Records whether a query runs; false when the pause is over.
    fn goes_on(&mut self, somebody_runs: bool) -> bool {
        self.quiet = if somebody_runs { 0 } else { self.quiet + 1 };
        self.looks += 1;
        !self.is_quiet() && self.started.elapsed() < self.longest
    }

    /// Whether no query has run for long enough.
    fn is_quiet(&self) -> bool {
        self.quiet >= QUIET_LOOKS || self.quiet == self.looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use tokio::runtime::Runtime;

    fn threads() -> Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    }

    fn work(milliseconds: u64) {
        let end = thread_time() + Duration::from_millis(milliseconds);
        while thread_time() < end {
            std::hint::spin_loop();
        }
    }

    /// How long it waited in so many steps of 2 milliseconds.
    fn waited(throttle: &Throttle, steps: u32) -> Duration {
        let (one, before) =
            (tokio::runtime::Builder::new_current_thread().enable_all().build(), throttle.waited());
        one.unwrap().block_on(async {
            for _ in 0..steps {
                work(2);
                throttle.pass().await;
            }
        });
        throttle.waited() - before
    }

    #[test]
    fn it_waits_for_queries_and_for_nothing_else() {
        let queries = threads();
        let [throttle, unrestricted] = [10, 100].map(|share| Throttle::new(queries.handle().clone(), share));
        // Threads that have just started may not sleep yet.
        while throttle.somebody_runs() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let alone = waited(&throttle, 20);
        assert!(alone < Duration::from_millis(20 * 2 * 9 / 2), "{alone:?}");
        let (begun, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (runs, stopped) = (Arc::clone(&begun), Arc::clone(&stop));
        let query = queries.spawn(async move {
            runs.store(true, Ordering::Relaxed);
            while !stopped.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        while !begun.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        let beside = waited(&throttle, 20);
        assert!(beside >= Duration::from_millis(19 * 2 * 9), "{beside:?}");
        assert!(waited(&unrestricted, 20) < Duration::from_millis(20 * 2 * 9 / 2));
        let urgent = throttle.urgent();
        assert!(waited(&throttle, 20) < Duration::from_millis(20 * 2 * 9 / 2), "somebody waits for it");
        drop(urgent);
        stop.store(true, Ordering::Relaxed);
        queries.block_on(query).unwrap();
    }

    #[tokio::test]
    async fn a_limit_is_one_of_work() {
        let queries = threads();
        let throttle = Throttle::new(queries.handle().clone(), 10);
        assert_eq!(throttle.within(Duration::from_secs(60), async { 7 }).await, Some(7));
        assert_eq!(throttle.within(Duration::from_millis(20), std::future::pending::<()>()).await, None);
        let aside = async {
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_millis(5)).await;
                // More than a slow machine sleeps too long.
                throttle.clock.lock().waited += Duration::from_secs(10);
            }
        };
        assert_eq!(throttle.within(Duration::from_millis(80), aside).await, Some(()));
        // Waiting for its threads is not possible here.
        queries.shutdown_background();
    }
}
