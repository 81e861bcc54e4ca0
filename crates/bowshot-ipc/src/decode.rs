//! Messages to record batches. The bytes come from a client or a foreign file, so nothing about them is believed:
//! metadata is checked in `metadata_check.rs`, contents by Arrow's full validation, and what still panics inside Arrow is
//! caught and becomes an error.

use crate::batch_metadata::Parts;
use crate::compress::decompress;
use crate::dictionary::Dictionaries;
use crate::error::{Error, Result};
use crate::metadata_check::check_batch;
use crate::schema::read_schema_header;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow_ipc::reader::read_record_batch;
use arrow_ipc::{MessageHeader, MetadataVersion};
use bytes::Bytes;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Bytes that one message may hold after decompression, and all dictionaries of a stream together, unless
/// [`Decoder::with_max_bytes`] says otherwise.
const MAX_BYTES: usize = 1 << 30;

#[derive(Debug, Clone)]
pub enum Decoded {
    Schema(SchemaRef),
    /// Values of a dictionary, kept for the batches that follow.
    Dictionary,
    Batch(RecordBatch),
    /// Nothing: a message without header, which carries metadata of the application only.
    Empty,
}

/// Reads the messages of one stream.
#[derive(Debug)]
pub struct Decoder {
    schema: Option<SchemaRef>,
    dictionaries: Dictionaries,
    max_bytes: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder that expects the schema first.
    pub fn new() -> Self {
        Self { schema: None, dictionaries: Dictionaries::default(), max_bytes: MAX_BYTES }
    }

    /// Limits the bytes that one message may hold after decompression, and those of all dictionaries together.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// A decoder whose schema is known from elsewhere, as in a file with a footer.
    pub(crate) fn with_schema(schema: SchemaRef) -> Self {
        Self { schema: Some(schema), ..Self::new() }
    }

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
        let message = read_message(header)?;
        match message.header_type() {
            MessageHeader::Schema => self.read_schema(header),
            MessageHeader::DictionaryBatch => self.read_dictionary(message, body),
            MessageHeader::RecordBatch => Ok(Decoded::Batch(self.read_batch(message, body, None)?)),
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
        let dictionary = message
            .header_as_dictionary_batch()
            .ok_or_else(|| Error::malformed("a dictionary message without dictionary"))?;
        let batch = dictionary.data().ok_or_else(|| Error::malformed("a dictionary without values"))?;
        let schema = Dictionaries::schema_of(dictionary.id(), schema)?;
        let reader = Reader { schema, dictionaries: &self.dictionaries, max_bytes: self.max_bytes };
        let values = reader.read(message.version(), batch, body, None)?;
        self.dictionaries.add(dictionary, values, self.max_bytes)?;
        Ok(Decoded::Dictionary)
    }

    /// Reads the rows of a message, all columns or those named by their positions.
    pub(crate) fn read_batch(
        &self,
        message: arrow_ipc::Message<'_>,
        body: Bytes,
        columns: Option<&[usize]>,
    ) -> Result<RecordBatch> {
        let schema = self.schema.clone().ok_or(Error::Unexpected("a record batch before the schema"))?;
        let batch = message
            .header_as_record_batch()
            .ok_or_else(|| Error::malformed("a batch message without batch"))?;
        let reader = Reader { schema, dictionaries: &self.dictionaries, max_bytes: self.max_bytes };
        reader.read(message.version(), batch, body, columns)
    }
}

/// The flatbuffer `Message` in a verified header of a version that this crate reads.
pub(crate) fn read_message(header: &[u8]) -> Result<arrow_ipc::Message<'_>> {
    let message = arrow_ipc::root_as_message(header).map_err(|error| Error::malformed(error.to_string()))?;
    match message.version() {
        MetadataVersion::V4 | MetadataVersion::V5 => Ok(message),
        version => Err(Error::Unsupported(format!("metadata version {version:?}"))),
    }
}

struct Reader<'a> {
    schema: SchemaRef,
    dictionaries: &'a Dictionaries,
    max_bytes: usize,
}

impl Reader<'_> {
    fn read(
        mut self,
        version: MetadataVersion,
        batch: arrow_ipc::RecordBatch<'_>,
        body: Bytes,
        columns: Option<&[usize]>,
    ) -> Result<RecordBatch> {
        let mut parts = Parts::of(batch);
        if columns.is_none() && parts.codec.is_none() {
            return self.read_plain(version, &parts, batch, &aligned(body));
        }
        // What is not asked for is left out before anything is decompressed or checked.
        if let Some(columns) = columns {
            parts = parts.choose(self.schema.fields(), version, columns)?;
            self.schema = Arc::new(self.schema.project(columns).map_err(Error::Decode)?);
        }
        let body = match parts.codec {
            Some(codec) => decompress(&mut parts, codec, &body, self.max_bytes)?,
            None => aligned(body),
        };
        let flatbuffer = parts.flatbuffer();
        let batch = flatbuffers::root::<arrow_ipc::RecordBatch<'_>>(&flatbuffer)
            .map_err(|error| Error::malformed(error.to_string()))?;
        self.read_plain(version, &parts, batch, &body)
    }

    fn read_plain(
        self,
        version: MetadataVersion,
        parts: &Parts,
        batch: arrow_ipc::RecordBatch<'_>,
        body: &Buffer,
    ) -> Result<RecordBatch> {
        check_batch(parts, self.schema.fields(), version, body.len())?;
        guarded(|| read_record_batch(body, batch, self.schema, self.dictionaries.by_id(), None, &version))
    }
}

/// The body as a buffer in which multiples of 8 are aligned, as the format promises and Arrow's reader of unions needs.
///
/// A body that came through gRPC is a part of a larger message and starts anywhere.
fn aligned(body: Bytes) -> Buffer {
    if body.as_ptr().addr().is_multiple_of(8) { Buffer::from(body) } else { Buffer::from(body.as_ref()) }
}

/// Runs a call into Arrow's reader and turns a panic into an error: a hostile client takes down its own request only.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(Error::Decode),
        Err(_) => Err(Error::Panicked),
    }
}
