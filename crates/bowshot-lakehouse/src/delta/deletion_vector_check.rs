//! Checks the size of Delta deletion vectors before the library expands them: a log entry of some hundred bytes can name a vector
//! that no memory has room for. All vectors of a table together have a limit.
//!
//! ```text
//! in the log:  Base85 of │ magic │ bitmaps │
//! in a file:   version (1) │ … │ size (4, big-endian) │ magic │ bitmaps │ CRC-32 of magic and bitmaps (4, big-endian) │ …
//! ```

use crate::delta::paths::{Root, outside};
use crate::table_folder::FolderView;
use crate::{MAX_DELETED, MAX_VECTOR_BYTES, deletion_bitmap};
use bowshot_formats::data_file::{DataFile, HandlePool};
use bowshot_object_store::{Error, FileIdentity};
use bytes::Bytes;
use deltalake_core::kernel::{DeletionVectorDescriptor, LogDataHandler, StorageType};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use url::Url;
use uuid::Uuid;

/// Rows of all files up to the last deleted one of each: the library takes a byte for each.
const MAX_MASKED: u64 = 1 << 30;

/// Of a file of vectors.
const VERSION: u8 = 1;
/// Where its first vector is.
const FIRST: i32 = 1;
const MAX_HANDLES: usize = 4;

/// Digits of the name of a file of vectors in the log.
const UUID_DIGITS: usize = 20;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Vector {
    place: Place,
    /// Rows of the file that it is of.
    rows: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Log(String),
    /// The name from the folder of the table on, and where in it.
    File {
        name: String,
        offset: usize,
        size: u32,
    },
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Checked(Vec<(PathBuf, FileIdentity)>);

impl Checked {
    /// The library reads vectors again for each scan: that they are still those. It costs a look at each file, no read of one.
    ///
    /// # Errors
    /// `Changed` where a file is another one, which is not expected: they have names that nobody uses twice.
    pub(crate) fn still(&self) -> Result<(), Error> {
        for (path, identity) in &self.0 {
            let metadata = fs::metadata(path).map_err(|error| Error::io(path, error))?;
            if !identity.has_content_of(&metadata) {
                return Err(Error::Changed { path: path.clone() });
            }
        }
        Ok(())
    }
}

/// The vectors that a version of a table has, those of one file one behind the other.
pub(crate) fn named(files: LogDataHandler<'_>, root: Root<'_>) -> Result<Vec<Vector>, String> {
    let mut vectors = Vec::new();
    for file in files.iter() {
        if let Some(descriptor) = file.deletion_vector_descriptor() {
            vectors.push(Vector::new(&descriptor, file.num_records(), root)?);
        }
    }
    vectors.sort_unstable();
    Ok(vectors)
}

/// Reads the vectors, to say whether the library may. Blocks.
///
/// # Errors
/// `Corrupt` for one that is damaged or deletes rows that its file does not have, `Unsupported` when there is too much of it.
pub(crate) fn check(vectors: &[Vector], folder: &FolderView) -> Result<Checked, Error> {
    let pool = HandlePool::new(MAX_HANDLES);
    let (mut checked, mut masked) = (Checked::default(), 0_u64);
    let mut last: Option<(&str, PathBuf, Bytes)> = None;
    for Vector { place, rows } in vectors {
        let (path, read) = match place {
            Place::Log(text) => {
                let content = z85::decode(text).map_err(|_| damaged());
                (folder.path(""), content.and_then(|content| largest(&content)))
            }
            Place::File { name, offset, size } => {
                let (path, bytes) = match last.take() {
                    Some((known, path, bytes)) if known == name.as_str() => (path, bytes),
                    _ => {
                        let file = folder.find(name)?.data(&pool);
                        if matches!(folder, FolderView::Local(_)) {
                            checked.0.push((file.path().to_path_buf(), *file.identity()));
                        }
                        (file.path().to_path_buf(), whole(&file)?)
                    }
                };
                let read = content(&bytes, *offset, *size).ok_or_else(damaged).and_then(largest);
                last = Some((name.as_str(), path.clone(), bytes));
                (path, read)
            }
        };
        let Some(largest) = read.map_err(|reason| Error::corrupt(&path, reason))? else { continue };
        if largest >= *rows {
            let detail = format!("a deletion vector deletes row {largest} of a file that has {rows} rows");
            return Err(Error::corrupt(&path, detail));
        }
        masked = masked.saturating_add(largest).saturating_add(1);
        if masked > MAX_MASKED {
            let detail =
                format!("more than {MAX_MASKED} rows in files with deletion vectors: compact the table");
            return Err(Error::Unsupported { path: folder.path(""), detail });
        }
    }
    Ok(checked)
}

impl Vector {
    fn new(
        descriptor: &DeletionVectorDescriptor,
        rows: Option<usize>,
        root: Root<'_>,
    ) -> Result<Self, String> {
        let text = descriptor.path_or_inline_dv.as_str();
        let name = match descriptor.storage_type {
            StorageType::Inline => None,
            StorageType::UuidRelativePath => Some(name_of_uuid(text)),
            StorageType::AbsolutePath => Some(name_of_address(text, root)),
        };
        let place = match name {
            None => Place::Log(text.to_owned()),
            Some(name) => {
                let offset = usize::try_from(descriptor.offset.unwrap_or(FIRST));
                let size = u32::try_from(descriptor.size_in_bytes);
                let (Some(name), Ok(offset), Ok(size)) = (name, offset, size) else {
                    return Err(outside(text));
                };
                Place::File { name, offset, size }
            }
        };
        // The format wants the number of rows where there is a vector; a file without it has no more rows than may be deleted.
        let rows = rows.unwrap_or(MAX_DELETED);
        Ok(Self { place, rows: u64::try_from(rows).unwrap_or(u64::MAX) })
    }
}

/// The name of a file that the log names by a folder and a number, from the folder of the table on.
pub(crate) fn name_of_uuid(text: &str) -> Option<String> {
    let (folder, number) = text.split_at_checked(text.len().checked_sub(UUID_DIGITS)?)?;
    // The library makes a part of a URL of it: nothing that means something there.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/".contains(&byte);
    if !folder.bytes().all(is_plain) || folder.starts_with('/') {
        return None;
    }
    let number = Uuid::from_slice(&z85::decode(number).ok()?).ok()?;
    let slash = if folder.is_empty() { "" } else { "/" };
    Some(format!("{folder}{slash}deletion_vector_{number}.bin"))
}

/// The name of a file that the log names by a whole address, which it may on this machine alone.
fn name_of_address(text: &str, root: Root<'_>) -> Option<String> {
    let Root::Folder(root) = root else { return None };
    let file = Url::parse(text).ok().filter(|url| url.scheme() == "file")?.to_file_path().ok()?;
    Path::new(&file).strip_prefix(root).ok()?.to_str().map(str::to_owned)
}

/// All bytes of a file of vectors, since the library reads all.
fn whole(file: &Arc<DataFile>) -> Result<Bytes, Error> {
    if file.size() > MAX_VECTOR_BYTES {
        let detail = format!("a file of deletion vectors has more than {MAX_VECTOR_BYTES} bytes");
        return Err(Error::Unsupported { path: file.path().to_path_buf(), detail });
    }
    let bytes = file.read(0..file.size());
    file.close();
    bytes
}

fn damaged() -> String {
    "its deletion vector is damaged".to_owned()
}

fn largest(content: &[u8]) -> Result<Option<u64>, String> {
    let bitmaps = content.strip_prefix(&deletion_bitmap::MAGIC).ok_or_else(damaged)?;
    deletion_bitmap::largest(bitmaps, MAX_DELETED)
}

fn content(bytes: &[u8], offset: usize, size: u32) -> Option<&[u8]> {
    let is_known = bytes.first() == Some(&VERSION);
    let (length, rest) = bytes.get(offset..).filter(|_| is_known)?.split_first_chunk()?;
    let (content, rest) = rest.split_at_checked(usize::try_from(size).ok()?)?;
    let checksum = rest.first_chunk()?;
    let is_whole =
        u32::from_be_bytes(*length) == size && u32::from_be_bytes(*checksum) == crc32fast::hash(content);
    is_whole.then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One value below a key.
    fn vector(key: u32, value: u32) -> Vec<u8> {
        let (high, low) = (u16::try_from(value >> 16).unwrap(), u16::try_from(value & 0xffff).unwrap());
        let mut bytes =
            [deletion_bitmap::MAGIC.as_slice(), &1_u64.to_le_bytes(), &key.to_le_bytes()].concat();
        bytes.extend([12_346_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat());
        bytes.extend([high.to_le_bytes(), 0_u16.to_le_bytes()].concat());
        bytes.extend(16_u32.to_le_bytes());
        bytes.extend(low.to_le_bytes());
        bytes
    }

    #[test]
    fn a_vector_in_a_file_is_that_of_its_checksum() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let content = vector(0, 9);
        let size = u32::try_from(content.len()).unwrap();
        let whole = [
            &[VERSION][..],
            b"another",
            &size.to_be_bytes(),
            &content,
            &crc32fast::hash(&content).to_be_bytes(),
        ]
        .concat();
        let name = name_of_uuid("ab^-aqEH.-t@S}K{vb[*k^").unwrap();
        assert_eq!(name, "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
        fs::create_dir(root.join("ab")).unwrap();
        let folder = FolderView::Local(root.clone());
        let at =
            |offset, size, rows| Vector { place: Place::File { name: name.clone(), offset, size }, rows };
        fs::write(root.join(&name), &whole).unwrap();
        let checked = check(&[at(8, size, 10)], &folder).unwrap();
        assert!(checked.still().is_ok());
        for vector in [
            at(8, size, 9),
            at(1, size, 10),
            at(8, size - 1, 10),
            at(usize::MAX, size, 10),
            at(8, u32::MAX, 10),
        ] {
            assert!(check(&[vector], &folder).is_err());
        }
        for byte in (0..whole.len()).filter(|byte| !(1..8).contains(byte)) {
            let mut other = whole.clone();
            other[byte] ^= 1;
            fs::write(root.join(&name), &other).unwrap();
            assert!(check(&[at(8, size, 10)], &folder).is_err(), "{byte}");
        }
        fs::write(root.join(&name), [whole.as_slice(), b"more"].concat()).unwrap();
        assert!(checked.still().is_err());
    }

    #[test]
    fn names_of_files_are_those_that_the_library_reads() {
        let root = Path::new("/data/t");
        assert_eq!(
            name_of_uuid("vBn[lx{q8@P<9BNH/isA").as_deref(),
            Some("deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin")
        );
        for text in [
            "../vBn[lx{q8@P<9BNH/isA",
            "a%2fvBn[lx{q8@P<9BNH/isA",
            "/vBn[lx{q8@P<9BNH/isA",
            "short",
            "~~~~~~~~~~~~~~~~~~~~",
        ] {
            assert_eq!(name_of_uuid(text), None, "{text}");
        }
        assert_eq!(name_of_address("file:///data/t/a/x.bin", Root::Folder(root)).as_deref(), Some("a/x.bin"));
        assert_eq!(name_of_address("file:///data/table/x.bin", Root::Folder(root)), None);
        assert_eq!(name_of_address("file:///data/t/x.bin", Root::Store), None);
    }
}
