//! The beginning of an upload, from which columns are inferred.

use crate::request_body::Upload;
use bowshot_api::Result;
use bytes::Bytes;

const SAMPLE_BYTES: usize = 1 << 20;

pub(super) struct Sample {
    pub(super) bytes: Vec<u8>,
    /// Whether it is the whole body.
    pub(super) is_whole: bool,
}

impl Sample {
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
