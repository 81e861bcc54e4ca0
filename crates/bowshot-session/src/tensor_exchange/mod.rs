//! Tensor exchange: members send tensors in rounds, and each gets the reduction of all.
//!
//! ```text
//! join ─► TensorExchanges: the exchange of this name, created by its first member ─► for each round:
//!   contribution ─► reduction.rs: validate, add ─► complete? all get the result. Not yet? wait ─► timeout? enough or fail
//! ```
//!
//! A member whose contribution comes late gets the result of that round and continues with the next; the contribution
//! does not count. An invalid contribution ends its member. A member that leaves after contributing and returns gets
//! the same rank, so that each rank counts once per round. An exchange ends with its last member, or with a failed
//! round.

mod reduction;

use crate::session::ClientSession;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, ErrorKind, Result, TensorExchange};
use bowshot_engine::EngineSession;
use futures::StreamExt;
use parking_lot::Mutex;
use reduction::{Contribution, Shape, Sums};
use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Instant;
use tokio::sync::watch;
use tokio::time::timeout_at;

const MAX_EXCHANGES: usize = 32;
/// Exchanges of one visibility group, so that no group uses all.
const MAX_PER_GROUP: usize = 8;
/// Numbers of all exchanges. Each may exist three times: in the sums, in the last result, and during the reduction.
const MAX_NUMBERS: usize = 1 << 26;
const MAX_MEMBERS: usize = 1_000;

/// Open exchanges of the server, by visibility group and name.
#[derive(Debug, Default)]
pub(crate) struct TensorExchanges(Mutex<HashMap<(String, String), Weak<Open>>>);

#[derive(Debug)]
struct Open {
    exchange: TensorExchange,
    shape: Shape,
    state: Mutex<State>,
    /// Number of finished rounds, for waiting members.
    over: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// Ranks in use.
    present: BTreeSet<usize>,
    /// Ranks that have contributed, whether or not their member is still there.
    counted: BTreeSet<usize>,
    round: u64,
    sums: Sums,
    /// Time of the round's first contribution.
    began: Option<Instant>,
    /// The result of the last round.
    newest: Option<RecordBatch>,
    /// A round timed out without enough contributions.
    failed: bool,
}

struct Member {
    open: Arc<Open>,
    engine: EngineSession,
    group: String,
    rank: usize,
    /// The round of its next contribution.
    round: u64,
}

/// Joins an exchange. Each input row is a contribution, each output batch the result of a round.
pub(crate) fn join(
    session: &ClientSession,
    exchange: TensorExchange,
    rows: BatchStream,
) -> Result<BatchStream> {
    if exchange.members.get() > MAX_MEMBERS || exchange.minimum > exchange.members {
        return Err(Error::invalid(format!(
            "invalid room: expected 1 to {MAX_MEMBERS} members, and a minimum of at most all of them"
        )));
    }
    let engine = session.engine().clone();
    let group = engine.visibility_group(exchange.role.as_deref())?;
    let member = session.server().exchanges.enter(exchange, &rows.schema(), engine, group)?;
    let given = Arc::clone(&member.open.shape.given);
    let runtime = session.server().engine.runtime().handle().clone();
    let rounds =
        futures::stream::try_unfold((member, rows, runtime), |(mut member, mut rows, runtime)| async move {
            let Some(batch) = rows.next().await.transpose()? else { return Ok(None) };
            let (open, from) = (Arc::clone(&member.open), (member.rank, member.round));
            if member.engine.visibility_group(member.open.exchange.role.as_deref())? != member.group {
                return Err(Error::new(
                    ErrorKind::Denied,
                    "access rights have changed: the room is no longer visible",
                ));
            }
            let added = runtime.spawn_blocking(move || open.add(from, &batch)).await;
            added.map_err(|error| Error::internal("a contribution task panicked").with_source(error))??;
            let result = member.result().await?;
            Ok(Some((result, (member, rows, runtime))))
        });
    Ok(BatchStream::new(given, rounds.boxed()))
}

impl TensorExchanges {
    fn enter(
        &self,
        exchange: TensorExchange,
        sent: &SchemaRef,
        engine: EngineSession,
        group: String,
    ) -> Result<Member> {
        let mut all = self.0.lock();
        all.retain(|_, open| open.upgrade().is_some_and(|open| !open.state.lock().failed));
        let key = (group.clone(), exchange.name.clone());
        let there = all.get(&key).and_then(Weak::upgrade);
        let open = match there {
            Some(open) => open.check_equal(&exchange, sent)?,
            None if all.len() >= MAX_EXCHANGES => {
                let message = format!("there are {MAX_EXCHANGES} rooms, which is the limit");
                return Err(Error::new(ErrorKind::LimitReached, message).with_hint("leave one of them"));
            }
            None => {
                let shape = Shape::of(sent, exchange.combination)?;
                let there = || all.iter().filter_map(|(key, open)| Some((key, open.upgrade()?)));
                if there().filter(|((of, _), _)| *of == group).count() >= MAX_PER_GROUP {
                    let message = format!("you have {MAX_PER_GROUP} rooms, which is the limit");
                    return Err(Error::new(ErrorKind::LimitReached, message).with_hint("leave one of them"));
                }
                let numbers: usize = there().map(|(_, open)| open.shape.numbers).sum();
                if numbers.saturating_add(shape.numbers) > MAX_NUMBERS {
                    let message =
                        format!("all rooms together have {MAX_NUMBERS} numbers, which is the limit");
                    return Err(Error::new(ErrorKind::LimitReached, message)
                        .with_hint("send fewer numbers, or wait until others have left their rooms"));
                }
                let open =
                    Arc::new(Open { exchange, shape, state: Mutex::default(), over: watch::Sender::new(0) });
                all.insert(key, Arc::downgrade(&open));
                open
            }
        };
        let (rank, round) = open.take_rank()?;
        Ok(Member { open, engine, group, rank, round })
    }
}

impl Open {
    /// Checks that a new member describes the exchange equally.
    fn check_equal(self: Arc<Self>, exchange: &TensorExchange, sent: &SchemaRef) -> Result<Arc<Self>> {
        if self.exchange != *exchange {
            return Err(Error::invalid(format!("room `{}` exists with other options", exchange.name))
                .with_hint("all members say the same"));
        }
        if self.shape.sent != *sent {
            return Err(Error::invalid(format!(
                "the columns do not match those of room `{}`",
                exchange.name
            ))
            .with_hint("all members send columns of the same names, types and shapes, in the same order"));
        }
        Ok(self)
    }

    /// A rank and the current round; preferably the rank of a member that left after contributing, which may be back.
    fn take_rank(&self) -> Result<(usize, u64)> {
        let mut state = self.state.lock();
        let left = state.counted.difference(&state.present).next().copied();
        let free = (0..self.exchange.members.get()).find(|rank| !state.present.contains(rank));
        let Some(rank) = left.or(free) else {
            let message =
                format!("room `{}` has all its {} members", self.exchange.name, self.exchange.members);
            return Err(Error::new(ErrorKind::LimitReached, message)
                .with_hint("a lost member leaves when its connection ends"));
        };
        state.present.insert(rank);
        Ok((rank, state.round))
    }

    /// Adds a contribution, unless its round is over or its rank has contributed.
    fn add(&self, (rank, round): (usize, u64), batch: &RecordBatch) -> Result<()> {
        let given = Contribution::of(batch, &self.shape)?;
        let mut state = self.state.lock();
        // A member that left may be back with another rank.
        if state.failed || state.round != round || !state.present.contains(&rank) {
            return Ok(());
        }
        if !state.counted.insert(rank) {
            return Ok(());
        }
        state.sums.add(&given);
        state.began.get_or_insert_with(Instant::now);
        if state.sums.count >= self.exchange.members.get() { self.complete(&mut state) } else { Ok(()) }
    }

    fn complete(&self, state: &mut State) -> Result<()> {
        let sums = mem::take(&mut state.sums);
        state.counted.clear();
        state.newest = Some(sums.combined(&self.shape, self.exchange.combination)?);
        state.began = None;
        state.round += 1;
        self.over.send_replace(state.round);
        Ok(())
    }

    /// Ends a round on timeout: with enough contributions, or as failed.
    fn expire(&self, round: u64) -> Result<()> {
        let mut state = self.state.lock();
        let late = state.began.is_some_and(|began| began.elapsed() >= self.exchange.patience);
        if state.failed || state.round != round || !late {
            return Ok(());
        }
        if state.sums.count >= self.exchange.minimum.get() {
            return self.complete(&mut state);
        }
        state.failed = true;
        self.over.send_replace(u64::MAX);
        Ok(())
    }
}

impl Member {
    /// The result of the contribution's round; for a late one, the last result.
    async fn result(&mut self) -> Result<RecordBatch> {
        let mut over = self.open.over.subscribe();
        let round = self.round;
        let since = self.open.state.lock().began;
        if let Some(since) = since {
            let until = (since + self.open.exchange.patience).into();
            if timeout_at(until, over.wait_for(|next| *next > round)).await.is_err() {
                self.open.expire(round)?;
            }
        }
        let state = self.open.state.lock();
        match &state.newest {
            Some(newest) if !state.failed && state.round > round => {
                self.round = state.round;
                Ok(newest.clone())
            }
            _ => {
                let (count, minimum) = (state.sums.count, self.open.exchange.minimum);
                let message =
                    format!("the round timed out: {count} members have sent, and {minimum} are needed");
                Err(Error::new(ErrorKind::Timeout, message)
                    .with_hint("restart the missing members, and join again"))
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.open.state.lock().present.remove(&self.rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float64Array;
    use arrow::datatypes::{DataType, Field, Float64Type, Schema};
    use bowshot_api::Reduction;
    use std::num::NonZeroUsize;
    use std::time::Duration;

    fn open(members: usize) -> Open {
        let members = NonZeroUsize::new(members).expect("some");
        let sent = Arc::new(Schema::new(vec![Field::new("x", DataType::Float64, false)]));
        let shape = Shape::of(&sent, Reduction::Mean).expect("a shape");
        let exchange = TensorExchange {
            name: "r".to_owned(),
            members,
            minimum: members,
            patience: Duration::from_secs(1),
            combination: Reduction::Mean,
            role: None,
        };
        Open { exchange, shape, state: Mutex::default(), over: watch::Sender::new(0) }
    }

    fn send(open: &Open, from: (usize, u64), value: f64) {
        let column = Arc::new(Float64Array::from(vec![value]));
        let batch = RecordBatch::try_new(Arc::clone(&open.shape.sent), vec![column]).expect("a row");
        open.add(from, &batch).expect("a contribution");
    }

    fn newest(open: &Open) -> Option<f64> {
        use arrow::array::AsArray;
        let state = open.state.lock();
        state.newest.as_ref().map(|row| row.column(0).as_primitive::<Float64Type>().value(0))
    }

    #[test]
    fn a_returning_member_counts_once() {
        let open = open(3);
        let [one, two] = [(); 2].map(|()| open.take_rank().expect("free"));
        send(&open, one, 3.0);
        send(&open, two, 6.0);
        open.state.lock().present.remove(&one.0);
        let back = open.take_rank().expect("its rank");
        assert_eq!(back, one);
        send(&open, back, 3.0);
        assert_eq!(newest(&open), None, "one is missing");
        let three = open.take_rank().expect("the last one");
        assert!(open.take_rank().is_err(), "there are three");
        send(&open, three, 9.0);
        assert_eq!(newest(&open), Some(6.0));
        for (rank, _) in [one, two, three] {
            send(&open, (rank, 1), 1.0);
        }
        assert_eq!(newest(&open), Some(1.0), "the next round is a new one");
    }

    #[test]
    fn late_contributions_do_not_count() {
        let open = open(2);
        let one = open.take_rank().expect("free");
        open.state.lock().present.remove(&one.0);
        send(&open, one, 1.0);
        assert_eq!(open.state.lock().sums.count, 0);
    }
}
