//! The snapshot that adds the rows of one statement: made again on top of what somebody else has committed, with the same number, so
//! that it is in the table once, whatever became of the answers.

use super::super::manifest::{self as lists, ManifestFile};
use super::super::paths;
use super::data_files::RowWriter;
use super::manifest;
use super::new_files::NewFiles;
use super::table_state::{TableState, Target};
use crate::table_folder::FolderView;
use bowshot_api::{Error, Result};
use bowshot_formats::data_file::HandlePool;
use bowshot_object_store::Error as FileError;
use chrono::Utc;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use uuid::Uuid;

/// Manifests of a table that is written to; one with more is to be compacted first.
const MAX_MANIFESTS: usize = 50_000;

/// See the module.
#[derive(Debug)]
pub(in super::super) struct Append {
    id: i64,
    target: Target,
    files: NewFiles,
    manifest: ManifestFile,
    partitions: usize,
    bytes: i64,
    /// Those that were written, one for each attempt.
    lists: Vec<String>,
}

impl Append {
    /// Closes the files, and writes their manifest; `None` without any rows. Blocks.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(in super::super) fn new(writer: RowWriter) -> Result<Option<Self>> {
        let (target, mut files, written) = writer.finish()?;
        if written.is_empty() {
            return Ok(None);
        }
        // A number of 63 bits.
        let id = i64::try_from(Uuid::new_v4().as_u128() >> 65).unwrap_or(i64::MAX);
        let bytes = manifest::manifest(&target, &written, id);
        let name = format!("metadata/{}-m0.avro", Uuid::new_v4());
        files.put(&name, &bytes)?;
        let manifest = ManifestFile {
            path: target.address(&name),
            length: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            spec: i64::from(target.spec_id),
            content: 0,
            sequence: 0,
            min_sequence: 0,
            snapshot: id,
            files: [i64::try_from(written.len()).unwrap_or(i64::MAX), 0, 0],
            rows: [written.iter().map(|file| file.rows).sum(), 0, 0],
            partitions: Some(manifest::summaries(&target.partition, &written)),
            key: None,
        };
        let partitions: HashSet<_> = written.iter().map(|file| &file.partition).collect();
        let (partitions, bytes) = (partitions.len(), written.iter().map(|file| file.bytes).sum());
        Ok(Some(Self { id, target, files, manifest, partitions, bytes, lists: Vec::new() }))
    }

    pub(in super::super) fn rows(&self) -> u64 {
        self.manifest.rows.iter().sum::<i64>().unsigned_abs()
    }

    pub(in super::super) fn id(&self) -> i64 {
        self.id
    }

    /// The snapshot that adds the rows to those of a state, whose list of manifests is written. Blocks.
    ///
    /// # Errors
    /// When the list of the state cannot be read, or the new one not be written.
    pub(in super::super) fn snapshot(
        &mut self,
        state: &TableState,
        (folder, pool): (&FolderView, &Arc<HandlePool>),
    ) -> Result<Value> {
        let sequence = state.number("last-sequence-number").unwrap_or(0) + 1;
        let mut manifests = vec![ManifestFile { sequence, min_sequence: sequence, ..self.manifest.clone() }];
        let parent = state.current();
        let before = match parent {
            Some(id) => Some(state.snapshot(id).ok_or_else(|| {
                FileError::corrupt(&folder.path(""), format!("its current snapshot {id} is not there"))
            })?),
            None => None,
        };
        if let Some(before) = before {
            manifests.extend(manifests_of(before, state, (folder, pool))?);
        }
        let attempt = self.lists.len() + 1;
        let name = format!("metadata/snap-{}-{attempt}-{}.avro", self.id, Uuid::new_v4());
        self.files.put(&name, &manifest::list(&manifests, (self.id, parent), sequence))?;
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
        self.lists.push(name);
        Ok(snapshot)
    }

    fn summary(&self, before: Option<&Value>) -> Value {
        let [files, ..] = self.manifest.files;
        let [rows, ..] = self.manifest.rows;
        let mut summary = Map::new();
        for (key, value) in [
            ("operation", "append".to_owned()),
            ("added-data-files", files.to_string()),
            ("added-records", rows.to_string()),
            ("added-files-size", self.bytes.to_string()),
            ("changed-partition-count", self.partitions.to_string()),
        ] {
            summary.insert(key.to_owned(), Value::String(value));
        }
        for (key, added) in [
            ("total-data-files", files),
            ("total-records", rows),
            ("total-files-size", self.bytes),
            ("total-delete-files", 0),
            ("total-position-deletes", 0),
            ("total-equality-deletes", 0),
        ] {
            // A writer need not have counted.
            let counted = |before: &Value| before.get("summary")?.get(key)?.as_str()?.parse::<i64>().ok();
            if let Some(count) = before.map_or(Some(0), counted) {
                summary.insert(key.to_owned(), Value::String(count.saturating_add(added).to_string()));
            }
        }
        Value::Object(summary)
    }

    /// The list by which a state has the snapshot, if it has it.
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

/// The manifests of a snapshot.
fn manifests_of(
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
