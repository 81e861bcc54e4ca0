//! One IPC message with the gRPC prefix and protobuf tags of `FlightData` around it. The tags are written by hand, since a protobuf codec
//! would copy the body. Buffers of at least [`SHARE_FROM`] bytes are shared; smaller ones are copied together, since each becomes an HTTP/2
//! frame of its own.

use arrow::buffer::Buffer;
use bytes::{BufMut, Bytes, BytesMut};

/// Buffers below this size are copied into their neighbours: an own HTTP/2 frame would cost more than the copy.
pub(crate) const SHARE_FROM: usize = 1024;

/// Protobuf field tags (`field << 3 | 2`, length-delimited) of `arrow.flight.protocol.FlightData`.
const TAG_DATA_HEADER: u64 = 2 << 3 | 2;
const TAG_APP_METADATA: u64 = 3 << 3 | 2;
const TAG_DATA_BODY: u64 = 1000 << 3 | 2;

/// Marks an encapsulated message in an IPC stream.
pub(crate) const CONTINUATION: [u8; 4] = [0xFF; 4];

/// Length of gRPC's message prefix: one byte of flags, four bytes of length.
const GRPC_PREFIX: usize = 5;

/// One Arrow IPC message: the flatbuffer without its encapsulation, and the body in pieces.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// The flatbuffer `Message`.
    pub header: Bytes,
    /// The body, padding included, in pieces that share the arrays' memory where they are large.
    pub body: Vec<Bytes>,
    /// Opaque bytes for the reader, `FlightData.app_metadata`.
    pub app_metadata: Bytes,
}

impl Message {
    pub fn body_len(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }

    /// The pieces of one gRPC message that carries this message as `FlightData`, in the order of the wire.
    pub fn into_frames(self) -> Vec<Bytes> {
        let body_len = self.body_len();
        let mut payload = field_len(TAG_DATA_HEADER, self.header.len());
        payload += field_len(TAG_APP_METADATA, self.app_metadata.len());
        payload += field_len(TAG_DATA_BODY, body_len);

        let small = payload - body_len + GRPC_PREFIX;
        let mut pieces = Pieces::with_capacity(small + SHARE_FROM);
        pieces.small.put_u8(0);
        pieces.small.put_u32(payload as u32);
        put_field(&mut pieces.small, TAG_DATA_HEADER, &self.header);
        put_field(&mut pieces.small, TAG_APP_METADATA, &self.app_metadata);
        if body_len > 0 {
            put_varint(&mut pieces.small, TAG_DATA_BODY);
            put_varint(&mut pieces.small, body_len as u64);
            self.body.into_iter().for_each(|piece| pieces.push_bytes(piece));
        }
        pieces.finish()
    }

    /// The pieces of this message in an Arrow IPC stream: continuation mark, length, padded flatbuffer, body.
    pub fn into_stream_pieces(self) -> Vec<Bytes> {
        let mut pieces = Pieces::with_capacity(self.header.len() + 16);
        put_encapsulated(&mut pieces.small, &self.header);
        self.body.into_iter().for_each(|piece| pieces.push_bytes(piece));
        pieces.finish()
    }
}

/// Writes continuation mark, length, flatbuffer, and padding to the next multiple of 8.
pub(crate) fn put_encapsulated(out: &mut BytesMut, header: &[u8]) {
    let padded = header.len().next_multiple_of(8);
    out.reserve(8 + padded);
    out.put_slice(&CONTINUATION);
    out.put_u32_le(padded as u32);
    out.put_slice(header);
    out.put_bytes(0, padded - header.len());
}

/// The memory of an Arrow buffer as `Bytes`; it is freed when the last of both is dropped.
pub(crate) fn share(buffer: Buffer) -> Bytes {
    struct Shared(Buffer);
    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Shared(buffer))
}

/// Gathers small pieces and passes large ones through.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    small: BytesMut,
    pieces: Vec<Bytes>,
}

impl Pieces {
    fn with_capacity(small: usize) -> Self {
        Self { small: BytesMut::with_capacity(small), pieces: Vec::new() }
    }

    /// Adds an Arrow buffer, shared if it is large.
    pub(crate) fn push_buffer(&mut self, buffer: Buffer) {
        if buffer.len() < SHARE_FROM {
            self.small.put_slice(&buffer);
        } else {
            self.flush();
            self.pieces.push(share(buffer));
        }
    }

    /// Adds as many zeros.
    pub(crate) fn push_zeros(&mut self, count: usize) {
        self.small.put_bytes(0, count);
    }

    fn push_bytes(&mut self, piece: Bytes) {
        if piece.len() < SHARE_FROM {
            self.small.put_slice(&piece);
        } else {
            self.flush();
            self.pieces.push(piece);
        }
    }

    fn flush(&mut self) {
        if !self.small.is_empty() {
            self.pieces.push(self.small.split().freeze());
        }
    }

    /// The pieces in order; none of them is empty.
    pub(crate) fn finish(mut self) -> Vec<Bytes> {
        self.flush();
        self.pieces
    }
}

fn field_len(tag: u64, len: usize) -> usize {
    if len == 0 { 0 } else { varint_len(tag) + varint_len(len as u64) + len }
}

fn put_field(out: &mut BytesMut, tag: u64, value: &[u8]) {
    if !value.is_empty() {
        put_varint(out, tag);
        put_varint(out, value.len() as u64);
        out.put_slice(value);
    }
}

fn put_varint(out: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

fn varint_len(value: u64) -> usize {
    // One byte for each 7 bits, and one byte for zero.
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}
