//! Files of deletion vectors (Puffin specification): one vector behind the other, and behind all of them what they are of.

use crate::deletion_bitmap;
use bowshot_api::{Error, ErrorKind, Result};
use roaring::RoaringTreemap;
use serde_json::{Value, json};

const MAGIC: &[u8; 4] = b"PFA1";
/// The number of the column that vectors are about: the places of rows (Iceberg specification, "Reserved Field IDs").
const POSITION: i32 = 2_147_483_645;

#[derive(Debug)]
pub(super) struct PuffinFile {
    bytes: Vec<u8>,
    blobs: Vec<Value>,
}

impl PuffinFile {
    pub(super) fn new() -> Self {
        Self { bytes: MAGIC.to_vec(), blobs: Vec::new() }
    }

    /// Adds the vector of a data file: its place and its length.
    ///
    /// # Errors
    /// `LimitReached` for one that is too long.
    pub(super) fn add(&mut self, of: &str, places: &RoaringTreemap) -> Result<(i64, i64)> {
        let too_long = || {
            Error::new(ErrorKind::LimitReached, "too many deleted rows of a file for a deletion vector")
                .with_hint("rewrite the files first: `OPTIMIZE`")
        };
        let vector = deletion_bitmap::bytes(places).ok_or_else(too_long)?;
        let (place, length) = (i64::try_from(self.bytes.len()), i64::try_from(vector.len()));
        let (Ok(place), Ok(length)) = (place, length) else { return Err(too_long()) };
        self.blobs.push(json!({
            "type": "deletion-vector-v1", "fields": [POSITION], "snapshot-id": -1, "sequence-number": -1,
            "offset": place, "length": length,
            "properties": {"referenced-data-file": of, "cardinality": places.len().to_string()},
        }));
        self.bytes.extend_from_slice(&vector);
        Ok((place, length))
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let footer = json!({"blobs": self.blobs, "properties": {"created-by": "bowshot"}}).to_string();
        let length = u32::try_from(footer.len()).unwrap_or(u32::MAX);
        for part in [MAGIC.as_slice(), footer.as_bytes(), &length.to_le_bytes(), &[0; 4], MAGIC] {
            self.bytes.extend_from_slice(part);
        }
        self.bytes
    }
}
