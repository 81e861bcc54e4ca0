//! A job from its arrival to its end: limits, cancel, and who owns the work.

use super::*;
use datafusion::common::runtime::JoinSet;
use tokio::runtime::Runtime;
use tokio::task::yield_now;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn job(planning: &Arc<Planning>) -> Arc<Job> {
    Job::new("eve", None, (planning, &Arc::new(Budget::new(0))))
}

fn burn(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

#[test]
fn planning_keeps_no_thread_from_others() {
    let (runtime, planning) = (runtime(), Planning::new(1));
    let long = runtime.spawn(job(&planning).inside(async {
        apart(async {
            burn(500);
            Ok(1)
        })
        .await
    }));
    runtime.block_on(async {
        while planning.busy() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let began = Instant::now();
        tokio::spawn(async {}).await.unwrap();
        assert!(began.elapsed() < Duration::from_millis(250), "{:?}", began.elapsed());
        assert_eq!(long.await.unwrap().unwrap(), 1);
    });
    assert_eq!((planning.busy(), planning.burning()), (0, 0));
}

#[test]
fn what_is_given_up_burns_without_a_place() {
    let (runtime, planning) = (runtime(), Planning::new(1));
    let given_up = job(&planning);
    let work = runtime.spawn(given_up.inside(async {
        apart(async {
            burn(300);
            Ok(())
        })
        .await
    }));
    runtime.block_on(async {
        while planning.busy() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        given_up.stop(Stop::Late);
        assert_eq!((planning.busy(), planning.burning()), (0, 1));
        assert_eq!(work.await.unwrap().unwrap_err().kind(), ErrorKind::Timeout);
    });
    assert_eq!((planning.busy(), planning.burning()), (0, 0));
}

#[test]
fn a_user_leaves_places_to_others() {
    let (runtime, planning) = (runtime(), Planning::new(1));
    let hold = |job: Arc<Job>| {
        runtime.spawn(job.inside(async {
            apart(async {
                burn(300);
                Ok(())
            })
            .await
        }))
    };
    let works: Vec<_> = (0..20).map(|_| hold(job(&planning))).collect();
    runtime.block_on(async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(planning.busy(), LEAST - 2);
        let other = Job::new("ann", None, (&planning, &Arc::new(Budget::new(0))));
        let began = Instant::now();
        other.inside(apart(async { Ok(()) })).await.unwrap();
        assert!(began.elapsed() < Duration::from_millis(150), "{:?}", began.elapsed());
        for work in works {
            work.await.unwrap().unwrap();
        }
    });
}

/// Of one thread.
const LEAST: usize = 8;

#[test]
fn steps_end_where_the_job_does() {
    let planning = Planning::new(1);
    let stopped = job(&planning);
    let entered = Entered::new(&stopped);
    assert!(step(|| Ok(())).is_ok());
    stopped.stop(Stop::Cancelled);
    assert!(step(|| Ok(())).is_err());
    drop(entered);
    assert!(step(|| Ok(())).is_ok());
    let late = Job::new("eve", Some(Instant::now()), (&planning, &Arc::new(Budget::new(0))));
    assert_eq!(late.check().unwrap_err().kind(), ErrorKind::Timeout);
}

#[test]
fn what_a_job_holds_is_free_at_its_end() {
    let planning = Planning::new(1);
    let held = Arc::new(());
    let job = job(&planning);
    job.hold(Arc::clone(&held));
    assert!(job.release::<u8>().is_none());
    assert_eq!(Arc::strong_count(&held), 2);
    job.stop(Stop::Over);
    assert_eq!(Arc::strong_count(&held), 1);
    job.hold(Arc::clone(&held));
    assert_eq!(Arc::strong_count(&held), 1);
}

#[tokio::test]
async fn tasks_end_with_their_job() {
    carry_jobs();
    let job = job(&Planning::new(1));
    let held = Arc::new(());
    let (mut tasks, part) = (JoinSet::new(), Arc::clone(&held));
    job.inside(async {
        tasks.spawn(async move {
            while Arc::strong_count(&part) > 0 {
                yield_now().await;
            }
        });
    })
    .await;
    yield_now().await;
    assert_eq!(Arc::strong_count(&held), 2);
    job.stop(Stop::Late);
    yield_now().await;
    yield_now().await;
    assert_eq!(Arc::strong_count(&held), 1, "the set of tasks is still there");
    drop(tasks);
}

/// One of more jobs than find free threads.
fn one_of_many(planning: &Arc<Planning>) -> Arc<Job> {
    let budget = Arc::new(Budget::new(0));
    (0..FEW_JOBS).for_each(|_| budget.entered());
    Job::new("eve", None, (planning, &budget))
}

/// Work that keeps its thread for 400 ms in each of its polls.
async fn long_polls(times: usize) {
    for _ in 0..times {
        burn(400);
        yield_now().await;
    }
}

/// How long a task waits that begins now, as often as that is asked while something runs.
async fn waits(work: tokio::task::JoinHandle<()>) -> Vec<Duration> {
    let mut waits = vec![];
    while !work.is_finished() {
        let began = Instant::now();
        tokio::spawn(async {}).await.unwrap();
        waits.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    work.await.unwrap();
    waits
}

#[test]
fn long_polls_keep_the_thread_from_others_once() {
    let (runtime, planning) = (runtime(), Planning::new(1));
    let work = runtime.spawn(one_of_many(&planning).inside(long_polls(6)));
    let mut waits = runtime.block_on(async { waits(work).await });
    waits.sort();
    assert!(waits.len() > 20, "{waits:?}");
    assert!(waits[waits.len() - 3] < Duration::from_millis(300), "{waits:?}");
}

#[test]
fn tasks_of_a_job_with_long_polls_begin_beside_others() {
    let (runtime, planning) = (runtime(), Planning::new(1));
    let job = one_of_many(&planning);
    runtime.block_on(runtime.spawn(job.inside(long_polls(1)))).unwrap();
    let work = runtime.spawn(job.inside(long_polls(3)));
    let waits = runtime.block_on(async { waits(work).await });
    assert!(*waits.iter().max().unwrap() < Duration::from_millis(300), "{waits:?}");
}

#[test]
fn only_so_many_polls_have_a_thread_of_their_own() {
    let budget = Budget::new(0);
    assert!(budget.place_aside(0).is_none(), "nobody else waits");
    budget.entered();
    assert!(budget.place_aside(1).is_none());
    let ask = |times: usize| (0..times).filter_map(|_| budget.place_aside(0)).collect::<Vec<_>>();
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
    assert!(budget.place_aside(0).is_none());
    places.pop();
    assert!(budget.place_aside(0).is_some());
}

#[test]
fn work_with_long_polls_still_returns_to_the_scheduler() {
    let (runtime, planning) = (runtime(), Planning::new(1));
    let work = runtime.spawn(one_of_many(&planning).inside(async {
        burn(60);
        loop {
            tokio::task::coop::consume_budget().await;
        }
    }));
    runtime.block_on(async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        work.abort();
        let ended = tokio::time::timeout(Duration::from_secs(10), work).await;
        assert!(ended.unwrap().unwrap_err().is_cancelled());
    });
}
