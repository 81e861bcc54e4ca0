//! The buffer between a query and the reader of one partition, bounded in bytes. A full buffer blocks the producer.
//! It spills to disk instead if the result is spooled, or if nobody reads this partition while others need the same
//! producer.

use crate::spill::{Accounts, Segment, SegmentReader};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Delivery, Error, Origin, Result, batch_bytes};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How often a reader checks mapped files, of which there may be many, in addition to the check at the end.
const LOOKS: Duration = Duration::from_millis(20);

/// How a partition behaves when its buffer is full.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) delivery: Delivery,
    /// Whether other partitions need the same producer while nobody reads this one.
    pub(crate) has_siblings: bool,
    pub(crate) budget_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct ReaderActivity {
    /// Time of the last activity: attach, read, detach, or new rows after it had read all. While it waits for rows:
    /// now.
    pub(crate) since: Instant,
    /// Whether unread rows are available to an attached reader.
    pub(crate) rows_ready: bool,
}

/// The partition is abandoned or the query stopped: producers end.
#[derive(Debug)]
pub(crate) struct Stopped;

#[derive(Debug)]
pub(crate) struct Partition {
    schema: SchemaRef,
    policy: Policy,
    accounts: Arc<Accounts>,
    /// The storage that buffered rows are views of.
    origins: Vec<Arc<dyn Origin>>,
    state: Mutex<State>,
    readable: Notify,
    writable: Notify,
}

#[derive(Debug)]
struct State {
    items: VecDeque<Item>,
    /// The segment that the reader of a streamed result is reading.
    reading: Option<Arc<Segment>>,
    /// Position of `items[0]` in the whole partition.
    base: usize,
    memory: usize,
    producers: usize,
    end: Option<Result<(), Error>>,
    readers: usize,
    claimed: bool,
    /// See [`ReaderActivity::since`].
    attended: Instant,
    rows: u64,
    bytes: u64,
}

#[derive(Debug, Clone)]
enum Item {
    Batch(RecordBatch, usize),
    Segment(Arc<Segment>),
}

/// The item at a reader's position.
enum Found {
    Batch(RecordBatch),
    Segment(Arc<Segment>),
    End(Result<(), Error>),
    Nothing,
}

impl Partition {
    pub(crate) fn new(schema: SchemaRef, policy: Policy, producers: usize, accounts: Arc<Accounts>) -> Self {
        let state = State {
            items: VecDeque::new(),
            reading: None,
            base: 0,
            memory: 0,
            producers,
            end: (producers == 0).then_some(Ok(())),
            readers: 0,
            claimed: false,
            attended: Instant::now(),
            rows: 0,
            bytes: 0,
        };
        let (readable, writable) = (Notify::new(), Notify::new());
        let state = Mutex::new(state);
        Self { schema, policy, accounts, origins: Vec::new(), state, readable, writable }
    }

    /// Adds the storage of these streams.
    pub(crate) fn of<'a>(mut self, streams: impl Iterator<Item = &'a BatchStream>) -> Self {
        let mut origins: Vec<Arc<dyn Origin>> =
            streams.filter_map(|stream| stream.origin().cloned()).collect();
        origins.dedup_by(|one, other| Arc::ptr_eq(one, other));
        self.origins = origins;
        self
    }

    /// Adds the storage that rows are views of.
    pub(crate) fn with_origin(mut self, origin: Option<Arc<dyn Origin>>) -> Self {
        self.origins = origin.into_iter().collect();
        self
    }

    /// Fails if the storage of buffered rows has changed.
    pub(crate) fn check(&self) -> Result<()> {
        self.origins.iter().try_for_each(|origin| origin.check())
    }

    /// The size of a batch. Null columns have no bytes, but each row costs something.
    pub(crate) fn size(batch: &RecordBatch) -> usize {
        batch_bytes(batch).max(batch.num_rows() / 8 + 64)
    }

    /// Adds a batch, waiting or spilling when the buffer is full.
    ///
    /// # Errors
    /// The outer error ends the query (disk full); [`Stopped`] only this producer.
    pub(crate) async fn push(&self, batch: RecordBatch, bytes: usize) -> Result<Result<(), Stopped>> {
        loop {
            let writable = self.writable.notified();
            tokio::pin!(writable);
            let tail = {
                let mut state = self.state.lock();
                if state.end.is_some() {
                    return Ok(Err(Stopped));
                }
                let free = self.policy.budget_bytes.saturating_sub(state.memory);
                let spill = self.spills(&state);
                let fits = bytes <= free && !self.accounts.is_full();
                if fits || (state.memory == 0 && !spill) {
                    self.keep(&mut state, batch, bytes);
                    return Ok(Ok(()));
                }
                if !spill {
                    writable.as_mut().enable();
                }
                spill.then(|| state.tail())
            };
            match tail {
                Some(tail) => return self.spill(tail, &batch, bytes).await,
                None => writable.await,
            }
        }
    }

    fn spills(&self, state: &State) -> bool {
        match self.policy.delivery {
            Delivery::Spool => true,
            Delivery::Stream => self.policy.has_siblings && state.readers == 0,
        }
    }

    fn keep(&self, state: &mut State, batch: RecordBatch, bytes: usize) {
        state.count(&batch, bytes);
        state.attend_first();
        state.memory += bytes;
        self.accounts.memory.fetch_add(bytes as u64, Ordering::Relaxed);
        state.items.push_back(Item::Batch(batch, bytes));
        self.readable.notify_waiters();
    }

    /// Appends a batch to the segment at the end, if it takes more, else to a new one. The state is not locked over the write:
    /// whoever looks at it may be a thread of sockets.
    async fn spill(
        &self,
        tail: Option<Arc<Segment>>,
        batch: &RecordBatch,
        bytes: usize,
    ) -> Result<Result<(), Stopped>> {
        let open = match tail {
            Some(tail) if tail.append(batch, bytes).await? => Some(tail),
            Some(_) | None => None,
        };
        let is_new = open.is_none();
        let segment = match open {
            Some(segment) => segment,
            None => {
                let segment = Arc::new(Segment::create(&self.schema, Arc::clone(&self.accounts))?);
                segment.append(batch, bytes).await?;
                segment
            }
        };
        let mut state = self.state.lock();
        if state.end.is_some() {
            // What was there was discarded meanwhile.
            segment.free();
            return Ok(Err(Stopped));
        }
        state.count(batch, bytes);
        if is_new {
            state.attend_first();
            state.items.push_back(Item::Segment(segment));
            self.readable.notify_waiters();
        }
        Ok(Ok(()))
    }

    pub(crate) fn producer_done(&self) {
        let mut state = self.state.lock();
        state.producers = state.producers.saturating_sub(1);
        if state.producers == 0 && state.end.is_none() {
            state.end = Some(Ok(()));
            self.readable.notify_waiters();
        }
    }

    /// Fails the partition unless all rows were read; readers get the error after their current batch.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.state.lock();
        if state.end.is_none() || matches!(state.end, Some(Ok(()))) && state.has_rows() {
            state.end = Some(Err(error));
            self.discard(&mut state);
        }
        drop(state);
        self.readable.notify_waiters();
        self.writable.notify_waiters();
    }

    // A stalled reader may hold its segment forever: free the space anyway.
    fn discard(&self, state: &mut State) {
        state.base += state.items.len();
        let unread = state.items.drain(..).filter_map(|item| match item {
            Item::Segment(segment) => Some(segment),
            Item::Batch(..) => None,
        });
        for segment in unread.chain(state.reading.take()) {
            segment.free();
        }
        self.release(state, state.memory);
    }

    fn release(&self, state: &mut State, bytes: usize) {
        state.memory -= bytes;
        self.accounts.memory.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Waits for rows or the end; returns the failure.
    pub(crate) async fn ready(&self) -> Result<()> {
        loop {
            let readable = self.readable.notified();
            tokio::pin!(readable);
            {
                let state = self.state.lock();
                match &state.end {
                    Some(Err(error)) => return Err(error.duplicate()),
                    Some(Ok(())) => return Ok(()),
                    None if !state.items.is_empty() || state.base > 0 => return Ok(()),
                    None => {
                        readable.as_mut().enable();
                    }
                }
            }
            readable.await;
        }
    }

    /// Attaches the reader. `false` if a streamed result has or had one.
    pub(crate) fn claim(&self) -> bool {
        let mut state = self.state.lock();
        if state.claimed && self.policy.delivery == Delivery::Stream {
            return false;
        }
        state.claimed = true;
        state.attended = Instant::now();
        state.readers += 1;
        true
    }

    pub(crate) fn is_claimed(&self) -> bool {
        self.state.lock().claimed
    }

    pub(crate) fn has_readers(&self) -> bool {
        self.state.lock().readers > 0
    }

    /// The reader's activity; `None` before the first one.
    pub(crate) fn activity(&self) -> Option<ReaderActivity> {
        let state = self.state.lock();
        let is_read = state.readers > 0;
        let waits = is_read && !state.has_rows() && state.end.is_none();
        let since = if waits { Instant::now() } else { state.attended };
        state.claimed.then(|| ReaderActivity { since, rows_ready: is_read && state.has_rows() })
    }

    /// Records activity of the reader.
    fn attend(&self) {
        self.state.lock().attended = Instant::now();
    }

    /// Returns the failure. Rows read from a segment after one may come from freed space.
    fn failed(&self) -> Result<()> {
        match &self.state.lock().end {
            Some(Err(error)) => Err(error.duplicate()),
            Some(Ok(())) | None => Ok(()),
        }
    }

    fn segment_ended(&self) {
        if self.policy.delivery == Delivery::Stream {
            self.state.lock().reading = None;
        }
    }

    /// Whether all producers have ended or failed.
    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().end.is_some()
    }

    /// Rows and bytes so far.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.rows, state.bytes)
    }

    /// The reader detaches. The rest of a streamed result is discarded.
    pub(crate) fn release_reader(&self) {
        let mut state = self.state.lock();
        state.readers = state.readers.saturating_sub(1);
        state.attended = Instant::now();
        if self.policy.delivery == Delivery::Stream {
            if state.end.is_none() {
                state.end = Some(Ok(()));
            }
            self.discard(&mut state);
        }
        drop(state);
        self.writable.notify_waiters();
    }

    fn at(&self, position: usize) -> Found {
        let mut state = self.state.lock();
        let index = position.saturating_sub(state.base);
        let Some(item) = state.items.get(index).cloned() else {
            return match &state.end {
                Some(Ok(())) => Found::End(Ok(())),
                Some(Err(error)) => Found::End(Err(error.duplicate())),
                None => Found::Nothing,
            };
        };
        if self.policy.delivery == Delivery::Stream {
            state.items.pop_front();
            state.base += 1;
            state.attended = Instant::now();
            match &item {
                Item::Batch(_, bytes) => {
                    self.release(&mut state, *bytes);
                    // Waking a producer for each batch would cost two context switches per batch.
                    if state.memory <= self.policy.budget_bytes / 2 {
                        self.writable.notify_waiters();
                    }
                }
                Item::Segment(segment) => state.reading = Some(Arc::clone(segment)),
            }
        }
        match item {
            Item::Batch(batch, _) => Found::Batch(batch),
            Item::Segment(segment) => Found::Segment(segment),
        }
    }
}

impl State {
    /// The last segment, which may take more rows.
    fn tail(&self) -> Option<Arc<Segment>> {
        match self.items.back() {
            Some(Item::Segment(tail)) => Some(Arc::clone(tail)),
            Some(Item::Batch(..)) | None => None,
        }
    }

    fn has_rows(&self) -> bool {
        !self.items.is_empty() || self.reading.is_some()
    }

    /// New rows restart the reader's idle time.
    fn attend_first(&mut self) {
        if self.items.is_empty() {
            self.attended = Instant::now();
        }
    }

    fn count(&mut self, batch: &RecordBatch, bytes: usize) {
        self.rows += batch.num_rows() as u64;
        self.bytes += bytes as u64;
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        let memory = self.state.lock().memory as u64;
        self.accounts.memory.fetch_sub(memory, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct Reader {
    position: usize,
    segment: Option<SegmentReader>,
    /// Time of the last check of the storage.
    looked: Option<Instant>,
    runtime: tokio::runtime::Handle,
}

impl Reader {
    pub(crate) fn new(runtime: tokio::runtime::Handle) -> Self {
        Self { position: 0, segment: None, looked: None, runtime }
    }

    pub(crate) async fn next(&mut self, partition: &Partition) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(segment) = self.segment.take() {
                let batch = self.next_on_disk(segment).await;
                partition.failed()?;
                match batch? {
                    Some(batch) => {
                        partition.attend();
                        return Ok(Some(batch));
                    }
                    None => {
                        partition.segment_ended();
                        continue;
                    }
                }
            }
            let readable = partition.readable.notified();
            tokio::pin!(readable);
            readable.as_mut().enable();
            match partition.at(self.position) {
                Found::Batch(batch) => {
                    if self.looked.is_none_or(|looked| looked.elapsed() > LOOKS) {
                        partition.check()?;
                        self.looked = Some(Instant::now());
                    }
                    self.position += 1;
                    return Ok(Some(batch));
                }
                Found::Segment(segment) => {
                    self.position += 1;
                    let opened = self.open(segment).await;
                    partition.failed()?;
                    self.segment = Some(opened?);
                }
                Found::End(end) => {
                    end?;
                    partition.check()?;
                    return Ok(None);
                }
                Found::Nothing => readable.await,
            }
        }
    }

    async fn open(&self, segment: Arc<Segment>) -> Result<SegmentReader> {
        self.runtime
            .spawn_blocking(move || segment.read())
            .await
            .unwrap_or_else(|e| Err(crate::task::broken(e)))
    }

    async fn next_on_disk(&mut self, mut segment: SegmentReader) -> Result<Option<RecordBatch>> {
        let read = self.runtime.spawn_blocking(move || (segment.next(), segment)).await;
        let (batch, segment) = read.map_err(crate::task::broken)?;
        if batch.is_some() {
            self.segment = Some(segment);
        }
        batch.transpose()
    }
}

#[cfg(test)]
mod tests;
