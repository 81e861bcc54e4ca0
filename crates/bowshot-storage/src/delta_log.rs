//! The log of a Delta table, as far as its names and times go: which entry is the last one, and which one made a state that is
//! asked for. What entries say of files, the library reads.

use crate::Error;
use crate::file::HandlePool;
use crate::format;
use crate::table_folder::FolderView;
use crate::tables::durable::AsOf;
use crate::version::FileIdentity;
use serde::Deserialize;
use std::ffi::OsStr;
use std::path::PathBuf;

const FOLDER: &str = "_delta_log";
/// Digits of the number in a name.
const DIGITS: usize = 20;
/// Bytes of an entry that are read for the time in it; it stands first.
const MAX_FIRST_BYTES: u64 = 64 << 10;

/// A log at one moment.
#[derive(Debug)]
pub(crate) struct Log {
    folder: FolderView,
    /// Numbers of the entries that are there, in order.
    numbers: Vec<u64>,
    /// States that were written down as a whole.
    checkpoints: Vec<u64>,
    newest: Option<LogEntry>,
    /// Whether it was last written so long ago that every later change shows.
    pub(crate) settled: bool,
}

/// An entry: they have numbers of one length, and are never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    /// Another one where the table was removed and made again.
    pub(crate) identity: FileIdentity,
}

/// What is read of the first line of an entry.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FirstLine {
    commit_info: Option<CommitInfo>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommitInfo {
    in_commit_timestamp: Option<i64>,
}

/// The log of the table in a folder. Blocks.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read(folder: &FolderView) -> Result<Log, Error> {
    let (mut numbers, mut checkpoints, mut last) = (Vec::new(), Vec::new(), None);
    for name in folder.names(FOLDER)? {
        if format::is_ignored(OsStr::new(&name)) {
            continue;
        }
        let Some((number, kind)) = split(&name) else { continue };
        match kind {
            "json" => numbers.push(number),
            _ if kind.starts_with("checkpoint.") => checkpoints.push(number),
            _ => {}
        }
        // Also of what is no entry: whatever is written to a log shows.
        if kind.ends_with("json") && last.as_ref().is_none_or(|last| name > *last) {
            last = Some(name);
        }
    }
    numbers.sort_unstable();
    let (mut newest, mut settled) = (None, false);
    if let Some(name) = last {
        let number = split(&name).map_or(0, |(number, _)| number);
        let mut entry = find(folder, number, &name)?;
        settled = std::mem::replace(&mut entry.identity.settled, true);
        newest = Some(entry);
    }
    Ok(Log { folder: folder.clone(), numbers, checkpoints, newest, settled })
}

impl Log {
    pub(crate) fn newest(&self) -> Option<LogEntry> {
        self.newest.clone()
    }

    /// The entry that made the state which is meant. Blocks.
    ///
    /// # Errors
    /// `NoState` where there is none.
    pub(crate) fn entry_at(&self, as_of: AsOf) -> Result<LogEntry, Error> {
        let number = match as_of {
            AsOf::Version(number) => {
                let found = self.numbers.binary_search(&number).ok().map(|_| number);
                found.ok_or_else(|| self.not_kept(number))?
            }
            AsOf::Time(time) => {
                let found = self.last_until(time.timestamp_millis())?;
                found.ok_or_else(|| self.no_state(format!("had no version that is kept at {time}")))?
            }
        };
        self.entry(number)
    }

    /// Whether the states of a number can be made of what is there.
    pub(crate) fn reaches(&self, number: u64) -> bool {
        self.numbers.first() == Some(&0) || self.checkpoints.iter().any(|checkpoint| *checkpoint <= number)
    }

    /// The error for a version that is not there.
    pub(crate) fn not_kept(&self, number: u64) -> Error {
        self.no_state(format!("has no version {number}"))
    }

    fn no_state(&self, detail: String) -> Error {
        let kept = match (self.numbers.first(), self.numbers.last()) {
            (Some(first), Some(last)) => format!("its log has the versions {first} to {last}"),
            _ => "its log has no versions".to_owned(),
        };
        Error::NoState { path: self.folder.path(""), detail, kept }
    }

    fn entry(&self, number: u64) -> Result<LogEntry, Error> {
        find(&self.folder, number, &format!("{number:0DIGITS$}.json"))
    }

    /// The number of the last entry that was written until then.
    fn last_until(&self, time_ms: i64) -> Result<Option<u64>, Error> {
        let (mut low, mut high) = (0, self.numbers.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(number) = self.numbers.get(middle) else { break };
            match self.time_of(*number)? <= time_ms {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low.checked_sub(1).and_then(|place| self.numbers.get(place)).copied())
    }

    /// When an entry was written: what stands in it, for tables that keep the time there, else the time of its file.
    fn time_of(&self, number: u64) -> Result<i64, Error> {
        let file = self.folder.find(&format!("{FOLDER}/{number:0DIGITS$}.json"))?.data(&HandlePool::new(1));
        let read = file.read(0..file.size().min(MAX_FIRST_BYTES));
        file.close();
        let bytes = read?;
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let first: Option<FirstLine> = serde_json::from_slice(line).ok();
        let within = first.and_then(|line| line.commit_info).and_then(|info| info.in_commit_timestamp);
        let (seconds, nanoseconds) = file.identity().modified();
        Ok(within.unwrap_or(seconds.saturating_mul(1_000) + i64::from(nanoseconds / 1_000_000)))
    }
}

fn find(folder: &FolderView, number: u64, name: &str) -> Result<LogEntry, Error> {
    let found = folder.find(&format!("{FOLDER}/{name}"))?;
    Ok(LogEntry { number, path: found.path, identity: found.identity })
}

/// The number that a name begins with, and what stands behind it.
fn split(name: &str) -> Option<(u64, &str)> {
    let (number, kind) = name.split_once('.')?;
    let is_number = number.len() == DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| is_number)?, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table_folder::TableFolder;
    use chrono::DateTime;
    use std::fs::{self, File};
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    fn written(log: &Path, number: u64, second: u64, text: &str) {
        let path = log.join(format!("{number:020}.json"));
        fs::write(&path, text).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }

    fn at(log: &Log, second: i64) -> Option<u64> {
        let time = DateTime::from_timestamp(second, 0).unwrap();
        log.entry_at(AsOf::Time(time)).ok().map(|entry| entry.number)
    }

    #[test]
    fn entries_are_found_by_number_and_time() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        for number in 3..6 {
            written(&folder, number, number * 10, "{}\n{}");
        }
        fs::write(folder.join("00000000000000000004.checkpoint.parquet"), "").unwrap();
        fs::write(folder.join("_last_checkpoint"), "{}").unwrap();
        fs::write(folder.join(".00000000000000000009.json"), "{}").unwrap();
        let view = TableFolder::Local(place.path().to_path_buf()).view().unwrap();
        let log = read(&view).unwrap();
        assert_eq!(log.newest().map(|entry| entry.number), Some(5));
        assert_eq!(
            [at(&log, 29), at(&log, 30), at(&log, 49), at(&log, 99)],
            [None, Some(3), Some(4), Some(5)]
        );
        assert_eq!(log.entry_at(AsOf::Version(4)).unwrap().number, 4);
        let missing = log.entry_at(AsOf::Version(6)).unwrap_err();
        assert!(matches!(&missing, Error::NoState { kept, .. } if kept.contains("3 to 5")), "{missing}");
        assert!(!log.reaches(3) && log.reaches(4) && log.reaches(5));
        // Tables that keep the time in their entries: those of files say when they were copied.
        written(&folder, 4, 10, r#"{"commitInfo": {"inCommitTimestamp": 41000}}"#);
        written(&folder, 5, 10, r#"{"commitInfo": {"inCommitTimestamp": 51000}}"#);
        let log = read(&view).unwrap();
        assert_eq!([at(&log, 40), at(&log, 41), at(&log, 51)], [Some(3), Some(4), Some(5)]);
    }
}
