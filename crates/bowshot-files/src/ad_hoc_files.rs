//! Files that a statement names: paths, patterns and lists of them, below the places that the operator has opened.
//!
//! A client can never name anything else: a path is taken apart by its text (no `..`, no hidden names), and what it leads
//! to, links followed, must lie in one of the places still. What is outside is never told apart from what is not there.

use crate::listing::{self, ListingLimits};
use crate::remote_tables::NamedObjects;
use bowshot_formats::listed_file::ListedFile;
use bowshot_formats::read_options::ReadOptions;
use bowshot_object_store::secrets::InForce;
use bowshot_object_store::{Error, FileIdentity, Remotes, is_remote};
use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Paths and patterns of one statement.
const MAX_PATTERNS: usize = 1_000;

/// A file or folder whose files statements may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePlace {
    /// As the operator has written it, for paths that begin with it.
    named: PathBuf,
    /// Without links.
    root: PathBuf,
}

impl FilePlace {
    /// `None` if nothing is there.
    pub(crate) fn new(path: &Path) -> Option<Self> {
        Some(Self { named: path.to_path_buf(), root: path.canonicalize().ok()? })
    }

    /// The whole path or pattern of what is named below this place; `None` if it leads elsewhere, or is no text.
    pub(crate) fn whole(&self, pattern: &str) -> Option<String> {
        let parts = self.parts(pattern)?;
        let place = if self.named.is_absolute() { &self.named } else { &self.root };
        let whole = match (self.is_file(), parts.as_slice()) {
            (false, parts) => parts.iter().fold(place.clone(), |whole, part| whole.join(part)),
            (true, []) => place.clone(),
            (true, [name]) if matches(name, self.own_name()) => place.clone(),
            (true, _) => return None,
        };
        whole.to_str().map(ToOwned::to_owned)
    }

    /// Of a place that is a file: the name by which alone it is named, beside the way the operator has written it.
    fn own_name(&self) -> &str {
        self.named.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    fn is_file(&self) -> bool {
        self.root.is_file()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct NamedFiles {
    places: Arc<Vec<FilePlace>>,
    patterns: Vec<Pattern>,
}

/// A path or pattern of a statement.
#[derive(Debug, Clone)]
enum Pattern {
    Local(String),
    Remote(NamedObjects),
}

impl Pattern {
    fn text(&self) -> &str {
        match self {
            Self::Local(text) => text,
            Self::Remote(objects) => objects.text(),
        }
    }
}

impl NamedFiles {
    /// Checks what the texts of the paths tell.
    pub(crate) fn new(
        places: Arc<Vec<FilePlace>>,
        remotes: Option<&Remotes>,
        patterns: Vec<String>,
    ) -> Result<Self, Error> {
        if patterns.is_empty() || patterns.len() > MAX_PATTERNS {
            return Err(Error::Pattern { text: format!("{} paths", patterns.len()) });
        }
        let read = |text: String| match remotes {
            _ if text.contains('\0') || text.is_empty() => Err(Error::Pattern { text }),
            Some(remotes) if is_remote(Path::new(&text)) => {
                NamedObjects::new(remotes, &text).map(Pattern::Remote)
            }
            _ if is_remote(Path::new(&text)) => Err(Error::NotOpened { text }),
            _ if text.contains("://") => Err(Error::Pattern { text }),
            _ => Ok(Pattern::Local(text)),
        };
        let patterns = patterns.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { places, patterns })
    }

    /// Whether files of object stores are others by now than their last listing has.
    pub(crate) fn is_stale(&self) -> bool {
        self.patterns.iter().any(|pattern| matches!(pattern, Pattern::Remote(objects) if objects.is_stale()))
    }

    /// All secrets that are in force, where there are files of object stores.
    pub(crate) fn in_force(&self) -> Option<Arc<InForce>> {
        self.patterns.iter().find_map(|pattern| match pattern {
            Pattern::Local(_) => None,
            Pattern::Remote(objects) => objects.in_force(),
        })
    }

    /// Whether there are files of object stores.
    pub(crate) fn is_remote(&self) -> bool {
        self.patterns.iter().any(|pattern| matches!(pattern, Pattern::Remote(_)))
    }

    /// The files as they are now, in the order of the list and by path.
    pub(crate) fn list(
        &self,
        limits: ListingLimits,
        options: &ReadOptions,
    ) -> Result<Vec<ListedFile>, Error> {
        let mut files = Vec::new();
        let mut seen = HashSet::new();
        for pattern in &self.patterns {
            let before = files.len();
            let pattern = match pattern {
                Pattern::Local(pattern) => pattern,
                Pattern::Remote(objects) => {
                    let found = objects.list(limits, options)?;
                    files.extend(found.into_iter().filter(|file| seen.insert(file.path.clone())));
                    continue;
                }
            };
            for place in self.places.iter() {
                let Some(parts) = place.parts(pattern) else { continue };
                let mut search = Search {
                    place,
                    limits,
                    options,
                    pattern,
                    files: &mut files,
                    seen: &mut seen,
                    visited: HashSet::new(),
                };
                search.place(&parts)?;
                if files.len() > before {
                    break;
                }
            }
            if files.len() == before {
                return Err(Error::NotServed { text: pattern.clone() });
            }
        }
        let texts: Vec<&str> = self.patterns.iter().map(Pattern::text).collect();
        let label = PathBuf::from(texts.join(", "));
        listing::of_one_format(&label, files)
    }
}

impl FilePlace {
    /// The parts of a pattern below this place; `None` if it leads elsewhere.
    fn parts(&self, pattern: &str) -> Option<Vec<String>> {
        let whole = Path::new(pattern);
        let below = match whole.strip_prefix(&self.named).or_else(|_| whole.strip_prefix(&self.root)) {
            Ok(below) => below,
            Err(_) if whole.is_absolute() => return None,
            Err(_) => whole,
        };
        let mut parts = Vec::new();
        for component in below.components() {
            match component {
                Component::CurDir => {}
                Component::Normal(part) => {
                    let part = part.to_str()?;
                    if part.starts_with('.') {
                        return None;
                    }
                    parts.push(part.to_owned());
                }
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(parts)
    }
}

struct Search<'a> {
    place: &'a FilePlace,
    limits: ListingLimits,
    options: &'a ReadOptions,
    pattern: &'a str,
    files: &'a mut Vec<ListedFile>,
    seen: &'a mut HashSet<PathBuf>,
    /// Folders in which so many of the last parts were looked for: `**/a/**` comes to many of them on more than one way.
    visited: HashSet<(PathBuf, usize)>,
}

impl Search<'_> {
    fn place(&mut self, parts: &[String]) -> Result<(), Error> {
        if !self.place.is_file() {
            return self.folder(&self.place.root.clone(), parts, &mut Vec::new());
        }
        match parts {
            [] => self.file(&self.place.root.clone(), &[]),
            [name] if matches(name, self.place.own_name()) => self.file(&self.place.root.clone(), &[]),
            _ => Ok(()),
        }
    }

    fn folder(&mut self, folder: &Path, parts: &[String], folders: &mut Vec<String>) -> Result<(), Error> {
        if folders.len() > self.limits.max_depth {
            return Err(Error::TooDeep { path: self.place.named.clone(), limit: self.limits.max_depth });
        }
        let Some((part, rest)) = parts.split_first() else { return Ok(()) };
        if !self.visited.insert((folder.to_owned(), parts.len())) {
            return Ok(());
        }
        if part == "**" {
            self.folder(folder, rest, folders)?;
            for entry in listing::entries(folder)? {
                // Links are not followed here: a link to a folder above would never end.
                if entry.is_dir() && !entry.is_symlink() {
                    folders.push(name_of(&entry));
                    self.folder(&entry, parts, folders)?;
                    folders.pop();
                }
            }
            return Ok(());
        }
        // What has the pattern itself for its name is meant, and nothing else.
        let own = folder.join(part);
        let entries = match is_pattern(part) && own.symlink_metadata().is_err() {
            true => {
                listing::entries(folder)?.into_iter().filter(|entry| matches(part, &name_of(entry))).collect()
            }
            false => vec![own],
        };
        for entry in entries {
            let Some(inside) = self.inside(&entry) else { continue };
            if !rest.is_empty() {
                if inside.is_dir() {
                    folders.push(name_of(&entry));
                    self.folder(&inside, rest, folders)?;
                    folders.pop();
                }
            } else if inside.is_file() {
                self.file(&entry, folders)?;
            }
        }
        Ok(())
    }

    /// Where an entry leads, if that is below the place and nothing hidden.
    fn inside(&self, entry: &Path) -> Option<PathBuf> {
        let resolved = entry.canonicalize().ok()?;
        let below = resolved.strip_prefix(&self.place.root).ok()?;
        let hidden = below.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'));
        (!hidden).then_some(resolved)
    }

    fn file(&mut self, path: &Path, folders: &[String]) -> Result<(), Error> {
        let Some(resolved) = self.inside(path) else { return Ok(()) };
        let Some(kind) = self.options.kind(path) else {
            // Of files that fit a pattern only those of known formats are meant.
            return match is_pattern(self.pattern) {
                true => Ok(()),
                false => Err(Error::UnknownFormat { path: PathBuf::from(self.pattern) }),
            };
        };
        if !self.seen.insert(resolved.clone()) {
            return Ok(());
        }
        let metadata = fs::metadata(&resolved).map_err(|error| Error::io(path, error))?;
        let identity = FileIdentity::new(&metadata, SystemTime::now());
        let below = path.strip_prefix(&self.place.root).unwrap_or(path);
        let shown = match self.place.is_file() {
            true => name_of(&self.place.named),
            false => below.display().to_string(),
        };
        self.files.push(ListedFile {
            path: resolved,
            folders: folders.to_vec(),
            kind,
            shown,
            identity,
            remote: None,
        });
        if self.files.len() > self.limits.max_files {
            return Err(Error::TooManyFiles {
                path: PathBuf::from(self.pattern),
                limit: self.limits.max_files,
            });
        }
        Ok(())
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether a name is as a pattern of `*`, `?` and `[a-z]` says. In time that grows with both lengths, not faster.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut of) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while of < name.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, of));
            at += 1;
            continue;
        }
        if let Some(next) = one(&pattern, at, name[of]) {
            (at, of) = (next, of + 1);
            continue;
        }
        let Some((from, taken)) = star else { return false };
        star = Some((from, taken + 1));
        (at, of) = (from + 1, taken + 1);
    }
    pattern.get(at..).unwrap_or_default().iter().all(|c| *c == '*')
}

/// Where the pattern goes on if one character fits here.
fn one(pattern: &[char], at: usize, name: char) -> Option<usize> {
    match pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => {
            let close = at + 1 + pattern.get(at + 1..)?.iter().position(|c| *c == ']')?;
            let (set, other) = match pattern.get(at + 1..close)? {
                ['!' | '^', rest @ ..] => (rest, true),
                set => (set, false),
            };
            (in_set(set, name) != other).then_some(close + 1)
        }
        c => (*c == name).then_some(at + 1),
    }
}

fn in_set(set: &[char], name: char) -> bool {
    let mut at = 0;
    while let Some(first) = set.get(at) {
        if let (Some('-'), Some(last)) = (set.get(at + 1), set.get(at + 2)) {
            if (*first..=*last).contains(&name) {
                return true;
            }
            at += 3;
        } else {
            if *first == name {
                return true;
            }
            at += 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{FilePlace, matches};
    use std::fs;

    #[test]
    fn a_path_is_kept_with_its_place() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("x.csv");
        fs::write(&file, "a\n1\n").expect("writes");
        let (inside, alone) =
            (FilePlace::new(folder.path()).expect("place"), FilePlace::new(&file).expect("place"));
        let whole = |path: &str| Some(folder.path().join(path).to_str().expect("text").to_owned());
        assert_eq!(inside.whole("a/**/*.csv"), whole("a/**/*.csv"));
        assert_eq!(inside.whole(&whole("x.csv").expect("whole")), whole("x.csv"));
        assert_eq!(alone.whole("*.csv"), whole("x.csv"));
        for outside in ["../x.csv", "/etc/passwd", ".x.csv"] {
            assert_eq!(inside.whole(outside), None, "{outside}");
        }
        assert_eq!((alone.whole("y.csv"), alone.whole("a/x.csv")), (None, None));
    }

    #[test]
    fn patterns_fit_names() {
        for (pattern, name, fits) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "a.csv.gz", false),
            ("part-?.csv", "part-1.csv", true),
            ("part-?.csv", "part-10.csv", false),
            ("[a-c]*", "beta", true),
            ("[!a-c]*", "beta", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
        assert!(!matches(&"*a".repeat(40), &"a".repeat(39)));
    }
}
