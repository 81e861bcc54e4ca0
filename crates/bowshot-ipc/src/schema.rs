//! Schemas as bytes: the encapsulated IPC schema message that FlightInfo, SchemaResult and `dataset_schema` carry.

use crate::decode::{guarded, read_message};
use crate::error::{Error, Result};
use crate::frame::{CONTINUATION, put_encapsulated};
use crate::metadata_check::check_schema;
use arrow::datatypes::Schema;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use bytes::{Bytes, BytesMut};

/// The schema as an encapsulated IPC message: continuation mark, length, flatbuffer, padded to 8 bytes.
pub fn schema_bytes(schema: &Schema) -> Bytes {
    let mut bytes = BytesMut::new();
    put_encapsulated(&mut bytes, &schema_header(schema));
    bytes.freeze()
}

/// Reads what [`schema_bytes`] writes, and the older form without continuation mark.
pub fn read_schema_bytes(bytes: &[u8]) -> Result<Schema> {
    let bytes = bytes.strip_prefix(&CONTINUATION).unwrap_or(bytes);
    let (len, header) =
        bytes.split_first_chunk::<4>().ok_or_else(|| Error::malformed("a schema of less than 4 bytes"))?;
    let len = usize::try_from(i32::from_le_bytes(*len))
        .map_err(|_| Error::malformed("a schema message of negative length"))?;
    let header = header.get(..len).ok_or_else(|| {
        Error::malformed(format!("a schema message of {len} bytes in a buffer of {}", header.len()))
    })?;
    read_schema_header(header)
}

/// The flatbuffer `Message` of the schema, with dictionary ids in the order of the encoder's dictionary messages.
pub(crate) fn schema_header(schema: &Schema) -> Vec<u8> {
    let mut tracker = DictionaryTracker::new(false);
    let options = IpcWriteOptions::default();
    IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options)
        .ipc_message
}

/// Reads the flatbuffer `Message` of a schema.
pub(crate) fn read_schema_header(header: &[u8]) -> Result<Schema> {
    let message = read_message(header)?;
    let schema = message.header_as_schema().ok_or(Error::Unexpected("expected a schema"))?;
    check_schema(schema)?;
    guarded(|| Ok(arrow_ipc::convert::fb_to_schema(schema)))
}
