//! What stands in shared memory: one whole Arrow stream (schema, dictionaries, batches, end). Each is complete, so that a reader
//! needs nothing of those before, and gives each back when it likes.

use crate::decode::read_message;
use crate::encode::{ALIGNMENT, EncodeOptions, Encoder};
use crate::error::{Error, Result};
use crate::frame::{CONTINUATION, Message};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use bowshot_api::Compression;
use bytes::Bytes;

/// Rows of a stream lie in few large messages.
const MESSAGE_BYTES: usize = 16 << 20;
/// What an Arrow stream ends with.
const END: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];
/// What stands before the header of a message: the mark of a continuation, and a length.
const PREFIX: usize = 8;

/// The stream of these batches in pieces that share large arrays. All buffers begin at multiples of 64 bytes.
pub fn whole_stream(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<Bytes>> {
    let options = EncodeOptions {
        compression: Compression::None,
        message_bytes: MESSAGE_BYTES,
        large_message: None,
        keep_dictionaries: true,
    };
    let mut encoder = Encoder::new(SchemaRef::clone(schema), options)?;
    let mut pieces = encoder.schema_message()?.into_aligned_pieces(ALIGNMENT);
    for batch in batches {
        for message in encoder.encode(batch)? {
            pieces.extend(message.into_aligned_pieces(ALIGNMENT));
        }
    }
    pieces.push(Bytes::from_static(&END));
    Ok(pieces)
}

/// The messages of a stream in memory, as [`Decoder::decode`](crate::Decoder::decode) takes them. Bodies share the memory.
#[derive(Debug)]
pub struct Encapsulated {
    rest: Bytes,
    ended: bool,
}

impl Encapsulated {
    /// The messages of these bytes.
    pub fn new(bytes: Bytes) -> Self {
        Self { rest: bytes, ended: false }
    }

    fn read(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        if self.rest.is_empty() {
            return Err(Error::malformed("a stream without its end"));
        }
        let cut = || Error::malformed("a stream that ends within a message");
        let (prefix, after) = self.rest.split_first_chunk::<PREFIX>().ok_or_else(cut)?;
        let Some((mark, length)) = prefix.split_first_chunk::<4>() else { return Err(cut()) };
        if *mark != CONTINUATION {
            return Err(Error::malformed("a message without the mark of its beginning"));
        }
        let length = length.first_chunk::<4>().map_or(-1, |length| i32::from_le_bytes(*length));
        if length == 0 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| Error::malformed("a header of negative length"))?;
        // A copy, as of the headers of files: it is small, and is read several times.
        let header = Bytes::copy_from_slice(after.get(..length).ok_or_else(cut)?);
        let body = usize::try_from(read_message(&header)?.bodyLength())
            .map_err(|_| Error::malformed("a body of negative length"))?;
        let start = PREFIX + length;
        let end = start.checked_add(body).filter(|end| *end <= self.rest.len()).ok_or_else(cut)?;
        let body = self.rest.slice(start..end);
        self.rest = self.rest.slice(end..);
        Ok(Some((header, body)))
    }
}

impl Iterator for Encapsulated {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let message = self.read().transpose();
        self.ended = !matches!(message, Some(Ok(_)));
        message
    }
}

impl Message {
    /// The pieces of this message in an Arrow stream whose messages all begin and have their bodies at multiples of `alignment`.
    fn into_aligned_pieces(self, alignment: usize) -> Vec<Bytes> {
        let whole = (PREFIX + self.header.len()).next_multiple_of(alignment);
        let mut head = Vec::with_capacity(whole);
        head.extend_from_slice(&CONTINUATION);
        head.extend_from_slice(&((whole - PREFIX) as u32).to_le_bytes());
        head.extend_from_slice(&self.header);
        head.resize(whole, 0);
        // Bodies are padded already.
        let mut pieces = vec![Bytes::from(head)];
        pieces.extend(self.body);
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Decoded, Decoder};
    use arrow::array::{ArrayRef, DictionaryArray, Int64Array, StringArray, StringViewArray};
    use arrow::datatypes::Int32Type;
    use std::sync::Arc;

    fn batch(rows: i64) -> RecordBatch {
        let texts: Vec<String> = (0..rows).map(|row| format!("a text of some length {row}")).collect();
        let words: DictionaryArray<Int32Type> = (0..rows).map(|row| ["x", "y"][row as usize % 2]).collect();
        let columns: [(&str, ArrayRef); 4] = [
            ("n", Arc::new(Int64Array::from_iter_values(0..rows))),
            ("t", Arc::new(StringArray::from_iter_values(&texts))),
            ("v", Arc::new(StringViewArray::from_iter_values(&texts))),
            ("d", Arc::new(words)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn read(bytes: Bytes) -> Result<Vec<RecordBatch>> {
        let mut decoder = Decoder::new();
        let mut batches = Vec::new();
        for message in Encapsulated::new(bytes) {
            let (header, body) = message?;
            if let Decoded::Batch(batch) = decoder.decode(&header, body)? {
                batches.push(batch);
            }
        }
        Ok(batches)
    }

    #[test]
    fn a_stream_comes_back_and_is_arrows() {
        let batches = vec![batch(3000), batch(0), batch(1)];
        let bytes = Bytes::from(whole_stream(&batches[0].schema(), &batches).unwrap().concat());
        assert_eq!(read(bytes.clone()).unwrap(), batches);
        let arrows = arrow_ipc::reader::StreamReader::try_new(bytes.as_ref(), None).unwrap();
        assert_eq!(arrows.collect::<std::result::Result<Vec<_>, _>>().unwrap(), batches);
    }

    #[test]
    fn large_buffers_are_shared_and_aligned() {
        let batch = batch(3000);
        let pieces = whole_stream(&batch.schema(), std::slice::from_ref(&batch)).unwrap();
        let values = batch.column(0).to_data().buffers()[0].as_ptr();
        let mut at = 0;
        for piece in &pieces {
            if piece.as_ptr() == values {
                assert_eq!(at % ALIGNMENT, 0);
                return;
            }
            at += piece.len();
        }
        panic!("the numbers were copied");
    }

    #[test]
    fn cut_streams_are_refused() {
        let batch = batch(100);
        let bytes = Bytes::from(whole_stream(&batch.schema(), &[batch]).unwrap().concat());
        for length in (0..bytes.len()).step_by(7) {
            assert!(read(bytes.slice(..length)).is_err(), "{length} of {}", bytes.len());
        }
        assert!(read(Bytes::from_static(b"nonsense, and more of it")).is_err());
    }
}
