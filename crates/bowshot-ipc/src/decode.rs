//! Messages to record batches. The bytes come from a client or a foreign file, so nothing about them is believed:
//! metadata is checked in `check.rs`, contents by Arrow's full validation, and what still panics inside Arrow is
//! caught and becomes an error.

use crate::check::check_batch;
use crate::error::{Error, Result};
use crate::schema::read_schema_header;
use arrow::array::ArrayRef;
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{MessageHeader, MetadataVersion};
use bytes::Bytes;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What one message held.
#[derive(Debug, Clone)]
pub enum Decoded {
    /// The schema that opens the stream.
    Schema(SchemaRef),
    /// Values of a dictionary, kept for the batches that follow.
    Dictionary,
    /// Rows.
    Batch(RecordBatch),
    /// Nothing: a message without header, which carries metadata of the application only.
    Empty,
}

/// Reads the messages of one stream.
#[derive(Debug, Default)]
pub struct Decoder {
    schema: Option<SchemaRef>,
    dictionaries: HashMap<i64, ArrayRef>,
}

impl Decoder {
    /// A decoder that expects the schema first.
    pub fn new() -> Self {
        Self::default()
    }

    /// The schema, once it came.
    pub fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    /// Reads one message: `data_header` and `data_body` of `FlightData`.
    ///
    /// Batches share the memory of `body` if it starts at a multiple of 8 bytes and is not compressed; other bodies are
    /// copied once.
    pub fn decode(&mut self, header: &[u8], body: Bytes) -> Result<Decoded> {
        if header.is_empty() {
            return Ok(Decoded::Empty);
        }
        let message =
            arrow_ipc::root_as_message(header).map_err(|error| Error::malformed(error.to_string()))?;
        let version = message.version();
        if !matches!(version, MetadataVersion::V4 | MetadataVersion::V5) {
            return Err(Error::Unsupported(format!("metadata version {version:?}")));
        }
        match message.header_type() {
            MessageHeader::Schema => self.read_schema(header),
            MessageHeader::DictionaryBatch => self.read_dictionary(message, body),
            MessageHeader::RecordBatch => self.read_batch(message, body),
            _ => Err(Error::Unexpected("neither schema, dictionary nor record batch")),
        }
    }

    fn read_schema(&mut self, header: &[u8]) -> Result<Decoded> {
        if self.schema.is_some() {
            return Err(Error::Unexpected("a second schema"));
        }
        let schema = Arc::new(read_schema_header(header)?);
        self.schema = Some(SchemaRef::clone(&schema));
        Ok(Decoded::Schema(schema))
    }

    fn read_dictionary(&mut self, message: arrow_ipc::Message<'_>, body: Bytes) -> Result<Decoded> {
        let schema = self.schema.as_ref().ok_or(Error::Unexpected("a dictionary before the schema"))?;
        let batch = message
            .header_as_dictionary_batch()
            .ok_or_else(|| Error::malformed("a dictionary message without dictionary"))?;
        let values = batch.data().ok_or_else(|| Error::malformed("a dictionary without values"))?;
        let value_type = dictionary_values(schema, batch.id())
            .ok_or_else(|| Error::malformed(format!("a dictionary of unknown id: {}", batch.id())))?;
        let fields: Fields = vec![Field::new("", value_type, true)].into();
        check_batch(values, &fields, message.version(), &body)?;
        let body = aligned(body);
        let version = message.version();
        guarded(|| read_dictionary(&body, batch, schema, &mut self.dictionaries, &version))?;
        Ok(Decoded::Dictionary)
    }

    fn read_batch(&mut self, message: arrow_ipc::Message<'_>, body: Bytes) -> Result<Decoded> {
        let schema = self.schema.as_ref().ok_or(Error::Unexpected("a record batch before the schema"))?;
        let batch = message
            .header_as_record_batch()
            .ok_or_else(|| Error::malformed("a batch message without batch"))?;
        let version = message.version();
        check_batch(batch, schema.fields(), version, &body)?;
        let body = aligned(body);
        let read =
            || read_record_batch(&body, batch, SchemaRef::clone(schema), &self.dictionaries, None, &version);
        Ok(Decoded::Batch(guarded(read)?))
    }
}

/// The body as a buffer in which multiples of 8 are aligned, as the format promises and Arrow's reader of unions needs.
///
/// A body that came through gRPC is a part of a larger message and starts anywhere.
fn aligned(body: Bytes) -> Buffer {
    if body.as_ptr().addr().is_multiple_of(8) { Buffer::from(body) } else { Buffer::from(body.as_ref()) }
}

/// Runs a call into Arrow's reader and turns a panic into an error.
///
/// The checks before it leave no panic that is known; this is the second line, because a hostile client must never
/// take more than its own request down.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(Error::Decode),
        Err(_) => Err(Error::malformed("the Arrow library could not read the message")),
    }
}

/// Type of the values of the dictionary with this id.
fn dictionary_values(schema: &Schema, id: i64) -> Option<DataType> {
    #[expect(deprecated, reason = "Arrow deprecates ids in fields but its IPC reader still keeps them there")]
    let fields = schema.fields_with_dict_id(id);
    match fields.first()?.data_type() {
        DataType::Dictionary(_, values) => Some(values.as_ref().clone()),
        _ => None,
    }
}
