//! Rows that a client sends, on their way into the statement that reads them.

use crate::expanded;
use crate::live::Statement;
use crate::write::PATIENCE;
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Result};
use futures::StreamExt;
use std::sync::{Arc, Weak};

/// The rows of a client, counted. While none come, the place of the statement is free for others.
pub(crate) fn paced(rows: BatchStream, live: &Arc<Statement>) -> BatchStream {
    let (schema, exclusive, origin) = (rows.schema(), rows.is_exclusive(), rows.origin().cloned());
    // The statement may hold its rows.
    let batches = futures::stream::unfold((rows, Arc::downgrade(live)), |(mut rows, live)| async move {
        let batch = next(&mut rows, &live).await?;
        Some((batch.and_then(|batch| taken(batch, &live)), (rows, live)))
    });
    let paced = BatchStream::new(schema, batches.boxed()).with_origin(origin);
    if exclusive { paced.exclusive() } else { paced }
}

async fn next(rows: &mut BatchStream, live: &Weak<Statement>) -> Option<Result<RecordBatch>> {
    if let Ok(batch) = tokio::time::timeout(PATIENCE, rows.next()).await {
        return batch;
    }
    let _waiting = Waiting::new(live);
    rows.next().await
}

fn taken(batch: RecordBatch, live: &Weak<Statement>) -> Result<RecordBatch> {
    expanded::check(&batch)?;
    if let Some(live) = live.upgrade() {
        live.takes_rows(batch.num_rows());
    }
    Ok(batch)
}

/// A statement that waits for rows.
struct Waiting<'a>(&'a Weak<Statement>);

impl<'a> Waiting<'a> {
    fn new(live: &'a Weak<Statement>) -> Self {
        if let Some(live) = live.upgrade() {
            live.waits_for_rows();
        }
        Self(live)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(live) = self.0.upgrade() {
            live.has_waited();
        }
    }
}
