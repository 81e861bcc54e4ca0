//! The audit log: one JSON object per line, each with the hash of the previous line, so that changed or removed lines
//! are detected. [`verify`] checks the chain.
//!
//! A full file is renamed to the next number (`audit.jsonl.1`, `audit.jsonl.2`, …), and the next file continues its
//! chain. Whoever can write the file can forge a whole chain: store the last hash elsewhere, or ship the lines.

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The hash before the first line.
const BEGINNING: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Longest line that is read. Lines are cut when written and stay far below.
const MAX_LINE_BYTES: u64 = 1 << 20;
/// Longest text in a line, in bytes; longer ones are truncated and marked.
const MAX_TEXT_BYTES: usize = 32 << 10;
/// Entries of a list in a line.
const MAX_ENTRIES: usize = 100;
/// How often a file that could not be written is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Options of the audit log.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    pub file: PathBuf,
    /// Bytes of a file before it is set aside.
    pub max_bytes: u64,
    /// Whether statements are refused while the log cannot be written.
    pub required: bool,
}

#[derive(Debug)]
pub struct AuditLog {
    options: AuditOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    bytes: u64,
    last: String,
    /// Since when nothing can be written, and why.
    failed: Option<(Instant, String)>,
}

/// The result of [`verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Lines whose hashes fit.
    pub lines: u64,
    /// The hash that the first line continues.
    pub continues: String,
    /// The hash of the last line.
    pub last: String,
}

impl AuditLog {
    /// Opens or creates the file and continues its chain. An incomplete last line is removed, and the next line
    /// records that.
    ///
    /// # Errors
    /// When it cannot be read and written, or its last line is none.
    pub fn open(options: AuditOptions) -> io::Result<Self> {
        let file = open_file(&options.file)?;
        let End { last, bytes, torn } = end(&options.file)?;
        if torn > 0 {
            file.set_len(bytes)?;
        }
        let mut state =
            State { file, bytes, last: last.unwrap_or_else(|| BEGINNING.to_owned()), failed: None };
        if torn > 0 {
            tracing::warn!(file = %options.file.display(), torn, "the last line of the audit trail was not complete");
            let facts = [("event".to_owned(), json!("torn_line")), ("bytes".to_owned(), json!(torn))];
            state.write(Map::from_iter(facts), &options)?;
        }
        Ok(Self { options, state: Mutex::new(state) })
    }

    /// Appends a record; returns whether it was written. [`Self::check`] reports failures.
    pub fn write(&self, facts: Map<String, Value>) -> bool {
        let mut state = self.state.lock();
        match state.write(facts, &self.options) {
            Ok(()) => {
                state.failed = None;
                true
            }
            Err(error) => {
                tracing::error!(file = %self.options.file.display(), %error, "the audit trail cannot be written");
                state.failed = Some((Instant::now(), error.to_string()));
                false
            }
        }
    }

    /// Fails while statements must be refused.
    ///
    /// # Errors
    /// Why the last line could not be written, if lines are required. From time to time it is tried again.
    pub fn check(&self) -> Result<(), String> {
        let mut state = self.state.lock();
        let Some((since, reason)) = &state.failed else { return Ok(()) };
        if !self.options.required {
            return Ok(());
        }
        if since.elapsed() < TRY_AGAIN {
            return Err(reason.clone());
        }
        let facts = Map::from_iter([("event".to_owned(), json!("audit_resumed"))]);
        match state.write(facts, &self.options) {
            Ok(()) => {
                state.failed = None;
                Ok(())
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.to_string()));
                Err(error.to_string())
            }
        }
    }
}

impl State {
    fn write(&mut self, mut facts: Map<String, Value>, options: &AuditOptions) -> io::Result<()> {
        if self.bytes >= options.max_bytes {
            std::fs::rename(&options.file, rotate(&options.file)?)?;
            (self.file, self.bytes) = (open_file(&options.file)?, 0);
        }
        facts.values_mut().for_each(shorten);
        facts.insert("previous".to_owned(), json!(self.last));
        let hash = hash(&facts)?;
        facts.insert("hash".to_owned(), json!(hash));
        let mut line = serde_json::to_vec(&facts)?;
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // Half a line would break the chain.
            self.file.set_len(self.bytes)?;
            return Err(error);
        }
        self.bytes += line.len() as u64;
        self.last = hash;
        Ok(())
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The first name with a number that is free.
fn rotate(path: &Path) -> io::Result<PathBuf> {
    let numbered = (1..u32::MAX).map(|number| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    });
    let mut free = numbered.filter(|name| !name.exists());
    free.next().ok_or_else(|| io::Error::other("no number is left for a rotated file"))
}

/// The hash of a line: of its facts without it, in the order of their names.
fn hash(facts: &Map<String, Value>) -> io::Result<String> {
    let digest = Sha256::digest(serde_json::to_vec(facts)?);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The end of a trail.
struct End {
    /// The hash of the last line; `None` before the first.
    last: Option<String>,
    /// Bytes of all lines that are complete.
    bytes: u64,
    /// Bytes behind them.
    torn: u64,
}

fn end(path: &Path) -> io::Result<End> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    // The last line, and before it half of another.
    let start = length.saturating_sub(2 * MAX_LINE_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.take(2 * MAX_LINE_BYTES).read_to_end(&mut tail)?;
    let Some(complete) = tail.iter().rposition(|byte| *byte == b'\n') else {
        return if start == 0 {
            Ok(End { last: None, bytes: 0, torn: length })
        } else {
            Err(broken("its end has no lines"))
        };
    };
    let torn = (tail.len() - complete - 1) as u64;
    let line = tail[..complete].rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let (_, hash) = read(line)?;
    Ok(End { last: Some(hash), bytes: length - torn, torn })
}

/// Truncates long texts of clients.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => cut(text, MAX_TEXT_BYTES),
        Value::Array(values) => {
            let number = values.len();
            if number > MAX_ENTRIES {
                values.truncate(MAX_ENTRIES);
                values.push(json!(format!("… ({number} entries)")));
            }
            for value in values {
                if let Value::String(text) = value {
                    cut(text, MAX_TEXT_BYTES / MAX_ENTRIES);
                }
            }
        }
        _ => {}
    }
}

fn cut(text: &mut String, most: usize) {
    let bytes = text.len();
    if bytes > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(&format!(" … ({bytes} bytes)"));
    }
}

fn broken(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// The previous hash and the verified hash of a line.
fn read(line: &[u8]) -> io::Result<(String, String)> {
    let mut facts: Map<String, Value> =
        serde_json::from_slice(line).map_err(|_| broken("a line is not a JSON object"))?;
    let told = facts.remove("hash").ok_or_else(|| broken("a line has no hash"))?;
    let found = hash(&facts)?;
    let previous =
        facts.get("previous").and_then(Value::as_str).ok_or_else(|| broken("a line continues none"))?;
    if told.as_str() != Some(found.as_str()) {
        return Err(broken("a line was changed: its hash is another one"));
    }
    Ok((previous.to_owned(), found))
}

/// Follows the chain of a file from its first line to its last.
///
/// # Errors
/// Where it breaks, with the number of the line.
pub fn verify(path: &Path) -> io::Result<Verified> {
    let mut lines = BufReader::new(File::open(path)?);
    let mut verified = Verified { lines: 0, continues: String::new(), last: String::new() };
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut lines).take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(verified);
        }
        let at =
            |error: io::Error| io::Error::new(error.kind(), format!("line {}: {error}", verified.lines + 1));
        let complete = line.strip_suffix(b"\n").ok_or_else(|| at(broken("it is not complete")))?;
        let (previous, hash) = read(complete).map_err(at)?;
        if verified.lines == 0 {
            verified.continues = previous;
        } else if previous != verified.last {
            return Err(at(broken("it does not continue the one before: lines were taken out or put in")));
        }
        (verified.lines, verified.last) = (verified.lines + 1, hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(number: u64) -> Map<String, Value> {
        Map::from_iter([("user".to_owned(), json!("ada")), ("number".to_owned(), json!(number))])
    }

    fn log(file: &Path, max_bytes: u64) -> AuditLog {
        AuditLog::open(AuditOptions { file: file.to_owned(), max_bytes, required: true }).expect("opens")
    }

    #[test]
    fn a_chain_goes_on_over_restarts_and_files() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("audit.jsonl");
        assert!((0..3).all(|number| log(&file, 1 << 20).write(facts(number))));
        let whole = verify(&file).expect("is whole");
        assert_eq!((whole.lines, whole.continues.as_str()), (3, BEGINNING));
        log(&file, 1).write(facts(3));
        let (first, second) = (verify(&folder.path().join("audit.jsonl.1")), verify(&file));
        assert_eq!(first.expect("is whole").last, second.expect("is whole").continues);
    }

    #[test]
    fn long_texts_and_half_lines_stop_nobody() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("audit.jsonl");
        // Control characters are six bytes each in JSON.
        let long = json!("\u{1}".repeat(3_000_000));
        let names = json!(vec!["\u{1}".repeat(5_000); 5_000]);
        let facts_of = |long: &Value| {
            Map::from_iter([("statement".to_owned(), long.clone()), ("tables".to_owned(), names.clone())])
        };
        log(&file, 1 << 30).write(facts_of(&long));
        log(&file, 1 << 30).write(facts(1));
        assert_eq!(verify(&file).expect("is whole").lines, 2);
        let text = std::fs::read(&file).expect("reads");
        for half in [1, 20, text.len() - 1] {
            std::fs::write(&file, &text[..text.len() - half]).expect("writes");
            log(&file, 1 << 30).write(facts(2));
            assert_eq!(verify(&file).expect("is whole again").lines, if half < 100 { 3 } else { 2 });
            assert!(std::fs::read_to_string(&file).expect("reads").contains("torn_line"));
        }
    }

    #[test]
    fn what_was_changed_is_found() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("audit.jsonl");
        let log = log(&file, 1 << 20);
        assert!((0..4).all(|number| log.write(facts(number))));
        let text = std::fs::read_to_string(&file).expect("reads");
        let lines: Vec<&str> = text.lines().collect();
        let changed = text.replace("\"number\":2", "\"number\":7");
        let without = format!("{}\n{}\n", lines[0], lines[2]);
        let swapped = format!("{}\n{}\n{}\n", lines[0], lines[2], lines[1]);
        for (name, broken, line) in [
            ("changed", changed.as_str(), "line 3"),
            ("without", without.as_str(), "line 2"),
            ("swapped", swapped.as_str(), "line 2"),
            ("cut", &text[..text.len() - 5], "line 4"),
        ] {
            std::fs::write(&file, broken).expect("writes");
            let error = verify(&file).expect_err(name).to_string();
            assert!(error.starts_with(line), "{name}: {error}");
        }
    }
}
