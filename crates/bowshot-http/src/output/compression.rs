//! Compresses text formats while they are streamed. Each chunk can be decoded on arrival.

use super::Encoder;
use crate::media_type::Coding;
use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, Result};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::io::{self, Write as _};
use std::mem::take;
use zstd::stream::write::Encoder as ZstdEncoder;

/// Fast: rows should not wait for it.
const LEVEL: i32 = 1;

pub(super) struct Compressed {
    inner: Box<dyn Encoder>,
    /// `None` after the end.
    packer: Option<Packer>,
}

enum Packer {
    Zstd(ZstdEncoder<'static, Vec<u8>>),
    Gzip(GzEncoder<Vec<u8>>),
}

fn broken(error: io::Error) -> Error {
    Error::internal("rows cannot be compressed").with_source(error)
}

impl Packer {
    fn new(coding: Coding) -> io::Result<Self> {
        Ok(match coding {
            Coding::Zstd => Self::Zstd(ZstdEncoder::new(Vec::new(), LEVEL)?),
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast())),
        })
    }

    fn pack(&mut self, bytes: &[u8]) -> io::Result<Bytes> {
        let packed = match self {
            Self::Zstd(zstd) => {
                zstd.write_all(bytes)?;
                zstd.flush()?;
                zstd.get_mut()
            }
            Self::Gzip(gzip) => {
                gzip.write_all(bytes)?;
                gzip.flush()?;
                gzip.get_mut()
            }
        };
        Ok(take(packed).into())
    }

    fn finish(self, bytes: &[u8]) -> io::Result<Bytes> {
        match self {
            Self::Zstd(mut zstd) => zstd.write_all(bytes).and_then(|()| zstd.finish()),
            Self::Gzip(mut gzip) => gzip.write_all(bytes).and_then(|()| gzip.finish()),
        }
        .map(Bytes::from)
    }
}

impl Compressed {
    pub(super) fn new(inner: Box<dyn Encoder>, coding: Coding) -> Result<Self> {
        Ok(Self { inner, packer: Some(Packer::new(coding).map_err(broken)?) })
    }

    fn last(&mut self, bytes: &[u8]) -> Result<Bytes> {
        let packer = self.packer.take().ok_or_else(|| Error::internal("a result goes on after its end"))?;
        packer.finish(bytes).map_err(broken)
    }
}

impl Encoder for Compressed {
    bowshot_api::delegate! { inner:
        fn take(&mut self, batch: RecordBatch);
        fn is_heavy(&self) -> bool;
    }

    fn more(&mut self) -> Result<Option<Bytes>> {
        let Some(bytes) = self.inner.more()? else { return Ok(None) };
        let Some(packer) = &mut self.packer else { return Ok(None) };
        packer.pack(&bytes).map(Some).map_err(broken)
    }

    fn end(&mut self) -> Result<Bytes> {
        let bytes = self.inner.end()?;
        self.last(&bytes)
    }

    fn failed(&mut self, error: &Value) -> Option<Bytes> {
        let bytes = self.inner.failed(error)?;
        self.last(&bytes).ok()
    }
}
