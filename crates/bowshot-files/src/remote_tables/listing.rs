//! The data files of a table in an object store, from the last listing of its source.

use crate::listing::{Choice, ListingLimits, of_one_format};
use bowshot_formats::listed_file::ListedFile;
use bowshot_object_store::file_name::Kind;
use bowshot_object_store::{Error, Fault, FileIdentity, RemoteSource, RemoteTable, foreign_part, is_ignored};
use object_store::ObjectMeta;
use std::path::Path;

/// The files of the table, by path. Blocks while the store is asked.
pub(crate) fn list(
    table: &RemoteTable,
    limits: ListingLimits,
    choice: Choice<'_>,
) -> Result<Vec<ListedFile>, Error> {
    let RemoteTable { source, location } = table;
    let path = table.path();
    let listing = source.listing().map_err(|fault| fault.at(&path))?;
    if let Some(object) = listing.object(location) {
        let unknown = || Error::UnknownFormat { path: path.clone() };
        let kind = choice.kind(Path::new(location)).ok_or_else(unknown)?;
        return Ok(vec![found(source, object, Vec::new(), kind)]);
    }
    if listing.has_odd_names(location) {
        return Err(Fault::OddName.at(&path));
    }
    let mut files = Vec::new();
    if let Some(kind) = listing.foreign_table(location) {
        return Err(Error::ForeignTable { path, kind });
    }
    for (name, object) in listing.below(location) {
        let parts: Vec<&str> = name.split('/').collect();
        let Some((file, folders)) = parts.split_last() else { continue };
        if parts.iter().any(|part| is_ignored(part)) {
            continue;
        }
        let Some(kind) = choice.kind(Path::new(file)) else { continue };
        if choice.parts.is_some() && !folders.is_empty() {
            continue;
        }
        if folders.len() > limits.max_depth {
            return Err(Error::TooDeep { path, limit: limits.max_depth });
        }
        let folders = folders.iter().map(|&part| part.to_owned()).collect();
        files.push(found(source, object, folders, kind));
        if files.len() > limits.max_files {
            return Err(Error::TooManyFiles { path, limit: limits.max_files });
        }
    }
    of_one_format(&path, files)
}

/// The same where all files below are one table, of which others can be no part.
pub(crate) fn list_whole(
    table: &RemoteTable,
    limits: ListingLimits,
    choice: Choice<'_>,
) -> Result<Vec<ListedFile>, Error> {
    let listing = table.source.listing().map_err(|fault| fault.at(&table.path()))?;
    for (name, object) in listing.below(&table.location).filter(|_| choice.parts.is_none()) {
        if let Some(kind) = foreign_part(&name.split('/').collect::<Vec<_>>()) {
            let path = table.source.url.shown(object.location.as_ref());
            return Err(Error::ForeignTable { path, kind });
        }
    }
    list(table, limits, choice)
}

fn found(source: &RemoteSource, object: &ObjectMeta, folders: Vec<String>, kind: Kind) -> ListedFile {
    let file = source.file(object);
    let path = file.path().to_path_buf();
    let identity = FileIdentity::of_remote(file.key(), file.content());
    let shown = path.display().to_string();
    ListedFile { path, folders, kind, shown, identity, remote: Some(file) }
}
