//! Background work that an ordinary thread takes over. On a busy server a thread of the lowest priority hardly runs, and a query that waits
//! for it (`join_cache.wait`) waits as long. So another thread continues a job when a query waits for it, or when it has lost far more time
//! than it has worked; there it still yields to queries ([`Throttle`]). An ordinary user cannot raise a priority again.

use super::throttle::Throttle;
use bowshot_ipc::os::ThreadClock;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How often a job is checked.
const LOOK: Duration = Duration::from_millis(20);
/// Lost time after which a job may be handed over.
const PATIENCE: Duration = Duration::from_secs(1);
/// Ratio of lost to worked time at which a job starves: ten equal threads on two
/// processors would be needed for it.
const LOST_TO_WORKED: u32 = 4;

#[derive(Debug)]
pub(crate) struct Handoff {
    /// The thread of the lowest priority.
    low: Handle,
    throttle: Arc<Throttle>,
    patience: Duration,
}

impl Handoff {
    pub(crate) fn new(low: Handle, throttle: Arc<Throttle>) -> Self {
        Self { low, throttle, patience: PATIENCE }
    }

    /// Runs a job on the thread of the lowest priority, and on the caller's when that starves; entirely on the caller's if a
    /// query waits. `None` if the thread has ended. Dropping the future ends the job after its current step.
    pub(crate) async fn run<T: Send + 'static>(&self, job: BoxFuture<'static, T>) -> Option<T> {
        if self.throttle.is_urgent() {
            return Some(job.await);
        }
        let slot = Arc::new(Slot::new(job));
        let (polled, mut there) = (Arc::clone(&slot), JoinSet::new());
        there.spawn_on(poll_fn(move |context| polled.poll(context)), &self.low);
        let (started, waited) = (Instant::now(), self.throttle.waited());
        loop {
            let handed_over = match timeout(LOOK, there.join_next()).await {
                Ok(Some(Ok(None))) => true,
                Ok(ended) => return ended?.ok()?,
                Err(_) => false,
            };
            let aside = self.throttle.waited().saturating_sub(waited);
            let had = started.elapsed().saturating_sub(aside);
            if (handed_over || self.throttle.is_urgent() || self.is_held_up(had, slot.worked()))
                && let Some(job) = slot.take()
            {
                metrics::counter!("bowshot_join_cache_taken_over_total").increment(1);
                self.throttle.moved();
                return Some(job.await);
            }
        }
    }

    /// Whether a job has starved.
    fn is_held_up(&self, had: Duration, worked: Duration) -> bool {
        had.saturating_sub(worked) > self.patience + worked * LOST_TO_WORKED
    }
}

/// A job, until another thread takes it.
struct Slot<T> {
    job: Mutex<Option<BoxFuture<'static, T>>>,
    /// Whether to hand it over after the current step.
    wanted: AtomicBool,
    work: Mutex<Work>,
}

/// Processor time of a job.
#[derive(Default)]
struct Work {
    /// Up to its last step.
    before: Duration,
    /// The clock of the thread of the current step, and its value at the start.
    step: Option<(ThreadClock, Duration)>,
}

impl Work {
    fn now(&self) -> Duration {
        let step = self.step.and_then(|(clock, begun)| Some(clock.time()?.saturating_sub(begun)));
        self.before + step.unwrap_or_default()
    }
}

impl<T> Slot<T> {
    fn new(job: BoxFuture<'static, T>) -> Self {
        Self { job: Mutex::new(Some(job)), wanted: AtomicBool::new(false), work: Mutex::default() }
    }

    /// Takes a step; `None` when the job was handed over.
    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut job = self.job.lock();
        // Out of its place for the step: a job that panics is not continued.
        let Some(mut future) = job.take() else { return Poll::Ready(None) };
        self.note(|work| {
            work.step = ThreadClock::of_this_thread().and_then(|clock| Some((clock, clock.time()?)));
        });
        let polled = future.as_mut().poll(context).map(Some);
        self.note(|work| *work = Work { before: work.now(), step: None });
        if polled.is_ready() {
            // A finished job is not handed over.
            return polled;
        }
        *job = Some(future);
        if self.wanted.load(Ordering::Relaxed) { Poll::Ready(None) } else { polled }
    }

    /// Processor time, including the current step.
    fn worked(&self) -> Duration {
        self.work.lock().now()
    }

    /// Takes the job, unless it is in a step; then it is handed over after that.
    fn take(&self) -> Option<BoxFuture<'static, T>> {
        self.wanted.store(true, Ordering::Relaxed);
        self.job.try_lock()?.take()
    }

    fn note(&self, change: impl FnOnce(&mut Work)) {
        change(&mut self.work.lock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_ipc::os::thread_time;
    use futures::FutureExt;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;
    use tokio::runtime::{Builder, Runtime};

    /// The end of a test that waits in vain: far longer than what it waits for takes on a busy machine.
    const LIMIT: Duration = Duration::from_secs(120);
    /// More than a job loses in any test.
    const NEVER: Duration = Duration::from_secs(3_600);

    fn thread(name: &str) -> Runtime {
        Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build().unwrap()
    }

    /// The queries' thread, the low one, and what hands jobs over.
    fn handoff(patience: Duration) -> (Runtime, Runtime, Arc<Throttle>, Handoff) {
        let (queries, low) = (thread("query"), thread("low"));
        let throttle = Arc::new(Throttle::new(queries.handle().clone(), 10));
        let handoff = Handoff { low: low.handle().clone(), throttle: Arc::clone(&throttle), patience };
        (queries, low, throttle, handoff)
    }

    fn here() -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }

    fn wait_until(condition: impl Fn() -> bool) {
        let begun = Instant::now();
        while !condition() {
            assert!(begun.elapsed() < LIMIT, "waited in vain");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Blocks the only thread of a runtime until the sender is dropped.
    fn block(runtime: &Runtime) -> mpsc::Sender<()> {
        let (release, released) = mpsc::channel();
        let (begin, begun) = mpsc::channel();
        runtime.spawn(async move {
            begin.send(()).unwrap();
            // The error says that the sender is gone.
            let _ = released.recv();
        });
        begun.recv_timeout(LIMIT).unwrap();
        release
    }

    /// A job whose steps get no processor: it goes on until it has left the low thread, then for three more. It gives the thread
    /// of each.
    async fn steps_until_moved(taken: Arc<AtomicUsize>) -> Vec<String> {
        let (begun, mut threads, mut left) = (Instant::now(), Vec::new(), 3);
        while left > 0 && begun.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(5));
            threads.push(here());
            left -= u32::from(here() != "low");
            taken.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
        threads
    }

    /// How many steps such a job took before it left the low thread.
    fn steps_before_move(threads: &[String]) -> usize {
        let moved = threads.iter().position(|thread| thread != "low").expect("it has left the low thread");
        assert_eq!(&threads[moved..], ["beside"; 3]);
        moved
    }

    #[test]
    fn a_job_is_held_up_when_it_loses_far_more_than_it_works() {
        let (_queries, _low, _throttle, handoff) = handoff(PATIENCE);
        for (had_ms, worked_ms, is_held_up) in [
            (1_000, 0, false),
            (1_001, 0, true),
            (6_000, 1_000, false),
            (6_001, 1_000, true),
            (60_000, 60_000, false),
            // Clocks of threads may be ahead of the one on the wall.
            (10, 20, false),
        ] {
            let (had, worked) = (Duration::from_millis(had_ms), Duration::from_millis(worked_ms));
            assert_eq!(handoff.is_held_up(had, worked), is_held_up, "{had:?} {worked:?}");
        }
    }

    #[test]
    fn what_is_not_held_up_stays_where_it_is() {
        let (_queries, _low, _throttle, handoff) = handoff(NEVER);
        let job = async {
            let (begun, mut threads) = (Instant::now(), Vec::new());
            // It is looked after some times.
            while begun.elapsed() < LOOK * 5 {
                threads.push(here());
                tokio::task::yield_now().await;
            }
            threads
        };
        let threads = thread("beside").block_on(handoff.run(job.boxed())).unwrap();
        assert!(threads.iter().all(|thread| thread == "low"));
    }

    #[test]
    fn what_is_done_is_not_carried_on() {
        let slot = Slot::new(async { 7 }.boxed());
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert_eq!(slot.poll(&mut context), Poll::Ready(Some(7)));
        assert!(slot.take().is_none());
        assert_eq!(slot.poll(&mut context), Poll::Ready(None));
    }

    #[test]
    fn what_gets_too_little_is_taken_over() {
        let (_queries, _low, _throttle, handoff) = handoff(Duration::ZERO);
        let beside = thread("beside");
        let job = steps_until_moved(Arc::default()).boxed();
        let caller = beside.spawn(async move { handoff.run(job).await });
        steps_before_move(&beside.block_on(caller).unwrap().unwrap());
    }

    #[test]
    fn what_a_query_waits_for_is_carried_on_from_where_it_is() {
        let (_queries, _low, throttle, handoff) = handoff(NEVER);
        let (beside, taken) = (thread("beside"), Arc::new(AtomicUsize::new(0)));
        let job = steps_until_moved(Arc::clone(&taken)).boxed();
        let caller = beside.spawn(async move { handoff.run(job).await });
        wait_until(|| taken.load(Ordering::Relaxed) >= 3);
        let urgent = throttle.urgent();
        let threads = beside.block_on(caller).unwrap().unwrap();
        drop(urgent);
        assert!(steps_before_move(&threads) >= 3, "{threads:?}");
        assert_eq!(threads.len(), taken.load(Ordering::Relaxed));
    }

    #[test]
    fn what_steps_aside_does_not_wait_for_the_thread_that_it_has_left() {
        let (queries, low, throttle, handoff) = handoff(NEVER);
        let query = block(&queries);
        let has_worked = Arc::new(AtomicBool::new(false));
        let (worked, aside) = (Arc::clone(&has_worked), Arc::clone(&throttle));
        let job = async move {
            aside.pass().await;
            while here() == "low" {
                let end = thread_time() + Duration::from_millis(20);
                while thread_time() < end {
                    std::hint::spin_loop();
                }
                worked.store(true, Ordering::Relaxed);
                // On the timer of its thread.
                aside.pass().await;
            }
            here()
        };
        let beside = thread("beside");
        let caller = beside.spawn(async move { handoff.run(job.boxed()).await });
        wait_until(|| has_worked.load(Ordering::Relaxed));
        // From here on that timer stands still.
        let blocked = block(&low);
        let urgent = throttle.urgent();
        let ended = beside.block_on(async { timeout(LIMIT, caller).await });
        assert_eq!(ended.expect("it goes on").unwrap().unwrap(), "beside");
        drop((urgent, blocked, query));
    }

    #[test]
    fn what_nobody_wants_any_more_ends() {
        let (_queries, _low, _throttle, handoff) = handoff(NEVER);
        let held = Arc::new(());
        let job = {
            let held = Arc::clone(&held);
            async move {
                std::future::pending::<()>().await;
                drop(held);
            }
        };
        thread("beside").block_on(async {
            assert!(timeout(Duration::from_millis(50), handoff.run(job.boxed())).await.is_err());
        });
        wait_until(|| Arc::strong_count(&held) == 1);
    }

    #[test]
    fn a_job_that_panics_is_over() {
        let (_queries, _low, _throttle, handoff) = handoff(NEVER);
        let job = async { panic!("on purpose") };
        assert!(thread("beside").block_on(handoff.run::<()>(job.boxed())).is_none());
    }
}
