//! A form of text, compressed with Zstandard (RFC 8878) while it is made. Each piece can be read when it comes.

use super::Encoder;
use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, Result};
use bytes::Bytes;
use serde_json::Value;
use std::io::{self, Write as _};
use std::mem::take;
use zstd::stream::write::Encoder as Zstd;

/// Fast, since rows should not wait for it.
const LEVEL: i32 = 1;

/// See the module.
pub(super) struct Compressed {
    inner: Box<dyn Encoder>,
    /// `None` after the end.
    zstd: Option<Zstd<'static, Vec<u8>>>,
}

fn broken(error: io::Error) -> Error {
    Error::internal("rows cannot be compressed").with_source(error)
}

impl Compressed {
    pub(super) fn new(inner: Box<dyn Encoder>) -> Result<Self> {
        let zstd = Zstd::new(Vec::new(), LEVEL).map_err(broken)?;
        Ok(Self { inner, zstd: Some(zstd) })
    }

    fn last(&mut self, bytes: &[u8]) -> Result<Bytes> {
        let mut zstd = self.zstd.take().ok_or_else(|| Error::internal("a result goes on after its end"))?;
        zstd.write_all(bytes).map_err(broken)?;
        zstd.finish().map(Bytes::from).map_err(broken)
    }
}

impl Encoder for Compressed {
    fn take(&mut self, batch: RecordBatch) {
        self.inner.take(batch);
    }

    fn more(&mut self) -> Result<Option<Bytes>> {
        let Some(bytes) = self.inner.more()? else { return Ok(None) };
        let Some(zstd) = &mut self.zstd else { return Ok(None) };
        zstd.write_all(&bytes).map_err(broken)?;
        zstd.flush().map_err(broken)?;
        Ok(Some(take(zstd.get_mut()).into()))
    }

    fn end(&mut self) -> Result<Bytes> {
        let bytes = self.inner.end()?;
        self.last(&bytes)
    }

    fn failed(&mut self, error: &Value) -> Option<Bytes> {
        let bytes = self.inner.failed(error)?;
        self.last(&bytes).ok()
    }

    fn is_heavy(&self) -> bool {
        self.inner.is_heavy()
    }
}
