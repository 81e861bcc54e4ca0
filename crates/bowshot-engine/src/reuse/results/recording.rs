//! A result on its way to the client, which is kept when it has come to its end.

use super::super::owned::owned;
use super::key::Question;
use super::store::{KeptResult, Store};
use bowshot_api::{BatchStream, batch_bytes};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use futures::{StreamExt, stream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What takes less time is not worth the room.
const LEAST_COST: Duration = Duration::from_millis(1);
/// Bytes that a result takes beside its rows and its key.
const ENTRY_BYTES: u64 = 1 << 10;
/// Bytes that a batch takes beside its rows, for each of its columns.
const COLUMN_BYTES: u64 = 150;

/// See the module.
#[derive(Debug)]
pub(crate) struct Recording {
    question: Question,
    store: Arc<Store>,
    begun: Instant,
}

impl Recording {
    pub(super) fn new(question: Question, store: Arc<Store>) -> Self {
        Self { question, store, begun: Instant::now() }
    }

    /// The same streams, of which the rows are kept when the last one of them has ended. To be called after physical
    /// planning, which fixes the versions of the tables. `rows` is how many there will be, as far as that is known.
    pub(crate) fn of(
        self,
        streams: Vec<BatchStream>,
        (schema, ordered): (&SchemaRef, bool),
        rows: Option<u64>,
    ) -> Vec<BatchStream> {
        let columns = schema.fields().len().max(1) as u64;
        let fits = rows.unwrap_or(0).saturating_mul(columns) < self.store.largest();
        if !fits || !self.question.still_holds() {
            return streams;
        }
        let shared = Arc::new(Shared {
            planning: self.begun.elapsed(),
            schema: SchemaRef::clone(schema),
            ordered,
            state: Mutex::new(State { parts: vec![None; streams.len()], bytes: 0, lost: false }),
            question: self.question,
            store: self.store,
        });
        let streams = streams.into_iter().enumerate();
        streams.map(|(place, stream)| recorded(stream, Part::new(Arc::clone(&shared), place))).collect()
    }
}

/// What the parts of a result have in common.
#[derive(Debug)]
struct Shared {
    question: Question,
    store: Arc<Store>,
    schema: SchemaRef,
    ordered: bool,
    planning: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The batches of each stream that has ended, and how long it was waited for them.
    parts: Vec<Option<(Vec<RecordBatch>, Duration)>>,
    /// Taken from the store until the result is kept or lost.
    bytes: u64,
    /// Whether it is not kept: a stream failed or stopped, or there are too many rows.
    lost: bool,
}

impl Shared {
    /// Takes room for some bytes; false if the result is lost.
    fn take(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        state.lost |= state.bytes + bytes > self.store.largest() || !self.store.begin(bytes);
        if !state.lost {
            state.bytes += bytes;
        }
        !state.lost
    }

    /// Keeps the result if this was the last stream of it.
    fn ended(&self, place: usize, batches: Vec<RecordBatch>, waited: Duration) {
        let mut state = self.lock();
        if let Some(part) = state.parts.get_mut(place) {
            *part = Some((batches, waited));
        }
        if state.lost || state.parts.iter().any(Option::is_none) {
            return;
        }
        let parts: Vec<_> = std::mem::take(&mut state.parts).into_iter().flatten().collect();
        let bytes = state.bytes;
        drop(state);
        let waited = parts.iter().map(|(_, waited)| *waited).max().unwrap_or_default();
        let cost = self.planning + waited;
        let Some(key) = self.question.key.to_keep().filter(|_| cost >= LEAST_COST) else { return };
        let batches = parts.into_iter().flat_map(|(batches, _)| batches).collect();
        let bytes = bytes + self.question.bytes + ENTRY_BYTES;
        let rows = (SchemaRef::clone(&self.schema), batches);
        self.store.insert(self.question.digest, KeptResult::new((key, bytes), rows, self.ordered, cost));
    }

    fn lose(&self) {
        let mut state = self.lock();
        state.lost = true;
        // What others have recorded is of no use any more.
        state.parts.iter_mut().for_each(|part| *part = None);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let bytes = self.lock().bytes;
        self.store.end(bytes);
    }
}

/// One stream of the result.
struct Part {
    shared: Arc<Shared>,
    place: usize,
    batches: Vec<RecordBatch>,
    waited: Duration,
}

impl Part {
    fn new(shared: Arc<Shared>, place: usize) -> Self {
        Self { shared, place, batches: Vec::new(), waited: Duration::ZERO }
    }

    /// Keeps a batch; `None` when the result is lost.
    fn with(mut self, batch: &RecordBatch) -> Option<Self> {
        let bytes = batch_bytes(batch) as u64 + batch.num_columns() as u64 * COLUMN_BYTES;
        if !self.shared.take(bytes) {
            self.shared.lose();
            return None;
        }
        if batch.num_rows() > 0 {
            // A part of an array would keep all of it.
            self.batches.push(owned(batch, &self.shared.schema).ok()?);
        }
        Some(self)
    }
}

fn recorded(stream: BatchStream, part: Part) -> BatchStream {
    let schema = stream.schema();
    let batches = stream::unfold((stream, Some(part)), |(mut stream, part)| async move {
        let Some(mut part) = part else { return stream.next().await.map(|next| (next, (stream, None))) };
        let asked = Instant::now();
        let next = stream.next().await;
        part.waited += asked.elapsed();
        match next {
            Some(Ok(batch)) => {
                let part = part.with(&batch);
                Some((Ok(batch), (stream, part)))
            }
            Some(Err(error)) => {
                part.shared.lose();
                Some((Err(error), (stream, None)))
            }
            None => {
                part.shared.ended(part.place, part.batches, part.waited);
                None
            }
        }
    });
    BatchStream::new(schema, batches.boxed())
}
