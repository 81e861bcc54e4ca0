//! Which tables a source in an object store gives: by the same rules as for folders on disk, from the last listing alone.

use crate::entry::Definition;
use crate::{SourceSpec, name, partition};
use bowshot_object_store::{Fault, Level, Listing, RemoteSource, RemoteTable, file_name};
use std::path::Path;
use std::sync::Arc;

/// The tables of a source as they are known now. A source that has never been listed gives one table that says why.
pub(crate) fn definitions(source: &Arc<RemoteSource>, spec: &SourceSpec) -> Vec<Definition> {
    if let Some(name) = &spec.name {
        return vec![definition(name.clone(), source.table(), spec)];
    }
    let whole = || {
        let name = source.url.last_name();
        let stem = file_name::kind_of(Path::new(&name)).map_or(name, |kind| kind.stem);
        definition(name::table_name(&stem), source.table(), spec)
    };
    match source.known() {
        (Some(listing), _) if listing.is_file || is_one_table(&listing, &base(source)) => vec![whole()],
        // Nothing is known of what is in it.
        (Some(listing), _) if listing.is_odd(&base(source)) => vec![whole()],
        (Some(listing), _) => tables_of(source, &listing, spec),
        (None, fault) => {
            let fault = fault.unwrap_or(Fault::Unlisted);
            let mut definition = whole();
            definition.problem = Some(fault.at(&definition.path).of_table(&definition.name));
            vec![definition]
        }
    }
}

fn base(source: &RemoteSource) -> String {
    source.url.location.as_ref().to_owned()
}

fn tables_of(source: &Arc<RemoteSource>, listing: &Listing, spec: &SourceSpec) -> Vec<Definition> {
    let base = base(source);
    let level = listing.level(&base);
    let location = |name: &str| if base.is_empty() { name.to_owned() } else { format!("{base}/{name}") };
    let mut tables: Vec<(String, String)> = Vec::new();
    for (file, _) in &level.files {
        if let Some(kind) = file_name::kind_of(Path::new(file)) {
            tables.push((kind.stem, location(file)));
        }
    }
    for folder in level.folders {
        let location = location(folder);
        if listing.foreign_table(&location).is_some() || listing.holds_data(&location) {
            tables.push((folder.to_owned(), location));
        }
    }
    let of_one = |(stem, location): (String, String)| {
        let table = RemoteTable { source: Arc::clone(source), location };
        let mut definition = definition(name::table_name(&stem), table, spec);
        definition.options.shared = !definition.options.is_empty();
        definition
    };
    tables.into_iter().map(of_one).collect()
}

/// A folder with partitions, a foreign table, or a data set in parts.
fn is_one_table(listing: &Listing, folder: &str) -> bool {
    if listing.foreign_table(folder).is_some() {
        return true;
    }
    let Level { files, folders } = listing.level(folder);
    if folders.iter().any(|folder| partition::is_partition(Path::new(folder))) {
        return true;
    }
    if !folders.is_empty() {
        return false;
    }
    let kinds: Vec<_> = files.iter().filter_map(|(name, _)| file_name::kind_of(Path::new(name))).collect();
    name::are_parts(&kinds)
}

fn definition(name: String, table: RemoteTable, spec: &SourceSpec) -> Definition {
    let (path, options) = (table.path(), spec.options.clone());
    Definition { name, path, named: None, remote: Some(table), options, problem: None }
}
