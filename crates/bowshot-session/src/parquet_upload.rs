//! Parquet files of clients, which can be read only when complete: stored like spilled results, in unnamed files, and
//! counted with them.

use crate::spill::Accounts;
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, ByteStream, Error, ErrorKind, Result};
use futures::{Stream, StreamExt};
use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::io::AsyncWriteExt;

/// Stores a Parquet file to its end and reads its rows.
///
/// # Errors
/// `LimitReached` when the space for spilled results is used up; what the pieces say; what is wrong with the file.
pub(crate) async fn parquet(pieces: ByteStream, accounts: &Arc<Accounts>) -> Result<BatchStream> {
    let (file, held) = store(pieces, accounts).await?;
    let rows = bowshot_engine::sent_parquet(file, held.bytes).await?;
    let (schema, origin) = (rows.schema(), rows.origin().cloned());
    Ok(BatchStream::new(schema, Rows { rows, _held: held }.boxed()).with_origin(origin))
}

async fn store(mut pieces: ByteStream, accounts: &Arc<Accounts>) -> Result<(File, Held)> {
    let mut file = tokio::fs::File::from_std(accounts.unnamed_file().map_err(failed)?);
    let mut held = Held { accounts: Arc::clone(accounts), bytes: 0 };
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        held.add(piece.len() as u64)?;
        file.write_all(&piece).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    Ok((file.into_std().await, held))
}

fn failed(error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "cannot store an upload on disk")
        .with_hint("free space in the folder for temporary files, or send an Arrow stream")
        .with_source(error)
}

/// Reserved disk space, released on drop.
struct Held {
    accounts: Arc<Accounts>,
    bytes: u64,
}

impl Held {
    fn add(&mut self, bytes: u64) -> Result<()> {
        self.accounts.reserve_disk(bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.accounts.disk.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

struct Rows {
    rows: BatchStream,
    _held: Held,
}

impl Stream for Rows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.rows.poll_next_unpin(cx)
    }
}
