//! Compression of message bodies: which codec, and the way back.
//!
//! Bodies are decompressed here and not by Arrow's reader, because that one believes the sizes which the sender claims:
//! a few kilobytes could make it allocate any amount of memory.

use crate::batch_metadata::Parts;
use crate::error::{Error, Result};
use arrow::buffer::{Buffer, MutableBuffer};
use arrow_ipc::CompressionType;
use bowshot_api::Compression;
use std::io::Read;

/// The codec of bodies, as Arrow has it.
pub(crate) fn arrow_codec(compression: Compression) -> Option<CompressionType> {
    match compression {
        Compression::None => None,
        Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
        Compression::Zstd => Some(CompressionType::ZSTD),
    }
}

/// Every decompressed buffer starts at a multiple of this.
const ALIGNMENT: usize = 64;

/// Length of a buffer that is not compressed although its body is.
const NOT_COMPRESSED: i64 = -1;

/// Decompresses the buffers of a body into at most `limit` bytes, and says in `parts` where they lie now.
pub(crate) fn decompress(
    parts: &mut Parts,
    codec: CompressionType,
    body: &[u8],
    limit: usize,
) -> Result<Buffer> {
    let codec = match codec {
        CompressionType::LZ4_FRAME => Compression::Lz4,
        CompressionType::ZSTD => Compression::Zstd,
        other => return Err(Error::Unsupported(format!("compression {other:?}"))),
    };
    let packed = parts.buffers.iter().map(|buffer| Packed::new(buffer, body)).collect::<Result<Vec<_>>>()?;
    let mut total = 0_usize;
    for buffer in &packed {
        total = total.saturating_add(buffer.len.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX));
        if total > limit {
            let (found, limit) = (total as u64, limit as u64);
            return Err(Error::TooLarge { what: "bytes of a decompressed message", found, limit });
        }
    }

    let mut plain = MutableBuffer::from_len_zeroed(total);
    let mut rest = plain.as_slice_mut();
    let mut offset = 0;
    for (buffer, place) in packed.iter().zip(&mut parts.buffers) {
        let padded = buffer.len.next_multiple_of(ALIGNMENT);
        let (here, after) = rest.split_at_mut(padded);
        buffer.unpack(codec, &mut here[..buffer.len])?;
        *place = arrow_ipc::Buffer::new(offset as i64, buffer.len as i64);
        offset += padded;
        rest = after;
    }
    parts.codec = None;
    Ok(plain.into())
}

/// A compressed buffer and the length that it claims to have when it is not.
struct Packed<'a> {
    bytes: &'a [u8],
    len: usize,
    stored: bool,
}

impl<'a> Packed<'a> {
    fn new(buffer: &arrow_ipc::Buffer, body: &'a [u8]) -> Result<Self> {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = range
            .and_then(|(offset, len)| body.get(offset..)?.get(..len))
            .ok_or_else(|| Error::malformed("a compressed buffer outside of its body"))?;
        if bytes.is_empty() {
            return Ok(Self { bytes, len: 0, stored: true });
        }
        let (len, bytes) = bytes
            .split_first_chunk::<8>()
            .ok_or_else(|| Error::malformed("a compressed buffer without its length"))?;
        match i64::from_le_bytes(*len) {
            NOT_COMPRESSED => Ok(Self { bytes, len: bytes.len(), stored: true }),
            len => {
                let len = usize::try_from(len)
                    .map_err(|_| Error::malformed("a compressed buffer of negative length"))?;
                Ok(Self { bytes, len, stored: false })
            }
        }
    }

    /// Fills `place`, which has the claimed length, and insists that nothing is missing or left.
    fn unpack(&self, codec: Compression, place: &mut [u8]) -> Result<()> {
        if self.stored {
            place.copy_from_slice(self.bytes);
            return Ok(());
        }
        if place.is_empty() {
            return Ok(());
        }
        let filled = match codec {
            Compression::None => false,
            Compression::Lz4 => {
                let mut frame = lz4_flex::frame::FrameDecoder::new(self.bytes);
                frame.read_exact(place).is_ok() && matches!(frame.read(&mut [0]), Ok(0))
            }
            Compression::Zstd => {
                matches!(zstd::bulk::decompress_to_buffer(self.bytes, place), Ok(len) if len == place.len())
            }
        };
        if filled {
            return Ok(());
        }
        Err(Error::malformed(format!("a compressed buffer that does not hold {} bytes", self.len)))
    }
}
