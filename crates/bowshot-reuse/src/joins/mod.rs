//! The join cache: joins of an optimized plan that are cached are read instead of computed, between the logical optimizer and physical
//! planning (decision 6). [`prefilter`] rules most plans out; [`block`] finds tables, conditions and columns; [`substitute`] replaces a join
//! by a scan of its cached rows; [`codes`] replaces texts by numbers. Misses go into the history ([`learner`]); [`maintenance`] decides what
//! [`computation`] computes in the background.

mod block;
mod codes;
mod computation;
mod control;
mod expression_text;
mod history_file;
mod learner;
mod lookup;
mod maintenance;
mod plan_builder;
mod prefilter;
mod queue;
mod report;
mod rows;
mod substitute;
mod tables;

pub(crate) use tables::{FORECASTS, HISTORY, TABLE, rows};

use crate::background::{self, Handoff, Throttle, ThrottleRule};
use crate::cache::{Budget, History, JoinStore, TableName};
use crate::keys::Sources;
use crate::lineage;
use bowshot_api::Result;
use bowshot_engine::Base;
use bowshot_engine::internals::classify;
use bowshot_query_task::QueryRuntime;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use history_file::Saved;
use learner::Learner;
use maintenance::Watch;
use parking_lot::Mutex;
use queue::Queue;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

bowshot_api::defaults! {
    /// What the join cache may take and when it computes.
    #[derive(Debug, Clone)]
    pub struct JoinCacheConfig {
        /// Whether there is one.
        pub enabled: bool = false,
        /// Bytes of rows in memory; as much again while a join is computed.
        pub memory_bytes: u64 = 2 << 30,
        /// Bytes of files.
        pub disk_bytes: u64 = 16 << 30,
        /// Folder of the files; without one nothing leaves memory for the disk, and nothing survives a restart.
        pub folder: Option<PathBuf> = None,
        /// A join is computed for the cache when it, or one like it, is asked for so many times.
        pub fill_after: u64 = 2,
        /// How long a query waits for a join that is being computed for the cache, before it computes it itself.
        pub wait: Duration = Duration::ZERO,
        /// Whether joins are computed before they are asked for.
        pub forecast: bool = true,
        /// Templates of joins that are remembered.
        pub history: usize = 1_000,
        /// Longest computation of one join.
        pub fill_timeout: Duration = Duration::from_secs(60 * 60),
        /// Percent of one processor that computing ahead takes at most while queries run.
        pub busy_percent: usize = 10,
    }
}

/// The join cache of an engine, without the threads that fill it.
#[derive(Debug)]
pub(crate) struct JoinCache {
    pub(crate) config: JoinCacheConfig,
    store: Arc<JoinStore>,
    history: History,
    saved: Mutex<Saved>,
    queue: Queue,
    learner: Learner,
    watch: Watch,
    /// The tables as they are committed.
    pub(crate) sources: Sources,
    /// Threads that get the processor when they want it.
    queries: Handle,
    /// What joins are computed with: its memory is apart from that of queries.
    state: SessionState,
    pub(crate) throttle: Arc<Throttle>,
    /// Where work begins that the lowest priority may hold up.
    pub(crate) handoff: Handoff,
}

impl JoinCache {
    /// The environment with the memory that joins are computed in.
    pub(crate) fn environment(&self) -> Arc<RuntimeEnv> {
        Arc::clone(self.state.runtime_env())
    }

    /// What makes plans wait while queries run.
    pub(crate) fn throttle_rule(&self) -> Arc<ThrottleRule> {
        Arc::new(ThrottleRule(Arc::clone(&self.throttle)))
    }

    /// Whether a join is being computed, or waits for that.
    pub(crate) fn is_busy(&self) -> bool {
        self.queue.is_busy()
    }

    /// The tables that there were at the last look; none before the first.
    pub(crate) fn known_tables(&self) -> HashSet<TableName> {
        self.watch.tables()
    }
}

/// A cache and what fills it, which ends with it.
#[derive(Debug)]
pub(crate) struct Joins {
    pub(crate) cache: Arc<JoinCache>,
    /// Where jobs are handed out and looked after, and those are done that the lowest priority holds up.
    beside: QueryRuntime,
    _background: QueryRuntime,
    _learning: QueryRuntime,
}

impl Joins {
    /// A cache that is filled in the background, if it is enabled.
    pub(crate) fn start(config: &JoinCacheConfig, base: &Base<'_>) -> Result<Option<Self>> {
        if !config.enabled {
            return Ok(None);
        }
        let budget = Budget {
            memory_bytes: config.memory_bytes,
            disk_bytes: config.disk_bytes,
            folder: config.folder.clone(),
        };
        let queries = base.queries.clone();
        let throttle = Arc::new(Throttle::new(queries.clone(), config.busy_percent));
        let state = computation::state(base.template, config, &throttle).map_err(classify)?;
        let background = started(background::background())?;
        let cache = Arc::new(JoinCache {
            config: config.clone(),
            store: Arc::new(JoinStore::open(budget)),
            history: History::new(config.history),
            saved: Mutex::default(),
            queue: Queue::default(),
            learner: Learner::default(),
            watch: Watch::default(),
            sources: Sources { main: Arc::clone(base.main), tables: Arc::clone(base.tables) },
            queries,
            state,
            handoff: Handoff::new(background.handle().clone(), Arc::clone(&throttle)),
            throttle,
        });
        lineage::keep_current(&cache.store, base.tables);
        cache.restore_history();
        let beside = started(background::beside())?;
        // Learning has a thread of its own: it neither waits for a long step nor counts as work on joins. One of the lowest
        // priority, since it begins when a query does: with an ordinary one TPC-H took 1.04 times as long.
        let learning = started(background::background())?;
        // The runtimes own them; they end with them.
        drop(learning.spawn(learner::work(Arc::clone(&cache))));
        drop(beside.spawn(maintenance::work(Arc::clone(&cache))));
        drop(beside.spawn(computation::work(Arc::clone(&cache))));
        drop(background.spawn(maintenance::write(Arc::clone(&cache))));
        Ok(Some(Self { cache, beside, _background: background, _learning: learning }))
    }

    /// Does work that hands out jobs, for as long as the cache is there.
    pub(crate) fn watch_over(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.beside.spawn(work));
    }
}

impl Drop for Joins {
    fn drop(&mut self) {
        self.cache.save_history();
    }
}

fn started(runtime: io::Result<QueryRuntime>) -> Result<QueryRuntime, bowshot_engine::Error> {
    runtime.map_err(bowshot_engine::Error::Runtime)
}

fn log(what: &'static str, error: &DataFusionError) {
    metrics::counter!("bowshot_join_cache_errors_total", "what" => what).increment(1);
    tracing::warn!(what, error = error as &dyn std::error::Error, "the join cache steps aside");
}
