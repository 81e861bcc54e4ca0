//! Heartbeats: sent to every member over a connection that stays open; answers update the table.

use crate::membership::error::{denied, is_denied};
use crate::membership::frame::{read_frame, write_frame};
use crate::membership::member::State;
use crate::membership::message::Answer;
use crate::membership::node_state::{NodeState, micros};
use crate::membership::security::Purpose;
use crate::membership::stream::Wire;
use crate::membership::table::fraction;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// Longest time between updates of member states.
const LONGEST_TICK: Duration = Duration::from_millis(250);
/// Longest time between heartbeats to a dead member.
const LONGEST_PACE: Duration = Duration::from_secs(10);
/// Difference of clocks that is logged.
const LARGEST_SKEW_MS: u64 = 5_000;
/// Longest round trip from which the clock is estimated.
const LONGEST_TRIP: Duration = Duration::from_secs(1);

/// Updates member states, and runs a task for each member that sends heartbeats. Dropping it ends them all.
pub(crate) async fn run(state: Arc<NodeState>) {
    let mut tasks = JoinSet::new();
    let mut asked: BTreeMap<String, AbortHandle> = BTreeMap::new();
    let mut changes = state.changes.subscribe();
    let tick = (state.settings.heartbeat / 2).min(LONGEST_TICK);
    loop {
        changes.mark_unchanged();
        state.refresh();
        let targets = state.targets();
        for address in &targets {
            if !asked.contains_key(address) {
                let task = keep_asking(Arc::clone(&state), address.clone());
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

/// Sends heartbeats to one address for ever.
async fn keep_asking(state: Arc<NodeState>, address: String) {
    let mut ask_early = state.ask_early.subscribe();
    let (mut wire, mut problems) = (None, LoggedProblems::default());
    loop {
        let outcome = ask(&state, &address, &mut wire, state.settings.suspect_after).await;
        problems.note(&address, &outcome);
        let pace = pace(&state, &address, outcome.is_ok());
        tokio::select! {
            () = sleep(pace.mul_f64(0.9 + 0.2 * fraction())) => {}
            _ = ask_early.changed() => {}
        }
    }
}

/// The time until the next heartbeat: dead members get fewer.
fn pace(state: &NodeState, address: &str, answers: bool) -> Duration {
    let heartbeat = state.settings.heartbeat;
    match state.table.lock().state_at(address) {
        Some(State::Dead) => (heartbeat * 5).min(LONGEST_PACE).max(heartbeat),
        None if !answers => (heartbeat * 2).min(LONGEST_PACE).max(heartbeat),
        _ => heartbeat,
    }
}

/// By how much the other clock is ahead, if known.
type Skew = Option<i64>;

/// Sends one heartbeat, over a new connection if the old one was closed.
pub(crate) async fn ask(
    state: &NodeState,
    address: &str,
    connection: &mut Option<Wire>,
    limit: Duration,
) -> io::Result<Skew> {
    let attempt = async {
        if let Some(wire) = connection.take()
            && let Ok((wire, skew)) = exchange(state, address, wire).await
        {
            return Ok((wire, skew));
        }
        let wire = state.keys.dial(address, Purpose::Members).await?;
        exchange(state, address, wire).await
    };
    let outcome = timeout(limit, attempt).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match outcome {
        Ok((wire, skew)) => {
            *connection = Some(wire);
            Ok(skew)
        }
        Err(error) => {
            state.failed(address);
            Err(error)
        }
    }
}

async fn exchange(state: &NodeState, address: &str, mut wire: Wire) -> io::Result<(Wire, Skew)> {
    let (sent, begun) = (SystemTime::now(), Instant::now());
    write_frame(&mut wire, &state.heartbeat(address)).await?;
    match read_frame(&mut wire).await? {
        Answer::Beat(beat) => {
            let skew = skew_ms(beat.now_us, micros(sent), begun.elapsed());
            state.take_answer(address, beat, skew, begun)?;
            Ok((wire, skew))
        }
        Answer::Refused { reason } => Err(denied(reason)),
    }
}

/// Assumes that the answer was made in the middle of the round trip.
fn skew_ms(theirs_us: u64, sent_us: u64, trip: Duration) -> Skew {
    if trip > LONGEST_TRIP {
        return None;
    }
    let half_us = u64::try_from(trip.as_micros() / 2).ok()?;
    let ahead = i128::from(theirs_us) - i128::from(sent_us.checked_add(half_us)?);
    i64::try_from(ahead / 1_000).ok()
}

/// Problems of an address that were logged, so that each is logged once.
#[derive(Debug, Default)]
struct LoggedProblems {
    problem: Option<String>,
    skewed: bool,
}

impl LoggedProblems {
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
                            tracing::warn!(address, %problem, "authentication between a node and this one failed")
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
