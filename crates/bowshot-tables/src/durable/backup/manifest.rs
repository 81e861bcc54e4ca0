//! The list of a backup's files: sizes and hashes. It is written last, so that a folder that has it was whole.

use super::hold::is_below;
use super::{Stop, go_on};
use crate::Error;
use bowshot_object_store::private;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// The file of it in a backup.
pub(in crate::durable) const MANIFEST: &str = "manifest.json";
/// Number of the form below. Another one is not read.
const FORMAT: u32 = 1;
const CHUNK: usize = 1 << 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::durable) struct Manifest {
    format: u32,
    program: String,
    /// The moment of the state, as RFC 3339 has it.
    pub(in crate::durable) taken: String,
    pub(in crate::durable) tables: usize,
    /// By name below the folder, with `/` between its parts.
    pub(in crate::durable) files: BTreeMap<String, Listed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::durable) struct Listed {
    pub(in crate::durable) bytes: u64,
    pub(in crate::durable) sha256: String,
}

impl Manifest {
    pub(super) fn new(taken: String, tables: usize, files: BTreeMap<String, Listed>) -> Self {
        Self { format: FORMAT, program: env!("CARGO_PKG_VERSION").to_owned(), taken, tables, files }
    }

    /// Whether a folder has one.
    pub(in crate::durable) fn is_in(folder: &Path) -> bool {
        folder.join(MANIFEST).exists()
    }

    pub(in crate::durable) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoBackup { path: folder.to_path_buf() });
            }
            Err(error) => return Err(Error::file("read", &path, error)),
        };
        let damaged = |problem: String| Error::Damaged { place: MANIFEST.to_owned(), problem };
        let manifest: Self = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if manifest.format != FORMAT {
            let format = manifest.format;
            return Err(damaged(format!("it has format {format}, this version knows {FORMAT}")));
        }
        match manifest.files.keys().find(|name| !is_below(name)) {
            Some(name) => Err(damaged(format!("`{name}` is no file of a backup"))),
            None => Ok(manifest),
        }
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(MANIFEST);
        let written = serde_json::to_vec_pretty(self).map_err(io::Error::other).and_then(|text| {
            let mut file = private::new_file(&path)?;
            file.write_all(&text)?;
            file.sync_all()
        });
        written.map_err(|error| Error::file("write", &path, error))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }
}

pub(in crate::durable) fn hashed(path: &Path, stop: &Stop) -> Result<Listed, Error> {
    read_all(path, stop, |_| Ok(()))
}

/// Copies a file to one that is not there yet, synced; gives its size and hash.
pub(super) fn copied(from: &Path, to: &Path, stop: &Stop) -> Result<Listed, Error> {
    let failed = |error| Error::file("write", to, error);
    let mut file = private::new_file(to).map_err(failed)?;
    let listed = read_all(from, stop, |chunk| file.write_all(chunk).map_err(failed))?;
    file.sync_all().map_err(failed)?;
    Ok(listed)
}

fn read_all(
    path: &Path,
    stop: &Stop,
    mut each: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Listed, Error> {
    let failed = |error| Error::file("read", path, error);
    let mut file = File::open(path).map_err(failed)?;
    let (mut digest, mut bytes, mut chunk) = (Sha256::new(), 0, vec![0; CHUNK]);
    loop {
        go_on(stop)?;
        let read = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        let part = chunk.get(..read).unwrap_or_default();
        digest.update(part);
        each(part)?;
        bytes += read as u64;
    }
    let sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Listed { bytes, sha256 })
}
