//! Pipes: files that are loaded into a table as they come. A pipe is a note of the snapshot, and so is which files it has loaded and
//! which it could not: they are committed with the rows of the files, so that no crash comes between the two.

use super::Error;
use chrono::Utc;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::time::Duration;
use uuid::Uuid;

/// Files of which a pipe knows that it has loaded them: 16 MB of notes. Those that are gone are forgotten when there are more.
const MAX_HISTORY: usize = 1_000_000;
/// Files of one note of the history: a load writes the last note anew.
const CHUNK: usize = 2_048;
const DIGITS: usize = 16;
const MAX_ERROR_BYTES: usize = 2_000;

type Texts = BTreeMap<String, String>;
/// A note and its text; `None` takes it out.
type Change = (String, Option<String>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipe {
    /// Tells it from others that have had its name.
    pub id: Uuid,
    /// With whose rights it loads; `None` where it was made without rules about access.
    pub owner: Option<String>,
    /// Catalog, schema and name of its table.
    pub table: [String; 3],
    /// A path, a pattern or an address.
    pub location: String,
    pub options: Vec<(String, Option<String>)>,
    pub every: Duration,
    pub paused: bool,
    /// Another one after each change: two loads of the same files are different changes, and conflict.
    pub change: Uuid,
    /// Files and rows that were loaded, and when the last of them was, in microseconds since 1970.
    pub files: u64,
    pub rows: u64,
    pub loaded_us: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipeFile {
    /// Digest of the location and of what tells this content from others.
    pub key: u64,
    pub location: String,
}

/// A file that could not be loaded: it is left alone until it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipeError {
    pub key: u64,
    pub file: String,
    pub error: String,
    /// Microseconds since 1970.
    pub failed_us: i64,
}

#[derive(Debug, Clone, Default)]
pub struct PipeLoad {
    pub files: Vec<PipeFile>,
    pub failed: Vec<PipeError>,
    /// All files that are there.
    pub listed: HashSet<u64>,
}

impl PipeFile {
    /// `content` is what tells one content from the next: size and time, or the tag that a store gives.
    pub fn new(location: String, content: &str) -> Self {
        let mut digest = Sha256::new();
        for part in [location.as_str(), content] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        let bytes = digest.finalize();
        let key = bytes.iter().take(8).fold(0_u64, |key, byte| (key << 8) | u64::from(*byte));
        Self { key, location }
    }
}

impl PipeError {
    pub fn new(file: &PipeFile, error: &str) -> Self {
        let end = error.floor_char_boundary(MAX_ERROR_BYTES);
        let error = error.get(..end).unwrap_or_default().to_owned();
        let failed_us = Utc::now().timestamp_micros();
        Self { key: file.key, file: file.location.clone(), error, failed_us }
    }

    pub fn all(texts: &Texts, pipe: &str) -> Vec<Self> {
        let found = below(texts, prefix(&["pipe", pipe, "e"]));
        found.filter_map(|(_, text)| serde_json::from_str(text).ok()).collect()
    }
}

impl Pipe {
    pub fn is_note(key: &str) -> bool {
        key.starts_with(&prefix(&["pipe"]))
    }

    pub fn key(name: &str) -> String {
        json!(["pipe", name]).to_string()
    }

    pub fn all(texts: &Texts) -> Vec<(String, Self)> {
        let named = |(key, text): (&String, &String)| {
            let [_, name]: [String; 2] = serde_json::from_str(key).ok()?;
            Some((name, serde_json::from_str(text).ok()?))
        };
        below(texts, prefix(&["pipe"])).filter_map(named).collect()
    }

    pub fn find(texts: &Texts, name: &str) -> Option<Self> {
        serde_json::from_str(texts.get(&Self::key(name))?).ok()
    }

    pub fn changed(self, name: &str) -> Change {
        let pipe = Self { change: Uuid::new_v4(), ..self };
        (Self::key(name), Some(json!(pipe).to_string()))
    }

    pub fn removed(texts: &Texts, name: &str) -> Vec<Change> {
        below(texts, prefix(&["pipe", name])).map(|(key, _)| (key.clone(), None)).collect()
    }

    /// Its errors, to be taken out: the files are tried again.
    pub fn without_errors(texts: &Texts, name: &str) -> Vec<Change> {
        below(texts, prefix(&["pipe", name, "e"])).map(|(key, _)| (key.clone(), None)).collect()
    }

    /// The keys of files that it has loaded; `None` for a history that cannot be read.
    pub fn loaded(texts: &Texts, name: &str) -> Option<HashSet<u64>> {
        let chunks = below(texts, prefix(&["pipe", name, "f"]));
        let keys = chunks.flat_map(|(_, text)| text.as_bytes().chunks(DIGITS));
        keys.map(|digits| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).collect()
    }

    /// The notes of a load of so many rows.
    pub fn after(self, name: &str, texts: &Texts, load: &PipeLoad, rows: u64) -> Result<Vec<Change>, Error> {
        let mut changes = history(name, texts, load)?;
        let again: HashSet<&str> = load.files.iter().map(|file| file.location.as_str()).collect();
        let failed: HashSet<&str> = load.failed.iter().map(|failed| failed.file.as_str()).collect();
        for error in PipeError::all(texts, name) {
            if again.contains(error.file.as_str()) || failed.contains(error.file.as_str()) {
                changes.push((error_key(name, error.key), None));
            }
        }
        for error in &load.failed {
            changes.push((error_key(name, error.key), Some(json!(error).to_string())));
        }
        let files = load.files.len() as u64;
        let loaded_us = if files > 0 { Some(Utc::now().timestamp_micros()) } else { self.loaded_us };
        let next = Self { files: self.files + files, rows: self.rows + rows, loaded_us, ..self };
        changes.push(next.changed(name));
        Ok(changes)
    }
}

fn history(name: &str, texts: &Texts, load: &PipeLoad) -> Result<Vec<Change>, Error> {
    if load.files.is_empty() {
        return Ok(Vec::new());
    }
    let chunks: Vec<(&String, &String)> = below(texts, prefix(&["pipe", name, "f"])).collect();
    let known: usize = chunks.iter().map(|(_, text)| text.len() / DIGITS).sum();
    let added = load.files.iter().map(|file| file.key);
    if known + load.files.len() <= MAX_HISTORY {
        let last = chunks.last().filter(|(_, text)| text.len() < CHUNK * DIGITS);
        let (at, text) = match last {
            Some((_, text)) => (chunks.len() - 1, (*text).clone()),
            None => (chunks.len(), String::new()),
        };
        return Ok(written(name, (at, text), added));
    }
    let loaded = Pipe::loaded(texts, name).unwrap_or_default();
    let there: Vec<u64> = loaded.into_iter().filter(|key| load.listed.contains(key)).collect();
    if there.len() + load.files.len() > MAX_HISTORY {
        return Err(Error::TooMuch(format!(
            "pipe `{name}` has loaded {MAX_HISTORY} files that are still there: move some of them away"
        )));
    }
    let mut changes: Vec<Change> = chunks.into_iter().map(|(key, _)| (key.clone(), None)).collect();
    changes.extend(written(name, (0, String::new()), there.into_iter().chain(added)));
    Ok(changes)
}

/// Notes of the history from one on, which begins with a text.
fn written(name: &str, (mut at, mut text): (usize, String), keys: impl Iterator<Item = u64>) -> Vec<Change> {
    let mut changes = Vec::new();
    for key in keys {
        if text.len() >= CHUNK * DIGITS {
            changes.push((chunk_key(name, at), Some(std::mem::take(&mut text))));
            at += 1;
        }
        // Writing to a text does not fail.
        let _ = write!(text, "{key:016x}");
    }
    changes.push((chunk_key(name, at), Some(text)));
    changes
}

/// In the order of their numbers.
fn chunk_key(name: &str, at: usize) -> String {
    json!(["pipe", name, "f", format!("{at:06}")]).to_string()
}

fn error_key(name: &str, key: u64) -> String {
    json!(["pipe", name, "e", format!("{key:016x}")]).to_string()
}

/// How the keys begin that begin with these parts.
fn prefix(parts: &[&str]) -> String {
    let mut text = json!(parts).to_string();
    text.pop();
    text
}

fn below(texts: &Texts, prefix: String) -> impl Iterator<Item = (&String, &String)> {
    texts.range(prefix.clone()..).take_while(move |(key, _)| key.starts_with(&prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> Pipe {
        Pipe {
            id: Uuid::nil(),
            owner: None,
            table: ["c", "s", "t"].map(str::to_owned),
            location: "in/*.csv".to_owned(),
            options: vec![("format".to_owned(), Some("csv".to_owned())), ("header".to_owned(), None)],
            every: Duration::from_secs(5),
            paused: false,
            change: Uuid::nil(),
            files: 0,
            rows: 0,
            loaded_us: None,
        }
    }

    fn apply(texts: &mut Texts, changes: Vec<Change>) {
        for (key, text) in changes {
            match text {
                Some(text) => drop(texts.insert(key, text)),
                None => drop(texts.remove(&key)),
            }
        }
    }

    fn load(keys: impl IntoIterator<Item = u64>) -> PipeLoad {
        let files = keys.into_iter().map(|key| PipeFile { key, location: format!("f{key}") });
        PipeLoad { files: files.collect(), ..PipeLoad::default() }
    }

    fn load_into(texts: &mut Texts, name: &str, load: &PipeLoad) {
        let now = Pipe::find(texts, name).expect("is there");
        let changes = now.after(name, texts, load, 1).expect("there is room");
        apply(texts, changes);
    }

    #[test]
    fn what_was_loaded_is_known_in_notes_of_their_own() {
        let mut texts = Texts::new();
        apply(&mut texts, vec![pipe().changed("p"), pipe().changed("p2")]);
        for round in 0..5_u64 {
            load_into(&mut texts, "p", &load(round * 1_000..(round + 1) * 1_000));
        }
        assert_eq!(Pipe::loaded(&texts, "p"), Some((0..5_000).collect()));
        assert_eq!(Pipe::loaded(&texts, "p2"), Some(HashSet::new()));
        assert_eq!(texts.len(), 2 + 5_000_usize.div_ceil(CHUNK));
        let names: Vec<String> = Pipe::all(&texts).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["p", "p2"]);
        let now = Pipe::find(&texts, "p").expect("is there");
        assert_eq!((now.files, now.rows, now.options), (5_000, 5, pipe().options));
        let removed = Pipe::removed(&texts, "p");
        apply(&mut texts, removed);
        assert_eq!(texts.keys().collect::<Vec<_>>(), [&Pipe::key("p2")]);
    }

    #[test]
    fn the_same_load_twice_is_two_changes() {
        let mut texts = Texts::new();
        apply(&mut texts, vec![pipe().changed("p")]);
        let now = || Pipe::find(&texts, "p").expect("is there");
        let (one, two) = (now().after("p", &texts, &load([1]), 1), now().after("p", &texts, &load([1]), 1));
        let note = |changes: Vec<Change>| changes.into_iter().find(|(key, _)| *key == Pipe::key("p"));
        assert_ne!(note(one.expect("loads")), note(two.expect("loads")));
    }

    #[test]
    fn an_error_goes_when_its_file_was_loaded() {
        let mut texts = Texts::new();
        apply(&mut texts, vec![pipe().changed("p")]);
        let file = PipeFile::new("f1".to_owned(), "7 bytes");
        let failed = vec![PipeError::new(&file, &"é".repeat(MAX_ERROR_BYTES))];
        load_into(&mut texts, "p", &PipeLoad { failed, ..PipeLoad::default() });
        let errors = PipeError::all(&texts, "p");
        assert!(errors.len() == 1 && errors[0].error.len() <= MAX_ERROR_BYTES, "{errors:?}");
        assert_ne!(file.key, PipeFile::new("f1".to_owned(), "8 bytes").key);
        load_into(&mut texts, "p", &load([1]));
        assert!(PipeError::all(&texts, "p").is_empty());
    }

    #[test]
    fn a_history_that_cannot_be_read_is_none() {
        let texts = Texts::from([(chunk_key("p", 0), "no digits".to_owned())]);
        assert_eq!(Pipe::loaded(&texts, "p"), None);
    }
}
