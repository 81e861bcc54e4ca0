//! JSON: one object a line, or one array of objects; fields go by name.

use crate::Error;
use crate::batches::{Batches, Request};
use crate::facts::{Detail, FileFacts};
use crate::file::DataFile;
use crate::format::{Compression, Kind};
use crate::schema;
use crate::text::{self, TextReader};
use arrow::array::{AsArray, RecordBatch, StringArray};
use arrow::compute::kernels::cast_utils::Parser;
use arrow::datatypes::{DataType, Date32Type, Schema, SchemaRef, TimeUnit, TimestampNanosecondType};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::json::reader::{Decoder, infer_json_schema};
use datafusion_datasource_json::utils::JsonArrayToNdjsonReader;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, OnceLock};

type ArrayReader = BufReader<JsonArrayToNdjsonReader<BufReader<Box<dyn Read + Send>>>>;

/// Looks at the first objects of a file.
pub(crate) fn facts(file: &Arc<DataFile>, kind: &Kind, sample_rows: usize) -> Result<FileFacts, Error> {
    let mut text = TextReader::sample(file, kind.compression)?;
    let first = text.peek(file)?;
    let Some(first) = first.iter().find(|byte| !byte.is_ascii_whitespace()) else {
        return Ok(FileFacts::empty());
    };
    let array = *first == b'[';
    let fault = text.fault();
    let inferred = if array {
        infer_json_schema(array_reader(text), Some(sample_rows))
    } else {
        infer_json_schema(text.bytes, Some(sample_rows))
    };
    let (schema, rows) = inferred.map_err(|error| {
        fault.get().cloned().unwrap_or_else(|| Error::corrupt(file.path(), message(&error)))
    })?;
    let schema = with_times(schema, file, kind, array, sample_rows);
    let small = kind.compression == Compression::None && rows < sample_rows;
    Ok(FileFacts { columns: Arc::new(schema), rows: small.then_some(rows), detail: Detail::Json { array } })
}

/// The objects of one file, or of the lines that begin in a range of it.
pub(crate) fn open(file: &Arc<DataFile>, facts: &FileFacts, request: &Request) -> Result<Batches, Error> {
    let Detail::Json { array } = facts.detail else {
        return Ok(Batches::empty());
    };
    let text = match &request.range {
        Some(range) => TextReader::open_range(file, range.clone())?,
        None => TextReader::open(file, request.compression)?,
    };
    let decoder = decoder(&request.schema, request.batch_size)
        .map_err(|error| Error::corrupt(file.path(), message(&error)))?;
    let fault = text.fault();
    let rows = Rows {
        file: Arc::clone(file),
        source: if array { Source::Array(array_reader(text)) } else { Source::Lines(text) },
        decoder,
        request: request.clone(),
        delivered: 0,
        fault,
        done: false,
    };
    Ok(Batches::new(rows))
}

/// Gives columns whose sampled strings are all dates, or all times, those types; as it is in CSV.
fn with_times(schema: Schema, file: &Arc<DataFile>, kind: &Kind, array: bool, sample_rows: usize) -> Schema {
    if schema.fields().iter().all(|field| field.data_type() != &DataType::Utf8) {
        return schema;
    }
    let schema = Arc::new(schema);
    let sampled = || -> Option<RecordBatch> {
        let text = TextReader::sample(file, kind.compression).ok()?;
        let builder =
            ReaderBuilder::new(Arc::clone(&schema)).with_batch_size(sample_rows).with_coerce_primitive(true);
        if array {
            builder.build(array_reader(text)).ok()?.next()?.ok()
        } else {
            builder.build(text.bytes).ok()?.next()?.ok()
        }
    };
    // What cannot be read stays text here, and is reported by the scan that needs it.
    let Some(sample) = sampled() else {
        return schema.as_ref().clone();
    };
    let fields = schema.fields().iter().zip(sample.columns()).map(|(field, column)| {
        let time = column.as_string_opt::<i32>().and_then(time_type);
        time.map_or_else(|| Arc::clone(field), |time| Arc::new(field.as_ref().clone().with_data_type(time)))
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// The type of strings that are all dates, or all times of the same kind: with a zone or without.
fn time_type(values: &StringArray) -> Option<DataType> {
    let mut values = values.iter().flatten().peekable();
    let date = |value: &str| value.len() == 10 && Date32Type::parse(value).is_some();
    if date(values.peek()?) {
        return values.all(date).then_some(DataType::Date32);
    }
    let zoned = has_zone(values.peek()?);
    let mut unit = TimeUnit::Second;
    for value in values {
        let time = value.len() >= 19 && matches!(value.as_bytes().get(10), Some(b'T' | b' '));
        if !time || has_zone(value) != zoned || TimestampNanosecondType::parse(value).is_none() {
            return None;
        }
        unit = schema::finer(unit, unit_of(value));
    }
    Some(DataType::Timestamp(unit, zoned.then(|| "UTC".into())))
}

fn has_zone(time: &str) -> bool {
    time.get(19..).is_some_and(|rest| rest.contains(['Z', 'z', '+', '-']))
}

/// The unit that keeps the digits behind the second.
fn unit_of(time: &str) -> TimeUnit {
    let fraction = time.get(19..).and_then(|rest| rest.strip_prefix('.')).unwrap_or("");
    match fraction.bytes().take_while(u8::is_ascii_digit).count() {
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

fn decoder(schema: &SchemaRef, batch_size: usize) -> Result<Decoder, ArrowError> {
    ReaderBuilder::new(Arc::clone(schema))
        .with_batch_size(batch_size)
        .with_coerce_primitive(true)
        .build_decoder()
}

fn array_reader(text: TextReader) -> ArrayReader {
    BufReader::new(JsonArrayToNdjsonReader::new(text.bytes))
}

enum Source {
    Lines(TextReader),
    Array(ArrayReader),
}

struct Rows {
    file: Arc<DataFile>,
    source: Source,
    decoder: Decoder,
    request: Request,
    delivered: u64,
    fault: Arc<OnceLock<Error>>,
    done: bool,
}

impl Rows {
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        loop {
            let bytes = match &mut self.source {
                Source::Lines(text) => text.bytes.fill_buf()?,
                Source::Array(array) => array.fill_buf()?,
            };
            if bytes.is_empty() {
                break;
            }
            let (given, taken) = (bytes.len(), self.decoder.decode(bytes)?);
            match &mut self.source {
                Source::Lines(text) => text.bytes.consume(taken),
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
        let located = matches!(self.source, Source::Lines(_)).then(|| self.locate()).flatten();
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
        for line in text.bytes.split(b'\n') {
            let mut line = line.ok()?;
            number += 1;
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
        None
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
