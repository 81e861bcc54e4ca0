//! Delta logs: what other programs see of the tables.

use super::catalog::{Known, KnownTable};
use super::{Found, WHOLE_FOLDER};
use crate::durable::delta::our_entry;
use std::fs;
use std::io;
use std::path::Path;

const LEFT_ALONE: &str =
    "no program but Bowshot may write there. Copy the table with CREATE TABLE … AS and drop it";

/// Looks at the newest entries of the log of every table.
pub(super) fn look((folder, store): (&Path, Option<&str>), known: &Known, found: &mut Found) {
    for (id, table) in &known.tables {
        let name = format!("tables/{id}/_delta_log");
        if store.is_some() && entries(&folder.join(&name)).is_ok_and(|entries| entries.is_empty()) {
            // The store has it.
            continue;
        }
        if let Err((problem, remedy)) = log(&folder.join(&name), table) {
            found.fault(name, format!("{problem} (table `{}`)", table.name), remedy);
        }
    }
}

fn log(path: &Path, table: &KnownTable) -> Result<(), (String, &'static str)> {
    let entries = entries(path).map_err(|error| (error.to_string(), WHOLE_FOLDER))?;
    let newest = entries.iter().max().copied();
    match (newest, table.published) {
        (None, None) => return Ok(()),
        (None, Some(published)) => {
            return Err((format!("its entries are missing, {published} was written"), LEFT_ALONE));
        }
        (Some(newest), Some(published)) if newest < published => {
            return Err((format!("its newest entry is {newest}, {published} was written"), LEFT_ALONE));
        }
        _ => {}
    }
    let Some(newest) = newest else { return Ok(()) };
    // Those that the catalog knows of were looked at when they were recorded.
    for number in table.published.map_or(0, |published| published.min(newest))..=newest {
        let entry = path.join(format!("{number:020}.json"));
        let text = match fs::read_to_string(&entry) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && number != newest => {
                return Err((format!("its entry {number} is missing"), LEFT_ALONE));
            }
            Err(error) => return Err((format!("its entry {number} cannot be read: {error}"), LEFT_ALONE)),
        };
        match our_entry(&text) {
            Some((version, _)) if version > table.version => {
                let problem = format!(
                    "it shows version {version} of the table, and the catalog knows {}: the catalog is an old one",
                    table.version
                );
                return Err((problem, "bring back the newest `catalog.sqlite`, with its `-wal` file"));
            }
            Some(_) => {}
            None => return Err((format!("its entry {number} was not written by Bowshot"), LEFT_ALONE)),
        }
    }
    Ok(())
}

fn entries(path: &Path) -> io::Result<Vec<u64>> {
    let listed = match fs::read_dir(path) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut numbers = Vec::new();
    for entry in listed {
        let name = entry?.file_name();
        let number =
            name.to_string_lossy().strip_suffix(".json").and_then(|number| number.parse::<u64>().ok());
        numbers.extend(number);
    }
    Ok(numbers)
}
