//! The pages of any file, shared with the page cache.

use crate::error::{Error, Result};
use crate::file_map::Map;
use bytes::Bytes;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file whose parts are used where the system holds them, instead of being copied into memory of ours.
///
/// It shows whatever happens to the file: see the head of `mapped_file.rs`. Whoever uses its bytes calls [`FilePages::check`]
/// afterwards, before anything that was made of them counts.
#[derive(Debug)]
pub struct FilePages {
    path: PathBuf,
    map: Arc<Map>,
}

impl FilePages {
    /// Maps a file, without reading anything of it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let map =
            File::open(path).map_err(Error::from).and_then(Map::new).map_err(|error| error.in_file(path))?;
        Ok(Self { path: path.to_owned(), map: Arc::new(map) })
    }

    /// The bytes of a range within the file, if no page of it has to come from disk. They keep the map.
    pub fn resident(&self, range: Range<usize>) -> Option<Bytes> {
        self.map.resident(range)
    }

    /// Fails if the file was truncated or changed since it was opened; then what was read is not to be trusted.
    pub fn check(&self) -> Result<()> {
        self.map.check().map_err(|error| error.in_file(&self.path))
    }
}
