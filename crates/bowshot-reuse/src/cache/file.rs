//! Rows on disk: an Arrow file for each join or result and, if it may outlive the process, a description. The checksum is compared before
//! rows are read, so that damaged files are never used.

use crate::cache::Error;
use crate::cache::cache_folder;
use crate::cache::entry::Loaded;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;
use arrow::record_batch::RecordBatch;
use bowshot_ipc::MappedFile;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufWriter, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Bytes of one read for a checksum.
const READ_BYTES: usize = 1 << 20;
/// The version of descriptions: files of other versions are removed.
const FORMAT: u32 = 4;

#[derive(Debug, Clone)]
pub(crate) struct CacheFile {
    path: PathBuf,
    bytes: u64,
    checksum: u32,
    described: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Description {
    format: u32,
    bytes: u64,
    checksum: u32,
    /// The description of the rows as JSON, with its own checksum.
    about: String,
    about_checksum: u32,
}

/// The part that descriptions of all versions have.
#[derive(Debug, Deserialize)]
struct Form {
    format: u32,
}

impl CacheFile {
    /// Writes the rows, with a call of `pause` before each batch. A failed file is removed.
    pub(crate) fn write(
        path: PathBuf,
        (schema, batches): (&Schema, &[RecordBatch]),
        pause: &dyn Fn(),
    ) -> Result<Self, Error> {
        let written = Self::write_all(&path, (schema, batches), pause);
        if written.is_err() {
            remove(&path);
        }
        let (bytes, checksum) = written?;
        Ok(Self { path, bytes, checksum, described: 0 })
    }

    fn write_all(
        path: &Path,
        (schema, batches): (&Schema, &[RecordBatch]),
        pause: &dyn Fn(),
    ) -> Result<(u64, u32), Error> {
        let disk = |source| Error::Disk { path: path.to_path_buf(), source };
        let written = |error| match error {
            ArrowError::IoError(_, source) => disk(source),
            other => Error::Arrow(other),
        };
        let file = cache_folder::create(path).map_err(disk)?;
        let buffered = ChecksumWriter::new(BufWriter::with_capacity(READ_BYTES, file));
        let mut writer = FileWriter::try_new(buffered, schema).map_err(written)?;
        for batch in batches {
            pause();
            writer.write(batch).map_err(written)?;
        }
        writer.finish().map_err(written)?;
        let summed = writer.into_inner().map_err(written)?;
        let (bytes, checksum) = (summed.bytes, summed.checksum.finalize());
        summed.inner.into_inner().map_err(|error| disk(error.into_error()))?.sync_data().map_err(disk)?;
        Ok((bytes, checksum))
    }

    pub(crate) fn describe<A: Serialize>(&mut self, about: &A) -> Result<(), Error> {
        let disk = |source| Error::Disk { path: self.path.clone(), source };
        let about = serde_json::to_string(about).map_err(|error| disk(error.into()))?;
        let about_checksum = crc32fast::hash(about.as_bytes());
        let (bytes, checksum) = (self.bytes, self.checksum);
        let description = Description { format: FORMAT, bytes, checksum, about, about_checksum };
        let text = serde_json::to_vec(&description).map_err(|error| disk(error.into()))?;
        let written = cache_folder::replace(&described(&self.path), &text);
        written.inspect_err(|_| remove(&self.path.with_extension("begun"))).map_err(disk)?;
        self.described = text.len() as u64;
        Ok(())
    }

    /// The rows, mapped.
    pub(crate) fn map(&self) -> Result<Loaded, Error> {
        if self.sum()? != (self.bytes, self.checksum) {
            return Err(self.damaged());
        }
        let mapped = Arc::new(MappedFile::open(&self.path)?);
        let batches = (0..mapped.len()).map(|place| mapped.batch(place)).collect::<Result<Vec<_>, _>>()?;
        Ok(Loaded { schema: Arc::clone(mapped.schema()), batches: batches.into(), file: Some(mapped) })
    }

    /// The rows, copied.
    pub(crate) fn read(&self) -> Result<Loaded, Error> {
        let bytes = fs::read(&self.path).map_err(|source| Error::Disk { path: self.path.clone(), source })?;
        if (bytes.len() as u64, crc32fast::hash(&bytes)) != (self.bytes, self.checksum) {
            return Err(self.damaged());
        }
        let reader = FileReader::try_new(Cursor::new(bytes), None)?;
        let schema = reader.schema();
        Ok(Loaded::in_memory(schema, reader.collect::<Result<Vec<_>, _>>()?))
    }

    pub(crate) fn size(&self) -> u64 {
        self.bytes + self.described
    }

    fn damaged(&self) -> Error {
        Error::Damaged { path: self.path.clone() }
    }

    fn sum(&self) -> Result<(u64, u32), Error> {
        sum(&self.path).map_err(|source| Error::Disk { path: self.path.clone(), source })
    }

    pub(crate) fn number(&self) -> u64 {
        number(&self.path).unwrap_or_default()
    }

    /// Removes the file and its description. Maps of it stay valid.
    pub(crate) fn remove(&self) {
        remove(&described(&self.path));
        remove(&self.path);
    }
}

pub(crate) fn sum(path: &Path) -> io::Result<(u64, u32)> {
    let mut file = File::open(path)?;
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
}

/// The files of a folder with their descriptions, after a restart. Everything else that the cache has left is removed;
/// damaged files after a call of `tell`. Unreadable files stay.
pub(crate) fn found<A: DeserializeOwned>(
    place: &Path,
    tell: fn(&Error),
) -> Result<Vec<(A, CacheFile)>, Error> {
    let disk = |source| Error::Disk { path: place.to_path_buf(), source };
    cache_folder::private(place).map_err(disk)?;
    let mut found = Vec::new();
    for entry in fs::read_dir(place).map_err(disk)? {
        let path = entry.map_err(disk)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        match ending {
            Some("arrow") if is_number(&path) => match read_description(&path) {
                Ok(Some(described)) => found.push(described),
                Err(error @ Error::Disk { .. }) => tell(&error),
                useless => {
                    useless.err().iter().for_each(tell);
                    remove(&described(&path));
                    remove(&path);
                }
            },
            Some("begun") if is_number(&path) => remove(&path),
            Some("json") if !path.with_extension("arrow").exists() && is_number(&path) => remove(&path),
            _ => {}
        }
    }
    Ok(found)
}

/// The description of a file; `None` if there is none of this version.
fn read_description<A: DeserializeOwned>(path: &Path) -> Result<Option<(A, CacheFile)>, Error> {
    let described = described(path);
    let disk = |source| Error::Disk { path: described.clone(), source };
    let damaged = |path: &Path| Error::Damaged { path: path.to_path_buf() };
    let text = match fs::read(&described) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(disk)?,
    };
    let form: Form = serde_json::from_slice(&text).map_err(|_| damaged(&described))?;
    if form.format != FORMAT {
        return Ok(None);
    }
    let description: Description = serde_json::from_slice(&text).map_err(|_| damaged(&described))?;
    if description.about_checksum != crc32fast::hash(description.about.as_bytes()) {
        return Err(damaged(&described));
    }
    let about = serde_json::from_str(&description.about).map_err(|_| damaged(&described))?;
    if fs::metadata(path).map_err(disk)?.len() != description.bytes {
        return Err(damaged(path));
    }
    let (Description { bytes, checksum, .. }, described) = (description, text.len() as u64);
    Ok(Some((about, CacheFile { path: path.to_path_buf(), bytes, checksum, described })))
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

/// The number of new files, which is never reused.
pub(crate) fn now_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX / 2)
}

/// A file that cannot be removed stays until the next start.
fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "a cache file cannot be removed");
    }
}

/// Sums up what it writes.
struct ChecksumWriter<W> {
    inner: W,
    bytes: u64,
    checksum: crc32fast::Hasher,
}

impl<W> ChecksumWriter<W> {
    fn new(inner: W) -> Self {
        Self { inner, bytes: 0, checksum: crc32fast::Hasher::new() }
    }
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.checksum.update(bytes.get(..count).unwrap_or_default());
        self.bytes += count as u64;
        Ok(count)
    }

    bowshot_api::delegate! { inner: fn flush(&mut self) -> io::Result<()>; }
}
