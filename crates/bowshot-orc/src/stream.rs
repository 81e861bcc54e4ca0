//! The bytes of one stream of a stripe. They come from the file in pieces and are unpacked a block at a time, so that a
//! stripe of any size takes little memory.

use crate::decompression::Codec;
use crate::error::corrupt;
use crate::{Error, Source};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that are taken from the file at once.
const PIECE_BYTES: u64 = 256 << 10;

/// How the streams of a file are packed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packing {
    pub(crate) codec: Option<Codec>,
    /// Bytes of an unpacked block at most.
    pub(crate) block_bytes: usize,
}

pub(crate) struct Stream {
    source: Arc<dyn Source>,
    packing: Packing,
    /// What was not taken from the file yet.
    rest: Range<u64>,
    piece: Bytes,
    /// What was unpacked and not read yet.
    block: Bytes,
}

impl Stream {
    pub(crate) fn new(source: &Arc<dyn Source>, packing: Packing, range: Range<u64>) -> Self {
        let (piece, block) = (Bytes::new(), Bytes::new());
        Self { source: Arc::clone(source), packing, rest: range, piece, block }
    }

    /// A stream without bytes, for what a writer has left out.
    pub(crate) fn empty(source: &Arc<dyn Source>, packing: Packing) -> Self {
        Self::new(source, packing, 0..0)
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        if self.block.is_empty() {
            self.fill()?;
        }
        let byte = self.block.first().copied().ok_or_else(ended)?;
        let _ = self.block.split_to(1);
        Ok(byte)
    }

    /// Appends exactly `count` bytes, whose room grows with what is there.
    pub(crate) fn read_into(&mut self, mut count: usize, bytes: &mut Vec<u8>) -> Result<(), Error> {
        while count > 0 {
            if self.block.is_empty() {
                self.fill()?;
            }
            let taken = self.block.split_to(count.min(self.block.len()));
            bytes.extend_from_slice(&taken);
            count -= taken.len();
        }
        Ok(())
    }

    /// All bytes that are left, if they are not more than `limit`.
    pub(crate) fn read_all(&mut self, limit: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        loop {
            if self.block.is_empty() && self.piece.is_empty() && self.rest.is_empty() {
                return Ok(bytes);
            }
            if self.block.is_empty() {
                self.fill()?;
            }
            bytes.extend_from_slice(&std::mem::take(&mut self.block));
            if bytes.len() > limit {
                return Err(corrupt("a part of it is too long"));
            }
        }
    }

    /// Unpacks blocks until there is a byte.
    fn fill(&mut self) -> Result<(), Error> {
        while self.block.is_empty() {
            let Some(codec) = self.packing.codec else {
                self.block = self.take_piece()?;
                return Ok(());
            };
            let mut header = [0; 3];
            for byte in &mut header {
                *byte = self.packed_byte()?;
            }
            let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
            let (length, packed) = (header >> 1, header & 1 == 0);
            let bytes = self.packed_bytes(length as usize)?;
            self.block = match packed {
                true => codec.unpack(&bytes, self.packing.block_bytes)?.into(),
                false => bytes,
            };
        }
        Ok(())
    }

    fn take_piece(&mut self) -> Result<Bytes, Error> {
        if !self.piece.is_empty() {
            return Ok(std::mem::take(&mut self.piece));
        }
        if self.rest.is_empty() {
            return Err(ended());
        }
        let end = self.rest.end.min(self.rest.start + PIECE_BYTES);
        let bytes = self.source.read(self.rest.start..end)?;
        self.rest.start = end;
        Ok(bytes)
    }

    fn packed_byte(&mut self) -> Result<u8, Error> {
        Ok(self.packed_bytes(1)?.first().copied().unwrap_or(0))
    }

    fn packed_bytes(&mut self, count: usize) -> Result<Bytes, Error> {
        if count <= self.piece.len() {
            return Ok(self.piece.split_to(count));
        }
        let left = u64::try_from(self.piece.len()).unwrap_or(u64::MAX) + (self.rest.end - self.rest.start);
        if count as u64 > left {
            return Err(ended());
        }
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            self.piece = self.take_piece()?;
            let taken = self.piece.split_to(self.piece.len().min(count - bytes.len()));
            bytes.extend_from_slice(&taken);
        }
        Ok(bytes.into())
    }
}

fn ended() -> Error {
    corrupt("a stream of it ends before its values do")
}
