//! What nobody refers to.

use super::{Found, WHOLE_FOLDER};
use crate::Error;
use crate::durable::catalog::Catalog;
use crate::durable::disk::{PREFIX, is_committed};
use crate::durable::load::all;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use uuid::Uuid;

/// Looks for files and folders of tables that the catalog of a stopped folder does not know.
pub(super) fn look(folder: &Path, found: &mut Found) -> Result<(), Error> {
    let catalog = Catalog::look_into(folder)?;
    let ids = |sql: &str| {
        catalog.read(|catalog| all(catalog, sql, |row| row.get::<_, String>(0))).map(BTreeSet::from_iter)
    };
    let Ok(tables): Result<BTreeSet<String>, Error> = ids("SELECT id FROM entries WHERE kind = 'table'")
    else {
        // It was told that the catalog cannot be read.
        return Ok(());
    };
    let dropped: BTreeSet<String> = ids("SELECT table_id FROM dropped").unwrap_or_default();
    let files: BTreeSet<String> =
        ids("SELECT table_id || '/' || file FROM segments WHERE file IS NOT NULL").unwrap_or_default();
    for id in listed(&folder.join("tables"))? {
        let place = format!("tables/{id}");
        if tables.contains(&id) {
            of_table(folder, &id, &files, found)?;
        } else if Uuid::parse_str(&id).is_err() {
            continue;
        } else if dropped.contains(&id) || !is_committed(&folder.join(&place))? {
            found.remarks.push(format!("{place}: a table that is no more; the next start removes it"));
        } else {
            found.fault(
                place,
                "a table that the catalog does not know, so that the server does not start: the catalog is an old one",
                WHOLE_FOLDER,
            );
        }
    }
    Ok(())
}

fn of_table(folder: &Path, id: &str, files: &BTreeSet<String>, found: &mut Found) -> Result<(), Error> {
    for name in listed(&folder.join("tables").join(id))? {
        if name.trim_start_matches('.').starts_with(PREFIX) && !files.contains(&format!("{id}/{name}")) {
            found.remarks.push(format!("tables/{id}/{name}: left by a writer; the next start removes it"));
        }
    }
    Ok(())
}

fn listed(folder: &Path) -> Result<Vec<String>, Error> {
    let failed = |error| Error::file("list", folder, error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = entries
        .map(|entry| Ok(entry.map_err(failed)?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<String>, Error>>()?;
    names.sort();
    Ok(names)
}

pub(super) fn all_files(folder: &Path) -> Result<BTreeSet<String>, Error> {
    let mut found = BTreeSet::new();
    let mut folders = vec![String::new()];
    while let Some(below) = folders.pop() {
        for name in listed(&folder.join(&below))? {
            let name = if below.is_empty() { name } else { format!("{below}/{name}") };
            // A link is told like a file: nothing in a backup is one.
            if fs::symlink_metadata(folder.join(&name)).is_ok_and(|about| about.is_dir()) {
                folders.push(name);
            } else {
                found.insert(name);
            }
        }
    }
    Ok(found)
}
