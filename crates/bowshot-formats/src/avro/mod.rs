//! Avro object container files: the writer's schema, and the rows block by block.
//!
//! Blocks are framed here, because the reader below takes a file that ends within a block for a shorter one, and never
//! returns from a block that holds more bytes than rows. It sees one block at a time, and is asked once per block. Nor has it
//! limits: the schema is weighed before it sees it, and blocks are unpacked here.

mod block;
mod schema_size;

use self::block::Codec;
use self::schema_size::Weight;
use crate::batches::{Batches, Request};
use crate::data_file::{DataFile, FileReader};
use crate::extension_types::with_logical_types;
use crate::file_metadata::{Detail, FileFacts};
use arrow::array::RecordBatch;
use bowshot_object_store::Error;
use datafusion::arrow_avro::reader::ReaderBuilder;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::iter;
use std::sync::{Arc, OnceLock};

const MAGIC: &[u8] = b"Obj\x01";
const SYNC_BYTES: usize = 16;

/// The property that has the types, and the one that says how blocks are packed.
const SCHEMA: &[u8] = b"avro.schema";
const CODEC: &[u8] = b"avro.codec";

/// Bytes of a header; a larger one is taken for noise.
const MAX_HEADER_BYTES: usize = 64 << 20;

/// Rows of a block that has fewer bytes than rows: only rows without content take no byte.
const MAX_EMPTY_ROWS: usize = 1 << 20;

/// Bytes of a block as it is unpacked: of a file of rows, and of one that is read whole.
const MAX_BLOCK_BYTES: usize = 1 << 30;
const MAX_WHOLE_BLOCK_BYTES: usize = 64 << 20;

/// Bytes of all blocks of a file that is read whole.
const MAX_WHOLE_BYTES: usize = 256 << 20;

/// How many times a block's limit its values of one length may take, which take that also where they are NULL.
const MAX_FIXED_GROWTH: u64 = 4;

pub fn facts(file: &Arc<DataFile>) -> Result<FileFacts, Error> {
    let blocks = Blocks::open(file, None)?;
    let header = Cursor::new(blocks.header.start.as_slice());
    let reader = ReaderBuilder::new().build(header).map_err(|error| Error::corrupt(file.path(), error))?;
    let columns = Arc::new(with_logical_types(&reader.schema()));
    Ok(FileFacts { columns, rows: None, detail: Detail::Avro })
}

/// All rows of a file that is to have at most so many.
///
/// # Errors
/// When it has more, before they are decoded, and when it cannot be read.
pub fn all_rows(file: &Arc<DataFile>, most: usize) -> Result<Vec<RecordBatch>, Error> {
    let mut blocks = Blocks::open(file, None)?;
    (blocks.most, blocks.most_bytes, blocks.left_bytes) = (most, MAX_WHOLE_BLOCK_BYTES, MAX_WHOLE_BYTES);
    iter::from_fn(|| blocks.batch().transpose()).collect()
}

pub fn open(file: &Arc<DataFile>, facts: &FileFacts, request: &Request) -> Result<Batches, Error> {
    let mut taken = request.positions_in(&facts.columns);
    // Without any column the reader would lose the number of rows; one column is enough to keep it.
    if taken.is_empty() {
        taken.push(0);
    }
    let mut blocks = Blocks::open(file, Some(taken))?;
    Ok(Batches::until_end(move || blocks.batch()))
}

struct Blocks {
    file: Arc<DataFile>,
    bytes: BufReader<FileReader>,
    fault: Arc<OnceLock<Error>>,
    header: Header,
    projection: Option<Vec<usize>>,
    /// Rows that may still come.
    most: usize,
    /// Bytes that a block may have unpacked.
    most_bytes: usize,
    /// Bytes that all blocks may still have.
    left_bytes: usize,
}

struct Header {
    /// The header that the same blocks have unpacked, for the reader.
    start: Vec<u8>,
    codec: Codec,
    weight: Weight,
    /// What each block ends with.
    mark: Vec<u8>,
}

struct Block {
    rows: usize,
    bytes: Vec<u8>,
}

impl Blocks {
    fn open(file: &Arc<DataFile>, projection: Option<Vec<usize>>) -> Result<Self, Error> {
        let reader = file.reader(0);
        let fault = reader.fault();
        let mut bytes = BufReader::with_capacity(64 << 10, reader);
        let header = Header::read(&mut Input { inner: &mut bytes, taken: 0 });
        let header = header.map_err(|error| explained(file, fault.get(), &error))?;
        let file = Arc::clone(file);
        let (most, most_bytes, left_bytes) = (usize::MAX, MAX_BLOCK_BYTES, usize::MAX);
        Ok(Self { file, bytes, fault, header, projection, most, most_bytes, left_bytes })
    }

    fn block(&mut self) -> io::Result<Option<Block>> {
        if self.bytes.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let size = self.file.size();
        let mut input = Input { inner: &mut self.bytes, taken: 0 };
        let rows =
            usize::try_from(input.long()?).map_err(|_| noise("a block with an invalid number of rows"))?;
        let length = u64::try_from(input.long()?).map_err(|_| noise("a block of negative length"))?;
        if length > size {
            return Err(noise("a block that is longer than the file"));
        }
        let length = usize::try_from(length).map_err(|_| noise("a block larger than memory"))?;
        if length > self.left_bytes {
            return Err(too_large());
        }
        self.most =
            self.most.checked_sub(rows).ok_or_else(|| noise("more rows than the limit for such a file"))?;
        let packed = input.take_bytes(length)?;
        if input.take_bytes(SYNC_BYTES)? != self.header.mark {
            return Err(noise("a block does not end with the file's sync marker"));
        }
        let bytes = self.header.codec.unpacked(packed, self.most_bytes)?;
        self.left_bytes = self.left_bytes.checked_sub(bytes.len()).ok_or_else(too_large)?;
        if rows > bytes.len() && rows > MAX_EMPTY_ROWS {
            return Err(noise("a block with more rows than bytes"));
        }
        let weight = self.header.weight;
        let of_rows = weight.row_bytes.saturating_mul(rows as u64);
        let of_elements = weight.element_bytes.saturating_mul(bytes.len() as u64);
        if of_rows.saturating_add(of_elements) > MAX_FIXED_GROWTH.saturating_mul(self.most_bytes as u64) {
            return Err(noise("a block whose values of one length may take more memory than is given to it"));
        }
        Ok(Some(Block { rows, bytes }))
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            let block = self.block();
            let block = block.map_err(|error| explained(&self.file, self.fault.get(), &error))?;
            let Some(Block { rows, bytes }) = block else { return Ok(None) };
            if rows == 0 {
                continue;
            }
            let corrupt = |error| Error::corrupt(self.file.path(), error);
            let mut builder = ReaderBuilder::new().with_batch_size(rows);
            if let Some(projection) = &self.projection {
                builder = builder.with_projection(projection.clone());
            }
            let mut reader = builder.build(self.header.before(rows, bytes)).map_err(corrupt)?;
            let batch = reader.next().transpose().map_err(corrupt)?;
            return match batch {
                Some(batch) if batch.num_rows() == rows => Ok(Some(batch)),
                _ => Err(Error::corrupt(self.file.path(), "a block with fewer rows than its header says")),
            };
        }
    }
}

fn explained(file: &DataFile, fault: Option<&Error>, error: &io::Error) -> Error {
    match (fault, error.kind()) {
        (Some(fault), _) => fault.clone(),
        (None, io::ErrorKind::UnexpectedEof) => Error::corrupt(file.path(), "it ends within a block"),
        (None, _) => Error::corrupt(file.path(), error),
    }
}

impl Header {
    /// Magic, a map of properties in counted groups, and the mark that ends each block.
    fn read(input: &mut Input<'_>) -> io::Result<Self> {
        let (mut schema, mut codec) = (None, None);
        if input.take_bytes(4)? != MAGIC {
            return Err(noise("it is not an Avro file"));
        }
        loop {
            let count = input.long()?;
            if count == 0 {
                break;
            }
            if count < 0 {
                input.long()?;
            }
            for _ in 0..count.unsigned_abs() {
                let (name, value) = (input.property()?, input.property()?);
                match name.as_slice() {
                    SCHEMA => schema = Some(value),
                    CODEC => codec = Some(value),
                    _ => {}
                }
            }
        }
        let mark = input.take_bytes(SYNC_BYTES)?;
        let codec = Codec::of(codec.as_deref())?;
        let (schema, weight) = of_records(&schema.ok_or_else(|| noise("it has no schema"))?)?;
        let mut start = MAGIC.to_vec();
        add_long(1, &mut start);
        for bytes in [SCHEMA, &schema] {
            add_long(bytes.len(), &mut start);
            start.extend_from_slice(bytes);
        }
        start.push(0);
        start.extend_from_slice(&mark);
        Ok(Self { start, codec, weight, mark })
    }

    /// A file of this one block.
    fn before(&self, rows: usize, bytes: Vec<u8>) -> impl BufRead + use<> {
        let mut start = self.start.clone();
        add_long(rows, &mut start);
        add_long(bytes.len(), &mut start);
        Cursor::new(start).chain(Cursor::new(bytes)).chain(Cursor::new(self.mark.clone()))
    }
}

struct Input<'a> {
    inner: &'a mut BufReader<FileReader>,
    taken: usize,
}

impl Input<'_> {
    fn take_bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        // Grows with what is there: a length that is noise allocates nothing.
        let mut bytes = Vec::new();
        let read = self.inner.take(length as u64).read_to_end(&mut bytes)?;
        if read < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.taken = self.taken.saturating_add(read);
        Ok(bytes)
    }

    /// Bytes with their length before them.
    fn property(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.long()?).ok().filter(|n| *n <= MAX_HEADER_BYTES);
        let bytes = self.take_bytes(length.ok_or_else(|| noise("a property of invalid length"))?)?;
        match self.taken > MAX_HEADER_BYTES {
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

/// The schema that the same blocks have as what the reader takes, and what it weighs. What is something else than records becomes
/// records of one column: a record is written as its columns are. Fields that are records without fields leave, since they take
/// no bytes.
fn of_records(schema: &[u8]) -> io::Result<(Vec<u8>, Weight)> {
    let mut top: Value = serde_json::from_slice(schema)
        .map_err(|error| noise(&format!("its schema is not valid JSON: {error}")))?;
    leave_empty_ones(&mut top);
    if !is_record(&top) {
        let column = serde_json::json!({ "name": "value", "type": top });
        top = serde_json::json!({ "type": "record", "name": "bowshot_row", "fields": [column] });
    }
    let weight = schema_size::weigh(&top).map_err(|detail| noise(&detail))?;
    Ok((top.to_string().into_bytes(), weight))
}

/// Takes fields out that are records without fields, from the innermost.
fn leave_empty_ones(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(leave_empty_ones),
        Value::Object(parts) => {
            for name in ["type", "items", "values"] {
                parts.get_mut(name).into_iter().for_each(leave_empty_ones);
            }
            if let Some(Value::Array(fields)) = parts.get_mut("fields") {
                fields.iter_mut().for_each(leave_empty_ones);
                fields.retain(|field| !field.get("type").is_some_and(is_empty_record));
            }
        }
        _ => {}
    }
}

fn is_empty_record(schema: &Value) -> bool {
    let has_none = schema.get("fields").and_then(|fields| fields.as_array()).is_some_and(Vec::is_empty);
    has_none && is_record(schema)
}

fn is_record(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "record" || name == "error",
        Some(inner) => is_record(inner),
        None => false,
    }
}

/// A number as [`Input::long`] reads it.
fn add_long(number: usize, bytes: &mut Vec<u8>) {
    let mut rest = (number as u64) << 1;
    while rest > 0x7f {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

fn too_large() -> io::Error {
    noise(&format!("it has more than {} MiB decompressed", MAX_WHOLE_BYTES >> 20))
}

fn noise(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
