//! Avro object container files: the writer's schema, and the rows block by block.
//!
//! Blocks are framed here, because the reader below takes a file that ends within a block for a shorter one, and never
//! returns from a block that holds more bytes than rows. It sees one block at a time, and is asked once per block.

use crate::Error;
use crate::batches::{Batches, Request};
use crate::facts::{Detail, FileFacts};
use crate::file::{DataFile, FileReader};
use arrow::array::RecordBatch;
use datafusion::arrow_avro::reader::ReaderBuilder;
use std::io::{self, BufReader, Cursor, Read};
use std::sync::{Arc, OnceLock};

const MAGIC: &[u8] = b"Obj\x01";
const SYNC_BYTES: usize = 16;

/// The property that has the types.
const SCHEMA: &[u8] = b"avro.schema";

/// Bytes of a header; a larger one is taken for noise.
const MAX_HEADER_BYTES: usize = 64 << 20;

/// Rows of a block that has fewer bytes than rows: only rows without content take no byte.
const MAX_EMPTY_ROWS: u64 = 1 << 20;

/// Reads the header.
pub(crate) fn facts(file: &Arc<DataFile>) -> Result<FileFacts, Error> {
    let blocks = Blocks::open(file, None)?;
    let header = Cursor::new(blocks.header.as_slice());
    let reader = ReaderBuilder::new().build(header).map_err(|error| Error::corrupt(file.path(), error))?;
    Ok(FileFacts { columns: reader.schema(), rows: None, detail: Detail::Avro })
}

/// All rows of a file that is to have at most so many.
///
/// # Errors
/// When it has more, before they are decoded, and when it cannot be read.
pub(crate) fn all_rows(file: &Arc<DataFile>, most: usize) -> Result<Vec<RecordBatch>, Error> {
    let mut blocks = Blocks::open(file, None)?;
    blocks.most = most;
    blocks.collect()
}

/// The rows of one file.
pub(crate) fn open(file: &Arc<DataFile>, facts: &FileFacts, request: &Request) -> Result<Batches, Error> {
    let mut taken = request.positions_in(&facts.columns);
    // Without any column the reader would lose the number of rows; one column is enough to keep it.
    if taken.is_empty() {
        taken.push(0);
    }
    Ok(Batches::new(Blocks::open(file, Some(taken))?))
}

struct Blocks {
    file: Arc<DataFile>,
    bytes: BufReader<FileReader>,
    fault: Arc<OnceLock<Error>>,
    /// Everything before the first block.
    header: Vec<u8>,
    projection: Option<Vec<usize>>,
    /// Rows that may still come.
    most: usize,
    done: bool,
}

impl Blocks {
    fn open(file: &Arc<DataFile>, projection: Option<Vec<usize>>) -> Result<Self, Error> {
        let reader = file.reader(0);
        let fault = reader.fault();
        let bytes = BufReader::with_capacity(64 << 10, reader);
        let file = Arc::clone(file);
        let mut blocks =
            Self { file, bytes, fault, header: Vec::new(), projection, most: usize::MAX, done: false };
        blocks.header = blocks.read_header().map_err(|error| blocks.explain(&error))?;
        Ok(blocks)
    }

    /// Magic, a map of properties in counted groups, and the mark that ends each block.
    fn read_header(&mut self) -> io::Result<Vec<u8>> {
        let mut header = Recorder { inner: &mut self.bytes, seen: Vec::new() };
        let mut properties = Vec::new();
        if header.take_bytes(4)? != MAGIC {
            return Err(noise("it is no Avro file"));
        }
        loop {
            let count = header.long()?;
            if count == 0 {
                break;
            }
            if count < 0 {
                header.long()?;
            }
            for _ in 0..count.unsigned_abs() {
                let (name, value) = (header.property()?, header.property()?);
                properties.push((name, value));
            }
        }
        let mark = header.take_bytes(SYNC_BYTES)?;
        let seen = header.seen;
        Ok(of_records(&properties, &mark).unwrap_or(seen))
    }

    /// The next block as a file of its own, and its rows.
    fn block(&mut self) -> io::Result<Option<(Vec<u8>, usize)>> {
        use std::io::BufRead;
        if self.bytes.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let size = self.file.size();
        let mut block = Recorder { inner: &mut self.bytes, seen: self.header.clone() };
        let rows =
            u64::try_from(block.long()?).map_err(|_| noise("a block with a negative number of rows"))?;
        let length = u64::try_from(block.long()?).map_err(|_| noise("a block of negative length"))?;
        if length > size || (rows > length && rows > MAX_EMPTY_ROWS) {
            return Err(noise("a block that is longer than the file"));
        }
        let length = usize::try_from(length).map_err(|_| noise("a block larger than memory"))?;
        block.take_bytes(length)?;
        let mark = block.take_bytes(SYNC_BYTES)?;
        if !self.header.ends_with(&mark) {
            return Err(noise("a block does not end with the file's mark"));
        }
        let rows = usize::try_from(rows).map_err(|_| noise("a block with more rows than memory"))?;
        self.most =
            self.most.checked_sub(rows).ok_or_else(|| noise("more rows than are read of such a file"))?;
        Ok(Some((block.seen, rows)))
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            let Some((bytes, rows)) = self.block().map_err(|error| self.explain(&error))? else {
                return Ok(None);
            };
            if rows == 0 {
                continue;
            }
            let corrupt = |error| Error::corrupt(self.file.path(), error);
            let mut builder = ReaderBuilder::new().with_batch_size(rows);
            if let Some(projection) = &self.projection {
                builder = builder.with_projection(projection.clone());
            }
            let mut reader = builder.build(Cursor::new(bytes)).map_err(corrupt)?;
            let batch = reader.next().transpose().map_err(corrupt)?;
            return match batch {
                Some(batch) if batch.num_rows() == rows => Ok(Some(batch)),
                _ => Err(Error::corrupt(self.file.path(), "a block with fewer rows than it says")),
            };
        }
    }

    fn explain(&self, error: &io::Error) -> Error {
        match (self.fault.get(), error.kind()) {
            (Some(fault), _) => fault.clone(),
            (None, io::ErrorKind::UnexpectedEof) => {
                Error::corrupt(self.file.path(), "it ends within a block")
            }
            (None, _) => Error::corrupt(self.file.path(), error),
        }
    }
}

impl Iterator for Blocks {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.batch();
        self.done = !matches!(batch, Ok(Some(_)));
        batch.transpose()
    }
}

/// Keeps what it reads.
struct Recorder<'a> {
    inner: &'a mut BufReader<FileReader>,
    seen: Vec<u8>,
}

impl Recorder<'_> {
    fn take_bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        // Grows with what is there: a length that is noise allocates nothing.
        let mut bytes = Vec::new();
        let read = self.inner.take(length as u64).read_to_end(&mut bytes)?;
        if read < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.seen.extend_from_slice(&bytes);
        Ok(bytes)
    }

    /// Bytes with their length before them.
    fn property(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.long()?).ok().filter(|n| *n <= MAX_HEADER_BYTES);
        let bytes = self.take_bytes(length.ok_or_else(|| noise("a property of impossible length"))?)?;
        match self.seen.len() > MAX_HEADER_BYTES {
            true => Err(noise("a header without end")),
            false => Ok(bytes),
        }
    }

    /// A zigzag number of seven bits a byte.
    fn long(&mut self) -> io::Result<i64> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.take_bytes(1)?.first().copied().unwrap_or(0);
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
            }
        }
        Err(noise("a number that does not end"))
    }
}

/// The header that the same blocks have as what the reader takes. What is something else than records becomes records of one
/// column: a record is written as its columns are. Fields that are records without fields leave, since they take no bytes.
fn of_records(properties: &[(Vec<u8>, Vec<u8>)], mark: &[u8]) -> Option<Vec<u8>> {
    let (_, schema) = properties.iter().find(|(name, _)| name == SCHEMA)?;
    let mut top: serde_json::Value = serde_json::from_slice(schema).ok()?;
    let is_changed = leave_empty_ones(&mut top);
    if is_record(&top) && !is_changed {
        return None;
    }
    if !is_record(&top) {
        let column = serde_json::json!({ "name": "value", "type": top });
        top = serde_json::json!({ "type": "record", "name": "bowshot_row", "fields": [column] });
    }
    let record = top.to_string().into_bytes();
    let mut header = MAGIC.to_vec();
    add_long(properties.len(), &mut header);
    for (name, value) in properties {
        let value = if name == SCHEMA { &record } else { value };
        for bytes in [name, value] {
            add_long(bytes.len(), &mut header);
            header.extend_from_slice(bytes);
        }
    }
    header.push(0);
    header.extend_from_slice(mark);
    Some(header)
}

/// Takes fields out that are records without fields, from the innermost; says whether there was one.
fn leave_empty_ones(schema: &mut serde_json::Value) -> bool {
    use serde_json::Value;
    match schema {
        Value::Array(parts) => parts.iter_mut().fold(false, |changed, part| leave_empty_ones(part) | changed),
        Value::Object(parts) => {
            let inner = ["type", "items", "values"]
                .into_iter()
                .filter_map(|name| parts.get_mut(name).map(leave_empty_ones));
            let mut changed = inner.fold(false, |changed, inner| changed | inner);
            if let Some(Value::Array(fields)) = parts.get_mut("fields") {
                changed |= fields.iter_mut().fold(false, |changed, field| leave_empty_ones(field) | changed);
                let before = fields.len();
                fields.retain(|field| !field.get("type").is_some_and(is_empty_record));
                changed |= fields.len() < before;
            }
            changed
        }
        _ => false,
    }
}

fn is_empty_record(schema: &serde_json::Value) -> bool {
    let has_none = schema.get("fields").and_then(|fields| fields.as_array()).is_some_and(Vec::is_empty);
    has_none && is_record(schema)
}

fn is_record(schema: &serde_json::Value) -> bool {
    match schema.get("type") {
        Some(serde_json::Value::String(name)) => name == "record" || name == "error",
        Some(inner) => is_record(inner),
        None => false,
    }
}

/// A number as [`Recorder::long`] reads it.
fn add_long(number: usize, bytes: &mut Vec<u8>) {
    let mut rest = (number as u64) << 1;
    while rest > 0x7f {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

fn noise(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
