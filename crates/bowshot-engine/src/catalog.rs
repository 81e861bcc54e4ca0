//! The catalogs that one statement sees: the served files and the tables of its snapshot in the shared catalogs, the
//! session's own tables, and its view of `system`. In scratch mode a session has an empty catalog of its own instead.
//!
//! Nothing is made before it is asked for, since every statement has catalogs of its own.

mod views;

use crate::about_tables::AboutTables;
use crate::introspect::information_schema::InformationSchema;
use crate::introspect::listing::PG_CATALOG;
use crate::introspect::pg_catalog::{self, PgCatalog};
use crate::introspect::{ClientSlot, Setting};
use crate::pinned::{Pinned, TEMPORARY_CATALOG};
use crate::policy::{self, Access, Reading};
use crate::reuse::Reuse;
use crate::system::{SystemSchema, SystemTables};
use crate::types::stored;
use crate::write::defaults::WithDefaults;
use crate::{as_of, named_files};
use async_trait::async_trait;
use bowshot_api::{Error as ApiError, ErrorKind, Principal};
use bowshot_sql::Privilege;
use bowshot_storage::exchange::ExchangeFolder;
use bowshot_storage::file_catalog;
use bowshot_storage::tables::durable::AsOf;
use bowshot_storage::tables::{Entry, EntryName, Snapshot, Table, TableStore, What};
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider, SchemaProvider, TableProvider,
};
use datafusion::common::TableReference;
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::TableType;
use std::fmt;
use std::sync::Arc;

/// Catalog of names that do not say theirs.
pub const DEFAULT_CATALOG: &str = "bowshot";
/// Schema of names that do not say theirs.
pub const DEFAULT_SCHEMA: &str = "main";
/// Schema of the tables about the server itself.
pub const SYSTEM_SCHEMA: &str = "system";
/// Schema that exists only while a statement that changes rows is planned; holds [`TARGET`].
pub(crate) const CHANGE_SCHEMA: &str = "__bowshot_change";
/// The table whose rows are changed, with the addresses of its rows.
pub(crate) const TARGET: &str = "target";
/// The new rows of an INSERT, beside [`TARGET`].
pub(crate) const SOURCE: &str = "source";

/// What the catalogs of all sessions are made of.
#[derive(Debug, Clone)]
pub(crate) struct CatalogParts {
    pub(crate) main: Arc<dyn SchemaProvider>,
    pub(crate) system: Option<Arc<dyn SystemTables>>,
    pub(crate) tables: Arc<TableStore>,
    /// What a session has that has no tables of its own.
    pub(crate) nothing: Arc<Snapshot>,
    /// The folder of files that statements may name.
    pub(crate) exchange: Option<Arc<ExchangeFolder>>,
    /// What `system` tells about caches.
    pub(crate) reuse: Arc<dyn Reuse>,
}

impl CatalogParts {
    /// The name that the rules of a table of files go by.
    pub(crate) fn file_table(&self, name: &EntryName) -> EntryName {
        EntryName::new(&name.catalog, &name.schema, policy::file_name(self.main.as_ref(), &name.name))
    }

    /// Whether a table of files has this name.
    pub(crate) fn is_file_table(&self, name: &EntryName) -> bool {
        name.catalog == DEFAULT_CATALOG && name.schema == DEFAULT_SCHEMA && self.main.table_exist(&name.name)
    }
}

/// What one statement sees.
#[derive(Clone)]
pub(crate) struct Visible {
    pub(crate) parts: CatalogParts,
    pub(crate) principal: Principal,
    /// The tables as far as they may be seen: for names and whatever is told about tables.
    pub(crate) pinned: Pinned,
    /// The tables as they are: for rows, which `table` guards.
    raw: Pinned,
    /// What the statement may do.
    pub(crate) access: Access,
    /// The session without catalogs: what plans the views and the defaults.
    pub(crate) context: SessionContext,
    /// The table that the statement changes, with addresses.
    target: Option<Arc<dyn TableProvider>>,
    /// The rows that it adds.
    source: Option<Arc<dyn TableProvider>>,
    /// Whose settings are shown.
    client: ClientSlot,
    /// How many views this is seen through.
    depth: usize,
}

impl fmt::Debug for Visible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visible")
            .field("pinned", &self.pinned)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl Visible {
    pub(crate) fn new(
        parts: CatalogParts,
        principal: Principal,
        (pinned, raw, access): (Pinned, Pinned, Access),
        context: SessionContext,
    ) -> Self {
        Self {
            parts,
            principal,
            pinned,
            raw,
            access,
            context,
            target: None,
            source: None,
            client: ClientSlot::default(),
            depth: 0,
        }
    }

    /// The same with a client to be asked.
    pub(crate) fn with_client(self, client: ClientSlot) -> Self {
        Self { client, ..self }
    }

    pub(crate) fn options(&self) -> Arc<ConfigOptions> {
        Arc::clone(self.context.state_ref().read().config_options())
    }

    /// Catalog and schema of names that do not say theirs.
    pub(crate) fn default_names(&self) -> (String, String) {
        let options = self.options();
        (options.catalog.default_catalog.clone(), options.catalog.default_schema.clone())
    }

    pub(crate) fn settings(&self) -> Vec<Setting> {
        self.client.get().map(|client| client.settings()).unwrap_or_default()
    }

    /// The number of the session that asks.
    pub(crate) fn number(&self) -> Option<i32> {
        self.client.get().map(|client| client.number())
    }

    pub(crate) fn schema_provider(&self, catalog: &str, schema: &str) -> Option<Arc<dyn SchemaProvider>> {
        Catalogs(Arc::new(self.clone())).catalog(catalog)?.schema(schema)
    }

    pub(crate) fn has_schema(&self, catalog: &str, schema: &str) -> bool {
        self.schema_provider(catalog, schema).is_some()
    }

    /// Whether there is a table or view of this full name.
    pub(crate) fn has(&self, name: &EntryName) -> bool {
        self.schema_provider(&name.catalog, &name.schema).is_some_and(|schema| schema.table_exist(&name.name))
    }

    /// The same with a table to be changed.
    pub(crate) fn with_target(&self, target: Arc<dyn TableProvider>) -> Self {
        Self { target: Some(target), ..self.clone() }
    }

    /// The same with rows to be added.
    pub(crate) fn with_source(&self, source: Arc<dyn TableProvider>) -> Self {
        Self { source: Some(source), ..self.clone() }
    }

    /// The session's state with these catalogs in it.
    pub(crate) fn state(&self) -> SessionState {
        let mut state = self.context.state();
        state.register_catalog_list(self.clone().into_catalogs());
        state
    }

    pub(crate) fn into_catalogs(self) -> Arc<dyn CatalogProviderList> {
        Arc::new(Catalogs(Arc::new(self)))
    }

    pub(crate) fn catalog_names(&self) -> Vec<String> {
        let mut names = self.pinned.shared().catalogs();
        if !self.pinned.own().names(TEMPORARY_CATALOG, DEFAULT_SCHEMA).is_empty() {
            names.push(TEMPORARY_CATALOG.to_owned());
        }
        names
    }

    pub(crate) fn schema_names(&self, catalog: &str) -> Vec<String> {
        if catalog == TEMPORARY_CATALOG {
            return vec![DEFAULT_SCHEMA.to_owned()];
        }
        let mut names = self.pinned.shared().schemas(catalog);
        if catalog == DEFAULT_CATALOG && self.parts.system.is_some() {
            names.push(SYSTEM_SCHEMA.to_owned());
        }
        names
    }

    /// Whether names without catalog and schema are looked for here.
    fn is_default(&self, catalog: &str, schema: &str) -> bool {
        let state = self.context.state_ref();
        let state = state.read();
        let names = &state.config_options().catalog;
        names.default_catalog == catalog && names.default_schema == schema
    }

    async fn table(&self, name: &EntryName) -> Result<Option<Arc<dyn TableProvider>>> {
        if name.schema == CHANGE_SCHEMA {
            let found = if name.name == SOURCE { &self.source } else { &self.target };
            return Ok(found.clone().filter(|_| name.name == SOURCE || name.name == TARGET));
        }
        if self.is_default(&name.catalog, &name.schema) {
            let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, &name.name);
            if let Some(entry) = self.raw.entry(&own) {
                return self.provider((&own, entry), true).await.map(Some);
            }
        }
        if let Some(files) = bowshot_sql::rewrite::files(&name.name) {
            let table = named_files::table(self.parts.main.as_ref(), &self.access, &name.name, files).await;
            return table.map(Some).map_err(|error| DataFusionError::External(Box::new(error)));
        }
        if let Some((there, as_of)) = bowshot_sql::rewrite::marked(&name.name) {
            let as_of = as_of::state(&as_of).map_err(|error| DataFusionError::External(Box::new(error)))?;
            let name = EntryName::new(&name.catalog, &name.schema, there);
            return self.earlier(&name, as_of, &self.access.reading(&name)).map(Some);
        }
        let reading = self.access.reading(name);
        if let Some(entry) = self.raw.entry(name).filter(|_| reading != Reading::Unseen) {
            let own = name.catalog == TEMPORARY_CATALOG;
            self.check_read(name, &reading)?;
            let found = self.provider((name, entry), own).await?;
            return self.guarded((name, &reading), found, None).map(Some);
        }
        if name.catalog == DEFAULT_CATALOG
            && name.schema == DEFAULT_SCHEMA
            && let Some(files) = self.parts.main.table(&name.name).await?
        {
            let name = self.parts.file_table(name);
            let reading = self.access.reading(&name);
            if reading != Reading::Unseen {
                self.check_read(&name, &reading)?;
                return self.guarded((&name, &reading), files, None).map(Some);
            }
        }
        let last = pg_catalog::find(&name.name).filter(|_| self.is_default(&name.catalog, &name.schema));
        Ok(last.map(|defined| defined.provider(&Arc::new(self.clone()))))
    }

    fn check_read(&self, name: &EntryName, reading: &Reading) -> Result<()> {
        match reading {
            Reading::All | Reading::Limited(_) => Ok(()),
            Reading::Denied | Reading::Unseen => {
                Err(DataFusionError::External(Box::new(self.access.refused(Privilege::Select, name))))
            }
        }
    }

    /// The part of a table or view that may be read. `kept` is a column that is none of the user's.
    fn guarded(
        &self,
        (name, reading): (&EntryName, &Reading),
        found: Arc<dyn TableProvider>,
        kept: Option<&str>,
    ) -> Result<Arc<dyn TableProvider>> {
        self.check_read(name, reading)?;
        let Reading::Limited(limits) = reading else { return Ok(found) };
        let state = self.context.state_ref();
        let state = state.read();
        policy::guarded(name, found, limits, (&state, kept))
    }

    /// The rows of a table that a statement may change, with their addresses.
    pub(crate) fn changeable(
        &self,
        name: &EntryName,
        found: Arc<dyn TableProvider>,
        address: &str,
    ) -> Result<Arc<dyn TableProvider>> {
        self.guarded((name, &self.access.reading(name)), found, Some(address))
    }

    /// A table as it was. Who sees a part of it must not see another one by going back to other columns.
    fn earlier(&self, name: &EntryName, as_of: AsOf, reading: &Reading) -> Result<Arc<dyn TableProvider>> {
        let external = |error: ApiError| DataFusionError::External(Box::new(error));
        let Some(Entry::Table(table)) = self.raw.entry(name).filter(|_| *reading != Reading::Unseen) else {
            return Err(external(ApiError::not_found(format!("`{name}` is no table that keeps versions"))));
        };
        let earlier = self.parts.tables.table_as_of(table, as_of);
        let earlier = Arc::new(earlier.map_err(|error| external(error.into()))?);
        if matches!(reading, Reading::Limited(_)) && earlier.definition() != table.definition() {
            return Err(external(
                ApiError::new(ErrorKind::Denied, format!("`{name}` had another definition then"))
                    .with_hint("policies are for the columns as they are now; ask the owner of the table"),
            ));
        }
        let full = TableReference::full(name.catalog.as_str(), name.schema.as_str(), name.name.as_str());
        let found = stored::as_declared(earlier.provider(), earlier.definition(), full)?;
        self.guarded((name, reading), found, None)
    }

    async fn provider(
        &self,
        (name, entry): (&EntryName, &Entry),
        own: bool,
    ) -> Result<Arc<dyn TableProvider>> {
        match entry {
            Entry::Table(table) => self.table_provider(name, table),
            Entry::View(view) if own => self.view_provider(view).await,
            // It means the same to everybody, whatever tables of their own they have.
            Entry::View(view) => {
                let found = self.without_own().view_provider(view).await;
                found.map_err(|error| self.access.inside_view(name, error))
            }
            Entry::Broken(broken) => {
                Err(DataFusionError::External(Box::new(ApiError::from(broken.error(name)))))
            }
        }
    }

    /// The same without the tables of the session alone.
    pub(crate) fn without_own(&self) -> Self {
        let without =
            |pinned: &Pinned| Pinned::new(Arc::clone(pinned.shared()), Arc::clone(&self.parts.nothing));
        Self { pinned: without(&self.pinned), raw: without(&self.raw), ..self.clone() }
    }

    fn table_provider(&self, name: &EntryName, table: &Arc<Table>) -> Result<Arc<dyn TableProvider>> {
        let definition = table.definition();
        let kept = WithDefaults::wrap(table.provider(), definition, &self.context)?;
        let name = TableReference::full(name.catalog.as_str(), name.schema.as_str(), name.name.as_str());
        stored::as_declared(kept, definition, name)
    }
}

#[derive(Debug)]
pub(crate) struct Catalogs(Arc<Visible>);

impl Catalogs {
    pub(crate) fn visible(&self) -> &Arc<Visible> {
        &self.0
    }
}

impl CatalogProviderList for Catalogs {
    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        self.0.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let known = name == TEMPORARY_CATALOG || self.0.pinned.shared().has_catalog(name);
        known.then(|| Arc::new(Catalog { visible: Arc::clone(&self.0), name: name.to_owned() }) as Arc<_>)
    }
}

#[derive(Debug)]
struct Catalog {
    visible: Arc<Visible>,
    name: String,
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let mut names = self.visible.schema_names(&self.name);
        names.push(INFORMATION_SCHEMA.to_owned());
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let visible = &self.visible;
        match name {
            INFORMATION_SCHEMA => return Some(Arc::new(InformationSchema(Arc::clone(visible)))),
            PG_CATALOG => return Some(Arc::new(PgCatalog(Arc::clone(visible)))),
            _ => {}
        }
        if name == SYSTEM_SCHEMA && self.name == DEFAULT_CATALOG {
            let tables = Arc::clone(visible.parts.system.as_ref()?);
            let about = AboutTables::new(&visible.pinned, &visible.parts.tables, &visible.access);
            let who = (visible.principal.clone(), visible.access.clone());
            let files = file_catalog(visible.parts.main.as_ref()).cloned();
            let schema = SystemSchema::new(tables, who, about, Arc::clone(&visible.parts.reuse));
            return Some(Arc::new(schema.with_files(files)));
        }
        let changing = name == CHANGE_SCHEMA && visible.target.is_some();
        (changing || visible.pinned.has_schema(&self.name, name)).then(|| {
            let (catalog, schema) = (self.name.clone(), name.to_owned());
            Arc::new(Schema { visible: Arc::clone(visible), catalog, schema }) as Arc<_>
        })
    }
}

#[derive(Debug)]
struct Schema {
    visible: Arc<Visible>,
    catalog: String,
    schema: String,
}

impl Schema {
    fn name(&self, name: &str) -> EntryName {
        EntryName::new(&self.catalog, &self.schema, name)
    }

    fn holds_files(&self) -> bool {
        self.catalog == DEFAULT_CATALOG && self.schema == DEFAULT_SCHEMA
    }
}

#[async_trait]
impl SchemaProvider for Schema {
    fn table_names(&self) -> Vec<String> {
        let pinned = &self.visible.pinned;
        let side = if self.catalog == TEMPORARY_CATALOG { pinned.own() } else { pinned.shared() };
        let mut names = side.names(&self.catalog, &self.schema);
        if self.holds_files() {
            names.extend(self.visible.parts.main.table_names());
            // A file may have come under the name of a table, which hides it.
            names.sort_unstable();
            names.dedup();
        }
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.visible.table(&self.name(name)).await
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        match self.visible.pinned.entry(&self.name(name)) {
            Some(Entry::Table(_)) => Ok(Some(TableType::Base)),
            Some(Entry::View(_)) => Ok(Some(TableType::View)),
            Some(Entry::Broken(broken)) if broken.what() == What::View => Ok(Some(TableType::View)),
            Some(Entry::Broken(_)) => Ok(Some(TableType::Base)),
            None if self.holds_files() => self.visible.parts.main.table_type(name).await,
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.visible.pinned.entry(&self.name(name)).is_some()
            || self.holds_files() && self.visible.parts.main.table_exist(name)
            || self.visible.is_default(&self.catalog, &self.schema) && pg_catalog::find(name).is_some()
    }
}

/// Catalogs of a scratch session: empty, in memory, gone with the session.
pub(crate) fn scratch(catalog_name: &str, schema_name: &str) -> Result<Arc<dyn CatalogProviderList>> {
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(schema_name, Arc::new(MemorySchemaProvider::new()))?;
    let list = MemoryCatalogProviderList::new();
    list.register_catalog(catalog_name.to_owned(), Arc::new(catalog));
    Ok(Arc::new(list))
}
