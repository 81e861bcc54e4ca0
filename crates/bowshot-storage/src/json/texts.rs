//! Objects some of whose values are kept as JSON text, because they are nested in one row and not in another. Each object
//! is taken apart for that, which costs several times what the usual road does.

use super::shape::Shape;
use super::{ArrayReader, Bounded, JsonFacts, Opened, array_reader, decoder, message, without_place};
use crate::Error;
use crate::batches::{Batches, Request};
use crate::file::DataFile;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Fields};
use arrow::error::ArrowError;
use serde_json::Value;
use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Whether the table has text where this file has something nested.
pub(super) fn needed(shape: &Shape, fields: &Fields) -> bool {
    let Shape::Object(members) = shape else { return false };
    fields
        .iter()
        .any(|field| members.get(field.name()).is_some_and(|shape| is_text_of(shape, field.data_type())))
}

fn is_text_of(shape: &Shape, data_type: &DataType) -> bool {
    match (shape, data_type) {
        (Shape::Mixed | Shape::List(_) | Shape::Object(_), DataType::Utf8) => true,
        (Shape::List(item), DataType::List(field)) => is_text_of(item, field.data_type()),
        (Shape::Object(_), DataType::Struct(fields)) => needed(shape, fields),
        (shape, _) => shape.has_mixed(),
    }
}

pub(super) fn open(
    file: &Arc<DataFile>,
    facts: &Arc<JsonFacts>,
    opened: Opened,
    request: &Request,
) -> Batches {
    let (reader, fault) = opened;
    let (reader, list): (Box<dyn Read + Send>, _) = match facts.array {
        true => {
            let list = List(Arc::new(Mutex::new(array_reader(reader))));
            (Box::new(list.clone()), Some(list))
        }
        false => (reader, None),
    };
    let open = Arc::new(AtomicUsize::new(0));
    let reader = Bounded { bytes: reader, open: Arc::clone(&open) };
    let values =
        serde_json::Deserializer::from_reader(BufReader::with_capacity(256 << 10, reader)).into_iter();
    let (file, facts, request) = (Arc::clone(file), Arc::clone(facts), request.clone());
    Batches::new(Texts { values, open, list, file, facts, request, fault, done: false })
}

type Values = serde_json::StreamDeserializer<'static, serde_json::de::IoRead<BufReader<Bounded>>, Value>;

/// The objects of a list, one after the other. It is asked at the end whether the list was closed.
#[derive(Clone)]
struct List(Arc<Mutex<ArrayReader>>);

impl Read for List {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read(into)
    }
}

impl List {
    fn check(&self) -> io::Result<()> {
        let reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reader.get_ref().validate_complete().map_err(io::Error::other)
    }
}

struct Texts {
    values: Values,
    /// Bytes that were read for the value that is not complete.
    open: Arc<AtomicUsize>,
    list: Option<List>,
    file: Arc<DataFile>,
    facts: Arc<JsonFacts>,
    request: Request,
    fault: Arc<OnceLock<Error>>,
    done: bool,
}

impl Texts {
    fn batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        let mut rows = Vec::new();
        while rows.len() < self.request.batch_size.min(8 << 10) {
            let Some(value) = self.values.next() else {
                self.done = true;
                let checked = self.list.as_ref().map_or(Ok(()), List::check);
                checked.map_err(|error| Error::corrupt(self.file.path(), error))?;
                break;
            };
            let mut value = value.map_err(|error| self.explain(&error))?;
            self.open.store(0, Ordering::Relaxed);
            prepare(&mut value, &self.facts.shape, self.request.schema.fields());
            rows.push(value);
        }
        if rows.is_empty() {
            return Ok(None);
        }
        self.decoded(&rows).map_err(|error| Error::corrupt(self.file.path(), message(&error)))
    }

    fn decoded(&self, rows: &[Value]) -> Result<Option<RecordBatch>, ArrowError> {
        let mut decoder = decoder(&self.request.schema, rows.len())?;
        decoder.serialize(rows)?;
        decoder.flush()
    }

    fn explain(&self, error: &serde_json::Error) -> Error {
        let path = self.file.path().to_path_buf();
        let value = Error::Value { path, line: error.line() as u64, detail: without_place(error) };
        self.fault.get().cloned().unwrap_or(value)
    }
}

/// Makes texts of what the table has as text.
fn prepare(value: &mut Value, shape: &Shape, fields: &Fields) {
    let (Value::Object(object), Shape::Object(members)) = (value, shape) else { return };
    for field in fields {
        if let (Some(value), Some(shape)) = (object.get_mut(field.name()), members.get(field.name())) {
            prepare_one(value, shape, field.data_type());
        }
    }
}

fn prepare_one(value: &mut Value, shape: &Shape, data_type: &DataType) {
    match (data_type, shape) {
        (DataType::Utf8, Shape::Mixed | Shape::List(_) | Shape::Object(_)) if !value.is_null() => {
            *value = Value::String(value.to_string());
        }
        (DataType::List(field), Shape::List(item)) => {
            if let Value::Array(values) = value {
                values.iter_mut().for_each(|value| prepare_one(value, item, field.data_type()));
            }
        }
        (DataType::Struct(fields), Shape::Object(_)) => prepare(value, shape, fields),
        _ => {}
    }
}

impl Iterator for Texts {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.batch();
        self.done |= batch.is_err();
        batch.transpose()
    }
}
