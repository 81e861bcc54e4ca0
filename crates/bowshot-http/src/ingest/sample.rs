//! The beginning of rows that come as text, from which their columns are known.

use crate::upload::Upload;
use bowshot_api::Result;
use bytes::Bytes;

/// Bytes that are looked at.
const SAMPLE_BYTES: usize = 1 << 20;

/// What has come first.
pub(super) struct Sample {
    pub(super) bytes: Vec<u8>,
    /// Whether that is all.
    pub(super) is_whole: bool,
}

impl Sample {
    /// Waits for as many bytes as are looked at, or for the end.
    pub(super) async fn take(
        upload: &mut Upload,
        mut map: impl FnMut(Bytes) -> Result<Bytes>,
    ) -> Result<Self> {
        let mut bytes = Vec::new();
        while bytes.len() < SAMPLE_BYTES {
            match upload.next().await? {
                Some(piece) => bytes.extend_from_slice(&map(piece)?),
                None => return Ok(Self { bytes, is_whole: true }),
            }
        }
        Ok(Self { bytes, is_whole: false })
    }
}
