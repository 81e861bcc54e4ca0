//! The manifests of a state without some of its data files: those that have none of them stay, the others are written again.

use super::super::manifest::{self as lists, ManifestFile, WholeEntry};
use super::super::paths;
use super::manifest::{self, Change};
use super::new_files::NewFiles;
use super::table_state::{Spec, TableState, Target};
use crate::table_folder::FolderView;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::data_file::HandlePool;
use bowshot_object_store::Error as FileError;
use datafusion::common::ScalarValue;
use serde_json::Value;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use uuid::Uuid;

/// Manifests of a table that is written to; one with more is to be compacted first.
const MAX_MANIFESTS: usize = 50_000;
/// Entries of a manifest that is written again.
const MAX_ENTRIES: usize = 1_000_000;

/// The files that are to go, by where they are read from, and the state that has them.
#[derive(Debug)]
pub(in super::super) struct Removal<'a> {
    pub(in super::super) state: &'a TableState,
    pub(in super::super) folder: &'a FolderView,
    pub(in super::super) pool: &'a Arc<HandlePool>,
    pub(in super::super) files: HashSet<PathBuf>,
    /// Whether the same rows are in the files that are added.
    pub(in super::super) is_compaction: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Removed {
    /// The snapshot that has the files, if the state has one.
    pub(super) from: Option<i64>,
    pub(super) is_compaction: bool,
    untouched: Vec<ManifestFile>,
    rewritten: Vec<ManifestFile>,
    /// What is gone.
    pub(super) files: i64,
    pub(super) rows: i64,
    pub(super) bytes: i64,
}

impl Removed {
    /// Writes the manifests that have some of the files again, without them. Blocks.
    ///
    /// # Errors
    /// When a manifest cannot be read, or written.
    pub(super) fn new(
        removal: &Removal<'_>,
        (target, files): (&Target, &mut NewFiles),
        snapshot: i64,
    ) -> Result<Self> {
        let Removal { state, folder, pool, is_compaction, .. } = *removal;
        let corrupt = |detail: &str| FileError::corrupt(&folder.path(""), detail);
        let from = state.current();
        let manifests = match from {
            Some(id) => {
                let before = state.snapshot(id).ok_or_else(|| corrupt("its snapshot is not there"))?;
                manifests_of(before, state, (folder, pool))?
            }
            None => Vec::new(),
        };
        let (untouched, rewritten) = (Vec::new(), Vec::new());
        let mut removed = Self { from, is_compaction, untouched, rewritten, files: 0, rows: 0, bytes: 0 };
        for manifest in manifests {
            if manifest.content != 0 || removal.files.is_empty() {
                removed.untouched.push(manifest);
                continue;
            }
            let entries = entries_of(&manifest, state, (folder, pool))?;
            removed.take(removal, (target, &mut *files), (manifest, entries), snapshot)?;
        }
        match usize::try_from(removed.files) == Ok(removal.files.len()) {
            true => Ok(removed),
            false => Err(corrupt("files that rows were changed in are in no manifest of it").into()),
        }
    }

    fn take(
        &mut self,
        removal: &Removal<'_>,
        (target, files): (&Target, &mut NewFiles),
        (manifest, mut entries): (ManifestFile, Vec<WholeEntry>),
        snapshot: i64,
    ) -> Result<()> {
        let Removal { state, folder, .. } = *removal;
        let mut changes = Vec::with_capacity(entries.len());
        let (mut left, mut gone) = ((0, 0), (0, 0, 0));
        for WholeEntry { snapshot, sequence, file_sequence, file } in &entries {
            let (sequence, file_sequence) = (*sequence, *file_sequence);
            let name = paths::below(&file.path, &state.metadata.location, folder)
                .map_err(|outside| FileError::corrupt(&folder.path(""), outside))?;
            if removal.files.contains(&folder.path(&name)) {
                gone = (gone.0 + 1, gone.1 + file.rows, gone.2 + file.bytes);
                changes.push(Change::Deleted { sequence, file_sequence });
            } else {
                left = (left.0 + 1, left.1 + file.rows);
                changes.push(Change::Existing { snapshot: *snapshot, sequence, file_sequence });
            }
        }
        if gone.0 == 0 {
            self.untouched.push(manifest);
            return Ok(());
        }
        (self.files, self.rows, self.bytes) = (self.files + gone.0, self.rows + gone.1, self.bytes + gone.2);
        let spec = state.spec(manifest.spec, &target.columns).ok_or_else(|| {
            Error::unsupported(
                "rows are not changed in files that are partitioned in a way that is not known here",
            )
        })?;
        for entry in &mut entries {
            entry.file.partition = present(std::mem::take(&mut entry.file.partition), &spec)?;
        }
        let of_files = changes.into_iter().zip(entries.iter().map(|entry| &entry.file));
        let bytes = manifest::manifest((target, &spec), of_files, snapshot);
        let (path, length) = put(target, files, &bytes)?;
        let min_sequence = entries.iter().map(|entry| entry.sequence).min().unwrap_or(0);
        // What the manifest said of partitions holds for a part of its files, too.
        self.rewritten.push(ManifestFile {
            path,
            length,
            min_sequence,
            snapshot,
            files: [0, left.0, gone.0],
            rows: [0, left.1, gone.1],
            key: None,
            ..manifest
        });
        Ok(())
    }

    /// The manifests, in a snapshot of this number.
    pub(super) fn manifests(&self, sequence: i64) -> impl Iterator<Item = ManifestFile> + '_ {
        let rewritten =
            self.rewritten.iter().map(move |manifest| ManifestFile { sequence, ..manifest.clone() });
        rewritten.chain(self.untouched.iter().cloned())
    }
}

/// The values of a partition in the types that they are written in.
fn present(values: Vec<ScalarValue>, spec: &Spec) -> Result<Vec<ScalarValue>> {
    let strange = || Error::new(ErrorKind::Corrupt, "the partition of a file is none of its specification");
    if values.len() != spec.partition.len() {
        return Err(strange());
    }
    let pairs = values.into_iter().zip(&spec.partition);
    pairs.map(|(value, column)| value.cast_to(&column.result).map_err(|_| strange())).collect()
}

/// Writes a manifest: what the metadata call it, and its bytes.
pub(super) fn put(target: &Target, files: &mut NewFiles, bytes: &[u8]) -> Result<(String, i64)> {
    let name = format!("metadata/{}-m0.avro", Uuid::new_v4());
    files.put(&name, bytes)?;
    Ok((target.address(&name), i64::try_from(bytes.len()).unwrap_or(i64::MAX)))
}

/// The files of a manifest that count.
///
/// # Errors
/// When it cannot be read.
pub(super) fn entries_of(
    manifest: &ManifestFile,
    state: &TableState,
    (folder, pool): (&FolderView, &Arc<HandlePool>),
) -> Result<Vec<WholeEntry>> {
    let name = paths::below(&manifest.path, &state.metadata.location, folder)
        .map_err(|outside| FileError::corrupt(&folder.path(""), outside))?;
    let file = folder.find(&name)?.data(pool);
    Ok(lists::whole_entries(&file, manifest, MAX_ENTRIES)?)
}

/// The manifests of a snapshot.
///
/// # Errors
/// When its list cannot be read.
pub(super) fn manifests_of(
    snapshot: &Value,
    state: &TableState,
    (folder, pool): (&FolderView, &Arc<HandlePool>),
) -> Result<Vec<ManifestFile>> {
    let Some(list) = snapshot.get("manifest-list").and_then(Value::as_str) else {
        return Err(Error::unsupported("cannot write to a table whose snapshot has no list of manifests")
            .with_hint("let the program that has written it add a snapshot first"));
    };
    let name = paths::below(list, &state.metadata.location, folder)
        .map_err(|outside| FileError::corrupt(&folder.path(""), outside))?;
    let file = folder.find(&name)?.data(pool);
    Ok(lists::whole_list(&file, MAX_MANIFESTS)?)
}
