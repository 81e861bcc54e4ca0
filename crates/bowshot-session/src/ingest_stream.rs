//! Rows that a client sends to the statement that reads them.

use crate::decoded_size_limit;
use crate::running_statements::RunningStatement;
use crate::write::PATIENCE;
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Result};
use futures::StreamExt;
use std::sync::{Arc, Weak};

/// Counts the rows of a client. While none arrive, the statement's slot is lent to others.
pub(crate) fn paced(rows: BatchStream, live: &Arc<RunningStatement>) -> BatchStream {
    let (schema, exclusive, origin) = (rows.schema(), rows.is_exclusive(), rows.origin().cloned());
    // Weak: the statement may own these rows.
    let batches = futures::stream::unfold((rows, Arc::downgrade(live)), |(mut rows, live)| async move {
        let batch = next(&mut rows, &live).await?;
        Some((batch.and_then(|batch| taken(batch, &live)), (rows, live)))
    });
    let paced = BatchStream::new(schema, batches.boxed()).with_origin(origin);
    if exclusive { paced.exclusive() } else { paced }
}

async fn next(rows: &mut BatchStream, live: &Weak<RunningStatement>) -> Option<Result<RecordBatch>> {
    if let Ok(batch) = tokio::time::timeout(PATIENCE, rows.next()).await {
        return batch;
    }
    let _waiting = WaitGuard::new(live);
    rows.next().await
}

fn taken(batch: RecordBatch, live: &Weak<RunningStatement>) -> Result<RecordBatch> {
    decoded_size_limit::check(&batch)?;
    if let Some(live) = live.upgrade() {
        live.count_rows_in(batch.num_rows());
    }
    Ok(batch)
}

struct WaitGuard<'a>(&'a Weak<RunningStatement>);

impl<'a> WaitGuard<'a> {
    fn new(live: &'a Weak<RunningStatement>) -> Self {
        if let Some(live) = live.upgrade() {
            live.pause_for_rows();
        }
        Self(live)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        if let Some(live) = self.0.upgrade() {
            live.resume();
        }
    }
}
