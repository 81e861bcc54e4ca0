//! From sources to tables: which files and folders become tables, and under which names.

use crate::entry::Definition;
use crate::listing::{self, ListingLimits};
use crate::{SourceSpec, name, partition, remote_tables};
use bowshot_formats::excel::Books;
use bowshot_formats::read_options::ReadOptions;
use bowshot_lakehouse::table_formats::foreign_table;
use bowshot_object_store::file_name::{self, Format};
use bowshot_object_store::{Error, RemoteSource};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of no known format that are named.
const MAX_LEFT_OUT: usize = 100;

/// What the operator has named, with the store that it is in.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) spec: SourceSpec,
    pub(crate) remote: Option<Arc<RemoteSource>>,
}

/// What start-up must refuse: sources that are not there, hold nothing, or have the name of another source.
pub(crate) fn check(sources: &[Source], limits: ListingLimits, books: &Books) -> Result<(), Error> {
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
        if !listing::holds_data(&source.path, limits) && foreign_table(&source.path).is_none() {
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
pub(crate) fn definitions(sources: &[Source], limits: ListingLimits, books: &Books) -> Vec<Definition> {
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

fn tables_of(source: &Source, limits: ListingLimits, books: &Books) -> Vec<Definition> {
    if let Some(store) = &source.remote {
        return remote_tables::definitions(store, &source.spec);
    }
    let source = &source.spec;
    let path = source.path.as_path();
    if let Some(name) = &source.name {
        return vec![named(name.clone(), source, path)];
    }
    if !path.is_dir() || is_one_table(path) {
        return of_sheets(definition(path, source), books);
    }
    match listing::entries(path) {
        Ok(entries) => {
            let of_one = |entry: &PathBuf| {
                let mut definition = definition(entry, source);
                definition.options.shared = !definition.options.is_empty();
                of_sheets(definition, books)
            };
            entries.iter().filter(|entry| is_table(entry, limits)).flat_map(of_one).collect()
        }
        // The folder went away or was locked since the start: its tables are gone with it.
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a folder of tables cannot be read");
            Vec::new()
        }
    }
}

/// A folder with partitions, a foreign table, or a data set in parts.
fn is_one_table(path: &Path) -> bool {
    if foreign_table(path).is_some() {
        return true;
    }
    let Ok(entries) = listing::entries(path) else {
        return false;
    };
    if entries.iter().any(|entry| partition::is_partition(entry) && entry.is_dir()) {
        return true;
    }
    if entries.iter().any(|entry| entry.is_dir()) {
        return false;
    }
    let kinds: Vec<_> = entries.iter().filter_map(|entry| file_name::kind_of(entry)).collect();
    name::are_parts(&kinds)
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
fn of_sheets(definition: Definition, books: &Books) -> Vec<Definition> {
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
    Definition { name, path: path.to_path_buf(), named: None, remote: None, options, problem: None }
}

/// The name of a folder, also for `.` and `data/..`.
fn folder_name(path: &Path) -> String {
    let name = path.file_name().map(std::ffi::OsStr::to_os_string);
    let name = name.or_else(|| path.canonicalize().ok()?.file_name().map(std::ffi::OsStr::to_os_string));
    name.map_or_else(|| "table".to_owned(), |name| name.to_string_lossy().into_owned())
}
