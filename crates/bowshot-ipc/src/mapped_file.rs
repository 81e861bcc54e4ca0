//! Arrow IPC files whose record batches share the mapped file; only compressed files are copied. Replaced (renamed) files stay intact under
//! an open map. A file that is changed in place does not: rows read at that moment may be wrong, and [`MappedFile::check`] fails from then
//! on, so a stream of batches must call it after the last use of a batch. The process survives (`truncation_guard.rs`).

use crate::decode::{Decoded, Decoder, guarded, read_message};
use crate::error::{Error, Result};
use crate::file_map::{Map, Shared, Witness};
use crate::frame::CONTINUATION;
use crate::metadata_check::check_schema;
use crate::truncation_guard;
use arrow::array::Array;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow_ipc::Block;
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What an Arrow file begins and ends with.
const MAGIC: &[u8] = b"ARROW1";

/// Length of the footer and magic at the end of a file.
const TAIL: usize = 4 + MAGIC.len();

/// An Arrow IPC file in memory, without being read into it.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    map: Arc<Map>,
    bytes: Bytes,
    decoder: Decoder,
    schema: SchemaRef,
    batches: Vec<MessageBlock>,
}

/// Installs the handler that turns the truncation of a mapped file into an error of its table; once per process.
///
/// [`MappedFile::open`] does it too. The program calls it at its start, before other threads exist.
pub fn install_truncation_guard() -> io::Result<()> {
    truncation_guard::install()
}

impl MappedFile {
    /// Maps a file and reads its footer and dictionaries.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| Error::from(error).in_file(path))?;
        Self::from_file(file, path)
    }

    /// Maps a file that is open already; `path` is its name in errors.
    pub fn from_file(file: File, path: &Path) -> Result<Self> {
        Self::map_file(file, path).map_err(|error| error.in_file(path))
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn len(&self) -> usize {
        self.batches.len()
    }

    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Rows of one batch, from its header alone.
    pub fn rows(&self, index: usize) -> Result<usize> {
        let rows = || {
            let (header, _) = self.message(index)?;
            let batch = read_message(&header)?.header_as_record_batch();
            let batch = batch.ok_or(Error::Unexpected("expected a record batch"))?;
            usize::try_from(batch.length()).map_err(|_| Error::malformed("a negative number of rows"))
        };
        self.checked(rows())
    }

    /// One batch with all its columns. Its memory is the map, which stays until the last batch is dropped.
    pub fn batch(&self, index: usize) -> Result<RecordBatch> {
        self.batch_projected(index, None)
    }

    /// One batch with the columns at these positions, in this order; the pages of the others are not touched.
    ///
    /// Reading from disk happens here and not where the rows are used, so that the thread that sends them does not wait
    /// for a disk: call it where such waiting is allowed.
    pub fn batch_projected(&self, index: usize, columns: Option<&[usize]>) -> Result<RecordBatch> {
        let read = || {
            let (header, body) = self.message(index)?;
            let batch = self.decoder.read_batch(read_message(&header)?, body, columns)?;
            batch.columns().iter().try_for_each(|column| self.map.load(&column.to_data()))?;
            Ok(batch)
        };
        self.check()?;
        self.checked(read())
    }

    /// Fails if the file was truncated or changed since it was opened; then rows that were read are not to be trusted.
    pub fn check(&self) -> Result<()> {
        self.map.check().map_err(|error| error.in_file(&self.path))
    }

    /// What [`Self::check`] asks, for somebody who outlives the file's rows.
    pub fn witness(&self) -> Witness {
        Witness::of(&self.map, &self.path)
    }

    fn map_file(file: File, path: &Path) -> Result<Self> {
        let map = Arc::new(Map::new(file)?);
        let bytes = Bytes::from_owner(Shared(Arc::clone(&map)));
        let opened = Self::read(path, &map, bytes);
        // If pages were lost meanwhile, what was read are zeros, and that is the error to tell.
        map.check()?;
        opened
    }

    fn read(path: &Path, map: &Arc<Map>, bytes: Bytes) -> Result<Self> {
        let footer = Footer::read(&bytes)?;
        let schema = Arc::new(footer.schema);
        let mut decoder = Decoder::with_schema(SchemaRef::clone(&schema));
        for place in footer.dictionaries {
            let (header, body) = place.message(&bytes)?;
            let Decoded::Dictionary = decoder.decode(&header, body)? else {
                return Err(Error::Unexpected("expected a dictionary"));
            };
        }
        let (path, map) = (path.to_owned(), Arc::clone(map));
        Ok(Self { path, map, bytes, decoder, schema, batches: footer.batches })
    }

    fn message(&self, index: usize) -> Result<(Bytes, Bytes)> {
        let place = self.batches.get(index);
        let place = place.ok_or_else(|| {
            Error::malformed(format!("no batch {index} in a file of {}", self.batches.len()))
        })?;
        place.message(&self.bytes)
    }

    /// The result of a read, unless the file changed during it.
    fn checked<T>(&self, result: Result<T>) -> Result<T> {
        self.check()?;
        result.map_err(|error| error.in_file(&self.path))
    }
}

struct Footer {
    schema: Schema,
    dictionaries: Vec<MessageBlock>,
    batches: Vec<MessageBlock>,
}

impl Footer {
    fn read(file: &[u8]) -> Result<Self> {
        let tail = file.len().checked_sub(TAIL).filter(|tail| *tail >= MAGIC.len());
        let framed = file.starts_with(MAGIC) && file.ends_with(MAGIC);
        let Some(tail) = tail.filter(|_| framed) else {
            return Err(Error::NotArrow { found: describe(file) });
        };
        let len = file.get(tail..).and_then(|tail| tail.first_chunk::<4>());
        let len = len.map_or(-1, |len| i32::from_le_bytes(*len));
        let footer =
            usize::try_from(len).ok().and_then(|len| file.get(tail.checked_sub(len)?..tail)).ok_or_else(
                || Error::malformed(format!("a footer of {len} bytes in a file of {}", file.len())),
            )?;
        // A copy, so that nothing changes between verification and use.
        let footer = footer.to_vec();
        let footer =
            arrow_ipc::root_as_footer(&footer).map_err(|error| Error::malformed(error.to_string()))?;
        let schema = footer.schema().ok_or_else(|| Error::malformed("a footer without schema"))?;
        check_schema(schema)?;
        let schema = guarded(|| Ok(arrow_ipc::convert::fb_to_schema(schema)))?;
        let places = |blocks: Option<flatbuffers::Vector<'_, Block>>| {
            blocks
                .into_iter()
                .flatten()
                .map(|block| MessageBlock::new(block, tail))
                .collect::<Result<Vec<_>>>()
        };
        Ok(Self {
            schema,
            dictionaries: places(footer.dictionaries())?,
            batches: places(footer.recordBatches())?,
        })
    }
}

/// What a file that is no Arrow file seems to be.
fn describe(file: &[u8]) -> &'static str {
    match file {
        [] => "an empty file",
        [0xFF, 0xFF, 0xFF, 0xFF, ..] => "an Arrow stream (files have a footer, streams have none)",
        [b'F', b'E', b'A', b'1', ..] => "a Feather file of version 1",
        [b'P', b'A', b'R', b'1', ..] => "a Parquet file",
        _ if file.starts_with(MAGIC) => "an Arrow file without its end",
        _ => "something else",
    }
}

#[derive(Debug, Clone)]
struct MessageBlock {
    header: Range<usize>,
    body: Range<usize>,
}

impl MessageBlock {
    fn new(block: &Block, end: usize) -> Result<Self> {
        let range = || {
            let start = usize::try_from(block.offset()).ok()?;
            let body = start.checked_add(usize::try_from(block.metaDataLength()).ok()?)?;
            let after = body.checked_add(usize::try_from(block.bodyLength()).ok()?)?;
            (after <= end).then_some(Self { header: start..body, body: body..after })
        };
        range().ok_or_else(|| {
            let (at, header, body) = (block.offset(), block.metaDataLength(), block.bodyLength());
            Error::malformed(format!("a message at {at} of {header} and {body} bytes outside of the file"))
        })
    }

    /// The flatbuffer, copied so that nothing changes between verification and use, and the body of the message.
    fn message(&self, file: &Bytes) -> Result<(Bytes, Bytes)> {
        let header = file.slice(self.header.clone());
        let prefix = if header.starts_with(&CONTINUATION) { 8 } else { 4 };
        let len = header
            .get(prefix - 4..)
            .and_then(|len| len.first_chunk::<4>())
            .map(|len| i32::from_le_bytes(*len));
        let end = len.and_then(|len| usize::try_from(len).ok()).and_then(|len| prefix.checked_add(len));
        let end = end.filter(|end| *end <= header.len());
        let end = end.ok_or_else(|| Error::malformed("a message whose header is longer than its place"))?;
        Ok((Bytes::copy_from_slice(&header[prefix..end]), file.slice(self.body.clone())))
    }
}
