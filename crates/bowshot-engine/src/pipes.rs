//! What the server remembers of pipes between its looks for files: which of them wait, and which are loaded next. None of it is
//! needed to load a file once: that is noted with its rows ([`bowshot_tables::Pipe`]).

use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::listed_file::ListedFile;
use bowshot_tables::{Pipe, PipeError, PipeFile, PipeLoad};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Files that are loaded in one transaction, and their bytes. A larger file is loaded alone.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: u64 = 1 << 30;
/// Files of one pipe that could not be loaded; with more it stops until it is told what to do.
const MAX_ERRORS: usize = 250;
/// How long a file of a folder must have been as it is: it may still be written.
const SETTLED: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct PipeStates(Mutex<HashMap<Uuid, PipeState>>);

#[derive(Debug)]
struct PipeState {
    /// When it is looked at again.
    next: Instant,
    /// Files that are not loaded, and since when they are as they are.
    waiting: HashMap<u64, Instant>,
    /// How many files are loaded together: less after an error, so that the file at fault is found.
    width: usize,
    /// Files that could not be loaded, to be noted with the next load.
    failed: Vec<PipeError>,
    chosen: Arc<ChosenFiles>,
}

/// The files that are loaded next.
#[derive(Debug, Default)]
pub(crate) struct ChosenFiles {
    /// The last change of the pipe that is known: after another one they are chosen anew.
    pub(crate) change: Uuid,
    pub(crate) files: Vec<ListedFile>,
    pub(crate) load: PipeLoad,
    /// Whether their rows are read: an error before or after that is none of a file.
    are_read: AtomicBool,
}

impl ChosenFiles {
    pub(crate) fn note_read(&self, are_read: bool) {
        self.are_read.store(are_read, Ordering::Release);
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.load.failed.is_empty()
    }
}

impl PipeState {
    fn new() -> Self {
        let (waiting, failed, chosen) = (HashMap::new(), Vec::new(), Arc::default());
        Self { next: Instant::now(), waiting, width: MAX_FILES, failed, chosen }
    }

    /// As many of the files as one transaction takes.
    fn take(&self, ready: Vec<(PipeFile, ListedFile)>) -> Vec<(PipeFile, ListedFile)> {
        let (mut bytes, mut taken) = (0_u64, Vec::new());
        for (file, listed) in ready.into_iter().take(self.width) {
            bytes = bytes.saturating_add(listed.identity.size);
            if bytes > MAX_BYTES && !taken.is_empty() {
                break;
            }
            taken.push((file, listed));
        }
        taken
    }
}

impl PipeStates {
    /// Forgets all pipes but these.
    pub(crate) fn retain(&self, pipes: &[(String, Pipe)]) {
        self.0.lock().retain(|id, _| pipes.iter().any(|(_, pipe)| pipe.id == *id));
    }

    /// Whether a pipe is to be looked at. It is not for as long as it says, if nobody says otherwise.
    pub(crate) fn begin(&self, pipe: &Pipe) -> bool {
        let mut states = self.0.lock();
        let state = states.entry(pipe.id).or_insert_with(PipeState::new);
        // After that of a new state, which is due.
        let now = Instant::now();
        let is_due = now >= state.next;
        if is_due {
            state.next = now + pipe.every;
        }
        is_due
    }

    /// The files that are loaded next of those that are there; `None` if there is nothing to do.
    ///
    /// # Errors
    /// `LimitReached` for a pipe with too many files that cannot be loaded; `Corrupt` where nobody knows what was loaded.
    pub(crate) fn choose(
        &self,
        (name, pipe): (&str, &Pipe),
        texts: &BTreeMap<String, String>,
        found: Vec<ListedFile>,
    ) -> Result<Option<Arc<ChosenFiles>>> {
        let loaded = Pipe::loaded(texts, name).ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, format!("cannot read the load history of pipe `{name}`"))
        })?;
        let mut errors: HashSet<u64> = PipeError::all(texts, name).iter().map(|error| error.key).collect();
        let (now, mut states) = (Instant::now(), self.0.lock());
        let state = states.entry(pipe.id).or_insert_with(PipeState::new);
        errors.extend(state.failed.iter().map(|error| error.key));
        let (mut listed, mut waiting, mut ready) = (HashSet::new(), HashMap::new(), Vec::new());
        for found in found {
            let file = file_of(&found);
            listed.insert(file.key);
            if loaded.contains(&file.key) || errors.contains(&file.key) {
                continue;
            }
            let since = state.waiting.get(&file.key).copied().unwrap_or(now);
            waiting.insert(file.key, since);
            // An object is there as a whole.
            if found.remote.is_some() || now.duration_since(since) >= SETTLED {
                ready.push((file, found));
            }
        }
        // One that has failed for another reason than its rows, such as a limit, lets the others go first.
        ready.sort_by_key(|(file, _)| waiting.get(&file.key).copied());
        state.waiting = waiting;
        if errors.len() >= MAX_ERRORS && state.failed.is_empty() {
            state.chosen = Arc::default();
            let message = format!("{MAX_ERRORS} files of pipe `{name}` cannot be loaded, which is the limit");
            return Err(Error::new(ErrorKind::LimitReached, message).with_hint(format!(
                "see `system.pipe_errors`, correct the files, and run `ALTER PIPE {name} RETRY`"
            )));
        }
        if errors.len() >= MAX_ERRORS {
            ready.clear();
        }
        let (files, listed_files): (Vec<_>, Vec<_>) = state.take(ready).into_iter().unzip();
        if state.waiting.len() > files.len() {
            state.next = state.next.min(now + SETTLED);
        }
        let load = PipeLoad { files, failed: state.failed.clone(), listed };
        let (change, files) = (pipe.change, listed_files);
        state.chosen = Arc::new(ChosenFiles { change, files, load, ..ChosenFiles::default() });
        Ok(Some(Arc::clone(&state.chosen)).filter(|chosen| !chosen.is_empty()))
    }

    /// What a pipe loads next: nothing that was chosen before its last change.
    pub(crate) fn chosen(&self, pipe: &Pipe) -> Arc<ChosenFiles> {
        let states = self.0.lock();
        let chosen = states.get(&pipe.id).map(|state| &state.chosen);
        chosen.filter(|chosen| chosen.change == pipe.change).map_or_else(Arc::default, Arc::clone)
    }

    /// Notes how the load of these files has ended. Gives the error where it is none of a file.
    pub(crate) fn end(&self, id: Uuid, chosen: &ChosenFiles, outcome: Result<()>) -> Result<()> {
        let mut states = self.0.lock();
        let Some(state) = states.get_mut(&id) else { return Ok(()) };
        state.chosen = Arc::default();
        let Err(error) = outcome else {
            for file in &chosen.load.files {
                state.waiting.remove(&file.key);
            }
            state.failed.retain(|failed| !chosen.load.failed.contains(failed));
            state.width = state.width.saturating_mul(2).min(MAX_FILES);
            if !state.waiting.is_empty() || !state.failed.is_empty() {
                state.next = Instant::now();
            }
            return Ok(());
        };
        if error.kind() == ErrorKind::Conflict {
            state.next = Instant::now();
            return Ok(());
        }
        state.width = (chosen.files.len() / 2).max(1);
        let is_at_fault = chosen.are_read.load(Ordering::Acquire) && is_of_file(error.kind());
        if is_at_fault || chosen.files.len() > 1 {
            state.next = Instant::now();
        }
        if let [file] = chosen.load.files.as_slice() {
            if is_at_fault {
                state.failed.push(PipeError::new(file, &error.to_string()));
            } else {
                state.waiting.insert(file.key, Instant::now());
            }
        }
        if is_at_fault { Ok(()) } else { Err(error) }
    }
}

/// Whether the rows of a file may be at fault, and not the pipe, its table, its owner or the server.
fn is_of_file(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Syntax
        | ErrorKind::Invalid
        | ErrorKind::AlreadyExists
        | ErrorKind::Unsupported
        | ErrorKind::Corrupt => true,
        ErrorKind::NotFound
        | ErrorKind::Unauthenticated
        | ErrorKind::Denied
        | ErrorKind::Conflict
        | ErrorKind::LimitReached
        | ErrorKind::Timeout
        | ErrorKind::Cancelled
        | ErrorKind::Unavailable
        | ErrorKind::Internal => false,
    }
}

/// The file and its content: of an object by its tag, where that stands for the bytes.
fn file_of(file: &ListedFile) -> PipeFile {
    let (seconds, nanoseconds) = file.identity.modified();
    let tag = file.remote.as_ref().map(|remote| remote.content()).filter(|content| content.is_exact());
    let content = match tag.and_then(|content| content.tag.as_ref()) {
        Some(tag) => format!("{} {tag}", file.identity.size),
        None => format!("{} {seconds}.{nanoseconds:09}", file.identity.size),
    };
    PipeFile::new(file.path.display().to_string(), &content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_object_store::FileIdentity;
    use bowshot_object_store::file_name::kind_of;
    use std::path::PathBuf;

    fn listed(name: &str, size: u64) -> ListedFile {
        let path = PathBuf::from(name);
        let kind = kind_of(&path).expect("a known ending");
        let identity = FileIdentity::given((1, 2), size, 3, true);
        ListedFile { path, folders: Vec::new(), kind, shown: name.to_owned(), identity, remote: None }
    }

    fn pipe() -> Pipe {
        Pipe {
            id: Uuid::from_u128(1),
            owner: None,
            table: ["c", "s", "t"].map(str::to_owned),
            location: "*.csv".to_owned(),
            options: Vec::new(),
            every: Duration::ZERO,
            paused: false,
            change: Uuid::nil(),
            files: 0,
            rows: 0,
            loaded_us: None,
        }
    }

    fn choose(states: &PipeStates, texts: &BTreeMap<String, String>, names: &[&str]) -> Vec<String> {
        let found = names.iter().map(|name| listed(name, 7)).collect();
        let chosen = states.choose(("p", &pipe()), texts, found).expect("chooses");
        chosen.iter().flat_map(|chosen| chosen.load.files.iter().map(|file| file.location.clone())).collect()
    }

    /// As if all had waited long enough.
    fn settle(states: &PipeStates) {
        let before = Instant::now().checked_sub(SETTLED).expect("the machine has run for a second");
        states.0.lock().values_mut().flat_map(|state| state.waiting.values_mut()).for_each(|at| *at = before);
    }

    #[test]
    fn a_file_is_taken_at_its_second_look() {
        let (states, none) = (PipeStates::default(), BTreeMap::new());
        assert!(states.begin(&pipe()));
        assert!(choose(&states, &none, &["a.csv"]).is_empty());
        settle(&states);
        assert_eq!(choose(&states, &none, &["a.csv", "b.csv"]), ["a.csv"]);
        assert!(choose(&states, &none, &[]).is_empty());
        assert!(choose(&states, &none, &["a.csv"]).is_empty(), "it was gone in between");
    }

    #[test]
    fn the_file_at_fault_is_found_and_left_alone() {
        let (states, names) = (PipeStates::default(), ["a.csv", "b.csv", "c.csv", "d.csv"]);
        let mut texts = BTreeMap::new();
        for _ in 0..12 {
            choose(&states, &texts, &names);
            settle(&states);
            choose(&states, &texts, &names);
            let chosen = states.chosen(&pipe());
            let is_bad = chosen.load.files.iter().any(|file| file.location == "c.csv");
            let outcome = if is_bad { Err(Error::invalid("no number")) } else { Ok(()) };
            chosen.note_read(is_bad);
            if !is_bad && !chosen.is_empty() {
                let notes = pipe().after("p", &texts, &chosen.load, 1).expect("there is room");
                texts.extend(notes.into_iter().filter_map(|(key, text)| Some((key, text?))));
            }
            states.end(pipe().id, &chosen, outcome).expect("a file is at fault");
        }
        assert_eq!(Pipe::loaded(&texts, "p").map(|loaded| loaded.len()), Some(3));
        let errors: Vec<String> = PipeError::all(&texts, "p").into_iter().map(|error| error.file).collect();
        assert_eq!(errors, ["c.csv"]);
    }

    #[test]
    fn an_error_of_anything_but_rows_is_none_of_a_file() {
        let (states, none) = (PipeStates::default(), BTreeMap::new());
        for (kind, are_read) in [(ErrorKind::Denied, true), (ErrorKind::Invalid, false)] {
            choose(&states, &none, &["a.csv"]);
            settle(&states);
            assert_eq!(choose(&states, &none, &["a.csv"]), ["a.csv"], "{kind:?}");
            let changed = Pipe { change: Uuid::from_u128(2), ..pipe() };
            assert!(states.chosen(&changed).is_empty(), "the pipe was changed since");
            let chosen = states.chosen(&pipe());
            chosen.note_read(are_read);
            let ended = states.end(pipe().id, &chosen, Err(Error::new(kind, "the pipe is at fault")));
            ended.expect_err("no file is at fault");
        }
    }

    #[test]
    fn a_file_that_is_too_large_lets_the_others_go_first() {
        let (states, none, names) = (PipeStates::default(), BTreeMap::new(), ["a.csv", "b.csv"]);
        choose(&states, &none, &names);
        settle(&states);
        for expected in [vec!["a.csv", "b.csv"], vec!["a.csv"], vec!["b.csv"]] {
            assert_eq!(choose(&states, &none, &names), expected);
            let chosen = states.chosen(&pipe());
            chosen.note_read(true);
            let limit = Error::new(ErrorKind::LimitReached, "the file has too many bytes");
            states.end(pipe().id, &chosen, Err(limit)).expect_err("no row is at fault");
        }
    }

    #[test]
    fn whoever_was_not_first_looks_again_at_once() {
        let (states, pipe) = (PipeStates::default(), Pipe { every: Duration::from_secs(3_600), ..pipe() });
        assert!(states.begin(&pipe) && !states.begin(&pipe));
        let conflict = Error::new(ErrorKind::Conflict, "others were first");
        states.end(pipe.id, &ChosenFiles::default(), Err(conflict)).expect("is tried again");
        assert!(states.begin(&pipe));
    }

    #[test]
    fn one_transaction_has_a_limit_and_takes_a_large_file_alone() {
        let state = PipeState::new();
        let taken = |sizes: &[u64]| {
            let files = sizes.iter().map(|size| (file_of(&listed("a.csv", *size)), listed("a.csv", *size)));
            state.take(files.collect()).len()
        };
        assert_eq!(taken(&[MAX_BYTES + 1, 1]), 1);
        assert_eq!(taken(&[MAX_BYTES - 1, 1, 1]), 2);
        assert_eq!(taken(&[1; MAX_FILES + 1]), MAX_FILES);
    }
}
