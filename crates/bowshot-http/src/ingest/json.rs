//! JSON: objects on lines, or an array of them. The first rows name all columns.

use super::columns::settle;
use super::guess;
use super::sample::Sample;
use super::unwrapped::Unwrapped;
use super::{BATCH_BYTES, BATCH_ROWS};
use crate::upload::Upload;
use crate::whole::{carriers, fit_rows};
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

/// The rows of a text. Waits for the first ones.
///
/// # Errors
/// When there are none. The batches have an error where the text breaks, and end with it.
pub(super) async fn rows(mut upload: Upload, known: Option<&Schema>, longest: usize) -> Result<BatchStream> {
    let mut unwrapped = Unwrapped::default();
    let sample = Sample::take(&mut upload, |piece| unwrapped.map(&piece)).await?;
    let seen = schema_of(&sample)?;
    let schema = settle(&seen, known, is_read)?;
    let reals = schema.fields().iter().map(|field| {
        let guessed = known.is_none_or(|known| known.field_with_name(field.name()).is_err());
        guessed && field.data_type().is_floating()
    });
    let reals: Vec<bool> = reals.collect();
    let decoder = ReaderBuilder::new(with_texts(&carriers(&schema), &reals))
        .with_batch_size(BATCH_ROWS)
        .with_strict_mode(true)
        .with_coerce_primitive(true)
        .build_decoder()
        .map_err(malformed)?;
    let (come, is_whole) = (Bytes::from(sample.bytes), sample.is_whole);
    let wanted = Arc::clone(&schema);
    let (rows, taken) = (0, 0);
    let objects =
        Objects { upload, unwrapped, come, decoder, schema: wanted, reals, rows, taken, longest, is_whole };
    let batches = futures::stream::try_unfold(objects, |mut objects| async move {
        Ok(objects.batch().await?.map(|batch| (batch, objects)))
    });
    Ok(BatchStream::new(schema, batches.boxed()).exclusive())
}

/// The columns with texts for floating-point numbers whose type was guessed: of whole numbers among them not all digits may fit.
fn with_texts(columns: &Schema, reals: &[bool]) -> SchemaRef {
    let fields = columns.fields().iter().zip(reals).map(|(field, is_real)| match is_real {
        true => field.as_ref().clone().with_data_type(DataType::Utf8),
        false => field.as_ref().clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Whether a whole number is none of floating point.
fn is_inexact(value: &Value) -> bool {
    let Value::Number(number) = value else { return false };
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    whole.is_some_and(|whole| number.as_f64().is_none_or(|real| real as i128 != whole))
}

/// What the first rows look like, with the columns in the order in which they come. The last one may be cut off.
fn schema_of(sample: &Sample) -> Result<Schema> {
    let (mut names, mut known, mut rows) = (Vec::new(), HashSet::new(), Vec::new());
    let mut inexact = HashSet::new();
    for row in serde_json::Deserializer::from_slice(&sample.bytes).into_iter::<Row>() {
        match row {
            Ok(Row(row)) => {
                let new = row.iter().filter(|(name, _)| known.insert(name.clone()));
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
        let message = format!("the first {} bytes are no whole row", sample.bytes.len());
        return Err(Error::new(ErrorKind::LimitReached, message).with_hint("send shorter rows"));
    }
    if rows.is_empty() {
        return Err(Error::invalid("the body has no rows, and so no columns")
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

/// An object with its members in the order in which they are written.
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

fn is_read(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) => is_read(item.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_read(field.data_type())),
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
    unwrapped: Unwrapped,
    come: Bytes,
    decoder: Decoder,
    schema: SchemaRef,
    /// Which columns are floating-point numbers by their first rows.
    reals: Vec<bool>,
    /// How many rows have come.
    rows: usize,
    /// Bytes of the batch that is being made.
    taken: usize,
    longest: usize,
    is_whole: bool,
}

impl Objects {
    fn flush(&mut self) -> Result<Option<RecordBatch>> {
        self.taken = 0;
        let Some(rows) = self.decoder.flush().map_err(malformed)? else { return Ok(None) };
        let columns = rows.columns().iter().zip(self.schema.fields()).zip(&self.reals);
        for ((column, field), _) in columns.filter(|(_, is_real)| **is_real) {
            guess::check(column, field, self.rows)?;
        }
        self.rows += rows.num_rows();
        fit_rows(&rows, &self.schema).map(Some).map_err(malformed)
    }

    async fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.come.is_empty() {
                match if self.is_whole { None } else { self.upload.next().await? } {
                    Some(piece) => self.come = self.unwrapped.map(&piece)?,
                    None => {
                        self.is_whole = true;
                        self.unwrapped.end()?;
                        return self.flush();
                    }
                }
            }
            let read = self.decoder.decode(&self.come).map_err(malformed)?;
            let is_full = read < self.come.len();
            self.come.advance(read);
            self.taken += read;
            if self.taken > self.longest {
                let message = format!("a few rows have more than {} bytes", self.longest);
                return Err(Error::new(ErrorKind::LimitReached, message)
                    .with_hint("send shorter rows, or raise `limits.max_message_bytes`"));
            }
            let is_large = self.taken >= BATCH_BYTES && !self.decoder.has_partial_record();
            if (is_full || is_large) && !self.decoder.is_empty() {
                return self.flush();
            }
        }
    }
}
