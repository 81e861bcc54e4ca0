//! The catalogs that one statement sees: the served files and the tables of its snapshot in the shared catalogs, the
//! session's own tables, and its view of `system`. In scratch mode a session has an empty catalog of its own instead.
//!
//! Nothing is made before it is asked for, since every statement has catalogs of its own.

pub(crate) mod changes;
pub(crate) mod column_origins;
pub(crate) mod defaults;
pub(crate) mod enum_types;
pub(crate) mod external_database;
pub(crate) mod file_paths;
pub(crate) mod functions;
pub(crate) mod group_keys;
mod hidden_tables;
pub(crate) mod identity;
pub(crate) mod input;
pub(crate) mod lazy_state;
pub(crate) mod materialized_query;
pub(crate) mod metadata;
pub(crate) mod models;
pub(crate) mod names;
pub(crate) mod providers;
pub(crate) mod public;
pub(crate) mod search_path;
pub(crate) mod show_create;
pub(crate) mod table_functions;
pub(crate) mod time_travel;
mod views;

use crate::databases::Databases;
use crate::error::wording::closest;
use crate::execute::input_scan::Guess;
use crate::models::Models;
use crate::pipes::PipeStates;
use crate::reuse::Reuse;
use crate::secured_scan::{self, spelling::Spelling};
use bowshot_api::catalog_names::{
    CHANGE_SCHEMA, DEFAULT_CATALOG, DEFAULT_SCHEMA, SOURCE, SYSTEM_SCHEMA, TARGET, TEMPORARY_CATALOG,
};
use bowshot_api::{Error as ApiError, Principal};
use bowshot_files::FileCatalog;
use bowshot_files::exchange::ExchangeFolder;
use bowshot_object_store::secrets::Secrets;
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::snapshot::input::StreamedTable;
use bowshot_policy::{Access, Reading, SessionAccess};
use bowshot_sql::Privilege;
use bowshot_system_catalog::client::{ClientSlot, Flavour};
use bowshot_system_catalog::functions::TableLookup;
use bowshot_system_catalog::statement_tables::StatementTables;
use bowshot_system_catalog::system::SystemTables;
use bowshot_system_catalog::{CatalogView, pg_catalog};
use bowshot_tables::{Entry, EntryName, Snapshot, Table, TableStore};
use bowshot_types::storage_type;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider, SchemaProvider, TableProvider,
};
use datafusion::common::TableReference;
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::execution::context::SessionContext;
use defaults::WithDefaults;
use input::InputTable;
use providers::{Catalogs, PlanRows};
use public::Schemas;
use std::sync::Arc;

/// What the catalogs of all sessions are made of.
#[derive(Debug, Clone)]
pub(crate) struct CatalogParts {
    /// The tables of files, as far as they may be seen.
    pub(crate) main: Arc<dyn SchemaProvider>,
    /// What reads external tables, whoever asks: the rules for the table say who may.
    pub(crate) files: Option<Arc<FileCatalog>>,
    pub(crate) system: Option<Arc<dyn SystemTables>>,
    pub(crate) tables: Arc<TableStore>,
    /// What a session has that has no tables of its own.
    pub(crate) nothing: Arc<Snapshot>,
    /// The folder of files that statements may name.
    pub(crate) exchange: Option<Arc<ExchangeFolder>>,
    /// The models that were read.
    pub(crate) models: Arc<Models>,
    /// What `system` tells about caches.
    pub(crate) reuse: Arc<dyn Reuse>,
    /// Other databases, whose names are those of catalogs.
    pub(crate) databases: Arc<dyn Databases>,
    /// Credentials of sources.
    pub(crate) secrets: Option<Arc<Secrets>>,
    /// What `system` tells about plans that are used again.
    pub(crate) plans: Arc<dyn PlanRows>,
    /// Files that pipes load next.
    pub(crate) pipes: Arc<PipeStates>,
}

impl CatalogParts {
    /// The name that the rules of a table of files go by.
    pub(crate) fn file_table(&self, name: &EntryName) -> EntryName {
        EntryName::new(&name.catalog, &name.schema, bowshot_policy::file_name(self.main.as_ref(), &name.name))
    }

    /// Whether there is something of this name.
    pub(crate) fn has(&self, name: &EntryName, pinned: &Pinned, caller: &Principal) -> bool {
        pinned.entry(name).is_some() || self.is_file_table(name) || self.is_in_database(name, caller)
    }

    /// Whether a table of files has this name.
    pub(crate) fn is_file_table(&self, name: &EntryName) -> bool {
        name.catalog == DEFAULT_CATALOG && name.schema == DEFAULT_SCHEMA && self.main.table_exist(&name.name)
    }
}

impl TableLookup for CatalogParts {
    fn has(&self, name: &EntryName, pinned: &Pinned, caller: &Principal) -> bool {
        Self::has(self, name, pinned, caller)
    }

    fn is_file_table(&self, name: &EntryName) -> bool {
        Self::is_file_table(self, name)
    }

    fn file_table(&self, name: &EntryName) -> EntryName {
        Self::file_table(self, name)
    }

    fn file_names(&self) -> Vec<String> {
        self.main.table_names()
    }

    fn system_names(&self) -> Vec<String> {
        let names = self.system.iter().flat_map(|tables| tables.names());
        names.map(str::to_owned).collect()
    }

    fn search_path(&self, options: &ConfigOptions, pinned: &Pinned, access: &Access) -> Vec<String> {
        let default_catalog = &options.catalog.default_catalog;
        let schemas = Schemas { pinned, databases: &self.databases, default_catalog };
        schemas.find_searched(options, access)
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
    /// Whether the tables are the newest ones, which functions of the session look at by themselves.
    is_newest: bool,
    /// The session without catalogs: what plans the views and the defaults.
    pub(crate) context: SessionContext,
    /// The table that the statement changes, with addresses.
    target: Option<Arc<dyn TableProvider>>,
    /// The rows that it adds.
    source: Option<Arc<dyn TableProvider>>,
    /// The rows of queries of its WITH, by the names of their tables.
    returned: Vec<(String, Arc<dyn TableProvider>)>,
    /// Whose settings are shown.
    client: ClientSlot,
    /// How many views this is seen through.
    depth: usize,
    /// Who says what the session may do later.
    gate: Option<Arc<SessionAccess>>,
    /// Which states of other databases it sees.
    moments: Arc<external_database::Moments>,
}

bowshot_api::debug_fields!(Visible { pinned, depth });

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
            is_newest: true,
            context,
            target: None,
            source: None,
            returned: Vec::new(),
            client: ClientSlot::default(),
            depth: 0,
            gate: None,
            moments: Arc::default(),
        }
    }

    /// The same with a client to be asked, for a session whose newest tables these are.
    pub(crate) fn with_client(self, client: ClientSlot, newest: &Pinned, gate: &Arc<SessionAccess>) -> Self {
        Self { client, is_newest: self.raw.is_same(newest), gate: Some(Arc::clone(gate)), ..self }
    }

    pub(crate) fn options(&self) -> Arc<ConfigOptions> {
        Arc::clone(self.context.state_ref().read().config_options())
    }

    /// Catalog and default schema of unqualified names.
    pub(crate) fn default_names(&self) -> (String, String) {
        let options = self.options();
        (options.catalog.default_catalog.clone(), options.catalog.default_schema.clone())
    }

    /// Whose names and types are asked for.
    pub(crate) fn flavour(&self) -> Flavour {
        Flavour::of(&self.options())
    }

    /// What the system catalog describes.
    pub(crate) fn view(self: &Arc<Self>) -> Arc<CatalogView> {
        Arc::new(CatalogView {
            principal: self.principal.clone(),
            pinned: self.pinned.clone(),
            access: self.access.clone(),
            catalogs: Arc::new(Catalogs(Arc::clone(self))),
            context: self.context.clone(),
            client: self.client.clone(),
            is_durable: self.parts.tables.has_folder(),
        })
    }

    /// Whether 0 asks for the next number of a column that numbers itself, as it does unless MySQL's mode says otherwise.
    pub(crate) fn numbers_zeros(&self) -> bool {
        let mode = self.client.get().and_then(|client| client.setting("sql_mode").ok());
        let is_off = |word: &str| word.trim().eq_ignore_ascii_case("NO_AUTO_VALUE_ON_ZERO");
        !mode.is_some_and(|mode| mode.value.split(',').any(is_off))
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

    /// The table or view in the same schema that was probably meant: schemas list only what may be seen.
    pub(crate) fn nearest(&self, name: &EntryName) -> Option<String> {
        let there = self.schema_provider(&name.catalog, &name.schema)?.table_names();
        closest(&name.name, there.iter().map(String::as_str)).map(ToOwned::to_owned)
    }

    /// The same with a table to be changed.
    pub(crate) fn with_target(&self, target: Arc<dyn TableProvider>) -> Self {
        Self { target: Some(target), ..self.clone() }
    }

    /// The same with rows to be added.
    pub(crate) fn with_source(&self, source: Arc<dyn TableProvider>) -> Self {
        Self { source: Some(source), ..self.clone() }
    }

    /// The same with the rows of one more query of its WITH.
    pub(crate) fn with_returned(&self, name: &str, rows: Arc<dyn TableProvider>) -> Self {
        let mut visible = self.clone();
        visible.returned.push((name.to_owned(), rows));
        visible
    }

    /// The session's state with these catalogs in it.
    pub(crate) fn state(&self) -> SessionState {
        let mut state = self.context.state();
        models::register(&mut state, self);
        state.register_catalog_list(self.clone().into_catalogs());
        self.choose(&mut state);
        // Functions get the options as they were when the statement began.
        state.mark_start_execution();
        state
    }

    /// The options of the statement that differ from those of the session.
    fn choose(&self, state: &mut SessionState) {
        let of_session = Arc::clone(state.config_options());
        if let Some(input) = self.raw.input() {
            input.choose(state.config_mut().options_mut());
        }
        if !self.is_newest {
            let tables = StatementTables::new(&self.raw, of_session);
            state.config_mut().options_mut().extensions.insert(tables);
        }
    }

    pub(crate) fn into_catalogs(self) -> Arc<dyn CatalogProviderList> {
        Arc::new(Catalogs(Arc::new(self)))
    }

    pub(crate) fn catalog_names(&self) -> Vec<String> {
        let mut names = self.pinned.shared().catalogs();
        if !self.pinned.own().names(TEMPORARY_CATALOG, DEFAULT_SCHEMA).is_empty() {
            names.push(TEMPORARY_CATALOG.to_owned());
        }
        names.extend(self.seen_databases());
        names
    }

    pub(crate) fn schema_names(&self, catalog: &str) -> Vec<String> {
        if catalog == TEMPORARY_CATALOG {
            return vec![DEFAULT_SCHEMA.to_owned()];
        }
        if self.parts.databases.has(catalog) {
            return self.schemas_of_database(catalog);
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
            return Ok(match name.name.as_str() {
                SOURCE => self.source.clone(),
                TARGET => self.target.clone(),
                other => {
                    self.returned.iter().find(|(name, _)| name == other).map(|(_, rows)| Arc::clone(rows))
                }
            });
        }
        let shared = bowshot_sql::rewrite::shared(&name.name);
        let shared = shared.map(|table| EntryName::new(&name.catalog, &name.schema, table));
        let may_be_own = shared.is_none();
        let name = shared.as_ref().unwrap_or(name);
        if may_be_own && let Some(input) = self.input(name) {
            // Who changes rows of a table gives nothing before the last row has come.
            let guess = if self.target.is_some() { Guess::Small } else { Guess::Large };
            return Ok(Some(InputTable::provider(input, guess)));
        }
        if may_be_own && self.is_default(&name.catalog, &name.schema) {
            let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, &name.name);
            if let Some(entry) = self.raw.entry(&own) {
                self.raw.note_read(&own);
                return self.provider((&own, entry), true).await.map(Some);
            }
        }
        if let Some(files) = bowshot_sql::rewrite::files(&name.name) {
            let table = file_paths::table(self.parts.main.as_ref(), &self.access, &name.name, files).await;
            return table.map(Some).map_err(|error| DataFusionError::External(Box::new(error)));
        }
        if let Some((there, as_of)) = bowshot_sql::rewrite::marked(&name.name) {
            let name = EntryName::new(&name.catalog, &name.schema, there);
            return time_travel::table(self, name, &as_of).await.map(Some);
        }
        if let Some(changes) = bowshot_sql::rewrite::changes(&name.name) {
            let name = EntryName::new(&name.catalog, &name.schema, changes.table);
            return changes::table(self, name, &changes).await.map(Some);
        }
        let reading = self.access.reading(name);
        if let Some(entry) = self.raw.entry(name).filter(|_| reading != Reading::Unseen) {
            let own = name.catalog == TEMPORARY_CATALOG;
            self.check_read(name, &reading)?;
            self.raw.note_read(name);
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
                self.raw.note_read(&name);
                return self.guarded((&name, &reading), files, None).map(Some);
            }
        }
        if self.parts.databases.has(&name.catalog) {
            return self.database_table(name).await;
        }
        let last = pg_catalog::find(&name.name).filter(|_| self.is_default(&name.catalog, &name.schema));
        Ok(last.map(|defined| defined.provider(&Arc::new(self.clone()).view())))
    }

    /// The rows of the client, if the statement calls them so: like the session's own tables, they hide others of the default
    /// schema.
    fn input(&self, name: &EntryName) -> Option<&Arc<StreamedTable>> {
        let input = self.raw.input().filter(|input| input.name() == name.name);
        input.filter(|_| self.is_default(&name.catalog, &name.schema))
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
        let spelling = Spelling::of(self.raw.entry(name));
        secured_scan::guarded(name, found, limits, (&state, kept, spelling))
    }

    /// The rows of a table that a statement may change, with their addresses.
    pub(crate) fn changeable(
        &self,
        name: &EntryName,
        found: Arc<dyn TableProvider>,
        address: &str,
    ) -> Result<Arc<dyn TableProvider>> {
        self.raw.note_read(name);
        self.guarded((name, &self.access.reading(name)), found, Some(address))
    }

    async fn provider(
        &self,
        (name, entry): (&EntryName, &Entry),
        own: bool,
    ) -> Result<Arc<dyn TableProvider>> {
        match entry {
            Entry::Table(table) => {
                names::check_rows(name, table.definition())
                    .map_err(|error| DataFusionError::External(Box::new(error)))?;
                self.table_provider(name, table)
            }
            Entry::View(view) if own => self.without_input().view_provider(view).await,
            // It means the same to everybody, whatever tables of their own they have.
            Entry::View(view) => {
                let found = self.without_own().view_provider(view).await;
                found.map_err(|error| self.access.inside_view(name, error))
            }
            Entry::External(external) => {
                let found = file_paths::external(self.parts.files.as_ref(), external).await;
                found.map_err(|error| DataFusionError::External(Box::new(error)))
            }
            Entry::Broken(broken) => {
                Err(DataFusionError::External(Box::new(ApiError::from(broken.error(name)))))
            }
        }
    }

    /// The same without the tables of the session alone.
    pub(crate) fn without_own(&self) -> Self {
        let without = |pinned: &Pinned| {
            Pinned::new(Arc::clone(pinned.shared()), Arc::clone(&self.parts.nothing)).noting_as(pinned)
        };
        Self { pinned: without(&self.pinned), raw: without(&self.raw), ..self.clone() }
    }

    /// The same without the rows of the client, which no view means.
    fn without_input(&self) -> Self {
        let raw = self.raw.clone().with_input(None);
        Self { pinned: self.pinned.clone().with_input(None), raw, ..self.clone() }
    }

    fn table_provider(&self, name: &EntryName, table: &Arc<Table>) -> Result<Arc<dyn TableProvider>> {
        let definition = table.definition();
        let kept = WithDefaults::wrap(table.provider(), definition, &self.context)?;
        let name = TableReference::full(name.catalog.as_str(), name.schema.as_str(), name.name.as_str());
        storage_type::as_declared(kept, definition, name)
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
