//! The engine of a process: its settings, and what all sessions share.

mod commit_refresh;
mod datafusion_config;
mod distributed_options;
mod due_loads;
mod due_refreshes;
mod server_session;
mod server_views;
mod suggested_views;

pub use due_loads::{DueLoad, DuePipe};
pub use due_refreshes::DueRefresh;
pub use server_session::SERVER_NAME;
pub use server_views::ViewOptions;
pub use suggested_views::{LoggedQuery, QueryText, SuggestedView, ViewSuggester};

use crate::catalog::lazy_state::SpareStates;
use crate::catalog::{self, CatalogParts};
use crate::databases::{Databases, NoDatabases, is_reserved};
use crate::distribution::{Distribution, OneNode};
use crate::endpoints::EndpointStore;
use crate::error::{Error, classify};
use crate::execute::split_scan;
use crate::models::Models;
use crate::reuse::{Background, NoReuse, Reuse};
use crate::session::EngineSession;
use crate::session::plan_cache::PlanCache;
use crate::session::template::builder_from;
use crate::session::view_rewriting::KnownViews;
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA, TEMPORARY_CATALOG};
use bowshot_api::{BatchStream, Error as ApiError, PolicyDecisionPoint, Principal, QueryId, Result};
use bowshot_files::exchange::ExchangeFolder;
use bowshot_files::file_catalog;
use bowshot_object_store::Remotes;
use bowshot_object_store::secrets::Secrets;
use bowshot_policy::rules::Rules;
use bowshot_policy::snapshot::commit::SessionTables;
use bowshot_policy::{AccessSettings, CatalogUsers, ConfiguredUser, CurrentSettings, UsersSeen};
use bowshot_query_task::QueryRuntime;
use bowshot_query_task::{Budget, Planning, QueryTask, propagate};
use bowshot_system_catalog::named_locks::NamedLocks;
use bowshot_system_catalog::system::SystemTables;
use bowshot_tables::TableStore;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider};
use datafusion::execution::SessionState;
use datafusion::execution::context::SessionContext;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::SessionConfig;
use datafusion_config::template;
use server_views::ServerViews;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Worker threads for each partition that a plan runs at once, and those beside them: what keeps its thread for long does so
/// once before it is known to.
const THREADS_PER_PARTITION: usize = 2;
const SPARE_THREADS: usize = 4;
/// How many consumers an out-of-memory error names.
const NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4);

bowshot_api::defaults! {
    /// Settings of the engine.
    #[derive(Debug, Clone)]
    pub struct EngineConfig {
        /// Partitions of a plan that run at once, one for each processor by default.
        pub threads: usize = std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        /// Bytes that all running queries may hold together.
        pub memory_bytes: usize = 8 << 30,
        /// Bytes that the whole process may have; without a limit when zero.
        pub process_bytes: u64 = 0,
        /// Bytes of spilled data on disk.
        pub spill_bytes: u64 = 100 << 30,
        /// Folder of spilled data; the system's temporary folder when `None`.
        pub spill_folder: Option<PathBuf> = None,
        /// Bytes of Parquet footers kept.
        pub metadata_cache_bytes: usize = 512 << 20,
        /// How long a folder listing is believed.
        pub listing_ttl: Duration = Duration::from_secs(1),
        /// SQL dialect of new sessions: `ansi`, `postgres` or `mysql`.
        pub dialect: &'static str = "ansi",
        /// Rows of one batch.
        pub batch_rows: usize = split_scan::DEFAULT_BATCH_ROWS,
        /// Bytes of the temporary tables of one session.
        pub temporary_bytes: u64 = 1 << 30,
        /// The one folder whose files COPY may read and write; none when `None`.
        pub exchange_folder: Option<PathBuf> = None,
        /// The object stores, in some places of which COPY may read and write too.
        pub remotes: Option<Arc<Remotes>> = None,
        /// Other databases, each of which is a catalog; none when `None`.
        pub databases: Option<Arc<dyn Databases>> = None,
        /// Credentials of sources, which admins give in SQL; the statements about them are refused when `None`.
        pub secrets: Option<Arc<Secrets>> = None,
        /// Plans of all sessions together that are kept for other runs.
        pub plan_cache_entries: usize = 1_000,
        /// Gives each session a catalog of its own, in memory, in which it may create and change tables. Nothing of it
        /// survives the session, and no served file is visible.
        pub scratch: bool = false,
        /// What the server does about materialized views by itself.
        pub views: ViewOptions = ViewOptions::default(),
        /// Users and roles of the configuration.
        pub access: AccessSettings = AccessSettings::default(),
        /// Replaces the session configuration, for comparisons with plain DataFusion.
        pub session_config: Option<SessionConfig> = None,
    }
}

/// The engine of one server process. Cheap to share; dropping the last one stops all its work.
#[derive(Debug, Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

/// What all sessions of an engine share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) runtime: QueryRuntime,
    template: SessionState,
    memory: Arc<dyn MemoryPool>,
    pub(crate) parts: CatalogParts,
    pub(crate) scratch: bool,
    pub(crate) access: Arc<CurrentSettings>,
    dialect: &'static str,
    spill_folder: Option<PathBuf>,
    temporary_bytes: u64,
    planning: Arc<Planning>,
    budget: Arc<Budget>,
    pub(crate) spare_states: Arc<SpareStates>,
    pub(crate) plans: Arc<PlanCache>,
    pub(crate) views: KnownViews,
    view_options: ViewOptions,
    server_views: ServerViews,
    pub(crate) locks: Arc<NamedLocks>,
    /// Held by a commit that refreshes views.
    commit_turn: tokio::sync::Mutex<()>,
    distribution: OnceLock<Arc<dyn Distribution>>,
    decider: OnceLock<Arc<dyn PolicyDecisionPoint>>,
    endpoints: OnceLock<Arc<dyn EndpointStore>>,
}

impl Shared {
    pub(crate) fn distribution(&self) -> &dyn Distribution {
        self.distribution.get().map_or(&OneNode, AsRef::as_ref)
    }

    /// Who decides on statements beside the rules, if anybody does.
    pub(crate) fn decider(&self) -> Option<&dyn PolicyDecisionPoint> {
        self.decider.get().map(AsRef::as_ref)
    }
}

/// Where the tables of an engine come from.
#[derive(Debug)]
pub struct Sources {
    /// The tables of files, which are schema `main`.
    pub main: Arc<dyn SchemaProvider>,
    /// The tables of `system`, if somebody provides them.
    pub system: Option<Arc<dyn SystemTables>>,
    /// The tables that clients make.
    pub tables: Arc<TableStore>,
}

/// What an engine is made of that caches start with.
#[derive(Debug)]
pub struct Base<'a> {
    /// The state that those of all sessions are copies of.
    pub template: &'a SessionState,
    /// The tables of files.
    pub main: &'a Arc<dyn SchemaProvider>,
    /// The tables that clients make.
    pub tables: &'a Arc<TableStore>,
    /// The threads of queries.
    pub queries: &'a Handle,
}

/// An engine that may have ended.
#[derive(Debug, Clone)]
pub struct WeakEngine(Weak<Shared>);

impl WeakEngine {
    /// The engine, if it is still there.
    pub fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(|shared| Engine { shared })
    }
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

    /// An engine that keeps nothing of what it has computed.
    ///
    /// # Errors
    /// When no threads can be started.
    pub fn new(config: &EngineConfig, environment: Arc<RuntimeEnv>, sources: Sources) -> Result<Self> {
        Self::with_reuse(config, environment, sources, |_| Ok(Arc::new(NoReuse)))
    }

    /// An engine with what `start` gives for reuse. Scratch engines, which are compared with DataFusion, have none.
    ///
    /// # Errors
    /// When no threads can be started, and those of `start`.
    pub fn with_reuse(
        config: &EngineConfig,
        environment: Arc<RuntimeEnv>,
        sources: Sources,
        start: impl FnOnce(&Base<'_>) -> Result<Arc<dyn Reuse>>,
    ) -> Result<Self> {
        let Sources { main, system, tables } = sources;
        let runtime =
            QueryRuntime::start(config.threads.saturating_mul(THREADS_PER_PARTITION) + SPARE_THREADS)
                .map_err(Error::Runtime)?;
        let memory = Arc::clone(&environment.memory_pool);
        let template = template(config, environment, &tables)?;
        let nothing = own_tables(0).snapshot();
        let exchange = ExchangeFolder::of(config.exchange_folder.as_deref(), config.remotes.clone())?;
        let reuse: Arc<dyn Reuse> = if config.scratch {
            Arc::new(NoReuse)
        } else {
            let queries = runtime.handle();
            start(&Base { template: &template, main: &main, tables: &tables, queries })?
        };
        // What was left by who ended before its commit. Of rules that cannot be read nobody knows what they name.
        let rules = tables.snapshot().notes().read(Rules::of);
        if !rules.broken {
            tables.model_files().sweep(&rules.files(), Duration::ZERO);
        }
        let models = Models::new(&tables);
        let exchange = exchange.map(Arc::new);
        let files = file_catalog(main.as_ref()).cloned();
        let databases = config.databases.clone().unwrap_or_else(|| Arc::new(NoDatabases));
        check_names(databases.as_ref(), &tables.snapshot().catalogs())?;
        let secrets = config.secrets.clone();
        if let Some(secrets) = &secrets {
            secrets.read_from(tables.newest_texts());
        }
        let plans = Arc::new(PlanCache::new(config.plan_cache_entries));
        let parts = CatalogParts {
            main,
            files,
            system,
            tables,
            nothing,
            exchange,
            models,
            reuse,
            databases,
            secrets,
            plans: Arc::<PlanCache>::clone(&plans),
            pipes: Arc::default(),
        };
        let (scratch, dialect, spill_folder) = (config.scratch, config.dialect, config.spill_folder.clone());
        let shared = Arc::new(Shared {
            runtime,
            template,
            memory,
            parts,
            scratch,
            access: CurrentSettings::new(config.access.clone()),
            dialect,
            spill_folder,
            temporary_bytes: config.temporary_bytes,
            planning: Planning::new(config.threads),
            budget: Arc::new(Budget::new(config.process_bytes)),
            spare_states: Arc::default(),
            plans,
            views: KnownViews::default(),
            view_options: config.views.clone(),
            server_views: ServerViews::default(),
            locks: Arc::default(),
            commit_turn: tokio::sync::Mutex::default(),
            distribution: OnceLock::new(),
            decider: OnceLock::new(),
            endpoints: OnceLock::new(),
        });
        propagate();
        Ok(Self { shared })
    }

    /// Plans are placed by this from now on. The first one counts.
    pub fn distribute_by(&self, distribution: Arc<dyn Distribution>) {
        let _ = self.shared.distribution.set(distribution);
    }

    /// Whether this server has a reason of its own that statements need rights: rules about access, or its configuration.
    pub fn is_guarded(&self) -> bool {
        self.shared.access.has_reason(self.shared.parts.tables.snapshot().notes())
    }

    /// From now on statements need rights here, although there may be no rules: others have some. Whether that is new.
    pub fn need_rights(&self) -> bool {
        self.shared.access.enforce()
    }

    /// Statements are decided on by this too from now on. The first one counts.
    pub fn decide_by(&self, decider: Arc<dyn PolicyDecisionPoint>) {
        let _ = self.shared.decider.set(decider);
    }

    /// Says where rows of results wait that this node hands out for others. The first one counts.
    pub fn hand_out_from(&self, endpoints: Arc<dyn EndpointStore>) {
        let _ = self.shared.endpoints.set(endpoints);
    }

    /// Where they wait, if anywhere.
    pub fn endpoints(&self) -> Option<&Arc<dyn EndpointStore>> {
        self.shared.endpoints.get()
    }

    /// The rows of an endpoint of any node: see [`Distribution::redeem`].
    ///
    /// # Errors
    /// As there.
    pub async fn redeem(
        &self,
        principal: &Principal,
        asked: (QueryId, usize),
        voucher: &[u8],
    ) -> Result<BatchStream> {
        self.shared.distribution().redeem(principal, asked, voucher).await
    }

    /// The runtime for work that costs CPU.
    pub fn runtime(&self) -> &QueryRuntime {
        &self.shared.runtime
    }

    /// A statement of a user that should end until `deadline`.
    pub fn job(&self, user: &str, deadline: Option<Instant>) -> Arc<QueryTask> {
        QueryTask::new(user, deadline, (&self.shared.planning, &self.shared.budget))
    }

    /// Where statements are planned.
    pub fn planning(&self) -> &Planning {
        &self.shared.planning
    }

    /// Bytes of memory that the process has taken.
    pub fn memory_taken(&self) -> u64 {
        bowshot_ipc::os::process_bytes()
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
        Self::without_files(&EngineConfig { scratch: true, ..config.clone() }, None, 0)
    }

    /// An engine without files, whose tables may take so many bytes of memory.
    ///
    /// # Errors
    /// When no threads can be started.
    pub fn without_files(
        config: &EngineConfig,
        system: Option<Arc<dyn SystemTables>>,
        table_bytes: u64,
    ) -> Result<Self> {
        let environment = Self::environment(config)?;
        let tables = TableStore::in_memory(DEFAULT_CATALOG, DEFAULT_SCHEMA, table_bytes);
        Self::new(
            config,
            environment,
            Sources { main: Arc::new(MemorySchemaProvider::new()), system, tables },
        )
    }

    /// Who may log in by what the catalog says; `None` if they are those that were seen.
    pub fn users(&self, seen: &mut UsersSeen) -> Option<CatalogUsers> {
        seen.newer(&self.shared.parts.tables)
    }

    /// The users of the configuration are these from now on.
    pub fn set_configured_users(&self, users: BTreeMap<String, ConfiguredUser>) {
        self.shared.access.set_users(users);
    }

    /// Whether there still is the user whose session it is.
    pub fn knows(&self, principal: &Principal) -> bool {
        self.shared.scratch
            || bowshot_policy::is_known(&self.shared.access.now(), &self.shared.parts.tables, principal)
    }

    /// Whether the configuration or SQL has made a user of this name.
    pub fn has_user(&self, name: &str) -> bool {
        bowshot_policy::has_user(&self.shared.access.now(), &self.shared.parts.tables, name)
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

    /// Catalog and default schema of unqualified names, for a new session.
    pub fn default_names(&self) -> (String, String) {
        let names = &self.shared.template.config_options().catalog;
        (names.default_catalog.clone(), names.default_schema.clone())
    }

    /// A reference that does not keep it from ending.
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine(Arc::downgrade(&self.shared))
    }

    /// Whether nobody else holds it, no session either.
    pub fn is_last(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// A session that asks what one of `principal` with these settings would ask, on one thread, before anybody does.
    pub fn session_in_background(
        &self,
        principal: &Principal,
        config: SessionConfig,
        background: Background,
    ) -> EngineSession {
        let state = builder_from(&self.shared.template)
            .with_config(config.with_target_partitions(1))
            .with_runtime_env(background.environment)
            .with_physical_optimizer_rule(background.rule);
        let context = SessionContext::new_with_state(state.build());
        EngineSession::ahead(context, principal, &self.shared)
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
        let tables = SessionTables::new(
            Arc::clone(&self.shared.parts.tables),
            own_tables(self.shared.temporary_bytes),
        );
        let context = SessionContext::new_with_state(state);
        Ok(EngineSession::new(context, principal, tables, Arc::clone(&self.shared)))
    }
}

/// A name that means a catalog of tables and another database too would mean either.
fn check_names(databases: &dyn Databases, catalogs: &[String]) -> Result<()> {
    let taken = databases.names().into_iter().find(|name| catalogs.contains(name) || is_reserved(name));
    taken.map_or(Ok(()), |name| {
        Err(ApiError::invalid(format!(
            "the database name `{name}` is already that of a catalog of this server"
        ))
        .with_hint("give its entry of `[[databases]]` another name"))
    })
}

pub(crate) fn own_tables(bytes: u64) -> Arc<TableStore> {
    TableStore::in_memory(TEMPORARY_CATALOG, DEFAULT_SCHEMA, bytes)
}
