//! Bytes in pieces that go out together: one gRPC message whose large pieces are the arrays' own memory.
//!
//! HTTP/2 writes one frame at a time. A frame that is one piece costs a system call for each buffer of each column; a
//! frame that is a rope goes out as one gathering write (`writev`) over many of them.

use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Bytes below which a part of one piece is handed out as it is.
const OWN_BYTES: usize = 1 << 10;

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

    /// Adds a piece behind the last one.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.len += piece.len();
            self.pieces.push_back(piece);
        }
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

    /// The next bytes in one piece. Long ones get memory of their own, which is aligned as the allocator's is, and leave that
    /// of the pieces to its other users.
    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        assert!(count <= self.len, "cannot copy {count} of a rope of {} bytes", self.len);
        if count < OWN_BYTES
            && let Some(front) = self.pieces.front()
            && count < front.len()
        {
            let piece = front.slice(..count);
            self.advance(count);
            return piece;
        }
        let mut copied = Vec::with_capacity(count);
        while copied.len() < count {
            let chunk = self.chunk();
            let part = chunk.get(..count - copied.len()).unwrap_or(chunk);
            copied.extend_from_slice(part);
            let taken = part.len();
            self.advance(taken);
        }
        copied.into()
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
    fn long_copies_do_not_hold_the_pieces() {
        let piece = Bytes::from(vec![7; 5000]);
        let mut rope = Rope::default();
        [piece.slice(1..4000), Bytes::new(), piece.slice(4000..)]
            .into_iter()
            .for_each(|part| rope.push(part));
        let short = rope.copy_to_bytes(3);
        assert_eq!(short.as_ptr(), piece.as_ptr().wrapping_add(1));
        let long = rope.copy_to_bytes(2000);
        assert!(!piece.as_ptr_range().contains(&long.as_ptr()));
        assert!(long.as_ptr().addr().is_multiple_of(8));
        assert_eq!((rope.copy_to_bytes(2996).len(), rope.remaining()), (2996, 0));
    }

    #[test]
    fn an_empty_rope_has_no_chunk() {
        let empty = Rope::from(Bytes::new());
        assert!(!empty.has_remaining() && empty.chunk().is_empty());
        assert_eq!(empty.chunks_vectored(&mut [IoSlice::new(&[])]), 0);
    }
}
