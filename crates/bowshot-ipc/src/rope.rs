//! Bytes in pieces that go out together: one gRPC message whose large pieces are the arrays' own memory.
//!
//! HTTP/2 writes one frame at a time. A frame that is one piece costs a system call for each buffer of each column; a
//! frame that is a rope goes out as one gathering write (`writev`) over many of them.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::IoSlice;

/// A sequence of bytes in pieces, none of them empty, that is consumed from its front.
#[derive(Debug, Clone, Default)]
pub struct Rope {
    pieces: VecDeque<Bytes>,
    len: usize,
}

impl Rope {
    /// The pieces in order; empty ones are left out.
    pub fn new(pieces: Vec<Bytes>) -> Self {
        let mut pieces = VecDeque::from(pieces);
        pieces.retain(|piece| !piece.is_empty());
        let len = pieces.iter().map(Bytes::len).sum();
        Self { pieces, len }
    }
}

impl From<Bytes> for Rope {
    fn from(piece: Bytes) -> Self {
        Self::new(vec![piece])
    }
}

impl Buf for Rope {
    fn remaining(&self) -> usize {
        self.len
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], Bytes::as_ref)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let filled = slices.iter_mut().zip(&self.pieces);
        filled.map(|(slice, piece)| *slice = IoSlice::new(piece)).count()
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.len, "cannot advance by {count} in a rope of {} bytes", self.len);
        self.len -= count;
        while let Some(front) = self.pieces.front_mut() {
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.pieces.pop_front();
        }
    }

    /// Shares the memory of the first piece where it has so many bytes.
    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        assert!(count <= self.len, "cannot take {count} of a rope of {} bytes", self.len);
        match self.pieces.front() {
            Some(front) if count <= front.len() => {
                let taken = front.slice(..count);
                self.advance(count);
                taken
            }
            _ => {
                let mut copied = BytesMut::with_capacity(count);
                copied.put((&mut *self).take(count));
                copied.freeze()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope() -> Rope {
        Rope::new([&b"ab"[..], b"", b"cde", b"f"].map(Bytes::from_static).to_vec())
    }

    fn gathered(slices: &[IoSlice<'_>]) -> Vec<u8> {
        slices.iter().flat_map(|slice| slice.iter().copied()).collect()
    }

    #[test]
    fn copies_of_any_length_are_the_bytes_in_order() {
        for step in 1..=6 {
            let (mut rope, mut copied) = (rope(), Vec::new());
            while rope.has_remaining() {
                copied.extend_from_slice(&rope.copy_to_bytes(step.min(rope.remaining())));
            }
            assert_eq!(copied, b"abcdef", "steps of {step}");
            assert!(rope.pieces.is_empty());
        }
    }

    #[test]
    fn gathered_pieces_begin_where_the_rope_has_advanced_to() {
        for (advance, expected) in [(0, "abcde"), (1, "bcde"), (2, "cdef"), (4, "ef"), (5, "f"), (6, "")] {
            let mut rope = rope();
            rope.advance(advance);
            let mut slices = [IoSlice::new(&[]); 2];
            let count = rope.chunks_vectored(&mut slices);
            assert_eq!(gathered(&slices[..count]), expected.as_bytes(), "after {advance}");
            assert_eq!(rope.remaining(), 6 - advance);
        }
    }

    #[test]
    fn bytes_of_one_piece_are_not_copied() {
        let piece = Bytes::from_static(b"abcdef");
        let mut rope = Rope::new(vec![piece.clone(), Bytes::from_static(b"g")]);
        let (first, second) = (rope.copy_to_bytes(2), rope.copy_to_bytes(4));
        assert_eq!((first.as_ptr(), &second[..]), (piece.as_ptr(), &piece[2..]));
        assert_eq!(second.as_ptr(), piece[2..].as_ptr());
        assert_eq!(rope.copy_to_bytes(1), "g");
    }

    #[test]
    fn an_empty_rope_has_no_chunk() {
        let empty = Rope::from(Bytes::new());
        assert!(!empty.has_remaining() && empty.chunk().is_empty());
        assert_eq!(empty.chunks_vectored(&mut [IoSlice::new(&[])]), 0);
    }
}
