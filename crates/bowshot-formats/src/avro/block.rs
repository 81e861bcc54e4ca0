//! The codecs of blocks. They are unpacked here, since the reader unpacks without a limit.

use super::noise;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use flate2::read::DeflateDecoder;
use std::io::{self, Cursor, Read};

/// Bytes of the check that Snappy's blocks end with.
const CHECK_BYTES: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Plain,
    Deflate,
    Snappy,
    Zstandard,
    Bzip2,
    Xz,
}

impl Codec {
    pub(super) fn of(name: Option<&[u8]>) -> io::Result<Self> {
        match name {
            None | Some(b"null" | b"") => Ok(Self::Plain),
            Some(b"deflate") => Ok(Self::Deflate),
            Some(b"snappy") => Ok(Self::Snappy),
            Some(b"zstandard") => Ok(Self::Zstandard),
            Some(b"bzip2") => Ok(Self::Bzip2),
            Some(b"xz") => Ok(Self::Xz),
            Some(other) => Err(noise(&format!(
                "unsupported codec `{}`: expected deflate, snappy, zstandard, bzip2 or xz",
                String::from_utf8_lossy(other)
            ))),
        }
    }

    /// A block unpacked, if it has at most so many bytes then.
    pub(super) fn unpacked(self, packed: Vec<u8>, most: usize) -> io::Result<Vec<u8>> {
        let other = |kind: FileCompressionType, packed| {
            let reader = kind.convert_read(Cursor::new(packed)).map_err(io::Error::other)?;
            up_to(most, reader)
        };
        match self {
            Self::Plain => Ok(packed),
            Self::Deflate => up_to(most, DeflateDecoder::new(packed.as_slice())),
            Self::Snappy => snappy(&packed, most),
            Self::Zstandard => other(FileCompressionType::ZSTD, packed),
            Self::Bzip2 => other(FileCompressionType::BZIP2, packed),
            Self::Xz => other(FileCompressionType::XZ, packed),
        }
    }
}

fn up_to(most: usize, reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // What ends too early is broken; `UnexpectedEof` would say that the file does.
    let read = reader.take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| noise(&format!("a block cannot be decompressed: {error}")))?;
    match bytes.len() > most {
        true => Err(too_long(most)),
        false => Ok(bytes),
    }
}

/// Says its length itself, and has a check of what was packed behind it.
fn snappy(packed: &[u8], most: usize) -> io::Result<Vec<u8>> {
    let broken = |error: snap::Error| noise(&format!("a block cannot be decompressed: {error}"));
    let split = packed.len().checked_sub(CHECK_BYTES).and_then(|at| packed.split_at_checked(at));
    let (packed, check) = split.ok_or_else(|| noise("a block without its checksum"))?;
    if snap::raw::decompress_len(packed).map_err(broken)? > most {
        return Err(too_long(most));
    }
    let bytes = snap::raw::Decoder::new().decompress_vec(packed).map_err(broken)?;
    match crc32fast::hash(&bytes).to_be_bytes() == check {
        true => Ok(bytes),
        false => Err(noise("a block has a wrong checksum")),
    }
}

fn too_long(most: usize) -> io::Error {
    noise(&format!("a block has more than {} MiB decompressed: write smaller blocks", most >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::DeflateEncoder};
    use futures::{StreamExt, TryStreamExt};
    use std::io::Write;

    async fn through(kind: FileCompressionType, bytes: &[u8]) -> Vec<u8> {
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let stream = futures::stream::once(async move { Ok(bytes) }).boxed();
        let packed = kind.convert_to_compress_stream(stream).unwrap();
        packed.try_collect::<Vec<bytes::Bytes>>().await.unwrap().concat()
    }

    async fn packed(codec: Codec, bytes: &[u8]) -> Vec<u8> {
        match codec {
            Codec::Plain => bytes.to_vec(),
            Codec::Deflate => {
                let mut writer = DeflateEncoder::new(Vec::new(), Compression::default());
                writer.write_all(bytes).unwrap();
                writer.finish().unwrap()
            }
            Codec::Snappy => {
                let mut packed = snap::raw::Encoder::new().compress_vec(bytes).unwrap();
                packed.extend_from_slice(&crc32fast::hash(bytes).to_be_bytes());
                packed
            }
            Codec::Zstandard => through(FileCompressionType::ZSTD, bytes).await,
            Codec::Bzip2 => through(FileCompressionType::BZIP2, bytes).await,
            Codec::Xz => through(FileCompressionType::XZ, bytes).await,
        }
    }

    #[tokio::test]
    async fn blocks_are_unpacked_up_to_a_limit() {
        let bytes = b"abc".repeat(100_000);
        let codecs: [&[u8]; 5] = [b"deflate", b"snappy", b"zstandard", b"bzip2", b"xz"];
        for name in codecs {
            let codec = Codec::of(Some(name)).unwrap();
            let packed = packed(codec, &bytes).await;
            assert!(packed.len() < bytes.len() / 10, "{codec:?}");
            assert_eq!(codec.unpacked(packed.clone(), bytes.len()).unwrap(), bytes, "{codec:?}");
            let error = codec.unpacked(packed.clone(), bytes.len() - 1).unwrap_err();
            assert!(error.to_string().contains("decompressed"), "{codec:?}: {error}");
            // Deflate does not tell that something is missing; the rows do.
            let half = codec.unpacked(packed[..packed.len() / 2].to_vec(), 1 << 20);
            let is_told = |error: io::Error| error.kind() != io::ErrorKind::UnexpectedEof;
            assert!(half.map_or_else(is_told, |half| half != bytes), "{codec:?}");
        }
        assert!(Codec::Snappy.unpacked(vec![1, 2], 10).is_err());
        assert!(Codec::of(Some(b"lzo")).unwrap_err().to_string().contains("`lzo`"));
        assert_eq!(Codec::of(None).unwrap(), Codec::Plain);
    }
}
