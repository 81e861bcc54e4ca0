//! One message of 16 MiB early in a long stream, for clients on Linux with glibc: freeing it raises glibc's thresholds (`M_MMAP_THRESHOLD`
//! and `M_TRIM_THRESHOLD`, mallopt(3)) for the rest of the process, so that it no longer returns the memory of each message to the system. With
//! pyarrow 26 lineitem took 1.09 s after a large message, 1.59 s without one, and 1.47 s when all messages were large (they exceed the cache).

use crate::batch::{batch_bytes, limit_bytes};
use crate::combined_message::{joined_bytes, joins};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Sleep, sleep};

/// How long batches wait for others that make a large message with them.
const PATIENCE: Duration = Duration::from_millis(50);
/// How often that is tried.
const ATTEMPTS: u32 = 3;

/// Streams of the process that join batches at once: each keeps those batches in memory until the message is sent.
static AT_ONCE: Semaphore = Semaphore::const_new(16);

/// One larger message for a reader, unless it has had it.
#[derive(Debug, Clone)]
pub struct LargeMessage {
    /// Target size in bytes; the message may exceed it by a half.
    pub bytes: usize,
    /// What all streams to that reader share.
    pub primed: Primed,
}

/// Whether a reader has had a large message, or is about to have it. Clones are of the same reader.
#[derive(Debug, Clone, Default)]
pub struct Primed(Arc<AtomicU8>);

impl Primed {
    /// No stream has begun with it.
    const FREE: u8 = 0;
    /// A stream is at it.
    const TAKEN: u8 = 1;
    /// It has been sent.
    const HAD: u8 = 2;

    fn take(&self) -> bool {
        self.0.compare_exchange(Self::FREE, Self::TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// The right to join batches for a reader. Another stream gets it if it is dropped before it was [sent](Turn::sent).
#[derive(Debug)]
pub(crate) struct Turn {
    primed: Primed,
    _permit: SemaphorePermit<'static>,
}

impl Turn {
    /// None while too many do it, or another stream does it for that reader.
    fn take(primed: &Primed) -> Option<Self> {
        let permit = AT_ONCE.try_acquire().ok()?;
        primed.take().then(|| Self { primed: primed.clone(), _permit: permit })
    }

    /// The socket has taken the message.
    pub(crate) fn sent(self) {
        self.primed.0.store(Primed::HAD, Ordering::Relaxed);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Nothing changes if it has been sent, nor is there anybody who could have taken it meanwhile.
        let _ =
            self.primed.0.compare_exchange(Primed::TAKEN, Primed::FREE, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) enum Taken {
    /// A batch in messages of the usual size.
    Batch(RecordBatch),
    /// Batches in one message. The turn is to be kept until it has been sent.
    Large(Vec<RecordBatch>, Turn),
}

/// Joins some batches of a stream, and gives all others as they come.
pub(crate) struct Primer<E> {
    batches: BoxStream<'static, Result<RecordBatch, E>>,
    state: State,
    attempts: u32,
    /// Size of the large message, in bytes; about as much goes out before it.
    large: usize,
    primed: Primed,
    /// What has come and is not joined with anything.
    ready: VecDeque<Result<RecordBatch, E>>,
    ended: bool,
}

enum State {
    /// So many bytes go out first.
    Passing(usize),
    Holding {
        held: Vec<RecordBatch>,
        bytes: usize,
        until: Pin<Box<Sleep>>,
        turn: Turn,
    },
    Done,
}

impl<E: Send + 'static> Primer<E> {
    /// Without `large`, or if batches of the schema do not [join](joins), there is no large message.
    pub(crate) fn new(
        batches: BoxStream<'static, Result<RecordBatch, E>>,
        schema: &SchemaRef,
        large: Option<&LargeMessage>,
    ) -> Self {
        let state = match large {
            Some(large) if schema.fields().iter().all(|field| joins(field.data_type())) => {
                State::Passing(large.bytes)
            }
            _ => State::Done,
        };
        let primed = large.map(|large| large.primed.clone()).unwrap_or_default();
        let large = large.map_or(0, |large| large.bytes);
        Self { batches, state, attempts: ATTEMPTS, large, primed, ready: VecDeque::new(), ended: false }
    }

    /// What goes out next; nothing at the end.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Taken, E>>> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Poll::Ready(Some(ready.map(Taken::Batch)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            match self.batches.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(batch))) => {
                    if let Some(taken) = self.take(batch) {
                        return Poll::Ready(Some(Ok(taken)));
                    }
                }
                Poll::Ready(last) => {
                    self.ended = true;
                    self.release();
                    self.ready.extend(last);
                }
                Poll::Pending if self.is_patient(cx) => return Poll::Pending,
                Poll::Pending => self.release(),
            }
        }
    }

    /// Whether there is still time for more batches, or nothing waits for them.
    fn is_patient(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.state {
            State::Holding { until, .. } => until.poll_unpin(cx).is_pending(),
            State::Passing(_) | State::Done => true,
        }
    }

    /// Drops the stream; nothing more comes.
    pub(crate) fn end(&mut self) {
        self.batches = futures::stream::empty().boxed();
        self.ready.clear();
        self.state = State::Done;
        self.ended = true;
    }

    /// Passes a batch on, or holds it.
    fn take(&mut self, batch: RecordBatch) -> Option<Taken> {
        let size = match &self.state {
            State::Done => return Some(Taken::Batch(batch)),
            _ => batch_bytes(&batch, usize::MAX),
        };
        match &mut self.state {
            State::Passing(left) if *left > size => {
                *left -= size;
                Some(Taken::Batch(batch))
            }
            State::Passing(_) if self.primed.0.load(Ordering::Relaxed) == Primed::HAD => {
                self.state = State::Done;
                Some(Taken::Batch(batch))
            }
            State::Passing(_) => match Turn::take(&self.primed) {
                Some(turn) => {
                    let until = Box::pin(sleep(PATIENCE));
                    self.state = State::Holding { held: Vec::new(), bytes: 0, until, turn };
                    self.take(batch)
                }
                None => {
                    self.state = State::Passing(self.large);
                    Some(Taken::Batch(batch))
                }
            },
            State::Holding { held, .. } if held.is_empty() && size > limit_bytes(self.large) => {
                self.cut(&batch, size)
            }
            State::Holding { held, bytes, .. }
                if !held.is_empty() && *bytes + joined_bytes(&batch) > limit_bytes(self.large) =>
            {
                self.release();
                self.ready.push_back(Ok(batch));
                None
            }
            State::Holding { held, bytes, .. } => {
                *bytes += joined_bytes(&batch);
                held.push(batch);
                // What is half as large does half as well, and the rest is not worth a wait.
                let enough = if held.len() == 1 { self.large / 2 } else { self.large };
                if *bytes < enough {
                    return None;
                }
                let held = std::mem::take(held);
                self.finish(held)
            }
            State::Done => Some(Taken::Batch(batch)),
        }
    }

    /// The first rows of a batch that is larger than one message should be.
    fn cut(&mut self, batch: &RecordBatch, size: usize) -> Option<Taken> {
        let rows = (batch.num_rows() as u128 * self.large as u128 / size as u128) as usize;
        let rows = rows.clamp(1, batch.num_rows());
        // A single row may be as large.
        if rows < batch.num_rows() {
            self.ready.push_back(Ok(batch.slice(rows, batch.num_rows() - rows)));
        }
        self.finish(vec![batch.slice(0, rows)])
    }

    fn finish(&mut self, batches: Vec<RecordBatch>) -> Option<Taken> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Holding { turn, .. } => Some(Taken::Large(batches, turn)),
            State::Passing(_) | State::Done => None,
        }
    }

    /// Gives up holding: what is held goes out as it came.
    fn release(&mut self) {
        let State::Holding { held, .. } = &mut self.state else { return };
        self.ready.extend(held.drain(..).map(Ok));
        self.attempts = self.attempts.saturating_sub(1);
        self.state = if self.attempts == 0 { State::Done } else { State::Passing(self.large) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int64Array};
    use arrow::compute::concat_batches;
    use futures::channel::mpsc;
    use std::sync::Arc;
    use std::task::Waker;

    const ROWS: usize = 128;
    const BYTES: usize = ROWS * 8;

    fn batch(at: usize) -> RecordBatch {
        let numbers = Int64Array::from_iter_values((0..ROWS).map(|row| (at * ROWS + row) as i64));
        RecordBatch::try_from_iter([("n", Arc::new(numbers) as _)]).unwrap()
    }

    fn primer(batches: BoxStream<'static, Result<RecordBatch, String>>, large: usize) -> Primer<String> {
        Primer::new(batches, &batch(0).schema(), Some(&large_message(large)))
    }

    fn large_message(bytes: usize) -> LargeMessage {
        LargeMessage { bytes, primed: Primed::default() }
    }

    /// The numbers of the batches in each message, until the end, or an error's text; those of a large one in brackets.
    async fn taken(primer: &mut Primer<String>) -> Vec<String> {
        let number = |batch: &RecordBatch| {
            let first: Int64Array = batch.column(0).as_primitive().clone();
            (first.value(0) as usize / ROWS).to_string()
        };
        let mut all = Vec::new();
        while let Some(next) = std::future::poll_fn(|cx| primer.poll_next(cx)).await {
            all.push(match next {
                Ok(Taken::Batch(batch)) => number(&batch),
                Ok(Taken::Large(batches, turn)) => {
                    turn.sent();
                    format!("[{}]", batches.iter().map(number).collect::<Vec<_>>().join(" "))
                }
                Err(error) => error,
            });
        }
        all
    }

    async fn of(
        batches: impl Iterator<Item = Result<RecordBatch, String>> + Send + 'static,
        large: usize,
    ) -> String {
        taken(&mut primer(futures::stream::iter(batches).boxed(), large)).await.join(" ")
    }

    #[tokio::test]
    async fn one_message_is_large_once_enough_has_gone_out() {
        assert_eq!(of((0..10).map(|at| Ok(batch(at))), 4 * BYTES).await, "0 1 2 [3 4 5 6] 7 8 9");
    }

    #[tokio::test]
    async fn a_large_batch_goes_alone_and_a_larger_one_in_part() {
        assert_eq!(of((0..4).map(|at| Ok(batch(at))), BYTES).await, "[0] 1 2 3");
        // Half of batch 0, then the rest of it.
        assert_eq!(of((0..3).map(|at| Ok(batch(at))), BYTES / 2).await, "[0] 0 1 2");
        let mut primer = primer(futures::stream::iter([Ok(batch(0))]).boxed(), BYTES / 2);
        let mut rows = Vec::new();
        while let Some(Ok(next)) = std::future::poll_fn(|cx| primer.poll_next(cx)).await {
            rows.push(match next {
                Taken::Batch(batch) => batch.num_rows(),
                Taken::Large(batches, _turn) => batches.iter().map(RecordBatch::num_rows).sum(),
            });
        }
        assert_eq!(rows, [ROWS / 2, ROWS / 2]);
        let row = batch(0).slice(0, 1);
        assert_eq!(of([Ok(row)].into_iter(), 4).await, "[0]", "no rows are left");
    }

    #[tokio::test]
    async fn a_reader_has_one_however_many_streams_it_reads() {
        let large = large_message(4 * BYTES);
        let primed = |count: usize| {
            let batches = futures::stream::iter((0..count).map(|at| Ok(batch(at)))).boxed();
            Primer::<String>::new(batches, &batch(0).schema(), Some(&large))
        };
        assert_eq!(taken(&mut primed(5)).await.join(" "), "0 1 2 3 4", "too short for it");
        let mut dropped = pending_after(primed(5));
        for _ in 0..3 {
            std::future::poll_fn(|cx| dropped.poll_next(cx)).await;
        }
        assert!(dropped.poll_next(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(dropped);
        assert_eq!(
            taken(&mut primed(8)).await.join(" "),
            "0 1 2 [3 4 5 6] 7",
            "the one before did not come to it"
        );
        assert_eq!(taken(&mut primed(8)).await.join(" "), "0 1 2 3 4 5 6 7", "the one before did");
        assert_eq!(
            of((0..8).map(|at| Ok(batch(at))), 4 * BYTES).await,
            "0 1 2 [3 4 5 6] 7",
            "another reader"
        );
    }

    /// The same without an end.
    fn pending_after(mut primer: Primer<String>) -> Primer<String> {
        let batches = std::mem::replace(&mut primer.batches, futures::stream::empty().boxed());
        primer.batches = batches.chain(futures::stream::pending()).boxed();
        primer
    }

    #[tokio::test]
    async fn of_two_streams_at_once_one_has_it() {
        let large = large_message(2 * BYTES);
        let stream = || futures::stream::iter((0..6).map(|at| Ok(batch(at)))).boxed();
        let new = || Primer::<String>::new(stream(), &batch(0).schema(), Some(&large));
        let (mut one, mut other, mut third) = (new(), new(), new());
        let first = std::future::poll_fn(|cx| one.poll_next(cx)).await;
        assert!(matches!(first, Some(Ok(Taken::Batch(_)))));
        let Some(Ok(Taken::Large(_, turn))) = std::future::poll_fn(|cx| one.poll_next(cx)).await else {
            panic!("the second message is large")
        };
        assert_eq!(taken(&mut other).await.join(" "), "0 1 2 3 4 5", "while the first is sent");
        for _ in 0..2 {
            std::future::poll_fn(|cx| third.poll_next(cx)).await;
        }
        drop(turn);
        assert_eq!(taken(&mut third).await.join(" "), "2 [3] 4 5", "the first was never sent");
        assert_eq!(taken(&mut new()).await.join(" "), "0 1 2 3 4 5", "the third was");
        assert_eq!(taken(&mut one).await.join(" "), "2 3 4 5");
    }

    #[tokio::test]
    async fn what_is_too_much_for_one_message_is_not_joined() {
        let twice = concat_batches(&batch(0).schema(), &[batch(4), batch(5), batch(6), batch(7)]).unwrap();
        let batches = (0..4).map(batch).chain([twice]).map(Ok).collect::<Vec<_>>();
        assert_eq!(of(batches.into_iter(), 3 * BYTES).await, "0 1 2 3 4");
    }

    #[tokio::test]
    async fn an_early_end_and_an_error_lose_nothing() {
        let numbers = (0..5).map(|at| Ok(batch(at)));
        assert_eq!(of(numbers.clone(), 4 * BYTES).await, "0 1 2 3 4");
        assert_eq!(of(numbers.chain([Err("broken".to_owned())]), 4 * BYTES).await, "0 1 2 3 4 broken");
    }

    #[tokio::test]
    async fn batches_that_come_slowly_do_not_wait_for_others() {
        let (sender, receiver) = mpsc::unbounded();
        let mut primer = primer(receiver.boxed(), 4 * BYTES);
        let producer = tokio::spawn(async move {
            for at in 0..8 {
                sender.unbounded_send(Ok(batch(at))).unwrap();
                sleep(PATIENCE * 2).await;
            }
        });
        assert_eq!(taken(&mut primer).await.join(" "), "0 1 2 3 4 5 6 7");
        producer.await.unwrap();
    }

    #[test]
    fn types_that_are_not_flat_are_left_alone() {
        let fields = vec![arrow::datatypes::Field::new("v", arrow::datatypes::DataType::Utf8View, true)];
        let schema = Arc::new(arrow::datatypes::Schema::new(fields));
        let primer =
            Primer::<String>::new(futures::stream::empty().boxed(), &schema, Some(&large_message(1)));
        assert!(matches!(primer.state, State::Done));
    }
}
