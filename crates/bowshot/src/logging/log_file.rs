//! The log as a file: rotated by size and by day, opened again when another program has moved it. Nothing waits for room on the
//! disk: a line that cannot be written is dropped and counted.

use crate::config::LogSettings;
use crate::metrics_exporter::LOG_LINES_DROPPED;
use parking_lot::Mutex;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_OF_DAY: u64 = 86_400;

#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    settings: LogSettings,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    bytes: u64,
    /// The day (UTC) of the last line.
    day: u64,
}

impl LogFile {
    /// Opens the file, or makes it.
    pub(crate) fn open(path: PathBuf, settings: LogSettings) -> io::Result<Self> {
        let state = Mutex::new(State::open(&path)?);
        Ok(Self { path, settings, state })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file of this name again, which may be another one by now.
    ///
    /// # Errors
    /// When it cannot be written to; lines then go on to where they went.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        let state = State::open(&self.path)?;
        *self.state.lock() = state;
        Ok(())
    }

    /// Writes a line on a day; returns whether all of it was written.
    fn append(&self, line: &[u8], today: u64) -> bool {
        let mut state = self.state.lock();
        if self.is_due(&state, line.len() as u64, today)
            && let Err(error) = state.rotate(&self.path, self.settings.keep)
        {
            // The log cannot have this line. The next try comes with the next size or day.
            (state.bytes, state.day) = (0, today);
            _ = writeln!(io::stderr(), "the log `{}` cannot be rotated: {error}", self.path.display());
        }
        state.day = today;
        state.write(line).is_ok()
    }

    /// Whether the line belongs into the next file. A file without lines is never full.
    fn is_due(&self, state: &State, more: u64, today: u64) -> bool {
        let LogSettings { max_bytes, daily, .. } = self.settings;
        let is_full = max_bytes > 0 && state.bytes + more > max_bytes;
        state.bytes > 0 && (is_full || (daily && today != state.day))
    }
}

/// Each call is one line.
impl Write for &LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !self.append(line, day_of(SystemTime::now())) {
            metrics::counter!(LOG_LINES_DROPPED).increment(1);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl State {
    fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        // Lines of slow statements have values of rows.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let found = file.metadata()?;
        Ok(Self { bytes: found.len(), day: day_of(found.modified()?), file })
    }

    /// Writes all of a line or nothing, so that the next one begins a line.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let written = self.file.write(line)?;
        if written < line.len() {
            self.file.set_len(self.file.metadata()?.len().saturating_sub(written as u64))?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes += written as u64;
        Ok(())
    }

    /// Renames the files, of which the first is the newest, and begins the next one. The last that may stay is replaced.
    fn rotate(&mut self, path: &Path, keep: usize) -> io::Result<()> {
        let free = (1..keep).find(|number| !numbered(path, *number).exists()).unwrap_or(keep);
        for number in (1..free).rev() {
            fs::rename(numbered(path, number), numbered(path, number + 1))?;
        }
        match fs::rename(path, numbered(path, 1)) {
            // It was moved or removed: then only the next one is begun.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        *self = Self::open(path)?;
        Ok(())
    }
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

fn day_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / SECONDS_OF_DAY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(folder: &Path, settings: LogSettings) -> LogFile {
        LogFile::open(folder.join("log"), settings).expect("opens")
    }

    /// What the file and its earlier ones have, the newest first.
    fn files(folder: &Path) -> Vec<String> {
        let path = folder.join("log");
        let earlier = (1..9).map(|number| numbered(&path, number));
        [path.clone()].into_iter().chain(earlier).map_while(|path| fs::read_to_string(path).ok()).collect()
    }

    #[test]
    fn full_files_are_set_aside_and_the_oldest_go() {
        let folder = tempfile::tempdir().expect("folder");
        let settings = LogSettings { max_bytes: 8, keep: 2, ..LogSettings::default() };
        let file = log(folder.path(), settings.clone());
        assert!(file.append(b"longer than a file\n", 1), "a file has one line at least");
        assert_eq!(files(folder.path()), ["longer than a file\n"]);
        for line in ["one\n", "two\n", "three\n"] {
            assert!(file.append(line.as_bytes(), 1));
        }
        assert_eq!(files(folder.path()), ["three\n", "one\ntwo\n", "longer than a file\n"]);
        drop(file);
        assert!(log(folder.path(), settings).append(b"four\n", 1), "its size counts after a restart");
        assert_eq!(files(folder.path()), ["four\n", "three\n", "one\ntwo\n"]);
    }

    #[test]
    fn days_have_their_files() {
        let folder = tempfile::tempdir().expect("folder");
        let settings = LogSettings { max_bytes: 0, daily: true, ..LogSettings::default() };
        let file = log(folder.path(), settings);
        for (line, day) in [("a\n", 1), ("b\n", 1), ("c\n", 2), ("d\n", 5)] {
            assert!(file.append(line.as_bytes(), day));
        }
        assert_eq!(files(folder.path()), ["d\n", "c\n", "a\nb\n"]);
    }

    #[test]
    fn what_cannot_be_rotated_goes_on() {
        let folder = tempfile::tempdir().expect("folder");
        let file = log(folder.path(), LogSettings { max_bytes: 4, keep: 1, ..LogSettings::default() });
        // A folder that is not empty is in the place of the earlier file.
        fs::create_dir_all(folder.path().join("log.1/x")).expect("folder");
        assert!(file.append(b"one\n", 1));
        assert!(file.append(b"two\n", 1));
        assert_eq!(fs::read_to_string(folder.path().join("log")).expect("reads"), "one\ntwo\n");
    }
}
