//! Statements about the caches: `CALL result_cache_clear()`, `CALL join_cache_warm('SELECT …')` and others.

use super::Caches;
use bowshot_api::{Error, Result};
use bowshot_engine::reuse::is_off;
use bowshot_sql::CacheStatement;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;

/// Whether the cache is on that a statement is about.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check(caches: &Caches, statement: &CacheStatement) -> Result<()> {
    let is_on = match statement {
        CacheStatement::ClearResults => caches.results.is_some(),
        CacheStatement::Warm(_)
        | CacheStatement::Pin(_)
        | CacheStatement::Unpin(_)
        | CacheStatement::Drop(_)
        | CacheStatement::Clear => caches.joins.is_some(),
    };
    if is_on { Ok(()) } else { Err(is_off(statement)) }
}

/// Runs a statement about the caches. `query` is the optimised plan of the one that it has, and what it is planned with.
///
/// # Errors
/// `NotFound` for an unknown id, `Unsupported` without the cache.
pub(crate) async fn run(
    caches: &Caches,
    statement: &CacheStatement,
    query: Option<(LogicalPlan, SessionState)>,
) -> Result<()> {
    if *statement == CacheStatement::ClearResults {
        let results = Arc::clone(caches.results.as_ref().ok_or_else(|| is_off(statement))?);
        let cleared = tokio::task::spawn_blocking(move || results.clear()).await;
        return cleared.map_err(|_| Error::internal("the cache of results could not be cleared"));
    }
    let cache = &caches.joins.as_ref().ok_or_else(|| is_off(statement))?.cache;
    match statement {
        CacheStatement::Warm(_) => {
            let (plan, state) = query.ok_or_else(|| Error::internal("the query of a warm-up is missing"))?;
            cache.warm(&plan, &state)
        }
        CacheStatement::Pin(id) => cache.pin(*id, true),
        CacheStatement::Unpin(id) => cache.pin(*id, false),
        CacheStatement::Drop(id) => cache.drop_join(*id),
        CacheStatement::Clear => {
            cache.clear();
            Ok(())
        }
        CacheStatement::ClearResults => Ok(()),
    }
}
