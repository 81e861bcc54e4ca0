//! Snapshots of a table that nobody reads any more, and the files that only they have. A snapshot stays that was current at a time that
//! is retained, that a branch or a tag names, or that is one of the newest which the table's own settings keep.

use super::super::manifest::ManifestFile;
use super::super::paths;
use super::new_files::NewFiles;
use super::removal::{entries_of, manifests_of};
use super::table_state::TableState;
use crate::table_folder::{FolderView, TableFolder};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::data_file::HandlePool;
use bowshot_object_store::Error as FileError;
use chrono::Utc;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

const MAX_FILES: usize = 5_000_000;

/// The snapshots to expire, and the files that only they have.
#[derive(Debug)]
pub(in super::super) struct Expiry {
    snapshots: Vec<i64>,
    retained: HashSet<i64>,
    /// Below the folder of the table.
    files: HashSet<String>,
    pub(in super::super) request: Value,
}

impl Expiry {
    /// What is of no use since a time, in milliseconds; `None` where all is. Blocks.
    pub(in super::super) fn new(
        state: &TableState,
        (namespace, table): (&[String], &str),
        since: i64,
        place: (&FolderView, &Arc<HandlePool>),
    ) -> Result<Option<Self>> {
        // Of another version there may be files that are not known here.
        state.target(table)?;
        if state.property("gc.enabled") == Some("false") {
            return Err(Error::unsupported(format!(
                "cannot remove files of `{table}`: its `gc.enabled` is `false`"
            )));
        }
        let retained = retained(state, since, Utc::now().timestamp_millis());
        let (staying, gone): (Vec<&Value>, Vec<&Value>) = state
            .snapshots()
            .partition(|snapshot| id(snapshot, "snapshot-id").is_none_or(|id| retained.contains(&id)));
        if gone.is_empty() {
            return Ok(None);
        }
        let snapshots: Vec<i64> = gone.iter().filter_map(|snapshot| id(snapshot, "snapshot-id")).collect();
        let (old, now) = (Files::read(&gone, state, place)?, Files::read(&staying, state, place)?);
        let only_old = old.manifests.iter().filter(|(name, _)| !now.manifests.contains_key(*name));
        let only_old: HashMap<String, ManifestFile> =
            only_old.map(|(name, manifest)| (name.clone(), manifest.clone())).collect();
        let mut files = HashSet::new();
        add_entries(&only_old, &mut files, state, place)?;
        if !files.is_empty() {
            let mut live = HashSet::new();
            add_entries(&now.manifests, &mut live, state, place)?;
            files.retain(|file| !live.contains(file));
        }
        files.extend(only_old.into_keys());
        files.extend(old.lists.into_iter().filter(|list| !now.lists.contains(list)));
        let (forgotten, of_statistics) = statistics(state, &snapshots, place.0)?;
        files.extend(of_statistics);
        let refs = state.refs().map(|(name, reference)| {
            json!({"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": reference.get("snapshot-id")})
        });
        let main = json!({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": state.current()});
        let uuid = json!({"type": "assert-table-uuid", "uuid": state.uuid()});
        let requirements: Vec<Value> = [uuid, main].into_iter().chain(refs).collect();
        let removed = json!({"action": "remove-snapshots", "snapshot-ids": &snapshots});
        let updates: Vec<Value> = forgotten.into_iter().chain([removed]).collect();
        let request = json!({
            "identifier": {"namespace": namespace, "name": table},
            "requirements": requirements,
            "updates": updates,
        });
        Ok(Some(Self { snapshots, retained, files, request }))
    }

    /// Whether a state of the table has none of the snapshots any more.
    pub(in super::super) fn is_in(&self, state: &TableState) -> bool {
        self.snapshots.iter().all(|id| state.snapshot(*id).is_none())
    }

    /// Whether a state has snapshots of others that go on from one that is gone, as on a branch that was made of it meanwhile.
    pub(in super::super) fn is_continued_in(&self, state: &TableState) -> bool {
        let stays = |id: i64| self.retained.contains(&id) || state.snapshot(id).is_some();
        state.snapshots().any(|snapshot| {
            let is_new = id(snapshot, "snapshot-id").is_none_or(|id| !self.retained.contains(&id));
            is_new && id(snapshot, "parent-snapshot-id").is_some_and(|parent| !stays(parent))
        })
    }

    /// Removes the files, of a table that has the snapshots no more. Blocks.
    pub(in super::super) fn remove_files(self, folder: &TableFolder) -> Result<()> {
        NewFiles::new(folder)?.remove(&self.files.into_iter().collect::<Vec<_>>())
    }
}

fn retained(state: &TableState, since: i64, now: i64) -> HashSet<i64> {
    let mut retained = HashSet::new();
    let mut ancestors = HashMap::new();
    for snapshot in state.snapshots() {
        let (Some(this), parent) = (id(snapshot, "snapshot-id"), id(snapshot, "parent-snapshot-id")) else {
            continue;
        };
        let time = id(snapshot, "timestamp-ms").unwrap_or(i64::MAX);
        ancestors.insert(this, (parent, time));
        if time > since {
            retained.insert(this);
            // That one was the current one until then.
            retained.extend(parent);
        }
    }
    // Somebody may have gone back to an earlier one for a while.
    let log = &state.metadata.snapshot_log;
    if log.last().map(|entry| entry.snapshot_id) == state.current() {
        let until_then = log.iter().filter(|entry| entry.timestamp_ms <= since);
        let current_then = until_then.max_by_key(|entry| entry.timestamp_ms);
        let later = log.iter().filter(|entry| entry.timestamp_ms > since);
        retained.extend(later.chain(current_then).map(|entry| entry.snapshot_id));
    }
    let least = state.property("history.expire.min-snapshots-to-keep").and_then(|text| text.parse().ok());
    let of_refs = state.refs().map(|(_, reference)| (id(reference, "snapshot-id"), Some(reference)));
    for (head, reference) in of_refs.chain([(state.current(), state.main())]) {
        let own = |key: &str| reference.and_then(|reference| id(reference, key));
        let count = own("min-snapshots-to-keep").or(least).unwrap_or(1).max(1);
        let oldest = own("max-snapshot-age-ms").map_or(i64::MAX, |age| now.saturating_sub(age));
        let mut next = head;
        // Parents that go round in a circle have an end, too.
        for place in (0_i64..).take(ancestors.len().max(1)) {
            let Some(this) = next else { break };
            let (parent, time) = ancestors.get(&this).copied().unwrap_or((None, i64::MIN));
            if place >= count && time < oldest {
                break;
            }
            retained.insert(this);
            next = parent;
        }
    }
    retained
}

fn id(of: &Value, key: &str) -> Option<i64> {
    of.get(key)?.as_i64()
}

/// Statistics of snapshots that are gone: the changes by which a catalog forgets them, and their files, below the folder of the table.
fn statistics(
    state: &TableState,
    gone: &[i64],
    folder: &FolderView,
) -> Result<(Vec<Value>, HashSet<String>)> {
    let (mut changes, mut old, mut now) = (Vec::new(), HashSet::new(), HashSet::new());
    for (list, action) in
        [("statistics", "remove-statistics"), ("partition-statistics", "remove-partition-statistics")]
    {
        let files = state.whole.get(list).and_then(Value::as_array).into_iter().flatten();
        for file in files {
            let (of, path) = (id(file, "snapshot-id"), file.get("statistics-path").and_then(Value::as_str));
            let (Some(of), Some(path)) = (of, path) else { continue };
            let name = below(path, state, folder)?;
            if gone.contains(&of) {
                changes.push(json!({"action": action, "snapshot-id": of}));
                old.insert(name);
            } else {
                now.insert(name);
            }
        }
    }
    old.retain(|file| !now.contains(file));
    Ok((changes, old))
}

/// The lists of some snapshots, and the manifests in them, by their names below the folder.
struct Files {
    lists: HashSet<String>,
    manifests: HashMap<String, ManifestFile>,
}

impl Files {
    fn read(
        snapshots: &[&Value],
        state: &TableState,
        place: (&FolderView, &Arc<HandlePool>),
    ) -> Result<Self> {
        let mut files = Self { lists: HashSet::new(), manifests: HashMap::new() };
        for snapshot in snapshots {
            for manifest in manifests_of(snapshot, state, place)? {
                files.manifests.insert(below(&manifest.path, state, place.0)?, manifest);
            }
            check_number(files.manifests.len())?;
            if let Some(list) = snapshot.get("manifest-list").and_then(Value::as_str) {
                files.lists.insert(below(list, state, place.0)?);
            }
        }
        Ok(files)
    }
}

fn add_entries(
    manifests: &HashMap<String, ManifestFile>,
    files: &mut HashSet<String>,
    state: &TableState,
    place: (&FolderView, &Arc<HandlePool>),
) -> Result<()> {
    for manifest in manifests.values() {
        for entry in entries_of(manifest, state, place)? {
            files.insert(below(&entry.file.path, state, place.0)?);
        }
        check_number(files.len())?;
    }
    Ok(())
}

fn check_number(files: usize) -> Result<()> {
    if files <= MAX_FILES {
        return Ok(());
    }
    let message = format!("the snapshots of the table have more than {MAX_FILES} files");
    Err(Error::new(ErrorKind::LimitReached, message).with_hint("expire them with another program"))
}

fn below(path: &str, state: &TableState, folder: &FolderView) -> Result<String> {
    let name = paths::below(path, &state.metadata.location, folder);
    Ok(name.map_err(|outside| FileError::corrupt(&folder.path(""), outside))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn state(changes: &[(&str, Value)]) -> TableState {
        let snapshot = |id: i64, time: i64| {
            let parent = id - 1;
            json!({"snapshot-id": id, "parent-snapshot-id": parent, "timestamp-ms": time, "manifest-list": "x"})
        };
        let mut whole = json!({
            "format-version": 2, "location": "s3://b/t", "current-snapshot-id": 5,
            "snapshots": [snapshot(1, 10), snapshot(2, 20), snapshot(3, 30), snapshot(4, 40), snapshot(5, 50)],
        });
        changes.iter().for_each(|(key, value)| whole[*key] = value.clone());
        TableState::new(whole, Path::new("t")).unwrap()
    }

    #[test]
    fn snapshots_stay_that_somebody_may_read() {
        let main = |key: &str, value: i64| {
            ("refs", json!({"main": {"snapshot-id": 5, "type": "branch", key: value}}))
        };
        let tagged =
            json!({"main": {"snapshot-id": 5, "type": "branch"}, "old": {"snapshot-id": 1, "type": "tag"}});
        let three = json!({"history.expire.min-snapshots-to-keep": "3"});
        let entry = |time: i64, id: i64| json!({"timestamp-ms": time, "snapshot-id": id});
        // For a while it was 2 again.
        let log = json!([entry(10, 1), entry(20, 2), entry(30, 3), entry(40, 4), entry(45, 2), entry(50, 5)]);
        for (changes, since, wanted) in [
            (vec![], 100, vec![5]),
            (vec![], 39, vec![3, 4, 5]),
            (vec![], 40, vec![4, 5]),
            (vec![], 0, vec![0, 1, 2, 3, 4, 5]),
            (vec![("refs", tagged)], 100, vec![1, 5]),
            (vec![("properties", three.clone())], 100, vec![3, 4, 5]),
            (vec![("properties", three), main("min-snapshots-to-keep", 2)], 100, vec![4, 5]),
            (vec![main("max-snapshot-age-ms", 160)], 100, vec![4, 5]),
            (vec![("snapshot-log", log.clone())], 46, vec![2, 4, 5]),
            (vec![("snapshot-log", log)], 50, vec![5]),
        ] {
            let mut retained: Vec<i64> = retained(&state(&changes), since, 200).into_iter().collect();
            retained.sort_unstable();
            assert_eq!(retained, wanted, "{changes:?} {since}");
        }
    }

    #[test]
    fn statistics_go_with_their_snapshots() {
        let of = |id: i64, path: &str| json!({"snapshot-id": id, "statistics-path": format!("s3://b/t/metadata/{path}")});
        let state = state(&[
            ("statistics", json!([of(1, "a.stats"), of(2, "b.stats"), of(5, "b.stats"), of(5, "c.stats")])),
            ("partition-statistics", json!([of(2, "p.parquet")])),
        ]);
        let folder = FolderView::Local(std::path::PathBuf::from("/t"));
        let (changes, files) = statistics(&state, &[1, 2, 3], &folder).unwrap();
        let actions: Vec<_> =
            changes.iter().map(|change| (change["action"].as_str(), id(change, "snapshot-id"))).collect();
        let remove = Some("remove-statistics");
        assert_eq!(
            actions,
            [(remove, Some(1)), (remove, Some(2)), (Some("remove-partition-statistics"), Some(2))]
        );
        assert_eq!(files, HashSet::from(["metadata/a.stats".to_owned(), "metadata/p.parquet".to_owned()]));
    }

    #[test]
    fn others_may_have_gone_on_from_what_is_gone() {
        let expiry = Expiry {
            snapshots: vec![1, 2, 3],
            retained: HashSet::from([4, 5]),
            files: HashSet::new(),
            request: Value::Null,
        };
        let new = |parent: i64| json!({"snapshot-id": 6, "parent-snapshot-id": parent, "timestamp-ms": 60});
        let old = |id: i64| json!({"snapshot-id": id, "parent-snapshot-id": id - 1, "timestamp-ms": id});
        for (parent, wanted) in [(5, false), (4, false), (2, true), (17, true)] {
            let state = state(&[("snapshots", json!([old(4), old(5), new(parent)]))]);
            assert!(expiry.is_in(&state));
            assert_eq!(expiry.is_continued_in(&state), wanted, "{parent}");
        }
    }
}
