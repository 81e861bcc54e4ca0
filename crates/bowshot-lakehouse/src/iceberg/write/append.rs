//! The snapshot of one statement, which adds files and may remove others: made again after each attempt to commit it, with the same
//! number, so that it is in the table once, whatever became of the answers. One that only adds goes on top of what others have
//! committed meanwhile; one that removes files goes on top of the state that it was made of, or nowhere.

use super::super::manifest::ManifestFile;
use super::data_files::RowWriter;
use super::manifest::{self, Change, DATA};
use super::new_files::NewFiles;
use super::removal::{Removal, Removed, manifests_of, put};
use super::table_state::{TableState, Target};
use crate::table_folder::FolderView;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::data_file::HandlePool;
use bowshot_object_store::Error as FileError;
use chrono::Utc;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Debug)]
pub(in super::super) struct Append {
    id: i64,
    target: Target,
    files: NewFiles,
    /// Of the files that are added, if there are some.
    manifest: Option<ManifestFile>,
    partitions: usize,
    bytes: i64,
    removed: Option<Removed>,
    /// Those that were written, one for each attempt.
    lists: Vec<String>,
}

impl Append {
    /// Closes the files, and writes their manifest; `None` where nothing is to change. Blocks.
    pub(in super::super) fn new(writer: RowWriter, removal: Option<&Removal<'_>>) -> Result<Option<Self>> {
        let (target, mut files, written) = writer.finish()?;
        if written.is_empty() && removal.is_none() {
            return Ok(None);
        }
        // A number of 63 bits.
        let id = i64::try_from(Uuid::new_v4().as_u128() >> 65).unwrap_or(i64::MAX);
        let manifest = match written.as_slice() {
            [] => None,
            written => {
                let entries = written.iter().map(|file| (Change::Added, file));
                let bytes = manifest::manifest((&target, &target.spec, DATA), entries, id);
                let (path, length) = put(&target, &mut files, &bytes)?;
                Some(ManifestFile {
                    path,
                    length,
                    spec: target.spec.id,
                    content: DATA,
                    sequence: 0,
                    min_sequence: 0,
                    snapshot: id,
                    files: [i64::try_from(written.len()).unwrap_or(i64::MAX), 0, 0],
                    rows: [written.iter().map(|file| file.rows).sum(), 0, 0],
                    partitions: Some(manifest::summaries(&target.spec.partition, written)),
                    key: None,
                    first_row: None,
                })
            }
        };
        let removed = match removal {
            Some(removal) => Some(Removed::new(removal, (&target, &mut files), id)?),
            None => None,
        };
        let partitions: HashSet<_> = written.iter().map(|file| &file.partition).collect();
        let (partitions, bytes) = (partitions.len(), written.iter().map(|file| file.bytes).sum());
        Ok(Some(Self { id, target, files, manifest, partitions, bytes, removed, lists: Vec::new() }))
    }

    pub(in super::super) fn rows(&self) -> u64 {
        self.added().1.unsigned_abs()
    }

    pub(in super::super) fn id(&self) -> i64 {
        self.id
    }

    fn added(&self) -> (i64, i64) {
        let Some(ManifestFile { files: [files, ..], rows: [rows, ..], .. }) = &self.manifest else {
            return (0, 0);
        };
        (*files, *rows)
    }

    /// The snapshot on top of a state, whose list of manifests is written. Blocks.
    ///
    /// # Errors
    /// When the list of the state cannot be read, or the new one not be written; `Conflict` where files are removed that another state
    /// has.
    pub(in super::super) fn snapshot(
        &mut self,
        state: &TableState,
        (folder, pool): (&FolderView, &Arc<HandlePool>),
    ) -> Result<Value> {
        if state.metadata.format_version != self.target.version {
            let message = "another writer changed the format version of the table while the statement ran";
            return Err(Error::new(ErrorKind::Conflict, message).with_hint("run the statement again"));
        }
        let sequence = state.number("last-sequence-number").unwrap_or(0) + 1;
        let parent = state.current();
        let before = match parent {
            Some(id) => Some(state.snapshot(id).ok_or_else(|| {
                FileError::corrupt(&folder.path(""), format!("its current snapshot {id} does not exist"))
            })?),
            None => None,
        };
        let mut manifests = Vec::new();
        if let Some(added) = &self.manifest {
            manifests.push(ManifestFile { sequence, min_sequence: sequence, ..added.clone() });
        }
        match (&self.removed, before) {
            (Some(removed), _) if parent != removed.from => {
                let message = "another writer changed the table after the statement read it";
                return Err(Error::new(ErrorKind::Conflict, message).with_hint("run the statement again"));
            }
            (Some(removed), _) => manifests.extend(removed.manifests(sequence)),
            (None, Some(before)) => manifests.extend(manifests_of(before, state, (folder, pool))?),
            (None, None) => {}
        }
        let attempt = self.lists.len() + 1;
        let name = format!("metadata/snap-{}-{attempt}-{}.avro", self.id, Uuid::new_v4());
        let first_row = self.target.has_lineage().then(|| state.number("next-row-id").unwrap_or(0));
        let rows = first_row.map(|first| number_rows(&mut manifests, first));
        let list = manifest::list(&manifests, (self.id, parent), (sequence, first_row));
        self.files.put(&name, &list)?;
        self.files.sync()?;
        let updated = state.number("last-updated-ms").unwrap_or(0);
        let mut snapshot = json!({
            "snapshot-id": self.id,
            "sequence-number": sequence,
            "timestamp-ms": Utc::now().timestamp_millis().max(updated),
            "manifest-list": self.target.address(&name),
            "summary": self.summary(before),
            "schema-id": self.target.schema_id,
        });
        if let Some(parent) = parent {
            snapshot["parent-snapshot-id"] = json!(parent);
        }
        if let (Some(first), Some(rows)) = (first_row, rows) {
            snapshot["first-row-id"] = json!(first);
            snapshot["added-rows"] = json!(rows);
        }
        self.lists.push(name);
        Ok(snapshot)
    }

    fn summary(&self, before: Option<&Value>) -> Value {
        let (files, rows) = self.added();
        // Rows that are added for what was read go on top of that alone, and take nothing out.
        let removed = self.removed.as_ref().filter(|removed| removed.takes_out());
        let operation = match (removed, &self.manifest) {
            (None, _) => "append",
            (Some(Removed { is_compaction: true, .. }), _) => "replace",
            (Some(_), None) => "delete",
            (Some(_), Some(_)) => "overwrite",
        };
        let mut counts = vec![("changed-partition-count", i64::try_from(self.partitions).unwrap_or(0))];
        if self.manifest.is_some() {
            let bytes = self.bytes;
            counts.extend([
                ("added-data-files", files),
                ("added-records", rows),
                ("added-files-size", bytes),
            ]);
        }
        let mut totals = [files, rows, self.bytes];
        let (mut vectors, mut places) = (0, 0);
        if let Some(Removed { files: [files, rows, bytes], old_vectors, new_vectors, .. }) = removed {
            let [all_files, all_rows, all_bytes] = totals;
            let ([old, old_rows, old_bytes], [new, new_rows, new_bytes]) = (*old_vectors, *new_vectors);
            totals = [all_files - files, all_rows - rows, all_bytes - bytes + new_bytes - old_bytes];
            (vectors, places) = (new - old, new_rows - old_rows);
            let of_files =
                [("deleted-data-files", *files), ("deleted-records", *rows), ("removed-files-size", *bytes)];
            let of_vectors = [
                ("added-delete-files", new),
                ("added-dvs", new),
                ("added-position-deletes", new_rows),
                ("removed-delete-files", old),
                ("removed-dvs", old),
                ("removed-position-deletes", old_rows),
            ];
            counts.extend(of_files.into_iter().filter(|_| *files > 0));
            counts.extend(of_vectors.into_iter().filter(|(_, count)| *count > 0));
        }
        let [files, rows, bytes] = totals;
        for (key, added) in [
            ("total-data-files", files),
            ("total-records", rows),
            ("total-files-size", bytes),
            ("total-delete-files", vectors),
            ("total-position-deletes", places),
            ("total-equality-deletes", 0),
        ] {
            // A writer need not have counted.
            let counted = |before: &Value| before.get("summary")?.get(key)?.as_str()?.parse::<i64>().ok();
            if let Some(count) = before.map_or(Some(0), counted) {
                counts.push((key, count.saturating_add(added)));
            }
        }
        let counts = counts.into_iter().map(|(key, count)| (key, count.to_string()));
        let all = std::iter::once(("operation", operation.to_owned())).chain(counts);
        Value::Object(all.map(|(key, value)| (key.to_owned(), Value::String(value))).collect::<Map<_, _>>())
    }

    fn list_in<'s>(&self, state: &'s TableState) -> Option<&'s str> {
        state.snapshot(self.id)?.get("manifest-list")?.as_str()
    }

    pub(in super::super) fn is_in(&self, state: &TableState) -> bool {
        self.list_in(state).is_some()
    }

    /// Leaves the files to the table: the last snapshot was committed, or the one that this state has. Blocks.
    pub(in super::super) fn finish(mut self, state: Option<&TableState>) {
        let committed = state.and_then(|state| self.list_in(state));
        let last = self.lists.pop();
        match (committed, last) {
            (None, _) => {}
            (Some(list), Some(last)) if self.target.address(&last) == list => {}
            (Some(list), last) => {
                self.lists.extend(last);
                self.lists.retain(|name| self.target.address(name) != list);
            }
        }
        self.files.keep_all_but(std::mem::take(&mut self.lists));
    }

    /// Leaves all files where they are: the table may name them.
    pub(in super::super) fn share_files(&mut self) {
        self.files.set_shared(true);
    }

    /// The table is known to name none of the files.
    pub(in super::super) fn reclaim_files(&mut self) {
        self.files.set_shared(false);
    }
}

/// Gives numbers to rows of data files that have none yet: to how many.
fn number_rows(manifests: &mut [ManifestFile], first: i64) -> i64 {
    let mut next = first;
    let is_new = |manifest: &&mut ManifestFile| manifest.content == DATA && manifest.first_row.is_none();
    for manifest in manifests.iter_mut().filter(is_new) {
        let [added, existing, _] = manifest.rows;
        manifest.first_row = Some(next);
        next = next.saturating_add(added).saturating_add(existing);
    }
    next - first
}
