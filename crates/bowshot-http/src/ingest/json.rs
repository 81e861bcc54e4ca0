//! JSON: one object per line, or an array of objects. The first rows determine the columns.

use super::columns::resolve;
use super::json_array::JsonArrayReader;
use super::sample::Sample;
use super::type_inference;
use super::{BATCH_BYTES, BATCH_ROWS};
use crate::json_integers::{carriers, fit_rows};
use crate::request_body::Upload;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::json::reader::{Decoder, infer_json_schema_from_iterator};
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, ErrorKind, Result};
use bytes::{Buf, Bytes};
use futures::StreamExt;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// The rows of a JSON body. Waits for the sample.
///
/// # Errors
/// When there are none. The batches have an error where the text breaks, and end with it.
pub(super) async fn rows(
    mut upload: Upload,
    table: Option<&Schema>,
    max_bytes: usize,
) -> Result<BatchStream> {
    let mut array = JsonArrayReader::default();
    let sample = Sample::take(&mut upload, |piece| array.map(&piece)).await?;
    let seen = schema_of(&sample)?;
    let schema = resolve(&seen, table, can_parse)?;
    let reals = schema.fields().iter().map(|field| {
        let inferred = table.is_none_or(|table| table.field_with_name(field.name()).is_err());
        inferred && field.data_type().is_floating()
    });
    let reals: Vec<bool> = reals.collect();
    let decoder = ReaderBuilder::new(with_strings(&carriers(&schema), &reals))
        .with_batch_size(BATCH_ROWS)
        .with_strict_mode(true)
        .with_coerce_primitive(true)
        .build_decoder()
        .map_err(malformed)?;
    let (buffer, is_whole) = (Bytes::from(sample.bytes), sample.is_whole);
    let wanted = Arc::clone(&schema);
    let (rows, batch_bytes) = (0, 0);
    let objects = Objects {
        upload,
        array,
        buffer,
        decoder,
        schema: wanted,
        reals,
        rows,
        batch_bytes,
        max_bytes,
        is_whole,
    };
    let batches = futures::stream::try_unfold(objects, |mut objects| async move {
        Ok(objects.batch().await?.map(|batch| (batch, objects)))
    });
    Ok(BatchStream::new(schema, batches.boxed()).exclusive())
}

/// The columns, as strings where a floating-point type was inferred: large integers among them would lose digits.
fn with_strings(columns: &Schema, reals: &[bool]) -> SchemaRef {
    let fields = columns.fields().iter().zip(reals).map(|(field, is_real)| match is_real {
        true => field.as_ref().clone().with_data_type(DataType::Utf8),
        false => field.as_ref().clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Whether an integer is not exact as a floating-point number.
fn is_inexact(value: &Value) -> bool {
    let Value::Number(number) = value else { return false };
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    whole.is_some_and(|whole| number.as_f64().is_none_or(|real| real as i128 != whole))
}

/// The schema of the sample, with columns in order of appearance. The last row may be truncated.
fn schema_of(sample: &Sample) -> Result<Schema> {
    let (mut names, mut seen_names, mut rows) = (Vec::new(), HashSet::new(), Vec::new());
    let mut inexact = HashSet::new();
    for row in serde_json::Deserializer::from_slice(&sample.bytes).into_iter::<Row>() {
        match row {
            Ok(Row(row)) => {
                let new = row.iter().filter(|(name, _)| seen_names.insert(name.clone()));
                names.extend(new.map(|(name, _)| name.clone()));
                let large = row.iter().filter(|(_, value)| is_inexact(value));
                inexact.extend(large.map(|(name, _)| name.clone()));
                rows.push(Ok(Value::Object(row.into_iter().collect())));
            }
            Err(error) if error.is_eof() && !sample.is_whole => break,
            Err(error) => return Err(Error::invalid(format!("the JSON cannot be read: {error}"))),
        }
    }
    if rows.is_empty() && !sample.is_whole {
        let message = format!("the first {} bytes contain no complete row", sample.bytes.len());
        return Err(Error::new(ErrorKind::LimitReached, message).with_hint("send shorter rows"));
    }
    if rows.is_empty() {
        return Err(Error::invalid("cannot infer columns: the body has no rows")
            .with_hint("send objects on lines, an array of objects, or an Arrow stream"));
    }
    let seen = infer_json_schema_from_iterator(rows.into_iter()).map_err(malformed)?;
    let fields = names.iter().filter_map(|name| seen.field_with_name(name).ok().cloned());
    let fields = fields.map(|field| match field.data_type() {
        DataType::Float64 if inexact.contains(field.name()) => field.with_data_type(DataType::Utf8),
        _ => field,
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// A JSON object with its members in order.
struct Row(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object for each row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Row(members))
    }
}

fn can_parse(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) => can_parse(item.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| can_parse(field.data_type())),
        DataType::Boolean
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Binary
        | DataType::LargeBinary => true,
        other => other.is_integer() || other.is_floating(),
    }
}

fn malformed(error: ArrowError) -> Error {
    Error::invalid(format!("the JSON cannot be read: {error}"))
        .with_hint("the first rows name all columns; the types are those of the table, or what the first rows look like")
        .with_source(error)
}

struct Objects {
    upload: Upload,
    array: JsonArrayReader,
    buffer: Bytes,
    decoder: Decoder,
    schema: SchemaRef,
    /// Columns with an inferred floating-point type.
    reals: Vec<bool>,
    rows: usize,
    batch_bytes: usize,
    max_bytes: usize,
    is_whole: bool,
}

impl Objects {
    fn flush(&mut self) -> Result<Option<RecordBatch>> {
        self.batch_bytes = 0;
        let Some(rows) = self.decoder.flush().map_err(malformed)? else { return Ok(None) };
        let columns = rows.columns().iter().zip(self.schema.fields()).zip(&self.reals);
        for ((column, field), _) in columns.filter(|(_, is_real)| **is_real) {
            type_inference::check(column, field, self.rows)?;
        }
        self.rows += rows.num_rows();
        fit_rows(&rows, &self.schema).map(Some).map_err(malformed)
    }

    async fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.buffer.is_empty() {
                match if self.is_whole { None } else { self.upload.next().await? } {
                    Some(piece) => self.buffer = self.array.map(&piece)?,
                    None => {
                        self.is_whole = true;
                        self.array.end()?;
                        return self.flush();
                    }
                }
            }
            let read = self.decoder.decode(&self.buffer).map_err(malformed)?;
            let is_full = read < self.buffer.len();
            self.buffer.advance(read);
            self.batch_bytes += read;
            if self.batch_bytes > self.max_bytes {
                let message = format!("a few rows have more than {} bytes", self.max_bytes);
                return Err(Error::new(ErrorKind::LimitReached, message)
                    .with_hint("send shorter rows, or raise `limits.max_message_bytes`"));
            }
            let is_large = self.batch_bytes >= BATCH_BYTES && !self.decoder.has_partial_record();
            if (is_full || is_large) && !self.decoder.is_empty() {
                return self.flush();
            }
        }
    }
}
