//! Heartbeats: every member is asked at each, over a connection that stays open, and its answer goes into the table.

use crate::membership::error::{denied, is_denied};
use crate::membership::frame::{read_frame, write_frame};
use crate::membership::member::State;
use crate::membership::message::Answer;
use crate::membership::security::Purpose;
use crate::membership::shared::{Shared, micros};
use crate::membership::stream::Wire;
use crate::membership::table::fraction;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// How often members are judged, at least.
const LONGEST_TICK: Duration = Duration::from_millis(250);
/// How often a dead member is asked, at least.
const LONGEST_PACE: Duration = Duration::from_secs(10);
/// A clock that is further away than this is worth a word.
const LARGEST_SKEW_MS: u64 = 5_000;
/// An answer that took longer says nothing about a clock.
const LONGEST_TRIP: Duration = Duration::from_secs(1);

/// Judges members, and has a task for each that asks it. Dropping it ends them all.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut tasks = JoinSet::new();
    let mut asked: BTreeMap<String, AbortHandle> = BTreeMap::new();
    let mut changes = shared.changes.subscribe();
    let tick = (shared.settings.heartbeat / 2).min(LONGEST_TICK);
    loop {
        changes.mark_unchanged();
        shared.look();
        let targets = shared.targets();
        for address in &targets {
            if !asked.contains_key(address) {
                let task = keep_asking(Arc::clone(&shared), address.clone());
                asked.insert(address.clone(), tasks.spawn(task));
            }
        }
        asked.retain(|address, task| {
            let is_target = targets.contains(address);
            if !is_target {
                task.abort();
            }
            is_target
        });
        while tasks.try_join_next().is_some() {}
        tokio::select! {
            () = sleep(tick) => {}
            _ = changes.changed() => {}
        }
    }
}

/// Asks one address for ever.
async fn keep_asking(shared: Arc<Shared>, address: String) {
    let mut hurry = shared.hurry.subscribe();
    let (mut wire, mut told) = (None, Told::default());
    loop {
        let outcome = ask(&shared, &address, &mut wire, shared.settings.suspect_after).await;
        told.note(&address, &outcome);
        let pace = pace(&shared, &address, outcome.is_ok());
        tokio::select! {
            () = sleep(pace.mul_f64(0.9 + 0.2 * fraction())) => {}
            _ = hurry.changed() => {}
        }
    }
}

/// How long to wait until an address is asked again: who is gone is asked less often.
fn pace(shared: &Shared, address: &str, answers: bool) -> Duration {
    let heartbeat = shared.settings.heartbeat;
    match shared.table().state_at(address) {
        Some(State::Dead) => (heartbeat * 5).min(LONGEST_PACE).max(heartbeat),
        None if !answers => (heartbeat * 2).min(LONGEST_PACE).max(heartbeat),
        _ => heartbeat,
    }
}

/// By how much the other clock is ahead, as far as the answer tells.
type Skew = Option<i64>;

/// Asks once. A connection that has ended meanwhile is made anew, once.
pub(crate) async fn ask(
    shared: &Shared,
    address: &str,
    kept: &mut Option<Wire>,
    limit: Duration,
) -> io::Result<Skew> {
    let attempt = async {
        if let Some(wire) = kept.take()
            && let Ok((wire, skew)) = exchange(shared, address, wire).await
        {
            return Ok((wire, skew));
        }
        let wire = shared.keys.dial(address, Purpose::Members).await?;
        exchange(shared, address, wire).await
    };
    let outcome = timeout(limit, attempt).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match outcome {
        Ok((wire, skew)) => {
            *kept = Some(wire);
            Ok(skew)
        }
        Err(error) => {
            shared.failed(address);
            Err(error)
        }
    }
}

async fn exchange(shared: &Shared, address: &str, mut wire: Wire) -> io::Result<(Wire, Skew)> {
    let (sent, begun) = (SystemTime::now(), Instant::now());
    write_frame(&mut wire, &shared.beat(address)).await?;
    match read_frame(&mut wire).await? {
        Answer::Beat(beat) => {
            let skew = skew_ms(beat.now_us, micros(sent), begun.elapsed());
            shared.take_answer(address, beat, skew, begun)?;
            Ok((wire, skew))
        }
        Answer::Refused { reason } => Err(denied(reason)),
    }
}

/// The answer was made about half-way between question and answer.
fn skew_ms(theirs_us: u64, sent_us: u64, trip: Duration) -> Skew {
    if trip > LONGEST_TRIP {
        return None;
    }
    let half_us = u64::try_from(trip.as_micros() / 2).ok()?;
    let ahead = i128::from(theirs_us) - i128::from(sent_us.checked_add(half_us)?);
    i64::try_from(ahead / 1_000).ok()
}

/// What was said about an address, so that it is said once.
#[derive(Debug, Default)]
struct Told {
    problem: Option<String>,
    skewed: bool,
}

impl Told {
    fn note(&mut self, address: &str, outcome: &io::Result<Skew>) {
        match outcome {
            Ok(skew) => {
                self.problem = None;
                self.note_skew(address, *skew);
            }
            Err(error) => {
                let problem = error.to_string();
                if self.problem.as_ref() != Some(&problem) {
                    match is_denied(error) {
                        true => {
                            tracing::warn!(address, %problem, "a node and this one do not believe one another")
                        }
                        false => tracing::debug!(address, %problem, "a node does not answer"),
                    }
                    self.problem = Some(problem);
                }
            }
        }
    }

    fn note_skew(&mut self, address: &str, skew: Skew) {
        let Some(clock_skew_ms) = skew else { return };
        let is_skewed = clock_skew_ms.unsigned_abs() > LARGEST_SKEW_MS;
        if is_skewed && !self.skewed {
            tracing::warn!(
                address,
                clock_skew_ms,
                "the clocks of two nodes are more than five seconds apart"
            );
        }
        self.skewed = is_skewed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_an_answer_is_compared_with_the_middle_of_its_trip() {
        let trip = Duration::from_millis(100);
        assert_eq!(skew_ms(1_050_000, 1_000_000, trip), Some(0));
        assert_eq!(skew_ms(8_050_000, 1_000_000, trip), Some(7_000));
        assert_eq!(skew_ms(0, 7_000_000, trip), Some(-7_050));
        assert_eq!(skew_ms(1, 1, Duration::from_secs(2)), None);
        assert_eq!(skew_ms(u64::MAX, u64::MAX, trip), None);
    }
}
