//! Which tables a source in an object store gives: by the same rules as for folders on disk, from the last listing alone.

use crate::discovery::{Layout, Source};
use crate::entry::Definition;
use crate::{SourceSpec, name, partition};
use bowshot_object_store::{Fault, Level, Listing, RemoteSource, RemoteTable, file_name};
use std::path::Path;
use std::sync::Arc;

/// The tables of a source as they are known now. A source that has never been listed gives one table that says why.
pub(crate) fn definitions(store: &Arc<RemoteSource>, source: &Source) -> Vec<Definition> {
    let spec = &source.spec;
    if let Some(name) = &spec.name {
        return vec![definition(name.clone(), store.table(), spec)];
    }
    let whole = || {
        let name = store.url.last_name();
        let stem = file_name::kind_of(Path::new(&name)).map_or(name, |kind| kind.stem);
        definition(name::table_name(&stem), store.table(), spec)
    };
    let listing = match store.known() {
        (Some(listing), _) => listing,
        (None, fault) => {
            let fault = fault.unwrap_or(Fault::Unlisted);
            let mut definition = whole();
            definition.problem = Some(fault.at(&definition.path).of_table(&definition.name));
            return vec![definition];
        }
    };
    let base = base(store);
    // Nothing is known of what is in an odd one.
    if listing.is_file || listing.foreign_table(&base).is_some() || listing.is_odd(&base) {
        return vec![whole()];
    }
    let layout = match source.layout.get() {
        Some(layout) => layout,
        None if !listing.holds_data(&base) => return Vec::new(),
        None => source.layout.get_or_init(|| layout_of(&listing.level(&base))),
    };
    match layout {
        Layout::Entries => tables_of(store, &listing, (spec, None)),
        Layout::Whole => vec![whole()],
        Layout::Parts(shape) => {
            let mut tables = tables_of(store, &listing, (spec, Some(shape.as_str())));
            tables.insert(0, Definition { parts: Some(shape.clone()), ..whole() });
            tables
        }
    }
}

fn base(source: &RemoteSource) -> String {
    source.url.location.as_ref().to_owned()
}

/// A table for each entry, but for files whose names have the shape of a data set's parts.
fn tables_of(
    source: &Arc<RemoteSource>,
    listing: &Listing,
    (spec, parts): (&SourceSpec, Option<&str>),
) -> Vec<Definition> {
    let base = base(source);
    let level = listing.level(&base);
    let location = |name: &str| if base.is_empty() { name.to_owned() } else { format!("{base}/{name}") };
    let mut tables: Vec<(String, String)> = Vec::new();
    for (file, _) in &level.files {
        let kind = file_name::kind_of(Path::new(file));
        if let Some(kind) = kind.filter(|kind| parts != Some(name::shape(&kind.stem).as_str())) {
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

fn layout_of(Level { files, folders }: &Level<'_>) -> Layout {
    let kinds: Vec<_> = files.iter().filter_map(|(name, _)| file_name::kind_of(Path::new(name))).collect();
    let has_partitions = folders.iter().any(|folder| partition::is_partition(Path::new(folder)));
    Layout::choose(has_partitions, !folders.is_empty(), &kinds)
}

fn definition(name: String, table: RemoteTable, spec: &SourceSpec) -> Definition {
    let (path, options) = (table.path(), spec.options.clone());
    Definition { name, path, parts: None, named: None, remote: Some(table), options, problem: None }
}
