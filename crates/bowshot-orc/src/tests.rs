//! Blocks that are too long, and files of noise. What whole files hold is compared in `tests/files`.

use crate::decompression::Codec;
use crate::stream::{Packing, Stream};
use crate::{Batches, Error, OrcFile, Source, Wanted};
use bytes::Bytes;
use std::io;
use std::ops::Range;
use std::sync::Arc;

struct Memory(Bytes);

impl Source for Memory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        assert!(range.start <= range.end && range.end <= self.0.len(), "{range:?} is outside");
        Ok(self.0.slice(range))
    }
}

fn stream(bytes: &[u8], codec: Option<Codec>) -> Stream {
    let source: Arc<dyn Source> = Arc::new(Memory(Bytes::copy_from_slice(bytes)));
    Stream::new(&source, Packing { codec, block_bytes: 1 << 16 }, 0..bytes.len() as u64)
}

#[test]
fn blocks_are_unpacked_and_no_longer_than_they_may_be() {
    // Blocks as they are, of three and of two bytes.
    let mut plain = stream(&[0x07, 0, 0, 1, 2, 3, 0x05, 0, 0, 4, 5], Some(Codec::Zlib));
    let mut bytes = Vec::new();
    plain.read_into(5, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4, 5]);
    assert!(plain.byte().is_err());
    // One literal, a copy of it of 19 bytes, one literal.
    let packed = [0x1f, b'a', 1, 0, 0, 0x10, b'b'];
    assert_eq!(Codec::Lz4.unpack(&packed, 64).unwrap(), b"aaaaaaaaaaaaaaaaaaaab");
    assert!(Codec::Lz4.unpack(&packed, 20).is_err());
    let long = vec![7_u8; 100_000];
    for (codec, packed) in [
        (Codec::Zstd, zstd::bulk::compress(&long, 1).unwrap()),
        (Codec::Snappy, snap::raw::Encoder::new().compress_vec(&long).unwrap()),
    ] {
        assert_eq!(codec.unpack(&packed, long.len()).unwrap(), long);
        assert!(codec.unpack(&packed, long.len() - 1).is_err(), "{codec:?}");
    }
}

#[test]
fn noise_is_an_error() {
    let mut state = 7_u64;
    for length in 0..2_000_usize {
        let mut bytes: Vec<u8> = (0..length % 300)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        bytes.extend_from_slice(b"\x08\x10\x10\x00\x82\xf4\x03\x03ORC");
        bytes.push(11);
        let source: Arc<dyn Source> = Arc::new(Memory(bytes.into()));
        let rows = OrcFile::open(&source).and_then(|file| {
            let wanted = Wanted { columns: vec![0], batch_rows: 100, range: None };
            Batches::new(&Arc::new(file), source, wanted)?.collect::<Result<Vec<_>, Error>>()
        });
        assert!(rows.is_err() || rows.unwrap().is_empty());
    }
}
