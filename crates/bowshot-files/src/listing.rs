//! The data files below a path, with what tells their content apart. Nothing is opened here, so a pipe or a device
//! cannot hang it, and every loop has a limit: links are followed, but no folder is entered twice.

use crate::name;
use bowshot_formats::listed_file::ListedFile;
use bowshot_formats::read_options::ReadOptions;
use bowshot_lakehouse::table_formats::foreign_table;
use bowshot_object_store::file_name::{self, Kind};
use bowshot_object_store::{Error, FileIdentity};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Limits of one listing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListingLimits {
    pub(crate) max_files: usize,
    pub(crate) max_depth: usize,
}

/// Which files of a folder are those of its table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<'a> {
    pub(crate) options: &'a ReadOptions,
    /// The shape of their names, where only those directly in the folder count.
    pub(crate) parts: Option<&'a str>,
}

impl Choice<'_> {
    /// What a file is that the table has.
    pub(crate) fn kind(self, path: &Path) -> Option<Kind> {
        let kind = self.options.kind(path)?;
        self.parts.is_none_or(|shape| name::shape(&kind.stem) == shape).then_some(kind)
    }
}

/// The files of the table at `path`, sorted by path: one for a file, all below it for a folder.
pub(crate) fn list_table(
    path: &Path,
    limits: ListingLimits,
    choice: Choice<'_>,
) -> Result<Vec<ListedFile>, Error> {
    let metadata = fs::metadata(path).map_err(|error| Error::io(path, error))?;
    let now = SystemTime::now();
    if metadata.is_file() {
        let kind = choice.kind(path).ok_or_else(|| Error::UnknownFormat { path: path.to_path_buf() })?;
        let identity = FileIdentity::new(&metadata, now);
        let shown = path.display().to_string();
        return Ok(vec![ListedFile {
            path: path.to_path_buf(),
            folders: Vec::new(),
            kind,
            shown,
            identity,
            remote: None,
        }]);
    }
    if !metadata.is_dir() {
        return Err(Error::NotRegular { path: path.to_path_buf() });
    }
    let mut walk = Walk { root: path, limits, choice, now, entered: HashSet::new(), files: Vec::new() };
    walk.entered.insert(FileIdentity::new(&metadata, now).inode());
    walk.folder(path, &mut Vec::new())?;
    let files = walk.finish();
    of_one_format(path, files)
}

/// Refuses files of several formats, and no file at all.
pub(crate) fn of_one_format(path: &Path, files: Vec<ListedFile>) -> Result<Vec<ListedFile>, Error> {
    match files.first() {
        None => Err(Error::Empty { path: path.to_path_buf() }),
        Some(first) => match files.iter().find(|file| file.kind.format != first.kind.format) {
            Some(other) => Err(Error::MixedFormats {
                path: path.to_path_buf(),
                one: first.path.clone(),
                other: other.path.clone(),
            }),
            None => Ok(files),
        },
    }
}

/// Whether a folder holds any data file at all; an unreadable or too deep one counts, so that its table says why.
pub(crate) fn holds_data(path: &Path, limits: ListingLimits) -> bool {
    fn search(path: &Path, depth: usize, entered: &mut HashSet<(u64, u64)>) -> bool {
        let Ok(entries) = entries(path) else {
            return true;
        };
        entries.iter().any(|entry| match fs::metadata(entry) {
            Ok(metadata) if metadata.is_dir() => {
                let identity = FileIdentity::new(&metadata, SystemTime::UNIX_EPOCH);
                entered.insert(identity.inode()) && (depth == 0 || search(entry, depth - 1, entered))
            }
            _ => file_name::kind_of(entry).is_some(),
        })
    }
    search(path, limits.max_depth, &mut HashSet::new())
}

/// What a folder holds, sorted, without ignored names.
pub(crate) fn entries(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| Error::io(path, error))? {
        let entry = entry.map_err(|error| Error::io(path, error))?;
        if !file_name::is_ignored(&entry.file_name()) {
            entries.push(entry.path());
        }
    }
    entries.sort();
    Ok(entries)
}

struct Walk<'a> {
    root: &'a Path,
    limits: ListingLimits,
    choice: Choice<'a>,
    now: SystemTime,
    entered: HashSet<(u64, u64)>,
    files: Vec<(ListedFile, bool)>,
}

impl Walk<'_> {
    fn folder(&mut self, path: &Path, folders: &mut Vec<String>) -> Result<(), Error> {
        if folders.len() > self.limits.max_depth {
            return Err(Error::TooDeep { path: self.root.to_path_buf(), limit: self.limits.max_depth });
        }
        if let Some(kind) = foreign_table(path) {
            return Err(Error::ForeignTable { path: path.to_path_buf(), kind });
        }
        for entry in entries(path)? {
            // A file that vanishes between the two calls is gone, and so is a link that leads nowhere unless it
            // claims to be data: leaving that out would lose rows without a word.
            let metadata = match fs::metadata(&entry) {
                Ok(metadata) => metadata,
                Err(_) if self.choice.kind(&entry).is_none() || entry.symlink_metadata().is_err() => {
                    continue;
                }
                Err(error) => return Err(Error::io(&entry, error)),
            };
            if metadata.is_dir() {
                let identity = FileIdentity::new(&metadata, self.now);
                if self.choice.parts.is_none() && self.entered.insert(identity.inode()) {
                    folders.push(file_name(&entry));
                    self.folder(&entry, folders)?;
                    folders.pop();
                }
            } else if let Some(kind) = self.choice.kind(&entry) {
                if !metadata.is_file() {
                    return Err(Error::NotRegular { path: entry });
                }
                let identity = FileIdentity::new(&metadata, self.now);
                let link = entry.is_symlink();
                let shown = entry.display().to_string();
                let found =
                    ListedFile { path: entry, folders: folders.clone(), kind, shown, identity, remote: None };
                self.files.push((found, link));
                if self.files.len() > self.limits.max_files {
                    return Err(Error::TooManyFiles {
                        path: self.root.to_path_buf(),
                        limit: self.limits.max_files,
                    });
                }
            }
        }
        Ok(())
    }

    /// Drops links to files that are in the listing already: `latest.csv -> day-3.csv` must not count rows twice.
    fn finish(self) -> Vec<ListedFile> {
        let mut seen: HashSet<_> =
            self.files.iter().filter(|(_, link)| !link).map(|(file, _)| file.identity.inode()).collect();
        self.files
            .into_iter()
            .filter(|(file, link)| !link || seen.insert(file.identity.inode()))
            .map(|(file, _)| file)
            .collect()
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
