//! Copies a result on its way to the client; it is cached when it has ended without an error.

use super::ResultCache;
use super::key::Question;
use super::store::{AskedQuery, ResultInfo};
use crate::background::Throttle;
use crate::cache::{EntryInfo, Loaded};
use crate::deep_copy;
use bowshot_api::{BatchStream, batch_bytes};
use bowshot_engine::reuse::{Asked, Computed};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// What takes less time is not worth the room.
const LEAST_COST: Duration = Duration::from_millis(1);
/// Bytes that a result takes beside its rows and its key.
const ENTRY_BYTES: u64 = 1 << 10;

#[derive(Debug)]
pub(super) struct Recording {
    question: Question,
    asked: Option<Asked>,
    cache: Arc<ResultCache>,
    begun: Instant,
    cleared: u64,
    /// Of what is asked ahead: what it steps aside by, and for how long that had been done.
    background: Option<(Arc<Throttle>, Duration)>,
}

impl Recording {
    pub(super) fn new(
        (question, asked): (Question, Option<Asked>),
        cache: Arc<ResultCache>,
        background: Option<&Arc<Throttle>>,
    ) -> Self {
        let background = background.map(|throttle| (Arc::clone(throttle), throttle.waited()));
        Self { question, asked, cleared: cache.cleared(), cache, begun: Instant::now(), background }
    }

    /// The streams of a query, of which the rows are kept when the last one of them has ended.
    pub(super) fn of(self, computed: Computed) -> Vec<BatchStream> {
        let Computed { streams, schema, ordered, rows } = computed;
        let columns = schema.fields().len().max(1) as u64;
        let largest = self.cache.largest;
        let key_bytes = self.question.bytes + ENTRY_BYTES;
        let fits = rows.unwrap_or(0).saturating_mul(columns) < largest && key_bytes < largest;
        let plain = schema.fields().iter().all(|field| deep_copy::is_plain(field.data_type()));
        if !fits || !plain || !self.question.still_holds() || !self.cache.begun.begin(key_bytes) {
            return streams;
        }
        let parts = streams.iter().map(|_| RecordedStream::default()).collect();
        let state = Mutex::new(State { parts, bytes: key_bytes, lost: false });
        let planning = self.begun.elapsed();
        let shared = Arc::new(Shared { recording: self, schema, ordered, rows, planning, state });
        let streams = streams.into_iter().enumerate();
        streams.map(|(place, stream)| recorded(stream, (Arc::clone(&shared), place))).collect()
    }
}

/// What the streams of a result have in common.
#[derive(Debug)]
struct Shared {
    recording: Recording,
    schema: SchemaRef,
    ordered: bool,
    /// What the plan promised.
    rows: Option<u64>,
    planning: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    parts: Vec<RecordedStream>,
    /// Taken from the store until the result is kept or lost.
    bytes: u64,
    /// Whether it is not kept: a stream failed or stopped, or there are too many rows.
    lost: bool,
}

#[derive(Debug, Default)]
struct RecordedStream {
    batches: Vec<RecordBatch>,
    /// How long it was waited for them.
    waited: Duration,
    ended: bool,
}

impl Shared {
    /// Keeps a batch of one stream; false when the result is lost.
    fn push(&self, place: usize, batch: &RecordBatch) -> bool {
        // What it takes at least, before it is copied.
        if !self.take(batch_bytes(batch) as u64) {
            return false;
        }
        let Ok(copy) = deep_copy::batch(batch, &self.schema) else {
            self.lose();
            return false;
        };
        let more = (copy.get_array_memory_size() as u64).saturating_sub(batch_bytes(batch) as u64);
        if !self.take(more) {
            return false;
        }
        if let Some(part) = self.state.lock().parts.get_mut(place).filter(|_| copy.num_rows() > 0) {
            part.batches.push(copy);
        }
        true
    }

    /// Takes room for some bytes; false if the result is lost.
    fn take(&self, bytes: u64) -> bool {
        let mut state = self.state.lock();
        if state.lost {
            return false;
        }
        let cache = &self.recording.cache;
        if state.bytes + bytes > cache.largest || !cache.begun.begin(bytes) {
            drop(state);
            self.lose();
            return false;
        }
        state.bytes += bytes;
        true
    }

    /// Keeps the result if this was the last stream of it.
    fn ended(&self, place: usize, waited: Duration) {
        let mut state = self.state.lock();
        if let Some(part) = state.parts.get_mut(place) {
            (part.ended, part.waited) = (true, waited);
        }
        if state.lost || state.parts.iter().any(|part| !part.ended) {
            return;
        }
        let (parts, bytes) = (std::mem::take(&mut state.parts), state.bytes);
        drop(state);
        let waited = parts.iter().map(|part| part.waited).max().unwrap_or_default();
        self.keep(parts, bytes, self.planning + waited);
    }

    fn keep(&self, parts: Vec<RecordedStream>, bytes: u64, took: Duration) {
        let Recording { question, asked, cache, begun, cleared, background } = &self.recording;
        let aside = background.as_ref().map(|(throttle, before)| throttle.waited().saturating_sub(*before));
        let cost = took.saturating_sub(aside.unwrap_or_default());
        if cost < LEAST_COST || *cleared != cache.cleared() {
            return;
        }
        let Some(key) = question.key.to_keep() else { return };
        let template = asked.as_ref().and_then(|asked| cache.questions.note(asked, &key));
        let about = ResultInfo {
            digest: question.digest,
            tables: key.tables.clone(),
            streams: parts.iter().map(|part| part.batches.len()).collect(),
            ordered: self.ordered,
            promised: self.rows,
            query: OnceLock::new(),
            asked: Mutex::default(),
        };
        let batches: Vec<RecordBatch> = parts.into_iter().flat_map(|part| part.batches).collect();
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let info = EntryInfo { rows, bytes, cost, created: SystemTime::now() };
        let loaded = Loaded::in_memory(SchemaRef::clone(&self.schema), batches);
        let asked = AskedQuery { key, begun: *begun, template };
        let Some(result) = cache.store.keep(about, (info, loaded), asked) else { return };
        if *cleared != cache.cleared() {
            cache.store.remove(result.id);
        } else if background.is_some() {
            cache.save(&result);
        }
    }

    /// Gives up, and all that was recorded.
    fn lose(&self) {
        let mut state = self.state.lock();
        state.lost = true;
        let bytes = std::mem::take(&mut state.bytes);
        let parts = std::mem::take(&mut state.parts);
        drop(state);
        self.recording.cache.begun.end(bytes);
        drop(parts);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let bytes = self.state.lock().bytes;
        self.recording.cache.begun.end(bytes);
    }
}

/// One stream of a result that is recorded. Dropped before its end, it loses the result.
struct Recorded {
    shared: Arc<Shared>,
    place: usize,
    waited: Duration,
    ended: bool,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.lose();
        }
    }
}

fn recorded(stream: BatchStream, (shared, place): (Arc<Shared>, usize)) -> BatchStream {
    let (schema, origin) = (stream.schema(), stream.origin().cloned());
    let part = Recorded { shared, place, waited: Duration::ZERO, ended: false };
    let batches = stream::unfold((stream, Some(part)), |(mut stream, part)| async move {
        let Some(mut part) = part else { return stream.next().await.map(|next| (next, (stream, None))) };
        let asked = Instant::now();
        let next = stream.next().await;
        part.waited += asked.elapsed();
        match next {
            Some(Ok(batch)) => {
                let goes_on = part.shared.push(part.place, &batch);
                Some((Ok(batch), (stream, goes_on.then_some(part))))
            }
            Some(Err(error)) => Some((Err(error), (stream, None))),
            None => {
                part.ended = true;
                part.shared.ended(part.place, part.waited);
                None
            }
        }
    });
    BatchStream::new(schema, batches.boxed()).with_origin(origin)
}
