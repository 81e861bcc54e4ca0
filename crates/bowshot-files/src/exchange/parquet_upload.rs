//! Reads a Parquet file that a client has uploaded, as COPY FROM does. Errors name no file.

use super::FileRows;
use super::copy_from::parquet_builder;
use arrow::error::ArrowError;
use bowshot_api::{Error, Result};
use bowshot_formats::batches::{Batches, Request};
use bowshot_formats::parquet::{columns, encrypted};
use bowshot_formats::shared_files::SharedFiles;
use bowshot_object_store::Error as FileError;
use bowshot_object_store::file_name::Compression;
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of one batch: nothing is known of what a stranger's file makes of them.
const BATCH_ROWS: usize = 8 << 10;

impl FileRows {
    /// The rows of a Parquet file of `bytes`. Blocks.
    ///
    /// # Errors
    /// `Invalid` for what is no such file.
    pub fn of_sent_parquet(file: File, bytes: u64) -> Result<Self> {
        let sent = Sent { file: Arc::new(file), bytes };
        // The reader's care for bytes of any kind ends in panics here and there.
        let opened = catch_unwind(AssertUnwindSafe(|| open(sent)));
        opened.unwrap_or_else(|_| Err(damaged("its footer cannot be decoded")))
    }
}

fn open(sent: Sent) -> Result<FileRows> {
    let (builder, columns) = parquet_builder(sent.clone()).map_err(damaged)?;
    let schema = bowshot_formats::schema::plain(&columns);
    columns::check(schema.fields().iter().map(AsRef::as_ref), Path::new("")).map_err(told)?;
    let reader = builder.with_batch_size(BATCH_ROWS).build().map_err(damaged)?;
    let nameless = PathBuf::new();
    let wrong = move |error: ArrowError| match encrypted::columns(&sent) {
        columns if columns.is_empty() => FileError::corrupt(Path::new(""), error),
        columns => FileError::Encrypted { path: PathBuf::new(), columns },
    };
    let batches = reader.map(move |batch: std::result::Result<_, ArrowError>| batch.map_err(&wrong));
    let (compression, shared) = (Compression::None, SharedFiles::default());
    let request = Request { schema, batch_size: BATCH_ROWS, range: None, compression, shared };
    Ok(FileRows::of_parquet((nameless, Batches::new(batches)), request, told))
}

fn told(error: FileError) -> Error {
    match error {
        FileError::Corrupt { detail, .. } => damaged(detail),
        FileError::Encrypted { columns, .. } => {
            let columns = columns.join(", ");
            Error::unsupported(format!("the Parquet file has encrypted columns: {columns}"))
                .with_hint("send one without encryption")
        }
        FileError::Column { column, why, .. } => {
            Error::unsupported(format!("column `{column}` of the Parquet file is not read: {why}"))
                .with_hint("send it as text or in another type")
        }
        other => other.into(),
    }
}

fn damaged(detail: impl ToString) -> Error {
    let detail = detail.to_string();
    if detail.contains("encrypted") {
        return Error::unsupported("the Parquet file is encrypted").with_hint("send one that is not");
    }
    Error::invalid(format!("the Parquet file cannot be read: {detail}"))
        .with_hint("send a whole Parquet file, or an Arrow stream")
}

/// The bytes of a file that has no name.
#[derive(Clone)]
struct Sent {
    file: Arc<File>,
    bytes: u64,
}

impl Length for Sent {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Sent {
    type T = BufReader<Reading>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<BufReader<Reading>> {
        Ok(BufReader::new(Reading { file: Arc::clone(&self.file), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // What a footer says of lengths makes no memory.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(ParquetError::EOF("a part lies beyond the end of the file".to_owned()));
        }
        let mut bytes = vec![0; length];
        self.file
            .read_exact_at(&mut bytes, start)
            .map_err(|error| ParquetError::External(Box::new(error)))?;
        Ok(bytes.into())
    }
}

/// Reads from a place on, whoever else reads.
struct Reading {
    file: Arc<File>,
    position: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}
