//! Compressed packets ("Compressed Packet"): after the login both ends send frames with a compressed length, an uncompressed
//! length and a sequence number. Packets begin and end anywhere within frames.

use crate::capability::{COMPRESS, ZSTD};
use crate::status::{Failure, Result};
use bytes::{Buf, BufMut, BytesMut};
use flate2::{Compress, Compression as Level, Decompress, FlushCompress, FlushDecompress, Status};

/// Length, number, and length of what is in it.
const HEAD: usize = 7;
/// Shorter frames are not compressed, as in MySQL.
const SHORT: usize = 50;
/// The longest frame, as in MySQL: some clients look for the rest of a packet only in the next frame.
const PART: usize = 0xff_ffff;
/// Higher levels cost more time than they save.
const MAX_ZSTD_LEVEL: i32 = 9;

/// The compression algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Zlib,
    Zstd(i32),
}

#[derive(Debug)]
pub(crate) struct Compression {
    kind: Kind,
    /// The sequence number of the next frame, of either end.
    number: u8,
    /// Received bytes that are not a complete frame.
    arrived: BytesMut,
}

impl Compression {
    /// The compression that both ends support, if any.
    pub(crate) fn agreed(capabilities: u32, zstd_level: u8) -> Option<Self> {
        let kind = if capabilities & COMPRESS != 0 {
            Kind::Zlib
        } else if capabilities & ZSTD != 0 {
            Kind::Zstd(i32::from(zstd_level).clamp(1, MAX_ZSTD_LEVEL))
        } else {
            return None;
        };
        Some(Self { kind, number: 0, arrived: BytesMut::new() })
    }

    /// Resets the sequence number, with each command.
    pub(crate) fn begin(&mut self) {
        self.number = 0;
    }

    /// The buffer for received bytes.
    pub(crate) fn arrived(&mut self) -> &mut BytesMut {
        &mut self.arrived
    }

    /// Adds the content of the next frame to `inbound`, and says whether it was complete. What follows may be another command
    /// with a new sequence number: clients do not wait after a command without an answer.
    ///
    /// # Errors
    /// For a malformed frame, which ends the connection.
    pub(crate) fn unpack_next(&mut self, inbound: &mut BytesMut) -> Result<bool> {
        let Some(head) = self.arrived.first_chunk::<HEAD>().copied() else { return Ok(false) };
        let [a, b, c, number, d, e, f] = head;
        let (length, content) = (length([a, b, c]), length([d, e, f]));
        if self.arrived.len() < HEAD + length {
            return Ok(false);
        }
        if number != self.number {
            return Err(malformed("its number is wrong"));
        }
        self.number = number.wrapping_add(1);
        self.arrived.advance(HEAD);
        let part = self.arrived.split_to(length);
        if content == 0 {
            inbound.extend_from_slice(&part);
            return Ok(true);
        }
        let unpacked = match self.kind {
            Kind::Zlib => inflated(&part, content)?,
            Kind::Zstd(_) => zstd::bulk::decompress(&part, content)
                .map_err(|error| malformed(&format!("it cannot be decompressed: {error}")))?,
        };
        if unpacked.len() != content {
            return Err(malformed("its length is wrong"));
        }
        inbound.extend_from_slice(&unpacked);
        Ok(true)
    }

    /// Makes a frame of bytes to be sent.
    pub(crate) fn pack(&mut self, outbound: &mut BytesMut, parts: &mut BytesMut) -> Result<()> {
        let content = outbound.split_to(outbound.len().min(PART));
        let packed = if content.len() < SHORT { None } else { self.packed(&content)? };
        let packed = packed.filter(|packed| packed.len() < content.len());
        let (body, original) = match &packed {
            Some(packed) => (packed.as_slice(), content.len()),
            None => (content.as_ref(), 0),
        };
        let [a, b, c, ..] = body.len().to_le_bytes();
        let [d, e, f, ..] = original.to_le_bytes();
        parts.put_slice(&[a, b, c, self.number, d, e, f]);
        parts.put_slice(body);
        self.number = self.number.wrapping_add(1);
        Ok(())
    }

    fn packed(&self, content: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.kind {
            Kind::Zlib => Ok(deflated(content)),
            Kind::Zstd(level) => zstd::bulk::compress(content, level).map(Some).map_err(|error| {
                Failure::new(1105, "HY000", format!("a result cannot be compressed: {error}")).fatal()
            }),
        }
    }
}

fn length([low, middle, high]: [u8; 3]) -> usize {
    usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16
}

fn malformed(why: &str) -> crate::status::ConnectionError {
    Failure::new(1157, "08S01", format!("a compressed packet is malformed: {why}")).fatal()
}

/// `None` if it does not become shorter.
fn deflated(content: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::with_capacity(content.len());
    let status = Compress::new(Level::fast(), true).compress_vec(content, &mut packed, FlushCompress::Finish);
    matches!(status, Ok(Status::StreamEnd)).then_some(packed)
}

fn inflated(part: &[u8], content: usize) -> Result<Vec<u8>> {
    // One byte more, to notice content that is too long.
    let mut unpacked = Vec::with_capacity(content + 1);
    match Decompress::new(true).decompress_vec(part, &mut unpacked, FlushDecompress::Finish) {
        Ok(Status::StreamEnd) => Ok(unpacked),
        Ok(_) => Err(malformed("its length is wrong")),
        Err(error) => Err(malformed(&format!("it cannot be decompressed: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::ConnectionError;

    fn ends(capabilities: u32) -> (Compression, Compression) {
        let end = || Compression::agreed(capabilities, 3).expect("agreed");
        (end(), end())
    }

    #[test]
    fn what_goes_in_comes_out_in_whatever_pieces() {
        for capabilities in [COMPRESS, ZSTD] {
            let text: Vec<u8> =
                (0..PART + 100_000).map(|n| if n % 3 == 0 { b'a' } else { (n / 7 % 251) as u8 }).collect();
            let (mut one, mut other) = ends(capabilities);
            let (mut outbound, mut parts) = (BytesMut::from(text.as_slice()), BytesMut::new());
            while !outbound.is_empty() {
                one.pack(&mut outbound, &mut parts).unwrap();
            }
            assert!(parts.len() < text.len());
            let mut inbound = BytesMut::new();
            for piece in parts.chunks(99_991) {
                other.arrived().extend_from_slice(piece);
                while other.unpack_next(&mut inbound).unwrap() {}
            }
            assert!(inbound.as_ref() == text.as_slice());
        }
    }

    #[test]
    fn short_parts_are_as_they_are() {
        let (mut one, mut other) = ends(COMPRESS);
        let (mut outbound, mut parts) = (BytesMut::from(&b"short"[..]), BytesMut::new());
        one.pack(&mut outbound, &mut parts).unwrap();
        assert_eq!(parts.as_ref(), b"\x05\0\0\0\0\0\0short");
        other.arrived().extend_from_slice(&parts);
        let mut inbound = BytesMut::new();
        assert!(other.unpack_next(&mut inbound).unwrap());
        assert_eq!(inbound.as_ref(), b"short");
    }

    #[test]
    fn parts_that_lie_end_the_connection() {
        let zlib = deflated(&[b'x'; 200]).expect("shorter");
        let part = |number: u8, content: usize, body: &[u8]| {
            let [a, b, c, ..] = body.len().to_le_bytes();
            let [d, e, f, ..] = content.to_le_bytes();
            [&[a, b, c, number, d, e, f], body].concat()
        };
        for bytes in [
            part(1, 200, &zlib),
            part(0, 199, &zlib),
            part(0, 201, &zlib),
            part(0, 200, b"junk"),
            part(0, 0xff_ffff, b""),
        ] {
            let (mut end, _) = ends(COMPRESS);
            end.arrived().extend_from_slice(&bytes);
            assert!(
                matches!(end.unpack_next(&mut BytesMut::new()), Err(ConnectionError::Fatal(_))),
                "{bytes:?}"
            );
            let (mut end, _) = ends(ZSTD);
            end.arrived().extend_from_slice(&bytes);
            assert!(
                matches!(end.unpack_next(&mut BytesMut::new()), Err(ConnectionError::Fatal(_))),
                "{bytes:?}"
            );
        }
        let (mut end, _) = ends(COMPRESS);
        end.arrived().extend_from_slice(&part(0, 200, &zlib)[..9]);
        assert!(!end.unpack_next(&mut BytesMut::new()).expect("the rest may come"));
    }

    #[test]
    fn a_command_behind_one_without_an_answer_begins_again() {
        let (mut end, _) = ends(COMPRESS);
        end.arrived().extend_from_slice(b"\x01\0\0\0\0\0\0a\x01\0\0\0\0\0\0b");
        let mut inbound = BytesMut::new();
        assert!(end.unpack_next(&mut inbound).unwrap());
        end.begin();
        assert!(end.unpack_next(&mut inbound).unwrap());
        assert!(!end.unpack_next(&mut inbound).unwrap());
        assert_eq!(inbound.as_ref(), b"ab");
    }
}
