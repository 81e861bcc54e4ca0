//! The log of a Delta table, as far as its names and times go: which entry is the last one, and which one made a state that is
//! asked for. What entries say of files, the library reads.

use crate::change_feed::{self, ChangeRange};
use crate::table_folder::FolderView;
use bowshot_api::ErrorKind;
use bowshot_formats::data_file::{DataFile, HandlePool};
use bowshot_formats::listed_file::ListedFile;
use bowshot_formats::table_version::AsOf;
use bowshot_object_store::{Error, FileIdentity, file_name};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

const FOLDER: &str = "_delta_log";
const DIGITS: usize = 20;
/// Bytes of an entry that are read at once for the time in it; it stands in the first line.
const FIRST_BYTES: u64 = 64 << 10;
pub(crate) const MAX_ENTRY_BYTES: u64 = 128 << 20;

#[derive(Debug)]
pub(crate) struct Log {
    folder: FolderView,
    /// Numbers of the entries that are there, in order.
    numbers: Vec<u64>,
    /// States that were written down as a whole.
    checkpoints: Vec<u64>,
    newest: Option<LogEntry>,
    /// When entries were written, as far as that was asked for.
    written: OnceLock<Written>,
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

/// Times of entries in ms of Unix time, by their files: one not later than the entry before is one millisecond later.
#[derive(Debug)]
pub(crate) struct Written(HashMap<u64, i64>);

impl Written {
    fn new(entries: impl Iterator<Item = (u64, i64)>) -> Self {
        let mut last = i64::MIN;
        let later = |(number, time_ms): (u64, i64)| {
            last = time_ms.max(last.saturating_add(1));
            (number, last)
        };
        Self(entries.map(later).collect())
    }

    pub(crate) fn of(&self, number: u64) -> i64 {
        self.0.get(&number).copied().unwrap_or_default()
    }
}

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
pub(crate) fn read(folder: &FolderView) -> Result<Log, Error> {
    let (mut numbers, mut checkpoints, mut last) = (Vec::new(), Vec::new(), None);
    for name in folder.names(FOLDER)? {
        if file_name::is_ignored(OsStr::new(&name)) {
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
    Ok(Log { folder: folder.clone(), numbers, checkpoints, newest, written: OnceLock::new(), settled })
}

impl Log {
    pub(crate) fn newest(&self) -> Option<LogEntry> {
        self.newest.clone()
    }

    /// The entry that made the state which is meant. Blocks.
    pub(crate) fn entry_at(&self, as_of: AsOf) -> Result<LogEntry, Error> {
        let number = match as_of {
            AsOf::Version(number) => {
                let found = self.numbers.binary_search(&number).ok().map(|_| number);
                found.ok_or_else(|| self.not_kept(number))?
            }
            AsOf::Time(time) => {
                let place = self.written_before(time.timestamp_millis().saturating_add(1))?;
                let found = place.checked_sub(1).and_then(|place| self.numbers.get(place)).copied();
                found.ok_or_else(|| self.no_state(format!("has no version of {time}, or it was removed")))?
            }
        };
        self.entry(number)
    }

    /// The first and the last version that are meant; none where none was written between two times. `newest` is the version that
    /// counts as the last one. Blocks.
    ///
    /// # Errors
    /// `NoState` where a version is not there, or changes before the first one are meant, too.
    pub(crate) fn range(&self, range: ChangeRange, newest: u64) -> Result<Option<(u64, u64)>, Error> {
        let from = match range.from {
            AsOf::Version(number) => self.known(number, newest)?,
            AsOf::Time(time) => self.first_from(time)?,
        };
        let to = match range.to {
            None => newest,
            Some(AsOf::Version(number)) => self.known(number, newest)?,
            Some(until @ AsOf::Time(_)) => self.entry_at(until)?.number.min(newest),
        };
        match range {
            _ if from <= to => Ok(Some((from, to))),
            ChangeRange { from: AsOf::Time(from), to: Some(AsOf::Time(to)) } if from <= to => Ok(None),
            _ => {
                let detail = format!("invalid range of versions: it begins with {from} and ends with {to}");
                let hint = "write the earlier version or time first";
                Err(change_feed::refused(&self.path(), ErrorKind::Invalid, detail, hint))
            }
        }
    }

    fn known(&self, number: u64, newest: u64) -> Result<u64, Error> {
        let found = self.numbers.binary_search(&number).ok().filter(|_| number <= newest);
        found.map(|_| number).ok_or_else(|| self.not_kept(number))
    }

    fn first_from(&self, time: DateTime<Utc>) -> Result<u64, Error> {
        // Entries have whole milliseconds.
        let part = i64::from(!time.timestamp_subsec_nanos().is_multiple_of(1_000_000));
        let place = self.written_before(time.timestamp_millis().saturating_add(part))?;
        let first = self.numbers.get(place).copied();
        let first = first.ok_or_else(|| self.no_state(format!("has no version from {time} on")))?;
        // What was written before the first one that is left may have been meant.
        if place == 0 && first > 0 && self.time_of(first)? > time.timestamp_millis() {
            return Err(self.no_state(format!("no longer has all versions since {time}")));
        }
        Ok(first)
    }

    pub(crate) fn entries(&self, numbers: &[u64]) -> Vec<Result<ListedFile, Error>> {
        let names: Vec<String> =
            numbers.iter().map(|number| format!("{FOLDER}/{}", entry_name(*number))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.folder.find_all(&names)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path("")
    }

    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.folder, FolderView::Remote(_))
    }

    /// Whether the states of a number can be made of what is there.
    pub(crate) fn reaches(&self, number: u64) -> bool {
        self.numbers.first() == Some(&0) || self.checkpoints.iter().any(|checkpoint| *checkpoint <= number)
    }

    pub(crate) fn not_kept(&self, number: u64) -> Error {
        self.no_state(format!("has no version {number}"))
    }

    fn no_state(&self, detail: String) -> Error {
        let kept = match (self.numbers.first(), self.numbers.last()) {
            (Some(first), Some(last)) => format!("its log has the versions {first} to {last}"),
            _ => "its log has no versions".to_owned(),
        };
        Error::NoState { path: self.path(), detail, kept }
    }

    fn entry(&self, number: u64) -> Result<LogEntry, Error> {
        find(&self.folder, number, &entry_name(number))
    }

    /// How many entries were written before then.
    fn written_before(&self, time_ms: i64) -> Result<usize, Error> {
        let (mut low, mut high) = (0, self.numbers.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(number) = self.numbers.get(middle) else { break };
            match self.time_of(*number)? < time_ms {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// When an entry was written: what stands in it, for tables that keep the time there, else by the times of files.
    fn time_of(&self, number: u64) -> Result<i64, Error> {
        let file = self.folder.find(&format!("{FOLDER}/{}", entry_name(number)))?.data(&HandlePool::new(1));
        let line = first_line(&file);
        file.close();
        let first: Option<FirstLine> = serde_json::from_slice(&line?).ok();
        let within = first.and_then(|line| line.commit_info).and_then(|info| info.in_commit_timestamp);
        within.map_or_else(|| Ok(self.written()?.of(number)), Ok)
    }

    pub(crate) fn written(&self) -> Result<&Written, Error> {
        if let Some(known) = self.written.get() {
            return Ok(known);
        }
        let found = self.entries(&self.numbers).into_iter().zip(&self.numbers);
        let time = |(found, number): (Result<ListedFile, Error>, &u64)| {
            let (seconds, nanoseconds) = found?.identity.modified();
            Ok((*number, seconds.saturating_mul(1_000).saturating_add(i64::from(nanoseconds / 1_000_000))))
        };
        let times = found.map(time).collect::<Result<Vec<_>, Error>>()?;
        Ok(self.written.get_or_init(|| Written::new(times.into_iter())))
    }
}

/// Whether an object misleads readers of a log: the hint to the last checkpoint, which may be wrong, or an empty checkpoint.
pub(crate) fn misleads(name: &str, bytes: u64) -> bool {
    let Some((folder, name)) = name.rsplit_once('/') else { return false };
    let is_of_log = folder == FOLDER || folder.strip_suffix(FOLDER).is_some_and(|above| above.ends_with('/'));
    let is_checkpoint = || split(name).is_some_and(|(_, kind)| kind.starts_with("checkpoint."));
    is_of_log && (name == "_last_checkpoint" || (bytes == 0 && is_checkpoint()))
}

pub(crate) fn is_entry(name: &str) -> bool {
    let name = name.rsplit_once('/').filter(|(folder, _)| folder.ends_with(FOLDER)).map(|(_, name)| name);
    name.and_then(split).is_some_and(|(_, kind)| kind == "json")
}

/// The first line of an entry, however long: who deletes by a long list has it there.
fn first_line(file: &Arc<DataFile>) -> Result<Vec<u8>, Error> {
    let (mut line, size) = (Vec::new(), file.size().min(MAX_ENTRY_BYTES));
    let mut next = 0;
    while next < size {
        let until = next.saturating_add(FIRST_BYTES.max(next)).min(size);
        let bytes = file.read(next..until)?;
        if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(bytes.get(..end).unwrap_or_default());
            return Ok(line);
        }
        line.extend_from_slice(&bytes);
        next = until;
    }
    Ok(line)
}

fn find(folder: &FolderView, number: u64, name: &str) -> Result<LogEntry, Error> {
    let found = folder.find(&format!("{FOLDER}/{name}"))?;
    Ok(LogEntry { number, path: found.path, identity: found.identity })
}

fn entry_name(number: u64) -> String {
    format!("{number:0DIGITS$}.json")
}

/// The number that a name begins with, and what stands behind it.
fn split(name: &str) -> Option<(u64, &str)> {
    let (number, kind) = name.split_once('.')?;
    let is_number = number.len() == DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| is_number)?, kind))
}

#[cfg(test)]
mod tests {
    use super::misleads;

    #[test]
    fn what_misleads_is_beside_the_entries() {
        for (name, bytes, expected) in [
            ("a/_delta_log/_last_checkpoint", 9, true),
            ("_delta_log/_last_checkpoint", 9, true),
            ("a/_delta_log/00000000000000000004.checkpoint.parquet", 0, true),
            ("a/_delta_log/00000000000000000004.checkpoint.parquet", 1, false),
            ("a/_delta_log/00000000000000000004.json", 0, false),
            ("a/x_delta_log/_last_checkpoint", 9, false),
            ("_last_checkpoint", 9, false),
        ] {
            assert_eq!(misleads(name, bytes), expected, "{name}");
        }
    }
}
