//! The manifests of a state without some of its data files, or of the rows in them: those that have none of them stay, the others are
//! written again.

use super::super::manifest::{self as lists, ManifestFile, WholeEntry};
use super::super::paths;
use super::data_files::WrittenFile;
use super::delete_vectors::{ShortenedFile, put_vectors};
use super::manifest::{self, Change, DATA};
use super::new_files::NewFiles;
use super::table_state::{Spec, TableState, Target};
use crate::table_folder::FolderView;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::data_file::HandlePool;
use bowshot_object_store::Error as FileError;
use datafusion::common::ScalarValue;
use roaring::RoaringTreemap;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use uuid::Uuid;

/// Manifests of a table that is written to; one with more is to be compacted first.
const MAX_MANIFESTS: usize = 50_000;
const MAX_ENTRIES: usize = 1_000_000;

/// The files and rows that are to go, by where files are read from, and the state that has them.
#[derive(Debug)]
pub(in super::super) struct Removal<'a> {
    pub(in super::super) state: &'a TableState,
    pub(in super::super) folder: &'a FolderView,
    pub(in super::super) pool: &'a Arc<HandlePool>,
    pub(in super::super) files: HashSet<PathBuf>,
    /// All rows that are deleted then in files that stay.
    pub(in super::super) rows: HashMap<PathBuf, RoaringTreemap>,
    /// Whether the same rows are in the files that are added.
    pub(in super::super) is_compaction: bool,
}

/// The manifests of a snapshot without the removed files.
#[derive(Debug, Default)]
pub(super) struct Removed {
    /// The snapshot that has the files, if the state has one.
    pub(super) from: Option<i64>,
    pub(super) is_compaction: bool,
    untouched: Vec<ManifestFile>,
    rewritten: Vec<ManifestFile>,
    /// Of vectors of deleted rows.
    added: Vec<ManifestFile>,
    /// Data files that are gone, with their rows and bytes.
    pub(super) files: [i64; 3],
    /// The same of vectors that are gone, and of those that are new.
    pub(super) old_vectors: [i64; 3],
    pub(super) new_vectors: [i64; 3],
}

/// What manifests are written again with.
struct Writing<'a> {
    removal: &'a Removal<'a>,
    target: &'a Target,
    snapshot: i64,
}

impl Removal<'_> {
    fn place(&self, file: &WrittenFile) -> Result<PathBuf> {
        let name = paths::below(&file.path, &self.state.metadata.location, self.folder);
        let name = name.map_err(|outside| FileError::corrupt(&self.folder.path(""), outside))?;
        Ok(self.folder.path(&name))
    }

    fn entries(&self, manifest: &ManifestFile) -> Result<Vec<WholeEntry>> {
        entries_of(manifest, self.state, (self.folder, self.pool))
    }
}

impl Removed {
    /// Writes the manifests that have some of the files again, without them, and vectors of rows. Blocks.
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
                let before = state.snapshot(id).ok_or_else(|| corrupt("its snapshot does not exist"))?;
                manifests_of(before, state, (folder, pool))?
            }
            None => Vec::new(),
        };
        let (data, deletes): (Vec<ManifestFile>, Vec<ManifestFile>) =
            manifests.into_iter().partition(|manifest| manifest.content == DATA);
        let writing = Writing { removal, target, snapshot };
        let mut removed = Self { from, is_compaction, ..Self::default() };
        let (shortened, touched) = removed.take_data(&writing, files, data)?;
        let [gone, ..] = removed.files;
        let is_complete =
            usize::try_from(gone) == Ok(removal.files.len()) && shortened.len() == removal.rows.len();
        if !is_complete {
            return Err(corrupt("its manifests lack files with changed rows").into());
        }
        removed.take_deletes(&writing, files, (deletes, &touched))?;
        (removed.added, removed.new_vectors) = put_vectors(shortened, state, (target, files), snapshot)?;
        Ok(removed)
    }

    /// The files that stay and lose rows, and what the metadata call them and those that go.
    fn take_data<'r>(
        &mut self,
        writing: &Writing<'r>,
        files: &mut NewFiles,
        manifests: Vec<ManifestFile>,
    ) -> Result<(Vec<ShortenedFile<'r>>, HashSet<String>)> {
        let Writing { removal, target, .. } = *writing;
        let is_meant = !removal.files.is_empty() || !removal.rows.is_empty();
        let (mut shortened, mut touched) = (Vec::new(), HashSet::new());
        for manifest in manifests {
            let entries = if is_meant { removal.entries(&manifest)? } else { Vec::new() };
            let mut gone = HashSet::new();
            for (number, WholeEntry { file, .. }) in entries.iter().enumerate() {
                let place = removal.place(file)?;
                if removal.files.contains(&place) {
                    gone.insert(number);
                } else if let Some(places) = removal.rows.get(&place) {
                    let spec = spec_of(removal.state, manifest.spec, target)?;
                    let partition = present(file.partition.clone(), &spec)?;
                    let (path, spec) = (file.path.clone(), spec.id);
                    shortened.push(ShortenedFile { path, spec, partition, places });
                } else {
                    continue;
                }
                touched.insert(file.path.clone());
            }
            let lost = self.leave_out(writing, files, (manifest, entries), &gone)?;
            self.files = sum(self.files, lost);
        }
        Ok((shortened, touched))
    }

    /// A file has one vector, and one that goes has none any more.
    fn take_deletes(
        &mut self,
        writing: &Writing<'_>,
        files: &mut NewFiles,
        (manifests, touched): (Vec<ManifestFile>, &HashSet<String>),
    ) -> Result<()> {
        let is_meant = writing.target.has_lineage() && !touched.is_empty();
        let is_vector = |file: &WrittenFile| {
            file.range.is_some() && file.referenced.as_ref().is_some_and(|of| touched.contains(of))
        };
        for manifest in manifests {
            let entries = if is_meant { writing.removal.entries(&manifest)? } else { Vec::new() };
            let numbered = entries.iter().enumerate();
            let gone =
                numbered.filter(|(_, entry)| is_vector(&entry.file)).map(|(number, _)| number).collect();
            let lost = self.leave_out(writing, files, (manifest, entries), &gone)?;
            self.old_vectors = sum(self.old_vectors, lost);
        }
        Ok(())
    }

    /// Takes a manifest over, which is written again if some of its entries are gone: how many these are, their rows and bytes.
    fn leave_out(
        &mut self,
        writing: &Writing<'_>,
        files: &mut NewFiles,
        (manifest, mut entries): (ManifestFile, Vec<WholeEntry>),
        gone: &HashSet<usize>,
    ) -> Result<[i64; 3]> {
        if gone.is_empty() {
            self.untouched.push(manifest);
            return Ok([0; 3]);
        }
        let Writing { removal, target, snapshot: this } = *writing;
        let spec = spec_of(removal.state, manifest.spec, target)?;
        let (mut left, mut lost) = ([0; 3], [0; 3]);
        let mut changes = Vec::with_capacity(entries.len());
        for (number, entry) in entries.iter_mut().enumerate() {
            entry.file.partition = present(std::mem::take(&mut entry.file.partition), &spec)?;
            let WholeEntry { snapshot, sequence, file_sequence, ref file } = *entry;
            let counts = [1, file.rows, file.range.map_or(file.bytes, |(_, length)| length)];
            changes.push(if gone.contains(&number) {
                lost = sum(lost, counts);
                Change::Deleted { sequence, file_sequence }
            } else {
                left = sum(left, counts);
                Change::Existing { snapshot, sequence, file_sequence }
            });
        }
        let of_files = changes.into_iter().zip(entries.iter().map(|entry| &entry.file));
        let bytes = manifest::manifest((target, &spec, manifest.content), of_files, this);
        let (path, length) = put(target, files, &bytes)?;
        let min_sequence = entries.iter().map(|entry| entry.sequence).min().unwrap_or(0);
        let ([files_left, rows_left, _], [files_lost, rows_lost, _]) = (left, lost);
        // What the manifest said of partitions holds for a part of its files, too.
        self.rewritten.push(ManifestFile {
            path,
            length,
            min_sequence,
            snapshot: this,
            files: [0, files_left, files_lost],
            rows: [0, rows_left, rows_lost],
            key: None,
            first_row: None,
            ..manifest
        });
        Ok(lost)
    }

    pub(super) fn manifests(&self, sequence: i64) -> impl Iterator<Item = ManifestFile> + '_ {
        let rewritten =
            self.rewritten.iter().map(move |manifest| ManifestFile { sequence, ..manifest.clone() });
        let added = self.added.iter();
        let added =
            added.map(move |added| ManifestFile { sequence, min_sequence: sequence, ..added.clone() });
        rewritten.chain(added).chain(self.untouched.iter().cloned())
    }

    /// Whether something goes that was in the table.
    pub(super) fn takes_out(&self) -> bool {
        let ([files, ..], [vectors, ..]) = (self.files, self.new_vectors);
        files > 0 || vectors > 0
    }
}

fn sum([files, rows, bytes]: [i64; 3], more: [i64; 3]) -> [i64; 3] {
    [files + more[0], rows + more[1], bytes + more[2]]
}

/// What files of a specification are partitioned by.
///
/// # Errors
/// `Unsupported` for one that is not known here.
pub(super) fn spec_of(state: &TableState, spec: i64, target: &Target) -> Result<Spec> {
    state.spec(spec, &target.columns).ok_or_else(|| {
        Error::unsupported("changing rows in files with an unknown partition transform is not supported")
    })
}

/// The values of a partition in the types that they are written in.
fn present(values: Vec<ScalarValue>, spec: &Spec) -> Result<Vec<ScalarValue>> {
    let strange =
        || Error::new(ErrorKind::Corrupt, "the partition of a file does not match its partition spec");
    if values.len() != spec.partition.len() {
        return Err(strange());
    }
    let pairs = values.into_iter().zip(&spec.partition);
    pairs.map(|(value, column)| value.cast_to(&column.result).map_err(|_| strange())).collect()
}

pub(super) fn put(target: &Target, files: &mut NewFiles, bytes: &[u8]) -> Result<(String, i64)> {
    let name = format!("metadata/{}-m0.avro", Uuid::new_v4());
    files.put(&name, bytes)?;
    Ok((target.address(&name), i64::try_from(bytes.len()).unwrap_or(i64::MAX)))
}

/// The files of a manifest that count.
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

pub(super) fn manifests_of(
    snapshot: &Value,
    state: &TableState,
    (folder, pool): (&FolderView, &Arc<HandlePool>),
) -> Result<Vec<ManifestFile>> {
    let Some(list) = snapshot.get("manifest-list").and_then(Value::as_str) else {
        return Err(Error::unsupported("cannot write to a table whose snapshot has no manifest list")
            .with_hint("add a snapshot with the program that wrote the table"));
    };
    let name = paths::below(list, &state.metadata.location, folder)
        .map_err(|outside| FileError::corrupt(&folder.path(""), outside))?;
    let file = folder.find(&name)?.data(pool);
    Ok(lists::whole_list(&file, MAX_MANIFESTS)?)
}
