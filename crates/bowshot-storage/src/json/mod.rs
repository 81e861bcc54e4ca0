//! JSON: objects on lines of their own, one after the other in any layout, or one array of objects; fields go by name.

use crate::batches::{Batches, Request};
use crate::facts::{Detail, FileFacts};
use crate::file::DataFile;
use crate::format::{Compression, Kind};
use crate::text::{self, MAX_LINE_BYTES, TextReader};
use crate::{Error, ReadOptions};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::json::reader::Decoder;
use datafusion_datasource_json::utils::JsonArrayToNdjsonReader;
use serde::de::DeserializeSeed;
use shape::{Elements, Into, Shape};
use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

mod shape;
mod texts;

type ArrayReader = BufReader<JsonArrayToNdjsonReader<BufReader<Box<dyn Read + Send>>>>;

/// The mark that a text in UTF-8 may begin with.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// How the objects of a file lie in it.
#[derive(Debug)]
pub(crate) struct JsonFacts {
    array: bool,
    /// Each object is on a line of its own, so that the file may be cut between lines.
    pub(crate) lines: bool,
    shape: Shape,
}

/// Looks at the first objects of a file.
pub(crate) fn facts(
    file: &Arc<DataFile>,
    kind: &Kind,
    options: &ReadOptions,
    sample_rows: usize,
) -> Result<FileFacts, Error> {
    let sample_rows = options.sample_rows.unwrap_or(sample_rows);
    let mut text = TextReader::sample(file, kind.compression)?;
    let first = text.peek(file)?;
    let first = first.strip_prefix(MARK).unwrap_or(first);
    let Some(begin) = first.iter().find(|byte| !byte.is_ascii_whitespace()) else {
        return Ok(FileFacts::empty());
    };
    let array = *begin == b'[';
    let lines = !array && is_of_lines(first);
    let (fault, mut bytes) = (text.fault(), without_mark(text)?);
    let (mut shape, mut rows) = (Shape::default(), 0);
    let mut values = serde_json::Deserializer::from_reader(&mut bytes);
    let outcome = if array {
        Elements { shape: &mut shape, rows: &mut rows, most: sample_rows }.deserialize(&mut values)
    } else {
        take_rows(&mut values, &mut shape, (&mut rows, sample_rows))
    };
    match outcome {
        // The end of the sample, of a list that is not looked at to its end, or of a file whose scan says where it breaks.
        Err(error) if fault.get().is_none() && (error.is_eof() || rows >= sample_rows) => {}
        Err(error) => {
            let path = file.path().to_path_buf();
            let value = Error::Value { path, line: error.line() as u64, detail: without_place(&error) };
            return Err(fault.get().cloned().unwrap_or(value));
        }
        Ok(()) => {}
    }
    let columns = match &shape {
        Shape::Nothing => return Ok(FileFacts::empty()),
        Shape::Object(members) => typed(members.fields(), options),
        _ => return Err(Error::corrupt(file.path(), "its rows are no objects")),
    };
    // Without a whole row the file is not empty but broken, which its scan says.
    let small = kind.compression == Compression::None && (1..sample_rows).contains(&rows);
    let detail = Detail::Json(Arc::new(JsonFacts { array, lines, shape }));
    Ok(FileFacts { columns: Arc::new(Schema::new(columns)), rows: small.then_some(rows), detail })
}

/// The types that were asked for in the place of those that were found.
fn typed(fields: Fields, options: &ReadOptions) -> Fields {
    let typed = fields.iter().enumerate().map(|(place, field)| match options.type_of(field.name(), place) {
        Some(asked) => Arc::new(field.as_ref().clone().with_data_type(asked.clone())),
        None if options.all_text => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        None => Arc::clone(field),
    });
    typed.collect()
}

fn take_rows<R: Read>(
    values: &mut serde_json::Deserializer<serde_json::de::IoRead<R>>,
    shape: &mut Shape,
    (rows, most): (&mut usize, usize),
) -> Result<(), serde_json::Error> {
    while *rows < most {
        Into(shape, 0).deserialize(&mut *values)?;
        *rows += 1;
    }
    Ok(())
}

/// Whether each line of the beginning is an object, as far as its ends tell.
fn is_of_lines(first: &[u8]) -> bool {
    let mut lines = first.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).peekable();
    let mut seen = 0;
    while let Some(line) = lines.next() {
        // The last line of the beginning may be cut.
        let cut = lines.peek().is_none() && seen > 0;
        if line.is_empty() || cut {
            continue;
        }
        if !line.starts_with(b"{") || (!line.ends_with(b"}") && lines.peek().is_some()) {
            return false;
        }
        seen += 1;
    }
    true
}

fn without_mark(text: TextReader) -> Result<Box<dyn Read + Send>, Error> {
    let (fault, mut bytes) = (text.fault(), text.bytes);
    let mark = bytes.fill_buf().is_ok_and(|first| first.starts_with(MARK));
    match fault.get() {
        Some(fault) => Err(fault.clone()),
        None => {
            bytes.consume(if mark { MARK.len() } else { 0 });
            Ok(Box::new(bytes))
        }
    }
}

fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// The objects of one file, or of the lines that begin in a range of it.
pub(crate) fn open(file: &Arc<DataFile>, facts: &FileFacts, request: &Request) -> Result<Batches, Error> {
    let Detail::Json(found) = &facts.detail else {
        return Ok(Batches::empty());
    };
    let array = found.array;
    let text = match &request.range {
        Some(range) => TextReader::open_range(file, range.clone())?,
        None => TextReader::open(file, request.compression)?,
    };
    let bytes = without_mark_of(text, request)?;
    if texts::needed(&found.shape, request.schema.fields()) {
        return Ok(texts::open(file, found, (bytes.0, bytes.1), request));
    }
    let (reader, fault) = bytes;
    let decoder = decoder(&request.schema, request.batch_size)
        .map_err(|error| Error::corrupt(file.path(), message(&error)))?;
    let rows = Rows {
        file: Arc::clone(file),
        source: if array {
            Source::Array(array_reader(reader))
        } else {
            Source::Lines(BufReader::with_capacity(256 << 10, reader))
        },
        lines: found.lines,
        decoder,
        request: request.clone(),
        delivered: 0,
        fault,
        done: false,
    };
    Ok(Batches::new(rows))
}

fn decoder(schema: &SchemaRef, batch_size: usize) -> Result<Decoder, ArrowError> {
    ReaderBuilder::new(Arc::clone(schema))
        .with_batch_size(batch_size)
        .with_coerce_primitive(true)
        .build_decoder()
}

fn array_reader(reader: Box<dyn Read + Send>) -> ArrayReader {
    BufReader::new(JsonArrayToNdjsonReader::new(BufReader::new(reader)))
}

/// What gives the bytes, and what it says when reading fails. Only the first range of a file can have a mark.
type Opened = (Box<dyn Read + Send>, Arc<OnceLock<Error>>);

fn without_mark_of(text: TextReader, request: &Request) -> Result<Opened, Error> {
    let fault = text.fault();
    let first = request.range.as_ref().is_none_or(|range| range.start == 0);
    Ok((if first { without_mark(text)? } else { text.into_bytes() }, fault))
}

/// Bytes of a text as long as no single value of it takes more than a line may.
struct Bounded {
    bytes: Box<dyn Read + Send>,
    /// Bytes since the last value.
    open: Arc<AtomicUsize>,
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(into)?;
        if self.open.fetch_add(count, Ordering::Relaxed) > MAX_LINE_BYTES {
            return Err(io::Error::other(message(&too_long())));
        }
        Ok(count)
    }
}

enum Source {
    Lines(BufReader<Box<dyn Read + Send>>),
    Array(ArrayReader),
}

struct Rows {
    file: Arc<DataFile>,
    source: Source,
    lines: bool,
    decoder: Decoder,
    request: Request,
    delivered: u64,
    fault: Arc<OnceLock<Error>>,
    done: bool,
}

/// Few compressed bytes can be an object of any length.
fn too_long() -> ArrowError {
    ArrowError::JsonError(format!("an object has more than {} MiB", MAX_LINE_BYTES >> 20))
}

impl Rows {
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut open = 0;
        loop {
            let bytes = match &mut self.source {
                Source::Lines(text) => text.fill_buf()?,
                Source::Array(array) => array.fill_buf()?,
            };
            if bytes.is_empty() {
                break;
            }
            let before = self.decoder.len();
            let (given, taken) = (bytes.len(), self.decoder.decode(bytes)?);
            open = if self.decoder.len() > before { 0 } else { open + taken };
            if open > MAX_LINE_BYTES {
                return Err(too_long());
            }
            match &mut self.source {
                Source::Lines(text) => text.consume(taken),
                Source::Array(array) => array.consume(taken),
            }
            if taken < given {
                break;
            }
        }
        let batch = self.decoder.flush()?;
        if let (None, Source::Array(array)) = (&batch, &self.source) {
            array.get_ref().validate_complete()?;
        }
        Ok(batch)
    }

    fn explain(&self, error: &ArrowError) -> Error {
        if let Some(fault) = self.fault.get() {
            return fault.clone();
        }
        let located = self.lines.then(|| self.locate()).flatten();
        match located {
            Some((line, detail)) => Error::Value { path: self.file.path().to_path_buf(), line, detail },
            None => Error::corrupt(self.file.path(), message(error)),
        }
    }

    /// Reads the lines of the failed batch again, one by one, to find the one that fails.
    fn locate(&self) -> Option<(u64, String)> {
        let start = self.request.range.as_ref().map_or(0, |range| range.start);
        let text = match &self.request.range {
            Some(range) => TextReader::open_range(&self.file, range.clone()).ok()?,
            None => TextReader::open(&self.file, self.request.compression).ok()?,
        };
        let mut number = text::lines_before(&self.file, text::first_line_at(&self.file, start).ok()?);
        let mut rows = 0;
        let mut bytes = text.bytes;
        loop {
            let mut line = Vec::new();
            if bytes.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            number += 1;
            if line.len() > MAX_LINE_BYTES {
                return Some((number, message(&too_long())));
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            rows += 1;
            if rows > self.delivered {
                line.push(b'\n');
                let mut decoder = decoder(&self.request.schema, 1).ok()?;
                let failed = decoder.decode(&line).err().or_else(|| decoder.flush().err());
                if let Some(error) = failed {
                    return Some((number, message(&error)));
                }
            }
        }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        match self.batch() {
            Ok(Some(batch)) => {
                self.delivered += batch.num_rows() as u64;
                Some(Ok(batch))
            }
            Ok(None) => {
                self.done = true;
                None
            }
            Err(error) => {
                self.done = true;
                Some(Err(self.explain(&error)))
            }
        }
    }
}

fn message(error: &ArrowError) -> String {
    let text = error.to_string();
    text.strip_prefix("Json error: ").map_or_else(|| text.clone(), str::to_owned)
}
