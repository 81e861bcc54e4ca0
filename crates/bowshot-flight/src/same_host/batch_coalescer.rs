//! Coalesces batches of a result until they are worth a shared memory of their own.

use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Result, batch_bytes};
use futures::StreamExt;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Size of a full group: the cost of some twenty system calls is negligible then, and clients that read in chunks
/// hold few of them.
const FULL: usize = 16 << 20;
/// How long rows wait for more.
const PATIENCE: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct CoalescedBatches {
    source: BatchStream,
    parts: VecDeque<RecordBatch>,
    batches: Vec<RecordBatch>,
    bytes: usize,
    until: Option<Instant>,
    ended: bool,
}

impl CoalescedBatches {
    pub(crate) fn new(source: BatchStream) -> Self {
        let (parts, batches) = (VecDeque::new(), Vec::new());
        Self { source, parts, batches, bytes: 0, until: None, ended: false }
    }

    /// The next group of batches; `None` at the end. Nothing is lost when this is dropped.
    pub(crate) async fn next(&mut self) -> Option<Result<Vec<RecordBatch>>> {
        loop {
            while self.bytes < FULL
                && let Some(part) = self.parts.pop_front()
            {
                self.add(part);
            }
            if self.bytes >= FULL || (self.ended && !self.batches.is_empty()) {
                return Some(Ok(self.take()));
            }
            if self.ended {
                return None;
            }
            let next = match self.until {
                None => self.source.next().await,
                Some(until) => match timeout_at(until, self.source.next()).await {
                    Ok(next) => next,
                    Err(_elapsed) => return Some(Ok(self.take())),
                },
            };
            match next {
                Some(Ok(batch)) => self.cut(batch),
                Some(Err(error)) => {
                    self.ended = true;
                    self.batches.clear();
                    return Some(Err(error));
                }
                None => self.ended = true,
            }
        }
    }

    /// Whether all groups were taken.
    pub(crate) fn is_done(&self) -> bool {
        self.ended && self.batches.is_empty() && self.parts.is_empty()
    }

    /// Takes a batch in, in parts if it is much too large.
    fn cut(&mut self, batch: RecordBatch) {
        let rows = batch.num_rows();
        if rows == 0 {
            return;
        }
        let parts = (batch_bytes(&batch) / FULL).clamp(1, rows);
        let step = rows.div_ceil(parts).next_multiple_of(64);
        for begin in (0..rows).step_by(step) {
            self.parts.push_back(batch.slice(begin, step.min(rows - begin)));
        }
    }

    fn add(&mut self, batch: RecordBatch) {
        self.bytes = self.bytes.saturating_add(batch_bytes(&batch));
        self.batches.push(batch);
        self.until.get_or_insert_with(|| Instant::now() + PATIENCE);
    }

    fn take(&mut self) -> Vec<RecordBatch> {
        self.bytes = 0;
        self.until = None;
        std::mem::take(&mut self.batches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use bowshot_api::Error;
    use std::sync::Arc;

    fn batch(rows: i64) -> RecordBatch {
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from_iter_values(0..rows)) as _)]).unwrap()
    }

    async fn groups(batches: Vec<RecordBatch>) -> Vec<usize> {
        let mut coalesced = CoalescedBatches::new(BatchStream::from_batches(batch(0).schema(), batches));
        let mut groups = Vec::new();
        while let Some(group) = coalesced.next().await {
            groups.push(group.unwrap().iter().map(RecordBatch::num_rows).sum());
        }
        groups
    }

    #[tokio::test]
    async fn small_batches_come_together_and_large_ones_apart() {
        assert_eq!(groups(vec![]).await, [0; 0]);
        assert_eq!(groups(vec![batch(0), batch(5), batch(6)]).await, [11]);
        let large = groups(vec![batch(6 << 20), batch(1)]).await;
        assert_eq!(large.iter().sum::<usize>(), (6 << 20) + 1);
        assert!(large.iter().all(|rows| *rows <= 3 << 20), "{large:?}");
    }

    #[tokio::test]
    async fn rows_do_not_wait_for_those_that_do_not_come() {
        let batches = futures::stream::iter([Ok(batch(5))]).chain(futures::stream::pending());
        let mut coalesced = CoalescedBatches::new(BatchStream::new(batch(0).schema(), batches.boxed()));
        assert_eq!(coalesced.next().await.unwrap().unwrap()[0].num_rows(), 5);
    }

    #[tokio::test]
    async fn an_error_ends_the_rows() {
        let batches = futures::stream::iter([Ok(batch(5)), Err(Error::internal("broken"))]);
        let mut coalesced = CoalescedBatches::new(BatchStream::new(batch(0).schema(), batches.boxed()));
        assert!(coalesced.next().await.unwrap().is_err());
        assert!(coalesced.next().await.is_none());
    }
}
