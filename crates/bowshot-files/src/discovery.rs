//! From sources to tables: which files and folders become tables, and under which names.

use crate::entry::Definition;
use crate::listing::{self, ListingLimits};
use crate::{SourceSpec, name, partition, remote_tables};
use bowshot_formats::excel::WorkbookCache;
use bowshot_formats::read_options::ReadOptions;
use bowshot_lakehouse::table_formats::foreign_table;
use bowshot_object_store::file_name::{self, Format, Kind};
use bowshot_object_store::{Error, RemoteSource};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Files of no known format that are named.
const MAX_LEFT_OUT: usize = 100;

/// What the operator has named, with the store that it is in.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) spec: SourceSpec,
    pub(crate) remote: Option<Arc<RemoteSource>>,
    /// Chosen when a folder without a name first has data, and for good: names of tables do not change while they are served.
    pub(crate) layout: OnceLock<Layout>,
}

/// Which tables the entries of a folder are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A table for each entry.
    Entries,
    /// One table of all files below the folder.
    Whole,
    /// One table of the files whose names have this shape; each other entry is a table of its own.
    Parts(String),
}

impl Layout {
    pub(crate) fn choose(has_partitions: bool, has_folders: bool, files: &[Kind]) -> Self {
        match name::shape_of_parts(files) {
            _ if has_partitions => Self::Whole,
            Some(shape) if !has_folders => Self::Parts(shape),
            _ => Self::Entries,
        }
    }
}

/// What start-up must refuse: sources that are not there, hold only files that are no data, or have the name of another source.
pub(crate) fn check(sources: &[Source], limits: ListingLimits, books: &WorkbookCache) -> Result<(), Error> {
    let mut named: BTreeMap<String, PathBuf> = BTreeMap::new();
    for source in sources {
        // Whether a store answers is no question of the start: its tables say so when they are asked for.
        if source.remote.is_none() {
            check_local(&source.spec, limits)?;
        }
        for definition in tables_of(source, limits, books) {
            // Two files of one folder that claim one name are that table's problem; two sources are the operator's.
            let one = named.insert(definition.name.to_lowercase(), definition.path.clone());
            let apart = |one: &PathBuf| one.parent() != definition.path.parent() || *one == definition.path;
            if let Some(one) = one.filter(apart) {
                return Err(Error::SameName { name: definition.name, one, other: definition.path });
            }
        }
    }
    Ok(())
}

fn check_local(source: &SourceSpec, limits: ListingLimits) -> Result<(), Error> {
    let metadata = std::fs::metadata(&source.path).map_err(|error| Error::io(&source.path, error))?;
    if metadata.is_dir() {
        listing::entries(&source.path)?;
        let is_served = listing::holds_data(&source.path, limits) || foreign_table(&source.path).is_some();
        let mut others = Vec::new();
        if !is_served {
            add_left_out(&source.path, source, limits.max_depth, &mut others);
        }
        // A folder without files is filled later; one with files of other kinds is a mistake.
        if !others.is_empty() {
            return Err(Error::Empty { path: source.path.clone() });
        }
    } else if !metadata.is_file() {
        return Err(Error::NotRegular { path: source.path.clone() });
    } else if source.options.kind(&source.path).is_none() {
        return Err(Error::UnknownFormat { path: source.path.clone() });
    }
    Ok(())
}

/// The tables of all sources as they are now. A name that two paths claim gives a table that says so.
pub(crate) fn definitions(
    sources: &[Source],
    limits: ListingLimits,
    books: &WorkbookCache,
) -> Vec<Definition> {
    let mut tables: BTreeMap<String, Definition> = BTreeMap::new();
    for definition in sources.iter().flat_map(|source| tables_of(source, limits, books)) {
        let key = definition.name.to_lowercase();
        match tables.get_mut(&key) {
            None => {
                tables.insert(key, definition);
            }
            Some(first) => {
                let (name, one) = (first.name.clone(), first.path.clone());
                first.problem = Some(Error::SameName { name, one, other: definition.path });
            }
        }
    }
    tables.into_values().collect()
}

/// Files below the sources whose names tell no format.
pub(crate) fn left_out(sources: &[Source], limits: ListingLimits) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for source in sources.iter().map(|source| &source.spec).filter(|source| source.path.is_dir()) {
        add_left_out(&source.path, source, limits.max_depth, &mut files);
    }
    files
}

fn add_left_out(folder: &Path, source: &SourceSpec, depth: usize, files: &mut Vec<PathBuf>) {
    if foreign_table(folder).is_some() {
        return;
    }
    for entry in listing::entries(folder).unwrap_or_default() {
        if files.len() >= MAX_LEFT_OUT {
            return;
        }
        if entry.is_dir() {
            if depth > 0 && !entry.is_symlink() {
                add_left_out(&entry, source, depth - 1, files);
            }
        } else if source.options.kind(&entry).is_none() {
            files.push(entry);
        }
    }
}

fn tables_of(source: &Source, limits: ListingLimits, books: &WorkbookCache) -> Vec<Definition> {
    if let Some(store) = &source.remote {
        return remote_tables::definitions(store, source);
    }
    let (spec, layout) = (&source.spec, &source.layout);
    let path = spec.path.as_path();
    if let Some(name) = &spec.name {
        return vec![named(name.clone(), spec, path)];
    }
    if !path.is_dir() || foreign_table(path).is_some() {
        return of_sheets(definition(path, spec), books);
    }
    let mut entries = match listing::entries(path) {
        Ok(entries) => entries,
        // The folder went away or was locked since the start: its tables are gone with it.
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a folder of tables cannot be read");
            return Vec::new();
        }
    };
    let layout = match layout.get() {
        Some(layout) => layout,
        None if !entries.iter().any(|entry| is_table(entry, limits)) => return Vec::new(),
        None => layout.get_or_init(|| layout_of(&entries)),
    };
    let mut tables = Vec::new();
    match layout {
        Layout::Entries => {}
        Layout::Whole => return vec![definition(path, spec)],
        Layout::Parts(shape) => {
            tables.push(Definition { parts: Some(shape.clone()), ..definition(path, spec) });
            entries.retain(|entry| {
                let kind = file_name::kind_of(entry);
                entry.is_dir() || kind.is_some_and(|kind| name::shape(&kind.stem) != *shape)
            });
        }
    }
    for entry in entries.iter().filter(|entry| is_table(entry, limits)) {
        let mut definition = definition(entry, spec);
        definition.options.shared = !definition.options.is_empty();
        tables.extend(of_sheets(definition, books));
    }
    tables
}

fn layout_of(entries: &[PathBuf]) -> Layout {
    let folders: Vec<_> = entries.iter().filter(|entry| entry.is_dir()).collect();
    let kinds: Vec<_> = entries.iter().filter_map(|entry| file_name::kind_of(entry)).collect();
    let has_partitions = folders.iter().any(|folder| partition::is_partition(folder));
    Layout::choose(has_partitions, !folders.is_empty(), &kinds)
}

/// Whether an entry of a folder of tables is one.
fn is_table(path: &Path, limits: ListingLimits) -> bool {
    if path.is_dir() {
        return foreign_table(path).is_some() || listing::holds_data(path, limits);
    }
    file_name::kind_of(path).is_some()
}

fn definition(path: &Path, source: &SourceSpec) -> Definition {
    let stem = match file_name::kind_of(path) {
        Some(kind) if !path.is_dir() => kind.stem,
        _ => folder_name(path),
    };
    named(name::table_name(&stem), source, path)
}

/// A table for each sheet of a workbook that has several with something in them, else the one that there is.
fn of_sheets(definition: Definition, books: &WorkbookCache) -> Vec<Definition> {
    let kind = definition.options.kind(&definition.path);
    let is_book = kind.is_some_and(|kind| kind.format == Format::Excel) && !definition.path.is_dir();
    if !is_book || definition.options.sheet.is_some() {
        return vec![definition];
    }
    let sheets = books.sheets(&definition.path);
    if sheets.len() < 2 {
        return vec![definition];
    }
    let mut taken = HashSet::new();
    let of_one = |sheet: &String| {
        let base = name::table_name(&format!("{} {sheet}", definition.name));
        let (mut name, mut copy) = (base.clone(), 2);
        while !taken.insert(name.clone()) {
            name = format!("{base}_{copy}");
            copy += 1;
        }
        let options = ReadOptions { sheet: Some(sheet.clone()), ..definition.options.clone() };
        Definition { name, options, ..definition.clone() }
    };
    sheets.iter().map(of_one).collect()
}

fn named(name: String, source: &SourceSpec, path: &Path) -> Definition {
    let options = source.options.clone();
    Definition {
        name,
        path: path.to_path_buf(),
        parts: None,
        named: None,
        remote: None,
        options,
        problem: None,
    }
}

/// The name of a folder, also for `.` and `data/..`.
fn folder_name(path: &Path) -> String {
    let name = path.file_name().map(std::ffi::OsStr::to_os_string);
    let name = name.or_else(|| path.canonicalize().ok()?.file_name().map(std::ffi::OsStr::to_os_string));
    name.map_or_else(|| "table".to_owned(), |name| name.to_string_lossy().into_owned())
}
