//! Runs of numbers as the format's description shows them, and files of noise.

use crate::bytewise::{Bits, Runs};
use crate::integers::Integers;
use crate::stream::{Packing, Stream};
use crate::unpack::Codec;
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
fn runs_of_the_second_version_are_those_of_the_description() {
    let patched: Vec<u8> = vec![
        0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46, 0x50, 0x5a, 0x64,
        0x6e, 0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8,
    ];
    let after: Vec<i64> =
        [2030, 2000, 2020, 1_000_000].into_iter().chain((2040..=2190).step_by(10)).collect();
    for (bytes, expected) in [
        (vec![0x0a, 0x27, 0x10], vec![10_000; 5]),
        (
            vec![0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef],
            vec![23_713, 43_806, 57_005, 48_879],
        ),
        (vec![0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46], vec![2, 3, 5, 7, 11, 13, 17, 19, 23, 29]),
        (patched, after),
    ] {
        let mut integers = Integers::new(stream(&bytes, None), true, false);
        assert_eq!(integers.read(expected.len()).unwrap(), expected);
        assert!(integers.read(1).is_err(), "the stream has ended");
    }
}

#[test]
fn runs_of_the_first_version_are_those_of_the_description() {
    for (bytes, expected) in [
        (vec![0x61, 0x00, 0x07], vec![7; 100]),
        (vec![0x61, 0xff, 0x64], (1..=100).rev().collect()),
        (vec![0xfb, 0x02, 0x03, 0x06, 0x07, 0x0b], vec![2, 3, 6, 7, 11]),
    ] {
        let mut integers = Integers::new(stream(&bytes, None), false, false);
        assert_eq!(integers.read(expected.len()).unwrap(), expected);
    }
    let mut runs = Runs::new(stream(&[0x61, 0x00, 0xfe, 0x44, 0x45], None));
    assert_eq!(runs.read(102).unwrap(), [vec![0; 100], vec![0x44, 0x45]].concat());
    let mut bits = Bits::new(stream(&[0xff, 0x80], None));
    assert_eq!(bits.read(8).unwrap(), [true, false, false, false, false, false, false, false]);
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
