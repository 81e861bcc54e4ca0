//! Rooms: workers that compute together send tensors in rounds, and each gets what the server has made of all of them.
//!
//! ```text
//! join ─► Rooms: the room of this name, made by its first member ─► for each round:
//!   one row comes ─► sums.rs: looked at, added ─► complete? all get the same batch. Not yet? wait ─► time over? enough, or none
//! ```
//!
//! A member who comes after a round was completed without it gets that round's result, and goes on with the next one; what it
//! has sent does not count. One that sends what is no contribution loses its place, and the others wait for somebody else, or until
//! the time for the round is over. A room is gone with its last member, or when a round fails.

mod sums;

use crate::session::ClientSession;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, ErrorKind, Result, Room};
use bowshot_engine::EngineSession;
use futures::StreamExt;
use std::collections::HashMap;
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
    /// Who is in it.
    present: usize,
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
    let circle = engine.circle(room.role.as_deref())?;
    let member = session.server().rooms.enter(room, &rows.schema(), engine, circle)?;
    let given = Arc::clone(&member.open.shape.given);
    let runtime = session.server().engine.runtime().handle().clone();
    let rounds =
        futures::stream::try_unfold((member, rows, runtime), |(mut member, mut rows, runtime)| async move {
            let Some(batch) = rows.next().await.transpose()? else { return Ok(None) };
            let (open, round) = (Arc::clone(&member.open), member.round);
            if member.engine.circle(member.open.room.role.as_deref())? != member.circle {
                return Err(Error::new(
                    ErrorKind::Denied,
                    "rights have changed: the room is not seen any more",
                ));
            }
            let added = runtime.spawn_blocking(move || open.add(round, &batch)).await;
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
        let mut state = open.lock();
        if state.present >= open.room.members.get() {
            let message = format!("room `{}` has all its {} members", open.room.name, open.room.members);
            return Err(Error::new(ErrorKind::LimitReached, message)
                .with_hint("one who is lost leaves when its connection ends"));
        }
        state.present += 1;
        let round = state.round;
        drop(state);
        Ok(Member { open, engine, circle, round })
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

    /// Adds what a member has sent, if its round is not over.
    fn add(&self, round: u64, batch: &RecordBatch) -> Result<()> {
        let given = Contribution::of(batch, &self.shape)?;
        let mut state = self.lock();
        if state.failed || state.round != round {
            return Ok(());
        }
        state.sums.add(&given);
        state.began.get_or_insert_with(Instant::now);
        if state.sums.count >= self.room.members.get() { self.complete(&mut state) } else { Ok(()) }
    }

    fn complete(&self, state: &mut State) -> Result<()> {
        let sums = mem::take(&mut state.sums);
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
        self.open.lock().present -= 1;
    }
}
