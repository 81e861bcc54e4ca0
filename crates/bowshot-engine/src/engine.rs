//! The engine itself and the state that one session has in it.

use crate::catalog::{self, CatalogParts, DEFAULT_CATALOG, DEFAULT_SCHEMA, Visible};
use crate::enforce::{self, Action, AuthorizedPlan, Change};
use crate::error::{Error, classify};
use crate::execute::{self, Execution, Parallelism, Run};
use crate::pinned::{Pinned, TEMPORARY_CATALOG};
use crate::plan;
use crate::runtime::QueryRuntime;
use crate::system::SystemTables;
use crate::write::ddl::Stores;
use crate::write::names::Names;
use crate::write::recognise::{Recognised, nothing, recognise};
use crate::{metadata, parameters};
use bowshot_api::{Error as ApiError, Layout, Principal, Result, TableEntry, TableFilter};
use bowshot_storage::tables::TableStore;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider};
use datafusion::config::ConfigOptions;
use datafusion::execution::SessionState;
use datafusion::execution::context::SessionContext;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionConfig;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Worker threads for each partition that a plan runs at once.
const THREADS_PER_PARTITION: usize = 2;
/// How many consumers an out-of-memory error names.
const NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4);

/// Settings of the engine.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Partitions of a plan that run at once, one for each processor by default.
    pub threads: usize,
    /// Bytes that all running queries may hold together.
    pub memory_bytes: usize,
    /// Bytes of spilled data on disk.
    pub spill_bytes: u64,
    /// Folder of spilled data; the system's temporary folder when `None`.
    pub spill_folder: Option<PathBuf>,
    /// Bytes of Parquet footers kept.
    pub metadata_cache_bytes: usize,
    /// How long a folder listing is believed.
    pub listing_ttl: Duration,
    /// SQL dialect of new sessions: `ansi`, `postgres` or `mysql`.
    pub dialect: &'static str,
    /// Rows of one batch.
    pub batch_rows: usize,
    /// Whether who makes a table must say that it is kept in memory, since the operator has named a place for durable ones.
    pub durable_expected: bool,
    /// Bytes of the temporary tables of one session.
    pub temporary_bytes: u64,
    /// Gives each session a catalog of its own, in memory, in which it may create and change tables. Nothing of it
    /// survives the session, and no served file is visible.
    pub scratch: bool,
    /// Replaces the session configuration, for comparisons with plain DataFusion.
    pub session_config: Option<SessionConfig>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            memory_bytes: 8 << 30,
            spill_bytes: 100 << 30,
            spill_folder: None,
            metadata_cache_bytes: 512 << 20,
            listing_ttl: Duration::from_secs(1),
            dialect: "ansi",
            batch_rows: 8192,
            durable_expected: false,
            temporary_bytes: 1 << 30,
            scratch: false,
            session_config: None,
        }
    }
}

/// The engine of one server process. Cheap to share; dropping the last one stops all its work.
#[derive(Debug, Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    runtime: QueryRuntime,
    template: SessionState,
    memory: Arc<dyn MemoryPool>,
    parts: CatalogParts,
    scratch: bool,
    dialect: &'static str,
    spill_folder: Option<PathBuf>,
    temporary_bytes: u64,
}

impl Engine {
    /// The environment that storage and engine share: memory pool, spill folder, file caches.
    ///
    /// # Errors
    /// When the spill folder cannot be used.
    pub fn environment(config: &EngineConfig) -> Result<Arc<RuntimeEnv>> {
        let pool = TrackConsumersPool::new(FairSpillPool::new(config.memory_bytes), NAMED_CONSUMERS);
        let mut builder = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(pool))
            .with_metadata_cache_limit(config.metadata_cache_bytes)
            .with_object_list_cache_ttl(Some(config.listing_ttl))
            .with_max_temp_directory_size(config.spill_bytes);
        if let Some(folder) = &config.spill_folder {
            builder = builder.with_temp_file_path(folder.clone());
        }
        builder.build_arc().map_err(classify)
    }

    /// An engine over the files of schema `main` and the tables of a store, with the tables of `system` if somebody
    /// provides them.
    ///
    /// # Errors
    /// When no threads can be started.
    pub fn new(
        config: &EngineConfig,
        environment: Arc<RuntimeEnv>,
        main: Arc<dyn SchemaProvider>,
        system: Option<Arc<dyn SystemTables>>,
        tables: Arc<TableStore>,
    ) -> Result<Self> {
        let runtime = QueryRuntime::start(config.threads.saturating_mul(THREADS_PER_PARTITION))
            .map_err(Error::Runtime)?;
        let session_config = config.session_config.clone().unwrap_or_else(|| session_config(config));
        let memory = Arc::clone(&environment.memory_pool);
        let template = SessionStateBuilder::new()
            .with_config(session_config)
            .with_runtime_env(environment)
            .with_default_features()
            .build();
        let nothing = own_tables(0).snapshot();
        let durable_expected = config.durable_expected;
        let parts = CatalogParts { main, system, tables, nothing, durable_expected };
        let (scratch, dialect, spill_folder) = (config.scratch, config.dialect, config.spill_folder.clone());
        Ok(Self {
            shared: Arc::new(Shared {
                runtime,
                template,
                memory,
                parts,
                scratch,
                dialect,
                spill_folder,
                temporary_bytes: config.temporary_bytes,
            }),
        })
    }

    /// The runtime for work that costs CPU.
    pub fn runtime(&self) -> &QueryRuntime {
        &self.shared.runtime
    }

    /// Bytes that running queries have reserved.
    pub fn memory_reserved(&self) -> usize {
        self.shared.memory.reserved()
    }

    /// An engine without any table, whose sessions each have a scratch catalog.
    ///
    /// # Errors
    /// When no threads can be started.
    pub fn scratch(config: &EngineConfig) -> Result<Self> {
        let config = EngineConfig { scratch: true, ..config.clone() };
        let environment = Self::environment(&config)?;
        let tables = TableStore::in_memory(DEFAULT_CATALOG, DEFAULT_SCHEMA, 0);
        Self::new(&config, environment, Arc::new(MemorySchemaProvider::new()), None, tables)
    }

    /// Bytes of the rows in tables.
    pub fn table_bytes(&self) -> u64 {
        self.shared.parts.tables.memory_bytes()
    }

    /// Folder of spilled data, if the operator names one.
    pub fn spill_folder(&self) -> Option<&PathBuf> {
        self.shared.spill_folder.as_ref()
    }

    /// SQL dialect of a new session.
    pub fn default_dialect(&self) -> &'static str {
        self.shared.dialect
    }

    /// Catalog and schema of names that do not say theirs, for a new session.
    pub fn default_names(&self) -> (String, String) {
        let names = &self.shared.template.config_options().catalog;
        (names.default_catalog.clone(), names.default_schema.clone())
    }

    /// A session of `principal` with default settings.
    ///
    /// # Errors
    /// When its catalogs cannot be made; does not happen with the providers that Bowshot has.
    pub fn open_session(&self, principal: &Principal) -> Result<EngineSession> {
        let mut state = self.shared.template.clone();
        if self.shared.scratch {
            let names = &state.config_options().catalog;
            let catalogs =
                catalog::scratch(&names.default_catalog, &names.default_schema).map_err(classify)?;
            state.register_catalog_list(catalogs);
        }
        Ok(EngineSession {
            context: SessionContext::new_with_state(state),
            principal: principal.clone(),
            own: own_tables(self.shared.temporary_bytes),
            shared: Arc::clone(&self.shared),
            scratch: self.shared.scratch,
        })
    }
}

fn own_tables(bytes: u64) -> Arc<TableStore> {
    TableStore::in_memory(TEMPORARY_CATALOG, DEFAULT_SCHEMA, bytes)
}

fn session_config(config: &EngineConfig) -> SessionConfig {
    let mut session = SessionConfig::new()
        // Sessions that serve have a schema of that name, which does not mind broken tables.
        .with_information_schema(config.scratch)
        .with_default_catalog_and_schema(DEFAULT_CATALOG, DEFAULT_SCHEMA)
        .with_create_default_catalog_and_schema(false)
        .with_target_partitions(config.threads)
        .with_batch_size(config.batch_rows);
    let options: &mut ConfigOptions = session.options_mut();
    // Plain strings from the scan to the wire: views drag whole decoded pages along (DESIGN.md 4).
    options.execution.parquet.schema_force_view_types = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.execution.collect_statistics = true;
    if let Some(dialect) = plan::parser_dialect(config.dialect) {
        options.sql_parser.dialect = dialect;
    }
    session
}

/// What one session has in the engine: its settings, its own tables and its view of the catalogs. Clones share all.
#[derive(Clone)]
pub struct EngineSession {
    context: SessionContext,
    shared: Arc<Shared>,
    principal: Principal,
    own: Arc<TableStore>,
    scratch: bool,
}

impl std::fmt::Debug for EngineSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineSession").field("id", &self.context.session_id()).finish_non_exhaustive()
    }
}

impl EngineSession {
    /// The tables as they are now.
    pub fn pin(&self) -> Pinned {
        Pinned::new(self.shared.parts.tables.snapshot(), self.own.snapshot())
    }

    /// Makes what a transaction has changed visible to everybody, all at once.
    ///
    /// # Errors
    /// `Conflict` when another one was first.
    pub fn commit(&self, base: &Pinned, changed: &Pinned) -> Result<()> {
        self.shared.parts.tables.commit(base.shared(), changed.shared())?;
        self.own.commit(base.own(), changed.own())?;
        Ok(())
    }

    pub(crate) fn visible(&self, pinned: &Pinned) -> Visible {
        Visible::new(self.shared.parts.clone(), self.principal.clone(), pinned.clone(), self.context.clone())
    }

    pub(crate) fn names(&self, pinned: &Pinned) -> Names {
        let state = self.context.state_ref();
        let state = state.read();
        let names = &state.config_options().catalog;
        Names {
            pinned: pinned.clone(),
            parts: self.shared.parts.clone(),
            default_catalog: names.default_catalog.clone(),
            default_schema: names.default_schema.clone(),
        }
    }

    pub(crate) fn stores(&self) -> Stores {
        Stores { shared: Arc::clone(&self.shared.parts.tables), own: Arc::clone(&self.own) }
    }

    /// The session's settings with the catalogs of one moment.
    pub(crate) fn state(&self, pinned: &Pinned) -> SessionState {
        if self.scratch { self.context.state() } else { self.visible(pinned).state() }
    }

    /// Parses, plans and authorises one statement on the tables of one moment. CPU work: to be called on the query runtime.
    ///
    /// # Errors
    /// `Syntax`, `Invalid`, `NotFound` from planning; `Denied` and `Unsupported` from enforcement.
    pub async fn plan(&self, sql: &str, pinned: &Pinned) -> Result<AuthorizedPlan> {
        let state = self.state(pinned);
        let statement = plan::parse(&state, sql)?;
        let recognised = if self.scratch {
            None
        } else {
            let (visible, names) = (self.visible(pinned), self.names(pinned));
            Box::pin(recognise(&statement, &visible, &names)).await?
        };
        let (planned, action) = match recognised {
            None => (plan::plan(&state, statement).await?, None),
            Some(Recognised::Write(write, rows)) => {
                (plan::planned(rows)?, Some(Action::Write(Change(Arc::from(write)))))
            }
            Some(Recognised::Transaction(statement)) => {
                (plan::planned(nothing())?, Some(Action::Transaction(statement)))
            }
        };
        enforce::enforce(planned, action, pinned.clone(), self.scratch)
    }

    /// The schema that running the plan gives; no fields for a plan that acts.
    pub fn schema(&self, plan: &AuthorizedPlan, layout: Layout) -> SchemaRef {
        let planned = plan.planned();
        if planned.parameters().fields().is_empty() {
            return execute::result_schema(&self.context.state(), planned.plan(), layout);
        }
        // Coercion would settle the types of parameters before they have values.
        layout.schema(planned.plan().schema().as_arrow())
    }

    /// Checks that a batch of parameters fits the plan.
    ///
    /// # Errors
    /// `Invalid`, naming the parameter.
    pub fn check_parameters(&self, plan: &AuthorizedPlan, rows: &RecordBatch) -> Result<()> {
        let planned = plan.planned();
        parameters::check(planned.plan(), planned.parameters(), rows)
    }

    /// The schema of the result once `rows` are bound: parameters of unknown type take the type of their value.
    ///
    /// # Errors
    /// `Invalid`, naming the parameter.
    pub fn bound_schema(
        &self,
        plan: &AuthorizedPlan,
        rows: &RecordBatch,
        layout: Layout,
    ) -> Result<SchemaRef> {
        let planned = plan.planned();
        let bound = parameters::bind(planned.plan(), planned.parameters(), rows, 0)?;
        Ok(execute::result_schema(&self.context.state(), &bound, layout))
    }

    /// Makes a plan ready to run. Statements with effects take effect here. To be called on the query runtime.
    ///
    /// # Errors
    /// From binding, optimising and physical planning.
    pub async fn execute(
        &self,
        plan: &AuthorizedPlan,
        parameters: &[RecordBatch],
        parallelism: Parallelism,
        layout: Layout,
    ) -> Result<Execution> {
        let mut state = self.state(plan.pinned());
        if let Parallelism::Streams(streams) = parallelism {
            let partitions = &mut state.config_mut().options_mut().execution.target_partitions;
            *partitions = streams.max(*partitions);
        }
        let run = Run { plan, layout, state };
        if parameters.is_empty() {
            Box::pin(execute::prepare(self, &run)).await
        } else {
            Box::pin(execute::prepare_bound(self, &run, parameters)).await
        }
    }

    /// Lets a statement on the scratch catalog act, and gives back the plan of its result. Queries pass unchanged.
    pub(crate) async fn take_effect(
        &self,
        plan: &AuthorizedPlan,
        state: SessionState,
    ) -> Result<(SessionState, LogicalPlan)> {
        let logical = plan.planned().plan().clone();
        let prepared = matches!(logical, LogicalPlan::Statement(_));
        match plan.action() {
            Action::Query if !prepared => Ok((state, logical)),
            Action::Query | Action::Scratch => {
                let frame = self.context.execute_logical_plan(logical).await.map_err(classify)?;
                Ok(frame.into_parts())
            }
            Action::Set { .. } | Action::Reset { .. } if self.scratch => {
                let frame = self.context.execute_logical_plan(logical).await.map_err(classify)?;
                Ok(frame.into_parts())
            }
            Action::Set { .. } | Action::Reset { .. } => {
                Err(ApiError::internal("a session option reached the engine as a plan"))
            }
            Action::Write(_) | Action::Transaction(_) => {
                Err(ApiError::internal("a statement that changes tables was run as a query"))
            }
        }
    }

    /// Whether the session has a scratch catalog, in which `SET` reaches the engine's own options.
    pub fn is_scratch(&self) -> bool {
        self.scratch
    }

    /// Sets one of the engine's options, named as in its configuration (`catalog.default_schema`, …).
    ///
    /// # Errors
    /// `Invalid` when the value does not fit.
    pub fn set_config(&self, key: &str, value: &str) -> Result<()> {
        let state = self.context.state_ref();
        let mut state = state.write();
        state.config_mut().options_mut().set(key, value).map_err(classify)
    }

    /// Names of the catalogs, sorted.
    pub fn catalogs(&self, pinned: &Pinned) -> Vec<String> {
        metadata::catalogs(self.state(pinned).catalog_list())
    }

    /// Pairs of catalog and schema, sorted.
    pub fn schemas(
        &self,
        catalog: Option<&str>,
        pattern: Option<&str>,
        pinned: &Pinned,
    ) -> Vec<(String, String)> {
        metadata::schemas(self.state(pinned).catalog_list(), catalog, pattern)
    }

    /// Tables, sorted. May read file footers: to be called on the query runtime.
    ///
    /// # Errors
    /// None today; a table that cannot be read is listed with the reason.
    pub async fn tables(
        &self,
        filter: &TableFilter,
        layout: Layout,
        pinned: &Pinned,
    ) -> Result<Vec<TableEntry>> {
        let state = self.state(pinned);
        metadata::tables(state.catalog_list(), filter, layout).await
    }
}
