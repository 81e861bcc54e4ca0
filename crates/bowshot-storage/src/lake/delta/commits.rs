//! What commits of a log say of changes: which files they have added and removed, where the changes of rows are written down, and
//! which columns the table has from then on.

use super::refused;
use super::shape::{self, Shape};
use crate::Error;
use crate::delta_log::Log;
use crate::file::{DataFile, HandlePool};
use crate::listing::FoundFile;
use bowshot_api::ErrorKind;
use deltalake_core::kernel::{DeletionVectorDescriptor, StructType};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Commits that are read for one range.
const MAX_COMMITS: u64 = 10_000;
/// Bytes of one entry of a log.
const MAX_ENTRY_BYTES: u64 = 128 << 20;
/// Bytes of all entries of a range.
const MAX_BYTES: u64 = 1 << 30;
/// Entries that are read at once where that means to wait for a network.
const PARALLEL_ENTRIES: usize = 8;

/// One commit.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(super) version: u64,
    /// When it was made, in milliseconds of Unix time.
    pub(super) time_ms: i64,
    /// What the table is from here on, if that changes.
    pub(super) shape: Option<Shape>,
    /// A feature of the table that is not read here.
    pub(super) unknown: Option<String>,
    pub(super) changes: Vec<Change>,
}

/// What a commit has done to a file.
#[derive(Debug)]
pub(super) struct Change {
    /// As the log names it.
    pub(super) path: String,
    /// Values of the columns that files are grouped by; `None` where the log does not say them.
    pub(super) partition: Option<HashMap<String, Option<String>>>,
    pub(super) done: Done,
}

#[derive(Debug)]
pub(super) enum Done {
    /// Its rows came, but for those that a vector deletes.
    Added(Option<DeletionVectorDescriptor>),
    /// Its rows went, but for those that a vector had deleted before.
    Removed(Option<DeletionVectorDescriptor>),
    /// It stays, and another vector deletes rows of it.
    Exchanged { before: Option<DeletionVectorDescriptor>, after: Option<DeletionVectorDescriptor> },
    /// Its rows are changes, each of which says itself what was done.
    Recorded,
}

impl Commit {
    /// Whether it says all that changes need to be read, whatever came before.
    pub(crate) fn is_beginning(&self) -> bool {
        self.shape.is_some()
    }
}

/// # Errors
/// `LimitReached` for a range of too many commits.
fn check_length((from, to): (u64, u64), path: &Path) -> Result<(), Error> {
    let length = to.saturating_sub(from).saturating_add(1);
    if length <= MAX_COMMITS {
        return Ok(());
    }
    let detail = format!("{length} versions are asked for at once, and at most {MAX_COMMITS} are read");
    let hint = format!("ask for a part of them: table_changes(…, {from}, {})", from + MAX_COMMITS - 1);
    Err(refused(path, ErrorKind::LimitReached, detail, &hint))
}

/// The commits of these versions, both ends among them, which change at most so many files. Blocks.
///
/// # Errors
/// `NoState` for a version that is not there; when one cannot be read; `LimitReached` where there is more than is read.
pub(crate) fn read(
    log: &Log,
    (from, to): (u64, u64),
    pool: &Arc<HandlePool>,
    max_files: usize,
) -> Result<Vec<Commit>, Error> {
    check_length((from, to), &log.path())?;
    let versions: Vec<u64> = (from..=to).collect();
    let (mut commits, mut files, mut bytes) = (Vec::with_capacity(versions.len()), 0, 0);
    let at_once = if log.is_remote() { PARALLEL_ENTRIES } else { 1 };
    for some in versions.chunks(at_once) {
        let found = log.entries(some).into_iter().zip(some);
        let found = found.map(|(found, version)| entry(found, *version, (log, pool)));
        let found = found.collect::<Result<Vec<_>, Error>>()?;
        bytes += found.iter().map(|(_, file)| file.size()).sum::<u64>();
        if bytes > MAX_BYTES {
            return Err(too_much(
                log,
                format!("more than {MAX_BYTES} bytes of its log are to be read for them"),
            ));
        }
        for commit in parsed(&found)? {
            files += commit.changes.len();
            if files > max_files {
                return Err(too_much(log, format!("they changed more than {max_files} files")));
            }
            commits.push(commit);
        }
    }
    Ok(commits)
}

fn too_much(log: &Log, detail: String) -> Error {
    let hint = "ask for fewer versions at a time; of one version, raise `storage.max_files_per_table`";
    refused(&log.path(), ErrorKind::LimitReached, format!("changes of too many versions: {detail}"), hint)
}

fn entry(
    found: Result<FoundFile, Error>,
    version: u64,
    (log, pool): (&Log, &Arc<HandlePool>),
) -> Result<(u64, Arc<DataFile>), Error> {
    let found = found.map_err(|error| match error {
        Error::Missing { .. } => log.not_kept(version),
        other => other,
    })?;
    let file = found.data(pool);
    if file.size() > MAX_ENTRY_BYTES {
        return Err(Error::corrupt(file.path(), "it is too large for an entry of a log"));
    }
    Ok((version, file))
}

/// The commits of some entries, read at the same time.
fn parsed(entries: &[(u64, Arc<DataFile>)]) -> Result<Vec<Commit>, Error> {
    if let [(version, file)] = entries {
        return Ok(vec![commit(*version, file)?]);
    }
    std::thread::scope(|scope| {
        let of_one = |(version, file): &(u64, Arc<DataFile>)| {
            let (version, file) = (*version, Arc::clone(file));
            scope.spawn(move || commit(version, &file))
        };
        let reading: Vec<_> = entries.iter().map(of_one).collect();
        let broken = |path: &Path| Err(Error::corrupt(path, "it cannot be decoded"));
        let read = reading.into_iter().zip(entries);
        read.map(|(thread, (_, file))| thread.join().unwrap_or_else(|_| broken(file.path()))).collect()
    })
}

fn commit(version: u64, file: &Arc<DataFile>) -> Result<Commit, Error> {
    let bytes = file.read(0..file.size());
    file.close();
    let (seconds, nanoseconds) = file.identity().modified();
    let modified_ms = seconds.saturating_mul(1_000) + i64::from(nanoseconds / 1_000_000);
    of_entry(version, &bytes?, modified_ms).map_err(|error| Error::corrupt(file.path(), error))
}

/// A line of an entry, of which one thing is set.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    commit_info: Option<Value>,
    meta_data: Option<MetaData>,
    protocol: Option<Protocol>,
    add: Option<FileLine>,
    remove: Option<FileLine>,
    cdc: Option<FileLine>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetaData {
    schema_string: String,
    #[serde(default)]
    partition_columns: Vec<String>,
    #[serde(default)]
    configuration: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Protocol {
    reader_features: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileLine {
    path: String,
    partition_values: Option<HashMap<String, Option<String>>>,
    data_change: Option<bool>,
    deletion_vector: Option<DeletionVectorDescriptor>,
}

impl FileLine {
    fn changes_rows(&self) -> bool {
        self.data_change.unwrap_or(true)
    }
}

fn of_entry(version: u64, bytes: &[u8], modified_ms: i64) -> Result<Commit, String> {
    let (mut info, mut added, mut removed, mut recorded) = (None, Vec::new(), Vec::new(), Vec::new());
    let mut commit =
        Commit { version, time_ms: modified_ms, shape: None, unknown: None, changes: Vec::new() };
    let mut is_empty = true;
    for line in serde_json::Deserializer::from_slice(bytes).into_iter::<Line>() {
        let line = line.map_err(|error| format!("it is no entry of a log: {error}"))?;
        is_empty = false;
        if let Some(metadata) = line.meta_data {
            commit.shape = Some(metadata.shape()?);
        }
        if let Some(features) = line.protocol.and_then(|protocol| protocol.reader_features) {
            commit.unknown = shape::unknown(features.iter().map(String::as_str));
        }
        info = info.or(line.commit_info);
        added.extend(line.add.filter(FileLine::changes_rows));
        removed.extend(line.remove.filter(FileLine::changes_rows));
        recorded.extend(line.cdc);
    }
    if is_empty {
        return Err("it is empty".to_owned());
    }
    let time = info.as_ref().and_then(|info| info.get("inCommitTimestamp")?.as_i64());
    commit.time_ms = time.unwrap_or(modified_ms);
    commit.changes = match recorded.is_empty() {
        false => recorded.into_iter().map(|file| file.done(Done::Recorded)).collect(),
        true if info.as_ref().is_some_and(has_changed_nothing) => Vec::new(),
        true => paired(added, removed),
    };
    Ok(commit)
}

impl MetaData {
    fn shape(&self) -> Result<Shape, String> {
        let columns: StructType = serde_json::from_str(&self.schema_string)
            .map_err(|error| format!("the columns of the table cannot be read: {error}"))?;
        Shape::new(Arc::new(columns), &self.partition_columns, &self.configuration)
    }
}

impl FileLine {
    fn done(self, done: Done) -> Change {
        Change { path: self.path, partition: self.partition_values, done }
    }
}

/// A MERGE may write files again of which it has changed no row, and says so.
fn has_changed_nothing(info: &Value) -> bool {
    let is_merge = info.get("operation").and_then(Value::as_str) == Some("MERGE");
    let is_zero = |name: &str| {
        let count = info.get("operationMetrics").and_then(|metrics| metrics.get(name));
        count.is_some_and(|count| count.as_str() == Some("0") || count.as_i64() == Some(0))
    };
    is_merge
        && ["numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"].into_iter().all(is_zero)
}

/// Files that were added and removed; of one that was both, only its vector has changed.
fn paired(added: Vec<FileLine>, removed: Vec<FileLine>) -> Vec<Change> {
    let places: HashMap<String, usize> =
        removed.iter().enumerate().map(|(place, file)| (file.path.clone(), place)).collect();
    let mut removed: Vec<Option<FileLine>> = removed.into_iter().map(Some).collect();
    let mut changes = Vec::with_capacity(added.len() + removed.len());
    for mut file in added {
        let after = file.deletion_vector.take();
        let before = places.get(&file.path).and_then(|place| removed.get_mut(*place)).and_then(Option::take);
        changes.push(match before {
            Some(before) => file.done(Done::Exchanged { before: before.deletion_vector, after }),
            None => file.done(Done::Added(after)),
        });
    }
    changes.extend(removed.into_iter().flatten().map(|mut file| {
        let vector = file.deletion_vector.take();
        file.done(Done::Removed(vector))
    }));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let commit = of_entry(7, text.as_bytes(), 5).unwrap();
        let of_one = |change: &Change| {
            let vector = |vector: &Option<DeletionVectorDescriptor>| match vector {
                Some(vector) => vector.path_or_inline_dv.clone(),
                None => "-".to_owned(),
            };
            match &change.done {
                Done::Added(after) => format!("+{} {}", change.path, vector(after)),
                Done::Removed(before) => format!("-{} {}", change.path, vector(before)),
                Done::Exchanged { before, after } => {
                    format!("={} {} {}", change.path, vector(before), vector(after))
                }
                Done::Recorded => format!("c{}", change.path),
            }
        };
        commit.changes.iter().map(of_one).collect()
    }

    fn line(kind: &str, path: &str, more: &str) -> String {
        format!(r#"{{"{kind}": {{"path": "{path}", "partitionValues": {{}}, "size": 3 {more}}}}}"#)
    }

    fn vector(text: &str) -> String {
        let vector = format!(
            r#"{{"storageType": "u", "pathOrInlineDv": "{text}", "sizeInBytes": 1, "cardinality": 1}}"#
        );
        format!(r#", "dataChange": true, "deletionVector": {vector}"#)
    }

    const YES: &str = r#", "dataChange": true"#;
    const NO: &str = r#", "dataChange": false"#;

    #[test]
    fn files_that_were_added_and_removed_are_changes() {
        let text = [
            line("add", "a", YES),
            line("remove", "b", YES),
            line("add", "moved", NO),
            line("remove", "unmoved", NO),
            line("remove", "c", &vector("x")),
            line("add", "c", &vector("y")),
            line("remove", "d", YES),
            line("add", "d", &vector("z")),
        ];
        assert_eq!(told(&text.join("\n")), ["+a -", "=c x y", "=d - z", "-b -"]);
    }

    #[test]
    fn changes_that_are_written_down_are_all_there_are() {
        let text = [line("add", "a", YES), line("cdc", "c", NO), line("remove", "b", YES)];
        assert_eq!(told(&text.join("\n")), ["cc"]);
    }

    #[test]
    fn a_merge_without_rows_has_changed_nothing() {
        let merge = |count: &str| {
            let metrics = format!(
                r#"{{"numTargetRowsInserted": "0", "numTargetRowsUpdated": {count}, "numTargetRowsDeleted": "0"}}"#
            );
            let info =
                format!(r#"{{"commitInfo": {{"operation": "MERGE", "operationMetrics": {metrics}}}}}"#);
            told(&[info, line("add", "a", YES)].join("\n"))
        };
        assert_eq!(merge("\"0\""), Vec::<String>::new());
        assert_eq!(merge("\"1\""), ["+a -"]);
    }

    #[test]
    fn the_time_is_that_in_the_commit_else_that_of_its_file() {
        let time = |text: &str| of_entry(7, text.as_bytes(), 5).unwrap().time_ms;
        assert_eq!(time(r#"{"commitInfo": {"inCommitTimestamp": 9}}"#), 9);
        assert_eq!(time(r#"{"commitInfo": {"timestamp": 9}}"#), 5);
    }

    #[test]
    fn what_a_table_is_from_then_on() {
        let schema = r#"{\"type\":\"struct\",\"fields\":[]}"#;
        let metadata = format!(
            r#"{{"metaData": {{"id": "x", "schemaString": "{schema}", "configuration": {{"delta.enableChangeDataFeed": "true"}}}}}}"#
        );
        let features = r#"{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors", "newest"]}}"#;
        let commit = of_entry(7, format!("{metadata}\n{features}").as_bytes(), 5).unwrap();
        assert!(commit.is_beginning());
        assert_eq!(commit.unknown.as_deref(), Some("newest"));
        assert!(of_entry(7, b"", 5).is_err() && of_entry(7, b"{\"add\": {", 5).is_err());
    }

    #[test]
    fn ranges_have_a_limit() {
        let path = Path::new("t");
        assert!(check_length((5, 5 + MAX_COMMITS - 1), path).is_ok());
        let error = check_length((5, 5 + MAX_COMMITS), path).unwrap_err();
        assert!(matches!(error, Error::Feed { kind: ErrorKind::LimitReached, .. }), "{error}");
    }
}
