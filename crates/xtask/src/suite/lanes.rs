//! Runs suites at once where that disturbs none of them.

use super::Outcome;
use super::seconds::Seconds;
use super::table::Suite;
use crate::machine;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::thread;

/// Suites that run at once: one more than there are processors, since each waits now and then; not more than memory has room for.
fn lanes() -> usize {
    thread::available_parallelism().map_or(2, |processors| processors.get() + 1).min(4)
}

/// Runs all suites, those first that run alone, and gives their outcomes in the order of the table.
pub(super) fn run(
    suites: &[Suite],
    seconds: &Seconds,
    work: impl Fn(usize, &Suite) -> Outcome + Sync,
) -> Vec<Outcome> {
    let (mut beside, alone): (Vec<_>, Vec<_>) =
        suites.iter().enumerate().partition(|(_, suite)| suite.beside);
    // The longest first, so that all lanes end together; what has not been measured may be long.
    beside.sort_by_key(|(_, suite)| Reverse(seconds.get(&suite.name).copied().unwrap_or(u64::MAX)));
    let mut outcomes: Vec<(usize, Outcome)> = Vec::new();
    outcomes.extend(alone.into_iter().map(|(index, suite)| (index, work(index, suite))));
    match beside.as_slice() {
        // Nothing to hold its output back for.
        [(index, suite)] => outcomes.push((*index, work(*index, suite))),
        _ => outcomes.extend(in_lanes(beside, &work)),
    }
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn in_lanes(
    suites: Vec<(usize, &Suite)>,
    work: &(impl Fn(usize, &Suite) -> Outcome + Sync),
) -> Vec<(usize, Outcome)> {
    let (queue, done) = (Mutex::new(suites.into_iter()), Mutex::new(Vec::new()));
    let next = || queue.lock().next();
    let lane = || {
        while let Some((index, suite)) = next() {
            machine::say(&format!("started {}", suite.name));
            let outcome = machine::said_together(|| work(index, suite));
            done.lock().push((index, outcome));
        }
    };
    thread::scope(|scope| {
        for _ in 0..lanes() {
            scope.spawn(lane);
        }
    });
    done.into_inner()
}
