//! Rooms: workers that compute together send tensors in rounds, and each gets what the server has made of all of them.
//!
//! ```text
//! join ─► Rooms: the room of this name, made by its first member ─► for each round:
//!   one row comes ─► sums.rs: looked at, added ─► complete? all get the same batch. Not yet? wait ─► time over? enough, or none
//! ```
//!
//! A member who comes after a round was completed without it gets that round's result, and goes on with the next one; what it
//! has sent does not count. One that sends what is no contribution loses its place, and the others wait for somebody else, or until
//! the time for the round is over. Who leaves behind its contribution and comes back takes the same place: each place counts once in
//! a round. A room is gone with its last member, or when a round fails.

mod sums;

use crate::session::ClientSession;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, ErrorKind, Result, Room};
use bowshot_engine::EngineSession;
use futures::StreamExt;
use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use sums::{Contribution, Shape, Sums};
use tokio::sync::watch;
use tokio::time::timeout_at;

/// Rooms at the same time.
const MAX_ROOMS: usize = 32;
/// Rooms of those who see the same ones: nobody keeps the others out.
const MAX_OF_A_CIRCLE: usize = 8;
/// Numbers of all rooms together, each of which may be there three times: in the sums, in the newest result, and while they are
/// made of one another.
const MAX_NUMBERS: usize = 1 << 26;
/// Members of a room.
const MAX_MEMBERS: usize = 1_000;

/// All rooms of a server, by who sees them and their names.
#[derive(Debug, Default)]
pub(crate) struct Rooms(Mutex<HashMap<(String, String), Weak<Open>>>);

/// A room with somebody in it.
#[derive(Debug)]
struct Open {
    room: Room,
    shape: Shape,
    state: Mutex<State>,
    /// Rounds that are over; told to those who wait.
    over: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// The places that are taken.
    present: BTreeSet<usize>,
    /// Those whose contribution is among the sums, also where its member has left since.
    counted: BTreeSet<usize>,
    /// The number of the round that contributions count for.
    round: u64,
    sums: Sums,
    /// Since when the round has a contribution.
    began: Option<Instant>,
    /// What the round before came to.
    newest: Option<RecordBatch>,
    /// A round came to nothing.
    failed: bool,
}

/// A member's place in a room.
struct Member {
    open: Arc<Open>,
    engine: EngineSession,
    /// Who sees the room.
    circle: String,
    place: usize,
    /// The round that its next contribution is for.
    round: u64,
}

/// Takes a place in a room. Each row that comes is a contribution, and each batch of the stream that is given what a
/// round came to.
pub(crate) fn join(session: &ClientSession, room: Room, rows: BatchStream) -> Result<BatchStream> {
    if room.members.get() > MAX_MEMBERS || room.minimum > room.members {
        return Err(Error::invalid(format!(
            "a room has 1 to {MAX_MEMBERS} members, of whom no more than all are the minimum"
        )));
    }
    let engine = session.engine().clone();
    let circle = engine.visibility_group(room.role.as_deref())?;
    let member = session.server().rooms.enter(room, &rows.schema(), engine, circle)?;
    let given = Arc::clone(&member.open.shape.given);
    let runtime = session.server().engine.runtime().handle().clone();
    let rounds =
        futures::stream::try_unfold((member, rows, runtime), |(mut member, mut rows, runtime)| async move {
            let Some(batch) = rows.next().await.transpose()? else { return Ok(None) };
            let (open, from) = (Arc::clone(&member.open), (member.place, member.round));
            if member.engine.visibility_group(member.open.room.role.as_deref())? != member.circle {
                return Err(Error::new(
                    ErrorKind::Denied,
                    "rights have changed: the room is not seen any more",
                ));
            }
            let added = runtime.spawn_blocking(move || open.add(from, &batch)).await;
            added.map_err(|error| Error::internal("a contribution broke down").with_source(error))??;
            let result = member.result().await?;
            Ok(Some((result, (member, rows, runtime))))
        });
    Ok(BatchStream::new(given, rounds.boxed()))
}

impl Rooms {
    fn enter(&self, room: Room, sent: &SchemaRef, engine: EngineSession, circle: String) -> Result<Member> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, open| open.upgrade().is_some_and(|open| !open.lock().failed));
        let key = (circle.clone(), room.name.clone());
        let there = all.get(&key).and_then(Weak::upgrade);
        let open = match there {
            Some(open) => open.checked(&room, sent)?,
            None if all.len() >= MAX_ROOMS => {
                let message = format!("there are {MAX_ROOMS} rooms, which is the limit");
                return Err(Error::new(ErrorKind::LimitReached, message).with_hint("leave one of them"));
            }
            None => {
                let shape = Shape::of(sent, room.combination)?;
                let there = || all.iter().filter_map(|(key, open)| Some((key, open.upgrade()?)));
                if there().filter(|((of, _), _)| *of == circle).count() >= MAX_OF_A_CIRCLE {
                    let message = format!("you have {MAX_OF_A_CIRCLE} rooms, which is the limit");
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
                    Arc::new(Open { room, shape, state: Mutex::default(), over: watch::Sender::new(0) });
                all.insert(key, Arc::downgrade(&open));
                open
            }
        };
        let (place, round) = open.take_place()?;
        Ok(Member { open, engine, circle, place, round })
    }
}

impl Open {
    /// The room for one more member, who must mean the same.
    fn checked(self: Arc<Self>, room: &Room, sent: &SchemaRef) -> Result<Arc<Self>> {
        if self.room != *room {
            return Err(Error::invalid(format!("room `{}` was made with other options", room.name))
                .with_hint("all members say the same"));
        }
        if self.shape.sent != *sent {
            return Err(Error::invalid(format!("the columns are not those of room `{}`", room.name))
                .with_hint(
                    "all members send columns of the same names, types and shapes, in the same order",
                ));
        }
        Ok(self)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, and the round that is open: that of one who has left behind its contribution first, who may be back.
    fn take_place(&self) -> Result<(usize, u64)> {
        let mut state = self.lock();
        let left = state.counted.difference(&state.present).next().copied();
        let free = (0..self.room.members.get()).find(|place| !state.present.contains(place));
        let Some(place) = left.or(free) else {
            let message = format!("room `{}` has all its {} members", self.room.name, self.room.members);
            return Err(Error::new(ErrorKind::LimitReached, message)
                .with_hint("one who is lost leaves when its connection ends"));
        };
        state.present.insert(place);
        Ok((place, state.round))
    }

    /// Adds what a member has sent, if its round is not over and its place has not counted in it.
    fn add(&self, (place, round): (usize, u64), batch: &RecordBatch) -> Result<()> {
        let given = Contribution::of(batch, &self.shape)?;
        let mut state = self.lock();
        // Who has left meanwhile may be back in another place.
        if state.failed || state.round != round || !state.present.contains(&place) {
            return Ok(());
        }
        if !state.counted.insert(place) {
            return Ok(());
        }
        state.sums.add(&given);
        state.began.get_or_insert_with(Instant::now);
        if state.sums.count >= self.room.members.get() { self.complete(&mut state) } else { Ok(()) }
    }

    fn complete(&self, state: &mut State) -> Result<()> {
        let sums = mem::take(&mut state.sums);
        state.counted.clear();
        state.newest = Some(sums.combined(&self.shape, self.room.combination)?);
        state.began = None;
        state.round += 1;
        self.over.send_replace(state.round);
        Ok(())
    }

    /// The time for a round is over: those who have sent are enough, or it comes to nothing.
    fn expire(&self, round: u64) -> Result<()> {
        let mut state = self.lock();
        let late = state.began.is_some_and(|began| began.elapsed() >= self.room.patience);
        if state.failed || state.round != round || !late {
            return Ok(());
        }
        if state.sums.count >= self.room.minimum.get() {
            return self.complete(&mut state);
        }
        state.failed = true;
        self.over.send_replace(u64::MAX);
        Ok(())
    }
}

impl Member {
    /// What the round of the last contribution came to; for one who was late what the newest one did.
    async fn result(&mut self) -> Result<RecordBatch> {
        let mut over = self.open.over.subscribe();
        let round = self.round;
        let since = self.open.lock().began;
        if let Some(since) = since {
            let until = (since + self.open.room.patience).into();
            if timeout_at(until, over.wait_for(|next| *next > round)).await.is_err() {
                self.open.expire(round)?;
            }
        }
        let state = self.open.lock();
        match &state.newest {
            Some(newest) if !state.failed && state.round > round => {
                self.round = state.round;
                Ok(newest.clone())
            }
            _ => {
                let (count, minimum) = (state.sums.count, self.open.room.minimum);
                let message = format!(
                    "the round was not complete in time: {count} members have sent, {minimum} are the minimum"
                );
                Err(Error::new(ErrorKind::Timeout, message)
                    .with_hint("see to the members that are missing, and join again"))
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.open.lock().present.remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float64Array;
    use arrow::datatypes::{DataType, Field, Float64Type, Schema};
    use bowshot_api::Combination;
    use std::num::NonZeroUsize;
    use std::time::Duration;

    fn open(members: usize) -> Open {
        let members = NonZeroUsize::new(members).expect("some");
        let sent = Arc::new(Schema::new(vec![Field::new("x", DataType::Float64, false)]));
        let shape = Shape::of(&sent, Combination::Mean).expect("a shape");
        let room = Room {
            name: "r".to_owned(),
            members,
            minimum: members,
            patience: Duration::from_secs(1),
            combination: Combination::Mean,
            role: None,
        };
        Open { room, shape, state: Mutex::default(), over: watch::Sender::new(0) }
    }

    fn send(open: &Open, from: (usize, u64), value: f64) {
        let column = Arc::new(Float64Array::from(vec![value]));
        let batch = RecordBatch::try_new(Arc::clone(&open.shape.sent), vec![column]).expect("a row");
        open.add(from, &batch).expect("a contribution");
    }

    fn newest(open: &Open) -> Option<f64> {
        use arrow::array::AsArray;
        let state = open.lock();
        state.newest.as_ref().map(|row| row.column(0).as_primitive::<Float64Type>().value(0))
    }

    #[test]
    fn who_comes_back_counts_once() {
        let open = open(3);
        let [one, two] = [(); 2].map(|()| open.take_place().expect("free"));
        send(&open, one, 3.0);
        send(&open, two, 6.0);
        open.lock().present.remove(&one.0);
        let back = open.take_place().expect("its place");
        assert_eq!(back, one);
        send(&open, back, 3.0);
        assert_eq!(newest(&open), None, "one is missing");
        let three = open.take_place().expect("the last one");
        assert!(open.take_place().is_err(), "there are three");
        send(&open, three, 9.0);
        assert_eq!(newest(&open), Some(6.0));
        for (place, _) in [one, two, three] {
            send(&open, (place, 1), 1.0);
        }
        assert_eq!(newest(&open), Some(1.0), "the next round is a new one");
    }

    #[test]
    fn what_comes_behind_its_member_does_not_count() {
        let open = open(2);
        let one = open.take_place().expect("free");
        open.lock().present.remove(&one.0);
        send(&open, one, 1.0);
        assert_eq!(open.lock().sums.count, 0);
    }
}
