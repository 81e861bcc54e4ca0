//! A query task from its arrival to its end: limits, cancel, and who owns the work.

use super::*;
use datafusion::common::runtime::JoinSet;
use std::sync::atomic::AtomicUsize;
use tokio::runtime::Runtime;
use tokio::task::yield_now;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn task(planning: &Arc<Planning>) -> Arc<QueryTask> {
    QueryTask::new("eve", None, (planning, &Arc::new(Budget::new(0))))
}

fn burn(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// The end of a test that waits in vain: far longer than what it waits for takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LIMIT, "waited in vain");
        burn(1);
    }
}

/// Keeps the threads that come to it until it is opened.
#[derive(Default)]
struct Gate {
    waiting: AtomicUsize,
    is_open: AtomicBool,
}

impl Gate {
    fn wait(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        wait_until(|| self.is_open.load(Ordering::Relaxed));
    }

    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }
}

/// Planning that keeps its thread until a gate is opened.
async fn plan_at(gate: Arc<Gate>) -> Result<()> {
    run_planning(async move {
        gate.wait();
        Ok(())
    })
    .await
}

#[test]
fn planning_keeps_no_thread_from_others() {
    let (runtime, planning, gate) = (runtime(), Planning::new(1), Arc::<Gate>::default());
    let long = runtime.spawn(task(&planning).inside(plan_at(Arc::clone(&gate))));
    wait_until(|| gate.waiting() == 1);
    runtime.block_on(runtime.spawn(async {})).unwrap();
    assert!(!long.is_finished(), "another task waited for the planning");
    gate.open();
    runtime.block_on(long).unwrap().unwrap();
    assert_eq!((planning.busy(), planning.orphaned()), (0, 0));
}

#[test]
fn what_is_given_up_burns_without_a_place() {
    let (runtime, planning, gate) = (runtime(), Planning::new(1), Arc::<Gate>::default());
    let given_up = task(&planning);
    let work = runtime.spawn(given_up.inside(plan_at(Arc::clone(&gate))));
    wait_until(|| gate.waiting() == 1);
    given_up.stop(Stop::Late);
    assert_eq!((planning.busy(), planning.orphaned()), (0, 1));
    gate.open();
    assert_eq!(runtime.block_on(work).unwrap().unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!((planning.busy(), planning.orphaned()), (0, 0));
}

#[test]
fn a_user_leaves_places_to_others() {
    let (runtime, planning, gate) = (runtime(), Planning::new(1), Arc::<Gate>::default());
    let hold = |_| runtime.spawn(task(&planning).inside(plan_at(Arc::clone(&gate))));
    let works: Vec<_> = (0..20).map(hold).collect();
    wait_until(|| gate.waiting() == LEAST - 2);
    // It runs after all of them have asked for a place.
    runtime.block_on(runtime.spawn(async {})).unwrap();
    assert_eq!((planning.busy(), gate.waiting()), (LEAST - 2, LEAST - 2));
    let other = QueryTask::new("ann", None, (&planning, &Arc::new(Budget::new(0))));
    runtime.block_on(other.inside(run_planning(async { Ok(()) }))).unwrap();
    assert_eq!(gate.waiting(), LEAST - 2, "it waited for the others");
    gate.open();
    for work in works {
        runtime.block_on(work).unwrap().unwrap();
    }
}

/// Of one thread.
const LEAST: usize = 8;

#[test]
fn steps_end_where_the_task_does() {
    let planning = Planning::new(1);
    let stopped = task(&planning);
    let entered = Entered::new(&stopped);
    assert!(step(|| Ok(())).is_ok());
    stopped.stop(Stop::Cancelled);
    assert!(step(|| Ok(())).is_err());
    drop(entered);
    assert!(step(|| Ok(())).is_ok());
    let late = QueryTask::new("eve", Some(Instant::now()), (&planning, &Arc::new(Budget::new(0))));
    assert_eq!(late.check().unwrap_err().kind(), ErrorKind::Timeout);
}

#[test]
fn what_a_task_holds_is_free_at_its_end() {
    let planning = Planning::new(1);
    let held = Arc::new(());
    let task = task(&planning);
    task.hold(Arc::clone(&held));
    assert!(task.release::<u8>().is_none());
    assert_eq!(Arc::strong_count(&held), 2);
    task.stop(Stop::Over);
    assert_eq!(Arc::strong_count(&held), 1);
    task.hold(Arc::clone(&held));
    assert_eq!(Arc::strong_count(&held), 1);
}

#[tokio::test]
async fn tasks_end_with_their_task() {
    propagate();
    let task = task(&Planning::new(1));
    let held = Arc::new(());
    let (mut tasks, part) = (JoinSet::new(), Arc::clone(&held));
    task.inside(async {
        tasks.spawn(async move {
            while Arc::strong_count(&part) > 0 {
                yield_now().await;
            }
        });
    })
    .await;
    yield_now().await;
    assert_eq!(Arc::strong_count(&held), 2);
    task.stop(Stop::Late);
    yield_now().await;
    yield_now().await;
    assert_eq!(Arc::strong_count(&held), 1, "the set of tasks is still there");
    drop(tasks);
}

/// One of more query tasks than find free threads.
fn one_of_many(planning: &Arc<Planning>) -> Arc<QueryTask> {
    let budget = Arc::new(Budget::new(0));
    (0..FEW_TASKS).for_each(|_| budget.entered());
    QueryTask::new("eve", None, (planning, &budget))
}

/// Longer than a poll may keep its thread from others.
const LONG_MILLISECONDS: u64 = 60;

/// One long poll that waits for nothing.
async fn long_poll() {
    burn(LONG_MILLISECONDS);
    yield_now().await;
}

/// Long polls, each of which ends only when another task has run meanwhile.
async fn polls_beside(others: Arc<AtomicUsize>, times: usize) {
    for _ in 0..times {
        burn(LONG_MILLISECONDS);
        let before = others.load(Ordering::Relaxed);
        wait_until(|| others.load(Ordering::Relaxed) > before);
        yield_now().await;
    }
}

/// Runs other tasks, and counts them, until the work has ended.
async fn run_beside(work: tokio::task::JoinHandle<()>, others: &Arc<AtomicUsize>) {
    while !work.is_finished() {
        let ran = Arc::clone(others);
        let other = async move {
            ran.fetch_add(1, Ordering::Relaxed);
        };
        tokio::spawn(other).await.unwrap();
        burn(1);
    }
    work.await.unwrap();
}

#[test]
fn long_polls_keep_the_thread_from_others_once() {
    let (runtime, planning, others) = (runtime(), Planning::new(1), Arc::<AtomicUsize>::default());
    let after = polls_beside(Arc::clone(&others), 5);
    let work = runtime.spawn(one_of_many(&planning).inside(async {
        long_poll().await;
        after.await;
    }));
    runtime.block_on(run_beside(work, &others));
}

#[test]
fn tasks_of_a_task_with_long_polls_begin_beside_others() {
    let (runtime, planning, others) = (runtime(), Planning::new(1), Arc::<AtomicUsize>::default());
    let task = one_of_many(&planning);
    runtime.block_on(runtime.spawn(task.inside(long_poll()))).unwrap();
    let work = runtime.spawn(task.inside(polls_beside(Arc::clone(&others), 3)));
    runtime.block_on(run_beside(work, &others));
}

#[test]
fn only_so_many_polls_have_a_thread_of_their_own() {
    let budget = Budget::new(0);
    assert!(budget.thread_permit(0).is_none(), "nobody else waits");
    budget.entered();
    assert!(budget.thread_permit(1).is_none());
    let ask = |times: usize| (0..times).filter_map(|_| budget.thread_permit(0)).collect::<Vec<_>>();
    let (began, at_once) = (Instant::now(), ask(1000).len());
    let time = usize::try_from(began.elapsed().as_millis()).unwrap();
    assert!((16..=17 + time).contains(&at_once), "{at_once} in {time} ms");
    let mut places = vec![];
    for _ in 0..6 {
        std::thread::sleep(Duration::from_millis(20));
        places.extend(ask(1000));
    }
    assert_eq!(places.len(), 32);
    std::thread::sleep(Duration::from_millis(20));
    assert!(budget.thread_permit(0).is_none());
    places.pop();
    assert!(budget.thread_permit(0).is_some());
}

#[test]
fn work_with_long_polls_still_returns_to_the_scheduler() {
    let (runtime, planning) = (runtime(), Planning::new(1));
    let work = runtime.spawn(one_of_many(&planning).inside(async {
        burn(LONG_MILLISECONDS);
        loop {
            tokio::task::coop::consume_budget().await;
        }
    }));
    runtime.block_on(async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        work.abort();
        let ended = tokio::time::timeout(LIMIT, work).await;
        assert!(ended.unwrap().unwrap_err().is_cancelled());
    });
}
