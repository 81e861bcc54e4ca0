//! Rows on disk: an Arrow file for each join and, if it may outlive the process, a description beside it. The checksum
//! in the description, or in memory, is compared before a file is mapped, so that a damaged one is never read.

use crate::Error;
use crate::entry::{About, Loaded};
use arrow::datatypes::Schema;
use arrow::ipc::writer::FileWriter;
use arrow::record_batch::RecordBatch;
use bowshot_ipc::MappedFile;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are read at once to compare a checksum.
const READ_BYTES: usize = 1 << 20;
/// Changed when what a description means changes: files of another format are removed.
const FORMAT: u32 = 2;

/// A file of the cache. Removed with its last user, unless it is kept.
#[derive(Debug)]
pub(crate) struct CacheFile {
    path: PathBuf,
    pub(crate) bytes: u64,
    checksum: u32,
}

/// What stands beside a file that outlives the process.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    format: u32,
    bytes: u64,
    checksum: u32,
    about: About,
}

impl CacheFile {
    /// Writes the rows. What was begun is removed if that fails.
    pub(crate) fn write(path: PathBuf, schema: &Schema, batches: &[RecordBatch]) -> Result<Self, Error> {
        let written = Self::write_all(&path, schema, batches);
        if written.is_err() {
            remove(&path);
        }
        let (bytes, checksum) = written?;
        Ok(Self { path, bytes, checksum })
    }

    fn write_all(path: &Path, schema: &Schema, batches: &[RecordBatch]) -> Result<(u64, u32), Error> {
        let disk = |source| Error::Disk { path: path.to_path_buf(), source };
        let file = File::create(path).map_err(disk)?;
        let mut writer =
            FileWriter::try_new(Summed::new(BufWriter::with_capacity(READ_BYTES, file)), schema)?;
        for batch in batches {
            writer.write(batch)?;
        }
        writer.finish()?;
        let summed = writer.into_inner()?;
        let (bytes, checksum) = (summed.bytes, summed.checksum.finalize());
        summed.inner.into_inner().map_err(|error| disk(error.into_error()))?.sync_data().map_err(disk)?;
        Ok((bytes, checksum))
    }

    /// Writes what is needed to find the file again after a restart.
    pub(crate) fn describe(&self, about: &About) -> Result<(), Error> {
        let disk = |source| Error::Disk { path: self.path.clone(), source };
        let description =
            Description { format: FORMAT, bytes: self.bytes, checksum: self.checksum, about: about.clone() };
        let text = serde_json::to_vec(&description).map_err(|error| disk(error.into()))?;
        let (target, begun) = (described(&self.path), self.path.with_extension("begun"));
        fs::write(&begun, text).and_then(|()| fs::rename(&begun, target)).map_err(disk)
    }

    /// The rows as views of the mapped file.
    pub(crate) fn map(&self) -> Result<Loaded, Error> {
        if self.sum()? != (self.bytes, self.checksum) {
            return Err(Error::Damaged { path: self.path.clone() });
        }
        let mapped = Arc::new(MappedFile::open(&self.path)?);
        let batches = (0..mapped.len()).map(|place| mapped.batch(place)).collect::<Result<Vec<_>, _>>()?;
        Ok(Loaded { schema: Arc::clone(mapped.schema()), batches: batches.into(), file: Some(mapped) })
    }

    fn sum(&self) -> Result<(u64, u32), Error> {
        let read = || {
            let mut file = File::open(&self.path)?;
            let (mut hasher, mut bytes) = (crc32fast::Hasher::new(), 0);
            let mut buffer = vec![0; READ_BYTES];
            loop {
                match file.read(&mut buffer)? {
                    0 => return Ok((bytes, hasher.finalize())),
                    count => {
                        hasher.update(buffer.get(..count).unwrap_or_default());
                        bytes += count as u64;
                    }
                }
            }
        };
        read().map_err(|source| Error::Disk { path: self.path.clone(), source })
    }

    /// The number of the join whose file it is.
    pub(crate) fn number(&self) -> u64 {
        number(&self.path).unwrap_or_default()
    }

    /// Removes the file and its description. Maps of it stay valid.
    pub(crate) fn remove(&self) {
        remove(&described(&self.path));
        remove(&self.path);
    }
}

/// The files of a folder with what they hold, after a restart. Everything else that the cache has left there is removed.
pub(crate) fn found(folder: &Path) -> Result<Vec<(About, CacheFile)>, Error> {
    let disk = |source| Error::Disk { path: folder.to_path_buf(), source };
    fs::create_dir_all(folder).map_err(disk)?;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(disk)? {
        let path = entry.map_err(disk)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        match ending {
            Some("arrow") => match read_description(&path) {
                Some(description) => {
                    let Description { bytes, checksum, about, .. } = description;
                    found.push((about, CacheFile { path, bytes, checksum }));
                }
                None => {
                    remove(&described(&path));
                    remove(&path);
                }
            },
            Some("begun") => remove(&path),
            Some("json") if !path.with_extension("arrow").exists() && is_number(&path) => remove(&path),
            _ => {}
        }
    }
    Ok(found)
}

fn read_description(path: &Path) -> Option<Description> {
    let text = fs::read(described(path)).ok()?;
    let description: Description = serde_json::from_slice(&text).ok()?;
    let length = fs::metadata(path).ok()?.len();
    (description.format == FORMAT && description.bytes == length && is_number(path)).then_some(description)
}

fn is_number(path: &Path) -> bool {
    number(path).is_some()
}

fn number(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.parse().ok()
}

fn described(path: &Path) -> PathBuf {
    path.with_extension("json")
}

/// Failing to remove a file costs disk until the next start, no more.
fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "a cache file cannot be removed");
    }
}

/// Sums up what it writes.
struct Summed<W> {
    inner: W,
    bytes: u64,
    checksum: crc32fast::Hasher,
}

impl<W> Summed<W> {
    fn new(inner: W) -> Self {
        Self { inner, bytes: 0, checksum: crc32fast::Hasher::new() }
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.checksum.update(bytes.get(..count).unwrap_or_default());
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
