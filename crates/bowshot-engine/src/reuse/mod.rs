//! What was computed before is not computed again: whole results ([`results`]) and, in this folder, joins.
//!
//! The join cache as queries meet it: joins of an optimised plan that are there already are read instead of computed. The
//! place is after DataFusion's logical optimiser and before physical planning (decision 0006): filters and projections
//! stand where they belong, every way to write a join has become the same, and policies are part of the plan.
//!
//! 1. [`glance`] tells in microseconds of most plans that nothing is there for them. [`block`] takes a part of the plan
//!    apart into tables, conditions and columns; [`keys`] says which version each table has, [`text`] makes keys of
//!    expressions. What is not known in all three is not cached.
//! 2. `bowshot_cache` finds a join that gives this one, and says which conditions still have to be applied.
//! 3. [`substitute`] puts a scan of the cached rows in its place, with those conditions and the columns on top; [`codes`]
//!    makes numbers of texts that are compared or grouped.
//! 4. A miss is noted in the history, by [`learner`] unless queries wait for joins; [`fill`] computes what is worth it in the
//!    background ([`upkeep`] decides), from the newest committed state of the tables.
//!
//! Whatever goes wrong, the query runs as if there were no cache.

mod block;
mod builder;
mod codes;
mod control;
mod copied;
mod fill;
mod glance;
mod history_file;
mod keys;
mod learner;
mod lineage;
mod lookup;
mod queue;
mod report;
mod results;
mod rows;
mod substitute;
mod tables;
mod text;
mod upkeep;

pub use control::CacheStatement;
pub(crate) use control::recognise;
pub(crate) use lookup::Purpose;
pub use results::ResultCacheConfig;
pub(crate) use results::{Answer, Asked, ResultCache};
pub(crate) use rows::MappedRows;
pub(crate) use tables::{NAMES, about};

use crate::catalog::CatalogParts;
use crate::courtesy::Courtesy;
use crate::engine::Shared;
use crate::relay::Relay;
use crate::rules::StepAside;
use crate::runtime::QueryRuntime;
use bowshot_cache::{Budget, Flights, History, JoinShape, Store};
use datafusion::common::extensions_options;
use datafusion::config::{ConfigExtension, ConfigOptions};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use history_file::Saved;
use learner::Learner;
use queue::Queue;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use upkeep::Watch;

/// What the join cache may take and when it computes.
#[derive(Debug, Clone)]
pub struct JoinCacheConfig {
    /// Whether there is one.
    pub enabled: bool,
    /// Bytes of rows in memory; as much again while a join is computed.
    pub memory_bytes: u64,
    /// Bytes of files.
    pub disk_bytes: u64,
    /// Folder of the files; without one nothing leaves memory for the disk, and nothing survives a restart.
    pub folder: Option<PathBuf>,
    /// A join is computed for the cache when it, or one like it, is asked for so many times.
    pub fill_after: u64,
    /// How long a query waits for a join that is being computed for the cache, before it computes it itself.
    pub wait: Duration,
    /// Whether joins are computed before they are asked for.
    pub forecast: bool,
    /// Templates of joins that are remembered.
    pub history: usize,
    /// Longest computation of one join.
    pub fill_timeout: Duration,
    /// Percent of one processor that computing ahead takes at most while queries run.
    pub busy_percent: usize,
}

impl Default for JoinCacheConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            memory_bytes: 2 << 30,
            disk_bytes: 16 << 30,
            folder: None,
            fill_after: 2,
            wait: Duration::ZERO,
            forecast: true,
            history: 1_000,
            fill_timeout: Duration::from_secs(60 * 60),
            busy_percent: 10,
        }
    }
}

extensions_options! {
    /// What one session says about the cache.
    pub(crate) struct SessionCache {
        /// Whether its queries use and fill the join cache.
        pub enabled: bool, default = true
        /// Whether its queries are answered with results that are kept, and their results are.
        pub results: bool, default = true
    }
}

impl ConfigExtension for SessionCache {
    const PREFIX: &'static str = "bowshot_cache";
}

/// The key of [`SessionCache::enabled`] among the engine's options.
pub const SESSION_CACHE: &str = "bowshot_cache.enabled";
/// The same of [`SessionCache::results`].
pub const SESSION_RESULTS: &str = "bowshot_cache.results";

/// The caches of an engine, those that it has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caches {
    pub(crate) joins: Option<Arc<JoinCache>>,
    pub(crate) results: Option<Arc<ResultCache>>,
}

/// The join cache of an engine, without the threads that fill it.
#[derive(Debug)]
pub(crate) struct JoinCache {
    config: JoinCacheConfig,
    store: Arc<Store>,
    history: History,
    saved: Mutex<Saved>,
    flights: Flights<JoinShape>,
    queue: Queue,
    learner: Learner,
    watch: Watch,
    parts: CatalogParts,
    /// Threads that get the processor when they want it.
    queries: Handle,
    /// What joins are computed with: its memory is apart from that of queries.
    state: SessionState,
    courtesy: Arc<Courtesy>,
    relay: Relay,
}

impl JoinCache {
    /// The environment with the memory that joins are computed in.
    pub(crate) fn environment(&self) -> Arc<RuntimeEnv> {
        Arc::clone(self.state.runtime_env())
    }

    pub(crate) fn courtesy(&self) -> &Arc<Courtesy> {
        &self.courtesy
    }

    /// What makes plans step aside while queries run.
    pub(crate) fn step_aside(&self) -> Arc<StepAside> {
        Arc::new(StepAside(Arc::clone(&self.courtesy)))
    }
}

/// A cache and what fills it, which ends with it.
#[derive(Debug)]
pub(crate) struct Reuse {
    pub(crate) cache: Arc<JoinCache>,
    /// Where jobs are handed out and looked after, and those are done that the lowest priority holds up.
    beside: QueryRuntime,
    _background: QueryRuntime,
    _learning: QueryRuntime,
}

impl Reuse {
    /// A cache that is filled in the background, if it is enabled.
    ///
    /// # Errors
    /// When no threads can be started.
    pub(crate) fn start(
        config: &JoinCacheConfig,
        template: &SessionState,
        (parts, queries): (&CatalogParts, &Handle),
    ) -> bowshot_api::Result<Option<Self>> {
        if !config.enabled {
            return Ok(None);
        }
        let budget = Budget {
            memory_bytes: config.memory_bytes,
            disk_bytes: config.disk_bytes,
            folder: config.folder.clone(),
        };
        let courtesy = Arc::new(Courtesy::new(queries.clone(), config.busy_percent));
        let state = fill::state(template, config, &courtesy).map_err(crate::error::classify)?;
        let started = |runtime: std::io::Result<QueryRuntime>| runtime.map_err(crate::error::Error::Runtime);
        let background = started(QueryRuntime::start_in_background())?;
        let cache = Arc::new(JoinCache {
            config: config.clone(),
            store: Arc::new(Store::open(budget)),
            history: History::new(config.history),
            saved: Mutex::default(),
            flights: Flights::default(),
            queue: Queue::default(),
            learner: Learner::default(),
            watch: Watch::default(),
            parts: parts.clone(),
            queries: queries.clone(),
            state,
            relay: Relay::new(background.handle().clone(), Arc::clone(&courtesy)),
            courtesy,
        });
        // Versions and segments of a backup that was put back are numbered again.
        let newest = parts.tables.snapshot();
        let continues = cache.store.folder().is_some_and(|it| lineage::continues(it, parts.tables.opening()));
        cache.store.remove_of(|table| !(keys::holds(table, &newest) && (continues || keys::is_file(table))));
        if let Some(folder) = cache.store.folder() {
            lineage::note(folder, parts.tables.opening());
        }
        cache.restore_history();
        let beside = started(QueryRuntime::start_beside())?;
        // Learning has a thread of its own: it neither waits for a long step nor counts as work on joins. One of the lowest
        // priority, since it begins when a query does: with an ordinary one TPC-H took 1.04 times as long.
        let learning = started(QueryRuntime::start_in_background())?;
        // The runtimes own them; they end with them.
        drop(learning.spawn(learner::work(Arc::clone(&cache))));
        drop(beside.spawn(upkeep::work(Arc::clone(&cache))));
        drop(beside.spawn(fill::work(Arc::clone(&cache))));
        drop(background.spawn(upkeep::write(Arc::clone(&cache))));
        Ok(Some(Self { cache, beside, _background: background, _learning: learning }))
    }

    /// Has the results of an engine computed ahead, too, if it is configured to.
    pub(crate) fn ask_ahead(&self, engine: Weak<Shared>) {
        if self.cache.config.forecast {
            drop(self.beside.spawn(results::ask_ahead(engine)));
        }
    }
}

impl Drop for Reuse {
    fn drop(&mut self) {
        self.cache.save_history();
    }
}

/// Whether the session of this state uses the cache.
fn is_on(state: &SessionState) -> bool {
    state.config_options().extensions.get::<SessionCache>().is_none_or(|session| session.enabled)
}

/// What changes the meaning of expressions and is no part of the plan: see [`in_settings`].
fn settings(state: &SessionState) -> String {
    state
        .config_options()
        .execution
        .time_zone
        .as_ref()
        .map_or_else(String::new, |zone| format!("{TIME_ZONE}{zone}"))
}

/// Before the time zone in the settings of a join.
const TIME_ZONE: &str = "zone=";

/// The options under which expressions mean what they meant where these settings come from.
fn in_settings(options: &Arc<ConfigOptions>, settings: &str) -> Arc<ConfigOptions> {
    let zone = settings.strip_prefix(TIME_ZONE).map(str::to_owned);
    if options.execution.time_zone == zone {
        return Arc::clone(options);
    }
    let mut options = ConfigOptions::clone(options);
    options.execution.time_zone = zone;
    Arc::new(options)
}

/// Whether settings are of the form of today; an earlier build may have had another one.
fn are_known(settings: &str) -> bool {
    settings.is_empty() || settings.starts_with(TIME_ZONE)
}

fn log(what: &'static str, error: &DataFusionError) {
    metrics::counter!("bowshot_join_cache_errors_total", "what" => what).increment(1);
    tracing::warn!(what, error = error as &dyn std::error::Error, "the join cache steps aside");
}
