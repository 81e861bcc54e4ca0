//! The exact version of a table of a plan, if it is known: a part of the key of its joins and results.

use crate::cache::{Content, TableKey, TableName};
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
use bowshot_engine::internals::without_defaults;
use bowshot_files::versioned;
use bowshot_formats::table_version::Versioned;
use bowshot_tables::{Entry, EntryName, Snapshot, Storage, Table, TableStore};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::ResolvedTableReference;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Weak};

type Digests = HashMap<usize, (Weak<Schema>, u64)>;

/// Most cached digests of schemas.
const MAX_KNOWN: usize = 1_024;

/// Where tables are found.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    pub(crate) main: Arc<dyn SchemaProvider>,
    pub(crate) tables: Arc<TableStore>,
}

#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) key: TableKey,
    pub(crate) provider: Arc<dyn TableProvider>,
    pub(crate) table: Option<Arc<Table>>,
}

/// The key of a table that a plan reads; the reason if it has none. `name` is what the plan calls it, `newest` the
/// committed state of all tables: what a transaction has changed, and what is older, has no key. A plan that has `run`
/// already only tells what it joined.
pub(crate) fn of(
    provider: &Arc<dyn TableProvider>,
    name: &ResolvedTableReference,
    (newest, run): (&Snapshot, bool),
) -> Result<TableKey, &'static str> {
    let provider = without_defaults(provider.as_ref());
    if let Some(table) = Table::of_provider(provider) {
        let name = committed(table, name, newest).ok_or("a table is not in its newest committed state")?;
        return Ok(TableKey { name, content: own(table) });
    }
    match versioned(provider) {
        // A prepared plan may be older than the cached listing of its files.
        Some(files) if !run && !files.is_pinned() => Err("its files were looked at too long ago"),
        Some(files) => {
            let content = of_files(files, &provider.schema())
                .ok_or("a file was written just now and may change unnoticed")?;
            let (catalog, schema) = (DEFAULT_CATALOG.to_owned(), DEFAULT_SCHEMA.to_owned());
            Ok(TableKey { name: TableName { catalog, schema, table: files.name().to_owned() }, content })
        }
        None => Err("the version of a table is not known"),
    }
}

/// [`TableKey::identity`] of a table; `None` for tables without a key.
pub(crate) fn identity(provider: &Arc<dyn TableProvider>) -> Option<String> {
    let provider = without_defaults(provider.as_ref());
    if let Some(table) = Table::of_provider(provider) {
        return Some(table.id().to_string());
    }
    versioned(provider).map(|files| files.name().to_owned())
}

/// The newest state of a table; `None` if it does not exist or its version is unknown.
pub(crate) async fn find(name: &TableName, sources: &Sources) -> Option<Found> {
    let entry = EntryName::new(&name.catalog, &name.schema, &name.table);
    let snapshot = sources.tables.snapshot();
    if let Some(entry) = snapshot.entry(&entry) {
        let Entry::Table(table) = entry else { return None };
        let key = TableKey { name: name.clone(), content: own(table) };
        return Some(Found { key, provider: table.provider(), table: Some(Arc::clone(table)) });
    }
    let may_be_files = entry.catalog == DEFAULT_CATALOG && entry.schema == DEFAULT_SCHEMA;
    if !may_be_files || !sources.main.table_exist(&entry.name) {
        return None;
    }
    let provider = sources.main.table(&name.table).await.ok().flatten()?;
    let content = of_files(versioned(provider.as_ref())?, &provider.schema())?;
    Some(Found { key: TableKey { name: name.clone(), content }, provider, table: None })
}

/// Whether one of our tables is unchanged. Files must be listed for that, which the caller does.
pub(crate) fn holds(table: &TableKey, newest: &Snapshot) -> bool {
    let Content::Own { .. } = table.content else { return true };
    let name = EntryName::new(&table.name.catalog, &table.name.schema, &table.name.table);
    matches!(newest.entry(&name), Some(Entry::Table(now)) if own(now) == table.content)
}

/// Whether a table consists of files, whose version is the listing.
pub(crate) fn is_file(table: &TableKey) -> bool {
    matches!(table.content, Content::Files { .. })
}

/// Whether a new scan of the table reads the version of its key.
pub(crate) fn is_pinned(provider: &dyn TableProvider) -> bool {
    versioned(provider).is_none_or(Versioned::is_pinned)
}

/// The name of a table in the newest committed state, if it is unchanged there.
fn committed(table: &Table, name: &ResolvedTableReference, newest: &Snapshot) -> Option<TableName> {
    let entry = EntryName::new(name.catalog.as_ref(), name.schema.as_ref(), name.table.as_ref());
    if let Some(Entry::Table(there)) = newest.entry(&entry)
        && there.same(table)
    {
        return Some(TableName { catalog: entry.catalog, schema: entry.schema, table: entry.name });
    }
    // A view may give it another name.
    let (name, _) = newest.tables().find(|(_, there)| there.same(table))?;
    Some(TableName { catalog: name.catalog, schema: name.schema, table: name.name })
}

pub(crate) fn own(table: &Table) -> Content {
    Content::Own {
        id: table.id().to_string(),
        version: table.version(),
        columns: digest(&table.schema()),
        durable: table.definition().storage == Storage::Durable,
        segments: table.segment_ids(),
    }
}

fn of_files(files: &dyn Versioned, schema: &SchemaRef) -> Option<Content> {
    let version = files.settled_version()?.to_string();
    Some(Content::Files { version, columns: digest(schema) })
}

/// A digest of the columns of a table, computed once for each schema.
fn digest(schema: &SchemaRef) -> u64 {
    static KNOWN: LazyLock<Mutex<Digests>> = LazyLock::new(Mutex::default);
    let place = Arc::as_ptr(schema).addr();
    let mut known = KNOWN.lock();
    if let Some((there, digest)) = known.get(&place)
        && there.as_ptr() == Arc::as_ptr(schema)
    {
        return *digest;
    }
    let mut hasher = DefaultHasher::new();
    schema.fields().hash(&mut hasher);
    let digest = hasher.finish();
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    // The reference keeps its address from being reused.
    known.insert(place, (Arc::downgrade(schema), digest));
    digest
}
