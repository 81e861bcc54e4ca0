//! What the engine asks of caches: [`Reuse`]. It calls them on the road of a query and knows nothing else of them;
//! `bowshot-reuse` has them. An engine without any ([`NoReuse`]) gives the same answers, each computed.
//!
use crate::execute::{Execution, Parallelism};
use async_trait::async_trait;
use bowshot_api::{BatchStream, Error, Layout, Principal, Result};
use bowshot_sql::CacheStatement;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::extensions_options;
use datafusion::config::ConfigExtension;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{Explain, LogicalPlan};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use std::fmt;
use std::sync::Arc;

/// In what form a result goes to its client.
pub type Form = (Layout, Parallelism);

/// Keeps what was computed, and gives it instead of having it computed again. Whatever goes wrong in it, it gives what it
/// would give if it had nothing.
#[async_trait]
pub trait Reuse: fmt::Debug + Send + Sync {
    /// Whether the result of a query is there, or worth keeping.
    async fn answer(&self, _query: Query<'_>) -> Answer {
        Answer::Unknown
    }

    /// An optimised plan with what is there in the place of what would compute it: the same columns, the same rows. Of
    /// EXPLAIN, the plan that is explained.
    async fn substitute(&self, plan: LogicalPlan, _state: &SessionState, _purpose: Purpose) -> LogicalPlan {
        plan
    }

    /// What EXPLAIN shows, with what there is to say about the result of the query that it explains. `explain` is not
    /// optimised.
    fn explained(
        &self,
        shown: Arc<dyn ExecutionPlan>,
        _explain: &Explain,
        _session: (&SessionState, Form),
    ) -> Arc<dyn ExecutionPlan> {
        shown
    }

    /// Whether [`Query::asked`] is of use.
    fn remembers_texts(&self) -> bool {
        false
    }

    /// Its tables in schema `system`.
    fn tables(&self) -> &'static [&'static str] {
        &[]
    }

    /// The rows of one of these.
    fn rows(&self, _table: &str) -> Option<Result<RecordBatch>> {
        None
    }

    /// Whether there is the cache that a statement is about.
    ///
    /// # Errors
    /// `Unsupported` for one that is off.
    fn check(&self, statement: &CacheStatement) -> Result<()>;

    /// Does what a statement says, once it is checked. `query` is the optimised plan of the query that it is about, with
    /// the settings of its session. On the query runtime.
    ///
    /// # Errors
    /// `NotFound` and the like; `Unsupported` for what is off.
    async fn control(
        &self,
        statement: &CacheStatement,
        query: Option<(LogicalPlan, SessionState)>,
    ) -> Result<()>;
}

/// Nothing is kept.
#[derive(Debug)]
pub struct NoReuse;

#[async_trait]
impl Reuse for NoReuse {
    fn check(&self, statement: &CacheStatement) -> Result<()> {
        Err(is_off(statement))
    }

    async fn control(
        &self,
        statement: &CacheStatement,
        _: Option<(LogicalPlan, SessionState)>,
    ) -> Result<()> {
        Err(is_off(statement))
    }
}

/// A query that is authorised, has its parameters bound, and is not optimised.
#[derive(Debug)]
pub struct Query<'a> {
    /// The plan.
    pub plan: &'a LogicalPlan,
    /// The settings of its session.
    pub state: &'a SessionState,
    /// How its result is wanted.
    pub form: Form,
    /// What was asked, if it may be asked again with other tables.
    pub asked: Option<Asked>,
    /// Why it runs.
    pub purpose: Purpose,
}

/// Why a plan is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It runs for somebody: what it reads is remembered.
    Run,
    /// It is only shown, or runs before anybody asks.
    Show,
}

/// The text of a query, with who asks it and how.
#[derive(Clone)]
pub struct Asked {
    /// The text, as it was sent.
    pub text: Arc<str>,
    /// Who asks.
    pub principal: Principal,
    /// The settings of the session.
    pub config: SessionConfig,
    /// How the result is laid out.
    pub layout: Layout,
}

// Texts may hold somebody's secrets.
bowshot_api::debug_fields!(Asked { principal });

/// What is known of the result of a query.
pub enum Answer {
    /// It is there.
    Known(Execution),
    /// It is to be computed, and given to this before it goes on.
    Wanted(Recorder),
    /// It is to be computed.
    Unknown,
}

/// Takes streams that are about to run, and gives the same streams, whose rows are looked at on their way.
pub type Recorder = Box<dyn FnOnce(Computed) -> Vec<BatchStream> + Send>;

/// A query that is about to run. Its plan has fixed which rows of its tables it reads.
#[derive(Debug)]
pub struct Computed {
    /// One stream for each partition.
    pub streams: Vec<BatchStream>,
    /// Of each of them.
    pub schema: SchemaRef,
    /// Whether the query asks for an order.
    pub ordered: bool,
    /// How many rows there will be, as far as that is known.
    pub rows: Option<u64>,
}

/// What queries run with that nobody waits for.
#[derive(Debug)]
pub struct Background {
    /// Memory apart from that of other queries.
    pub environment: Arc<RuntimeEnv>,
    /// The last rule of the physical optimiser.
    pub rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

/// The error of a statement about a cache that is off.
pub fn is_off(statement: &CacheStatement) -> Error {
    if *statement == CacheStatement::ClearResults {
        Error::unsupported("the cache of results is off")
            .with_hint("set `result_cache.memory_bytes` in the server's configuration")
    } else {
        Error::unsupported("the join cache is off")
            .with_hint("set `join_cache.enabled` to true in the server's configuration")
    }
}

extensions_options! {
    /// What one session says about caches.
    pub struct SessionCache {
        /// Whether its queries use and fill the join cache.
        pub enabled: bool, default = true
        /// Whether its queries are answered with results that are kept, and their results are.
        pub results: bool, default = true
        /// Whether its queries look rows up by the index of a key.
        pub key_lookups: bool, default = true
        /// Whether plans of its queries are used again.
        pub plans: bool, default = true
        /// Whether its queries are answered from materialized views that they do not name.
        pub materialized_views: bool, default = true
        /// How old the rows of these may be, in milliseconds.
        pub max_staleness_ms: u64, default = 0
    }
}

impl ConfigExtension for SessionCache {
    const PREFIX: &'static str = "bowshot_cache";
}

/// The key of [`SessionCache::enabled`] among the engine's options.
pub const SESSION_CACHE: &str = "bowshot_cache.enabled";
/// The same of [`SessionCache::results`].
pub const SESSION_RESULTS: &str = "bowshot_cache.results";
/// The same of [`SessionCache::key_lookups`].
pub const SESSION_KEY_LOOKUPS: &str = "bowshot_cache.key_lookups";
/// The same of [`SessionCache::plans`].
pub const SESSION_PLANS: &str = "bowshot_cache.plans";
/// The same of [`SessionCache::materialized_views`].
pub const SESSION_VIEWS: &str = "bowshot_cache.materialized_views";
/// The same of [`SessionCache::max_staleness_ms`].
pub const SESSION_STALENESS: &str = "bowshot_cache.max_staleness_ms";
