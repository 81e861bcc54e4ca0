//! Blocks of compressed bytes. None becomes longer than the file says that its blocks are.

use crate::Error;
use crate::error::corrupt;

/// Bytes of an unpacked block; writers use 256 KiB.
pub(crate) const MAX_BLOCK_BYTES: u64 = 16 << 20;

/// How the blocks of a file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Zlib,
    Snappy,
    Lz4,
    Zstd,
}

impl Codec {
    /// Of its number; `None` where nothing is compressed.
    pub(crate) fn of(number: u64) -> Result<Option<Self>, Error> {
        Ok(Some(match number {
            0 => return Ok(None),
            1 => Self::Zlib,
            2 => Self::Snappy,
            4 => Self::Lz4,
            5 => Self::Zstd,
            3 => return Err(Error::Unsupported("its compression is LZO".to_owned())),
            6 => return Err(Error::Unsupported("its compression is Brotli".to_owned())),
            _ => return Err(corrupt("its compression is unknown")),
        }))
    }

    /// Unpacks one block into at most `limit` bytes.
    pub(crate) fn unpack(self, packed: &[u8], limit: usize) -> Result<Vec<u8>, Error> {
        match self {
            Self::Zlib => inflate(packed, limit),
            Self::Snappy => snappy(packed, limit),
            Self::Lz4 => lz4(packed, limit),
            Self::Zstd => zstd::bulk::decompress(packed, limit).map_err(broken),
        }
    }
}

fn broken(error: impl std::fmt::Display) -> Error {
    corrupt(format!("a block cannot be unpacked: {error}"))
}

fn inflate(packed: &[u8], limit: usize) -> Result<Vec<u8>, Error> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let unpacked = flate2::read::DeflateDecoder::new(packed).take(limit as u64 + 1).read_to_end(&mut bytes);
    unpacked.map_err(broken)?;
    if bytes.len() > limit { Err(broken("it is longer than blocks are")) } else { Ok(bytes) }
}

fn snappy(packed: &[u8], limit: usize) -> Result<Vec<u8>, Error> {
    if snap::raw::decompress_len(packed).map_err(broken)? > limit {
        return Err(broken("it is longer than blocks are"));
    }
    snap::raw::Decoder::new().decompress_vec(packed).map_err(broken)
}

fn lz4(packed: &[u8], limit: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; limit];
    let length = lz4_flex::block::decompress_into(packed, &mut bytes).map_err(broken)?;
    bytes.truncate(length);
    Ok(bytes)
}
