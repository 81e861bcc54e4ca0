//! Separated values: header, delimiter and types of a file from its first rows, and its rows as batches.
//!
//! Columns go by name, so files of one table may order or lack columns differently; each file is read with its own
//! header and the table's types.

use crate::Error;
use crate::batches::{Batches, Request};
use crate::facts::{Detail, FileFacts};
use crate::file::DataFile;
use crate::format::{Compression, Kind};
use crate::text::{self, TextReader};
use arrow::csv::reader::Format;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, OnceLock};

/// Values of a batch.
const MAX_VALUES: usize = 4 << 20;
/// Rows of a batch, however many columns there are.
const LEAST_ROWS: usize = 16;

/// Looks at the first rows of a file.
pub(crate) fn facts(file: &Arc<DataFile>, kind: &Kind, sample_rows: usize) -> Result<FileFacts, Error> {
    let mut text = TextReader::sample(file, kind.compression)?;
    let first = text.peek(file)?;
    if first.is_empty() {
        return Ok(FileFacts::empty());
    }
    let delimiter = if kind.tabs { b'\t' } else { delimiter(first) };
    sampled(file, kind, text, delimiter, sample_rows)
}

/// The same where the separator is known, and of the columns only the names are asked for.
pub(crate) fn facts_with(file: &Arc<DataFile>, kind: &Kind, delimiter: u8) -> Result<FileFacts, Error> {
    sampled(file, kind, TextReader::sample(file, kind.compression)?, delimiter, 1)
}

fn sampled(
    file: &Arc<DataFile>,
    kind: &Kind,
    text: TextReader,
    delimiter: u8,
    sample_rows: usize,
) -> Result<FileFacts, Error> {
    let fault = text.fault();
    let mut counted = Counted { inner: text::Lines::new(text.bytes), bytes: 0 };
    let (schema, rows) = Format::default()
        .with_header(true)
        .with_delimiter(delimiter)
        .infer_schema(&mut counted, Some(sample_rows))
        .map_err(|error| fault.get().cloned().unwrap_or_else(|| explain(file, &error, 0, None)))?;
    Ok(FileFacts {
        columns: Arc::new(named(&schema)),
        rows: estimate(file, kind.compression, rows, counted.bytes),
        detail: Detail::Csv { delimiter, quoted_newlines: OnceLock::new() },
    })
}

/// The rows of one file, or of the lines that begin in a range of it.
pub(crate) fn open(file: &Arc<DataFile>, facts: &FileFacts, request: &Request) -> Result<Batches, Error> {
    let Detail::Csv { delimiter, .. } = &facts.detail else {
        return Ok(Batches::empty());
    };
    let schema = read_schema(&facts.columns, request);
    let taken = request.positions_in(&schema);
    let start = request.range.as_ref().map_or(0, |range| range.start);
    let text = match &request.range {
        Some(range) => TextReader::open_range(file, range.clone())?,
        None => TextReader::open(file, request.compression)?,
    };
    let reader = arrow::csv::ReaderBuilder::new(Arc::clone(&schema))
        .with_header(start == 0)
        .with_delimiter(*delimiter)
        .with_batch_size(batch_rows(request.batch_size, &schema))
        .with_projection(taken);
    rows(file, text, reader, (start, schema))
}

/// The rows of a text whose first line is one of them, and whose values are in the order of the wanted columns.
pub(crate) fn without_header(
    file: &Arc<DataFile>,
    text: TextReader,
    delimiter: u8,
    request: &Request,
) -> Result<Batches, Error> {
    let schema = Arc::clone(&request.schema);
    let reader = arrow::csv::ReaderBuilder::new(Arc::clone(&schema))
        .with_header(false)
        .with_delimiter(delimiter)
        .with_batch_size(batch_rows(request.batch_size, &schema));
    rows(file, text, reader, (0, schema))
}

fn rows(
    file: &Arc<DataFile>,
    text: TextReader,
    reader: arrow::csv::ReaderBuilder,
    (start, schema): (u64, SchemaRef),
) -> Result<Batches, Error> {
    let fault = text.fault();
    let reader = reader
        .build_buffered(BufReader::with_capacity(256 << 10, text::Lines::new(text.bytes)))
        .map_err(|error| explain(file, &error, 0, None))?;
    let file = Arc::clone(file);
    Ok(Batches::new(reader.map(move |batch| {
        batch.map_err(|error| match fault.get() {
            Some(fault) => fault.clone(),
            None => explain(&file, &error, start, Some(&schema)),
        })
    })))
}

/// Rows of a batch: the reader has room for that many values of each column at once, however few there are.
fn batch_rows(wanted: usize, schema: &Schema) -> usize {
    wanted.min((MAX_VALUES / schema.fields().len().max(1)).max(LEAST_ROWS))
}

/// Whether a quoted value spans lines, which forbids cutting the file into ranges. Reads the whole file once, at the
/// speed of a search for quotes.
pub(crate) fn quoted_newlines(file: &Arc<DataFile>, delimiter: u8) -> Result<bool, Error> {
    let reader = file.reader(0);
    let fault = reader.fault();
    let mut bytes = BufReader::with_capacity(1 << 20, reader);
    let mut scan = QuoteScan { delimiter, quoted: false, before: b'\n', closing: false };
    loop {
        let count = match bytes.fill_buf() {
            Ok([]) => return Ok(false),
            Ok(chunk) if scan.feed(chunk) => return Ok(true),
            Ok(chunk) => chunk.len(),
            Err(error) => {
                return Err(fault.get().cloned().unwrap_or_else(|| Error::io(file.path(), error)));
            }
        };
        bytes.consume(count);
    }
}

/// Quotes open a value only at its start; inside, a doubled quote is one character.
struct QuoteScan {
    delimiter: u8,
    quoted: bool,
    before: u8,
    /// A quote ended the last chunk inside a value: the next byte decides whether it closed the value.
    closing: bool,
}

impl QuoteScan {
    fn feed(&mut self, chunk: &[u8]) -> bool {
        let mut at = 0;
        if self.closing {
            self.closing = false;
            if chunk.first() == Some(&b'"') {
                at = 1;
            } else {
                self.quoted = false;
            }
        }
        while let Some(found) = chunk.get(at..).and_then(|rest| memchr::memchr(b'"', rest)) {
            let quote = at + found;
            if self.quoted {
                if memchr::memchr(b'\n', &chunk[at..quote]).is_some() {
                    return true;
                }
                match chunk.get(quote + 1) {
                    Some(b'"') => at = quote + 2,
                    Some(_) => {
                        self.quoted = false;
                        at = quote + 1;
                    }
                    None => {
                        self.closing = true;
                        at = quote + 1;
                    }
                }
            } else {
                let before = if quote == 0 { self.before } else { chunk[quote - 1] };
                self.quoted = before == self.delimiter || before == b'\n' || before == b'\r';
                at = quote + 1;
            }
        }
        self.before = chunk.last().copied().unwrap_or(self.before);
        self.quoted && !self.closing && memchr::memchr(b'\n', chunk.get(at..).unwrap_or(&[])).is_some()
    }
}

/// The separator that the first line holds most of, outside of quotes; a comma if none.
fn delimiter(first: &[u8]) -> u8 {
    let mut counts = [(b',', 0_usize), (b';', 0), (b'\t', 0), (b'|', 0)];
    let mut quoted = false;
    for byte in first.iter().take_while(|byte| **byte != b'\n') {
        quoted ^= *byte == b'"';
        for (candidate, count) in &mut counts {
            *count += usize::from(!quoted && byte == candidate);
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
    counts.iter().find(|(_, count)| *count == most && most > 0).map_or(b',', |(candidate, _)| *candidate)
}

/// Makes the header's names usable: no byte order mark, no blanks around, none empty, none twice.
fn named(schema: &Schema) -> Schema {
    let mut taken = HashSet::new();
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(index, field)| {
            let name = field.name().trim_start_matches('\u{feff}').trim().trim_matches('"');
            let base = if name.is_empty() { format!("column_{}", index + 1) } else { name.to_owned() };
            let mut name = base.clone();
            let mut copy = 2;
            while !taken.insert(name.clone()) {
                name = format!("{base}_{copy}");
                copy += 1;
            }
            Field::new(name, field.data_type().clone(), true)
        })
        .collect();
    Schema::new(fields)
}

/// The file's columns in its order, with the types that the table gives them.
fn read_schema(columns: &SchemaRef, request: &Request) -> SchemaRef {
    let fields: Vec<Field> = columns
        .fields()
        .iter()
        .map(|field| {
            let wanted = request.schema.field_with_name(field.name()).map(Field::data_type);
            let data_type = wanted.unwrap_or(&DataType::Utf8).clone();
            Field::new(field.name(), data_type, true)
        })
        .collect();
    Arc::new(Schema::new(fields))
}

fn estimate(file: &DataFile, compression: Compression, rows: usize, bytes: u64) -> Option<usize> {
    if compression != Compression::None || bytes == 0 {
        return None;
    }
    let share = file.size() as f64 / bytes.min(file.size()).max(1) as f64;
    Some((rows as f64 * share) as usize)
}

struct Counted<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(into)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Turns the reader's message into one that names the file, the line in the file and the column.
fn explain(file: &Arc<DataFile>, error: &ArrowError, start: u64, schema: Option<&SchemaRef>) -> Error {
    let (ArrowError::ParseError(text) | ArrowError::CsvError(text)) = error else {
        return Error::corrupt(file.path(), error);
    };
    let text = text.split(". Row data:").next().unwrap_or(text);
    let Some((before, line, after)) = split_number(text, "line ") else {
        return Error::corrupt(file.path(), text);
    };
    // Values are counted from zero behind the header, records from one with it.
    let line = line + u64::from(matches!(error, ArrowError::ParseError(_))) + lines_above(file, start);
    let before = before.trim_end().trim_end_matches("at").trim_end_matches("for").trim_end();
    let detail = match (split_number(before, "column "), schema) {
        (Some((head, column, tail)), Some(schema)) => {
            let name = usize::try_from(column).ok().and_then(|index| schema.fields().get(index));
            let name = name.map_or_else(|| column.to_string(), |field| field.name().clone());
            format!("{head}column `{name}`{tail}{after}")
        }
        _ => format!("{before}{after}"),
    };
    Error::Value { path: file.path().to_path_buf(), line, detail: lower_first(&detail) }
}

/// Lines of the file above the first line of a range.
fn lines_above(file: &Arc<DataFile>, start: u64) -> u64 {
    text::first_line_at(file, start).map_or(0, |first| text::lines_before(file, first))
}

/// Splits `… line 12 …` into what is before `line`, the number, and what comes after.
fn split_number<'a>(text: &'a str, word: &str) -> Option<(&'a str, u64, &'a str)> {
    let at = text.find(word)?;
    let rest = &text[at + word.len()..];
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((&text[..at], rest[..digits].parse().ok()?, &rest[digits..]))
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
