//! Moves batches from the engine into a partition of a result.

use super::QueryResult;
use crate::partition::{Partition, Stopped};
use crate::write::PATIENCE;
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, Result};
use bowshot_query_task::{QueryTask, checked};
use futures::future::poll_immediate;
use futures::{FutureExt, StreamExt};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};

/// Rows after which the rest is a task of its own: until then, the call that starts the query moves them itself.
const FEW_ROWS: usize = 1_024;

/// Does the work of a query; a panic fails the query only.
pub(super) async fn guarded(query: Weak<QueryResult>, work: impl Future<Output = ()>) {
    if AssertUnwindSafe(work).catch_unwind().await.is_err()
        && let Some(query) = query.upgrade()
    {
        query.fail(Error::internal("an operator panicked"));
    }
}

/// Moves batches from the engine into a partition until either ends.
pub(super) async fn move_batches(query: Weak<QueryResult>, partition: Arc<Partition>, stream: BatchStream) {
    let (mut stream, mut moved, mut has_yielded) = (checked(stream), 0, false);
    while let Some(batch) = stream.next().await {
        moved += batch.as_ref().map_or(0, RecordBatch::num_rows);
        let pushed = match batch {
            Ok(batch) => push(&query, &partition, batch).await,
            Err(error) => Err(error),
        };
        match pushed {
            Ok(Ok(())) if moved > FEW_ROWS && !has_yielded => {
                has_yielded = true;
                tokio::task::yield_now().await;
            }
            Ok(Ok(())) => {}
            Ok(Err(_stopped)) => break,
            Err(error) => {
                drop(stream);
                if let Some(query) = query.upgrade() {
                    query.fail(error);
                }
                return;
            }
        }
    }
    drop(stream);
    partition.producer_done();
    if let Some(query) = query.upgrade() {
        query.one_less_active();
        query.settle();
    }
}

/// Adds a batch to a partition. While that blocks, the query's slot is lent to others.
async fn push(
    query: &Weak<QueryResult>,
    partition: &Partition,
    batch: RecordBatch,
) -> Result<Result<(), Stopped>> {
    let bytes = Partition::size(&batch);
    if let Some(job) = QueryTask::current() {
        job.handed_over(bytes);
    }
    let mut pushing = Box::pin(partition.push(batch, bytes));
    if let Some(pushed) = poll_immediate(&mut pushing).await {
        return pushed;
    }
    match tokio::time::timeout(PATIENCE, &mut pushing).await {
        Ok(pushed) => pushed,
        Err(_elapsed) => {
            let _idle = IdleGuard::new(query);
            pushing.await
        }
    }
}

struct IdleGuard<'a>(Option<&'a Weak<QueryResult>>);

impl<'a> IdleGuard<'a> {
    fn new(query: &'a Weak<QueryResult>) -> Self {
        if let Some(query) = query.upgrade() {
            query.one_less_active();
            drop(query);
        }
        Self(Some(query))
    }
}

impl Drop for IdleGuard<'_> {
    fn drop(&mut self) {
        if let Some(query) = self.0.take().and_then(Weak::upgrade) {
            query.one_more_active();
        }
    }
}
