//! Record batches to IPC messages whose bodies share the memory of the arrays.
//!
//! A batch goes through three steps: `batch.rs` cuts it into slices of bounded size, `trim.rs` drops what a slice
//! drags along but does not show, and Arrow's `StreamEncoder` lists the buffers, which are passed on as they are.

use crate::batch::{Slices, limit_bytes};
use crate::combined_message::join;
use crate::compress::arrow_codec;
use crate::dictionary::first_dictionary;
use crate::error::{Error, Result};
use crate::frame::{Message, Pieces, share};
use crate::large_message::LargeMessage;
use crate::schema::schema_header;
use crate::slice_size::Measure;
use crate::trim::{drags, trim_batch};
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow_ipc::writer::{IpcWriteOptions, StreamEncoder};
use arrow_ipc::{MessageHeader, MetadataVersion};
use bowshot_api::Compression;
use bytes::Bytes;

/// Buffers start at multiples of this many bytes, as the format recommends.
pub(crate) const ALIGNMENT: usize = 64;

/// Largest body of one message: protobuf readers refuse messages of 2 GiB.
const MAX_BODY: usize = i32::MAX as usize - (16 << 20);

bowshot_api::defaults! {
    /// How batches become messages.
    #[derive(Debug, Clone)]
    pub struct EncodeOptions {
        pub compression: Compression = Compression::None,
        /// Target size of a message before compression; none but the large one exceeds one and a half times this, unless a
        /// single row does.
        pub message_bytes: usize = 2 << 20,
        /// One larger message early in a long stream, for a reader to whom that helps (`large_message.rs`).
        pub large_message: Option<LargeMessage> = None,
        /// Whether the reader takes dictionary-encoded columns; if not, a schema that has one is refused.
        pub keep_dictionaries: bool = false,
    }
}

/// Turns the batches of one stream into messages.
pub struct Encoder {
    schema: SchemaRef,
    options: EncodeOptions,
    arrow: StreamEncoder,
    /// Whether encoding takes so long that it must not run on a thread that serves sockets.
    pub(crate) slow: bool,
}

impl Encoder {
    pub fn new(schema: SchemaRef, options: EncodeOptions) -> Result<Self> {
        if !options.keep_dictionaries
            && let Some(column) = first_dictionary(&schema)
        {
            return Err(Error::DictionaryRefused { column });
        }
        let write = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)
            .and_then(|write| write.try_with_compression(arrow_codec(options.compression)))
            .map_err(Error::Encode)?;
        let arrow = StreamEncoder::try_new_with_options(&schema, write).map_err(Error::Encode)?;
        let trimmed = schema.fields().iter().any(|field| drags(field.data_type()));
        let slow = trimmed || options.compression != Compression::None;
        Ok(Self { schema, options, arrow, slow })
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn schema_message(&mut self) -> Result<Message> {
        Ok(Message { header: schema_header(&self.schema).into(), ..Message::default() })
    }

    /// The messages of one batch: dictionaries that the reader lacks, then the rows in messages of bounded size.
    pub fn encode(&mut self, batch: &RecordBatch) -> Result<Vec<Message>> {
        let slices = self.slices(batch.clone())?;
        self.encode_slices(slices)
    }

    fn encode_slices(&mut self, slices: Slices) -> Result<Vec<Message>> {
        let mut messages = Vec::with_capacity(1);
        for slice in slices {
            messages.append(&mut self.encode_slice(&slice)?);
        }
        Ok(messages)
    }

    /// The one larger message, if there is to be one. What is compressed has none: it is for slow networks.
    pub(crate) fn large_message(&self) -> Option<&LargeMessage> {
        let plain = self.options.compression == Compression::None;
        self.options.large_message.as_ref().filter(|large| plain && large.bytes > self.options.message_bytes)
    }

    /// Batches of one schema whose columns can be joined, as one larger message; a single batch may take several.
    pub(crate) fn encode_joined(&mut self, batches: &[RecordBatch]) -> Result<Vec<Message>> {
        for batch in batches {
            self.check(batch)?;
        }
        let [batch] = batches else { return Ok(vec![join(batches)?]) };
        let large = self.large_message().map_or(self.options.message_bytes, |large| large.bytes);
        self.encode_slices(Slices::new(batch.clone(), large))
    }

    /// The batch in slices of which each fits a message; a batch without rows gives one slice without rows.
    pub(crate) fn slices(&self, batch: RecordBatch) -> Result<Slices> {
        self.check(&batch)?;
        Ok(Slices::new(batch, self.options.message_bytes))
    }

    pub(crate) fn encode_slice(&mut self, slice: &RecordBatch) -> Result<Vec<Message>> {
        let dictionary_limit = limit_bytes(self.options.message_bytes);
        let slice = trim_batch(slice, Measure { dictionary_limit })?;
        let buffers = self.arrow.encode(&slice).map_err(Error::Encode)?;
        messages(buffers)
    }

    fn check(&self, batch: &RecordBatch) -> Result<()> {
        let (announced, found) = (self.schema.fields(), batch.schema_ref().fields());
        if announced.len() != found.len() {
            return Err(Error::SchemaMismatch {
                announced: format!("{} columns", announced.len()),
                found: format!("{} columns", found.len()),
            });
        }
        for (announced, column) in announced.iter().zip(batch.columns()) {
            if announced.data_type() != column.data_type() {
                return Err(Error::SchemaMismatch {
                    announced: format!("`{}` as {}", announced.name(), announced.data_type()),
                    found: format!("`{}` as {}", announced.name(), column.data_type()),
                });
            }
        }
        Ok(())
    }
}

bowshot_api::debug_fields!(Encoder { schema, options });

/// Cuts the encoder's buffers into messages, without that of the schema, which [`Encoder::schema_message`] has sent.
fn messages(buffers: Vec<Buffer>) -> Result<Vec<Message>> {
    let mut messages = Vec::with_capacity(1);
    let mut buffers = buffers.into_iter().filter(|buffer| !buffer.is_empty());
    while let Some(prefix) = buffers.next() {
        let header = buffers.next().ok_or_else(broken)?;
        let padded: usize =
            prefix.get(4..8).and_then(|len| len.try_into().ok()).map(u32::from_le_bytes).ok_or_else(broken)?
                as usize;
        if padded > header.len() {
            buffers.next();
        }
        let (kind, body_len) = describe(&header)?;
        let mut body = Pieces::default();
        let mut taken = 0;
        while taken < body_len {
            let buffer = buffers.next().ok_or_else(broken)?;
            taken += buffer.len();
            body.push_buffer(buffer);
        }
        if body_len > MAX_BODY {
            return Err(Error::RowTooLarge { bytes: body_len, limit: MAX_BODY });
        }
        if kind != MessageHeader::Schema {
            messages.push(Message { header: share(header), body: body.finish(), app_metadata: Bytes::new() });
        }
    }
    Ok(messages)
}

/// Kind and body length of the message.
fn describe(header: &[u8]) -> Result<(MessageHeader, usize)> {
    let message = arrow_ipc::root_as_message(header).map_err(|error| Error::malformed(error.to_string()))?;
    Ok((message.header_type(), usize::try_from(message.bodyLength()).map_err(|_| broken())?))
}

/// The list of buffers does not have the form that the Arrow library documents.
fn broken() -> Error {
    Error::Unexpected("the encoder's buffers are no sequence of messages")
}
