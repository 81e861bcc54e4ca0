//! What commits of a log say of changes: which files they have added and removed, where the changes of rows are written down, and
//! which columns the table has from then on.

use super::delta_protocol::{self, Shape};
use super::{Wanted, refused};
use crate::delta::log::{Log, MAX_ENTRY_BYTES, Written};
use bowshot_api::ErrorKind;
use bowshot_formats::data_file::{DataFile, HandlePool};
use bowshot_formats::listed_file::ListedFile;
use bowshot_object_store::Error;
use deltalake_core::kernel::{DeletionVectorDescriptor, StructType};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

const MAX_COMMITS: u64 = 10_000;
/// Bytes of all entries of a range.
const MAX_BYTES: u64 = 1 << 30;
/// Entries that are read at once where that means to wait for a network.
const PARALLEL_ENTRIES: usize = 8;

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

#[derive(Debug)]
pub(super) struct Change {
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
    pub(super) fn has_rows_of_before(&self) -> bool {
        self.changes.iter().any(|change| !matches!(change.done, Done::Added(_)))
    }

    pub(crate) fn has_columns(&self) -> bool {
        self.shape.is_some()
    }

    /// The version that says what the columns of its rows are, where it does not say that itself.
    pub(crate) fn needs(&self) -> Option<u64> {
        match &self.shape {
            None => Some(self.version),
            Some(_) if self.has_rows_of_before() => self.version.checked_sub(1),
            Some(_) => None,
        }
    }
}

/// # Errors
/// `LimitReached` for a range of too many commits.
fn check_length((from, to): (u64, u64), path: &Path) -> Result<(), Error> {
    let length = to.saturating_sub(from).saturating_add(1);
    if length <= MAX_COMMITS {
        return Ok(());
    }
    let detail = format!("the range has {length} versions, and the limit is {MAX_COMMITS}");
    let hint = format!("query a smaller range: table_changes(…, {from}, {})", from + MAX_COMMITS - 1);
    Err(refused(path, ErrorKind::LimitReached, detail, &hint))
}

/// The commits of these versions, both ends among them, which change at most so many files. Blocks.
pub(crate) fn read(
    log: &Log,
    (from, to): (u64, u64),
    pool: &Arc<HandlePool>,
    (max_files, wanted): (usize, &Wanted),
) -> Result<Vec<Commit>, Error> {
    check_length((from, to), &log.path())?;
    let versions: Vec<u64> = (from..=to).collect();
    let written = log.written()?;
    let (mut commits, mut files, mut bytes) = (Vec::with_capacity(versions.len()), 0, 0);
    let at_once = if log.is_remote() { PARALLEL_ENTRIES } else { 1 };
    for some in versions.chunks(at_once) {
        wanted.check(&log.path())?;
        let found = log.entries(some).into_iter().zip(some);
        let found = found.map(|(found, version)| entry(found, *version, (log, pool)));
        let found = found.collect::<Result<Vec<_>, Error>>()?;
        bytes += found.iter().map(|(_, file)| file.size()).sum::<u64>();
        if bytes > MAX_BYTES {
            return Err(too_much(log, format!("their log entries have more than {MAX_BYTES} bytes")));
        }
        for commit in parsed(&found, written, max_files - files)? {
            let Some(commit) = commit else {
                return Err(too_much(log, format!("they changed more than {max_files} files")));
            };
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
    let hint = "query fewer versions at a time; for a single version, raise `storage.max_files_per_table`";
    refused(&log.path(), ErrorKind::LimitReached, format!("changes of too many versions: {detail}"), hint)
}

fn entry(
    found: Result<ListedFile, Error>,
    version: u64,
    (log, pool): (&Log, &Arc<HandlePool>),
) -> Result<(u64, Arc<DataFile>), Error> {
    let found = found.map_err(|error| match error {
        Error::Missing { .. } => log.not_kept(version),
        other => other,
    })?;
    let file = found.data(pool);
    if file.size() > MAX_ENTRY_BYTES {
        return Err(Error::corrupt(file.path(), "it is too large for a log entry"));
    }
    Ok((version, file))
}

/// The commits of some entries, read at the same time; none for one that names more files.
fn parsed(
    entries: &[(u64, Arc<DataFile>)],
    written: &Written,
    max_files: usize,
) -> Result<Vec<Option<Commit>>, Error> {
    if let [(version, file)] = entries {
        return Ok(vec![commit((*version, file), written.of(*version), max_files)?]);
    }
    std::thread::scope(|scope| {
        let of_one = |(version, file): &(u64, Arc<DataFile>)| {
            let (version, file) = (*version, Arc::clone(file));
            scope.spawn(move || commit((version, &file), written.of(version), max_files))
        };
        let reading: Vec<_> = entries.iter().map(of_one).collect();
        let broken = |path: &Path| Err(Error::corrupt(path, "it cannot be decoded"));
        let read = reading.into_iter().zip(entries);
        read.map(|(thread, (_, file))| thread.join().unwrap_or_else(|_| broken(file.path()))).collect()
    })
}

fn commit(
    (version, file): (u64, &Arc<DataFile>),
    written_ms: i64,
    max_files: usize,
) -> Result<Option<Commit>, Error> {
    let bytes = file.read(0..file.size());
    file.close();
    of_entry((version, written_ms), &bytes?, max_files).map_err(|error| Error::corrupt(file.path(), error))
}

/// A line of an entry, of which one thing is set.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    commit_info: Option<CommitInfo>,
    meta_data: Option<MetaData>,
    protocol: Option<Protocol>,
    add: Option<FileLine>,
    remove: Option<FileLine>,
    cdc: Option<FileLine>,
}

/// What is read of it: writers put into it what they like.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommitInfo {
    in_commit_timestamp: Option<i64>,
    operation: Option<String>,
    operation_metrics: Option<Metrics>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    num_target_rows_inserted: Option<Metric>,
    num_target_rows_updated: Option<Metric>,
    num_target_rows_deleted: Option<Metric>,
}

/// A number, which most writers put into a text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Metric {
    Text(String),
    Number(i64),
}

impl Metric {
    fn is_zero(&self) -> bool {
        match self {
            Self::Text(text) => text == "0",
            Self::Number(number) => *number == 0,
        }
    }
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

/// The commit of an entry that was written then; none where it names more files.
fn of_entry(
    (version, written_ms): (u64, i64),
    bytes: &[u8],
    max_files: usize,
) -> Result<Option<Commit>, String> {
    let (mut info, mut added, mut removed, mut recorded) = (None, Vec::new(), Vec::new(), Vec::new());
    let mut commit = Commit { version, time_ms: written_ms, shape: None, unknown: None, changes: Vec::new() };
    let mut is_empty = true;
    for line in serde_json::Deserializer::from_slice(bytes).into_iter::<Line>() {
        let line = line.map_err(|error| format!("invalid log entry: {error}"))?;
        is_empty = false;
        if let Some(metadata) = line.meta_data {
            commit.shape = Some(metadata.shape()?);
        }
        if let Some(features) = line.protocol.and_then(|protocol| protocol.reader_features) {
            commit.unknown = delta_protocol::unknown(features.iter().map(String::as_str));
        }
        info = info.or(line.commit_info);
        added.extend(line.add.filter(FileLine::changes_rows));
        removed.extend(line.remove.filter(FileLine::changes_rows));
        recorded.extend(line.cdc);
        // A file that got another vector is named twice.
        if added.len().max(removed.len()).max(recorded.len()) > max_files {
            return Ok(None);
        }
    }
    if is_empty {
        return Err("it is empty".to_owned());
    }
    let time = info.as_ref().and_then(|info| info.in_commit_timestamp);
    commit.time_ms = time.unwrap_or(written_ms);
    expect_each_once(&added)?;
    commit.changes = match recorded.is_empty() {
        false => recorded.into_iter().map(|file| file.done(Done::Recorded)).collect(),
        true if info.as_ref().is_some_and(has_changed_nothing) => Vec::new(),
        true => paired(added, removed),
    };
    Ok(Some(commit))
}

/// The format has each file once in a commit; the same rows again and again would be read as often.
fn expect_each_once(added: &[FileLine]) -> Result<(), String> {
    let mut seen = HashSet::with_capacity(added.len());
    match added.iter().find(|file| !seen.insert(file.path.as_str())) {
        Some(twice) => Err(format!("it adds the file `{}` twice", twice.path)),
        None => Ok(()),
    }
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
fn has_changed_nothing(info: &CommitInfo) -> bool {
    let Some(metrics) = &info.operation_metrics else { return false };
    let counts = [
        &metrics.num_target_rows_inserted,
        &metrics.num_target_rows_updated,
        &metrics.num_target_rows_deleted,
    ];
    info.operation.as_deref() == Some("MERGE")
        && counts.into_iter().all(|count| count.as_ref().is_some_and(Metric::is_zero))
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

    fn read(text: &str) -> Result<Commit, String> {
        of_entry((7, 5), text.as_bytes(), 100).map(|commit| commit.unwrap())
    }

    fn line(kind: &str, path: &str, more: &str) -> String {
        format!(r#"{{"{kind}": {{"path": "{path}", "partitionValues": {{}}, "size": 3 {more}}}}}"#)
    }

    const YES: &str = r#", "dataChange": true"#;

    #[test]
    fn a_commit_names_so_many_files_and_each_once() {
        let text = [line("add", "a", YES), line("remove", "a", YES), line("add", "b", YES)].join("\n");
        assert!(of_entry((7, 5), text.as_bytes(), 2).unwrap().is_some());
        assert!(of_entry((7, 5), text.as_bytes(), 1).unwrap().is_none());
        let twice = [line("add", "a", YES), line("add", "a", YES)].join("\n");
        assert!(read(&twice).unwrap_err().contains("`a` twice"));
    }

    #[test]
    fn what_a_table_is_from_then_on() {
        let schema = r#"{\"type\":\"struct\",\"fields\":[]}"#;
        let metadata = format!(
            r#"{{"metaData": {{"id": "x", "schemaString": "{schema}", "configuration": {{"delta.enableChangeDataFeed": "true"}}}}}}"#
        );
        let features = r#"{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors", "newest"]}}"#;
        let commit = read(&format!("{metadata}\n{features}")).unwrap();
        assert!(commit.has_columns() && commit.needs().is_none());
        let removes = read(&format!("{metadata}\n{}", line("remove", "b", YES))).unwrap();
        assert_eq!(removes.needs(), Some(6));
        assert_eq!(read(&line("add", "b", YES)).unwrap().needs(), Some(7));
        assert_eq!(commit.unknown.as_deref(), Some("newest"));
        assert!(read("").is_err() && read("{\"add\": {").is_err());
    }

    #[test]
    fn ranges_have_a_limit() {
        let path = Path::new("t");
        assert!(check_length((5, 5 + MAX_COMMITS - 1), path).is_ok());
        let error = check_length((5, 5 + MAX_COMMITS), path).unwrap_err();
        assert!(matches!(error, Error::Feed { kind: ErrorKind::LimitReached, .. }), "{error}");
    }
}
