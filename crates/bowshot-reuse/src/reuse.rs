//! The caches of one engine: implements the engine's `Reuse`.

use crate::joins::{self, JoinCacheConfig, Joins};
use crate::results::{self, ResultCache, ResultCacheConfig};
use async_trait::async_trait;
use bowshot_api::{Error, Result};
use bowshot_engine::reuse::{Answer, Form, Purpose, Query, Reuse, is_off};
use bowshot_engine::{Engine, EngineConfig, RuntimeEnv, Sources, WeakEngine};
use bowshot_sql::CacheStatement;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Explain, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// What the caches may take, and when they compute.
#[derive(Debug, Clone, Default)]
pub struct ReuseConfig {
    pub joins: JoinCacheConfig,
    pub results: ResultCacheConfig,
}

/// An engine with the caches of a configuration; a scratch engine has none.
pub fn start(
    config: &ReuseConfig,
    (engine, environment): (&EngineConfig, Arc<RuntimeEnv>),
    sources: Sources,
) -> Result<Engine> {
    let mut caches = None;
    let engine = Engine::with_reuse(engine, environment, sources, |base| {
        let joins = Joins::start(&config.joins, base)?;
        let results = ResultCache::new(&config.results, base.tables);
        let started = Arc::new(Caches { joins, results });
        caches = Some(Arc::clone(&started));
        Ok(started)
    })?;
    if let Some(caches) = caches {
        caches.ask_ahead(engine.downgrade());
    }
    Ok(engine)
}

#[derive(Debug)]
pub(crate) struct Caches {
    pub(crate) joins: Option<Joins>,
    pub(crate) results: Option<Arc<ResultCache>>,
}

impl Caches {
    /// Has results computed ahead, too, if that is configured. It does not keep the engine from ending.
    fn ask_ahead(&self, engine: WeakEngine) {
        if let (Some(joins), Some(results)) = (&self.joins, &self.results)
            && joins.cache.config.forecast
        {
            joins.watch_over(results::ask_ahead(engine, Arc::clone(&joins.cache), Arc::clone(results)));
        }
    }
}

/// The tables of `system` that tell about caches, whether these are on or not.
const TABLES: [&str; 4] = [joins::FORECASTS, joins::TABLE, joins::HISTORY, results::TABLE];

#[async_trait]
impl Reuse for Caches {
    async fn answer(&self, query: Query<'_>) -> Answer {
        let Some(results) = &self.results else { return Answer::Unknown };
        // The time in which what is asked ahead steps aside is no part of what it costs.
        let joins = self.joins.as_ref().filter(|_| query.purpose == Purpose::Show);
        results.answer(query, joins.map(|joins| &joins.cache.throttle)).await
    }

    async fn substitute(&self, plan: LogicalPlan, state: &SessionState, purpose: Purpose) -> LogicalPlan {
        match &self.joins {
            Some(joins) => joins.cache.substitute(plan, state, purpose).await,
            None => plan,
        }
    }

    fn explained(
        &self,
        shown: Arc<dyn ExecutionPlan>,
        explain: &Explain,
        (state, form): (&SessionState, Form),
    ) -> Arc<dyn ExecutionPlan> {
        match &self.results {
            Some(results) => results.explained(shown, explain, (state, form)),
            None => shown,
        }
    }

    fn remembers_texts(&self) -> bool {
        self.joins.is_some() && self.results.is_some()
    }

    fn tables(&self) -> &'static [&'static str] {
        &TABLES
    }

    fn rows(&self, table: &str) -> Option<Result<RecordBatch>> {
        if table == results::TABLE {
            return Some(results::rows(self.results.as_deref()));
        }
        joins::rows(self.joins.as_ref().map(|joins| joins.cache.as_ref()), table)
    }

    fn check(&self, statement: &CacheStatement) -> Result<()> {
        let is_on = match statement {
            CacheStatement::ClearResults => self.results.is_some(),
            _ => self.joins.is_some(),
        };
        if is_on { Ok(()) } else { Err(is_off(statement)) }
    }

    async fn control(
        &self,
        statement: &CacheStatement,
        query: Option<(LogicalPlan, SessionState)>,
    ) -> Result<()> {
        if *statement == CacheStatement::ClearResults {
            let results = Arc::clone(self.results.as_ref().ok_or_else(|| is_off(statement))?);
            let cleared = tokio::task::spawn_blocking(move || results.clear()).await;
            return cleared.map_err(|_| Error::internal("the cache of results could not be cleared"));
        }
        let cache = &self.joins.as_ref().ok_or_else(|| is_off(statement))?.cache;
        match statement {
            CacheStatement::Warm(_) => {
                let (plan, state) =
                    query.ok_or_else(|| Error::internal("the query of a warm-up is missing"))?;
                cache.warm(&plan, &state)?;
            }
            CacheStatement::Pin(id) => cache.pin(*id, true)?,
            CacheStatement::Unpin(id) => cache.pin(*id, false)?,
            CacheStatement::Drop(id) => cache.drop_join(*id)?,
            CacheStatement::Clear | CacheStatement::ClearResults => cache.clear(),
        }
        Ok(())
    }
}
