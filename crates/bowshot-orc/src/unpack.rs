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

/// A block of LZ4: literals, and copies of what was before.
fn lz4(mut packed: &[u8], limit: usize) -> Result<Vec<u8>, Error> {
    let ends = || broken("it ends too early");
    let mut bytes = Vec::new();
    while let Some((token, rest)) = packed.split_first() {
        packed = rest;
        let literals = lz4_length(usize::from(token >> 4), &mut packed).ok_or_else(ends)?;
        let (taken, rest) = packed.split_at_checked(literals).ok_or_else(ends)?;
        bytes.extend_from_slice(taken);
        packed = rest;
        // The last ones have no copy behind them.
        if packed.is_empty() {
            break;
        }
        let (back, rest) = packed.split_first_chunk::<2>().ok_or_else(ends)?;
        packed = rest;
        let back = usize::from(u16::from_le_bytes(*back));
        let length = lz4_length(usize::from(token & 15), &mut packed).ok_or_else(ends)?.saturating_add(4);
        let start = bytes.len().checked_sub(back).filter(|_| back > 0);
        let start = start.ok_or_else(|| broken("it copies what is not there"))?;
        if bytes.len().saturating_add(length) > limit {
            return Err(broken("it is longer than blocks are"));
        }
        copy_within(&mut bytes, start, length);
    }
    if bytes.len() > limit { Err(broken("it is longer than blocks are")) } else { Ok(bytes) }
}

/// Appends bytes from a place on, which may reach into those that are appended.
fn copy_within(bytes: &mut Vec<u8>, start: usize, mut length: usize) {
    while length > 0 {
        let count = length.min(bytes.len() - start);
        bytes.extend_from_within(start..start + count);
        length -= count;
    }
}

fn lz4_length(first: usize, packed: &mut &[u8]) -> Option<usize> {
    let mut length = first;
    if first == 15 {
        loop {
            let (more, rest) = packed.split_first()?;
            *packed = rest;
            length = length.checked_add(usize::from(*more))?;
            if *more < 255 {
                break;
            }
        }
    }
    Some(length)
}
