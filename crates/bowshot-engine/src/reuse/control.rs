//! Statements about the caches: `CALL result_cache_clear()`, `CALL join_cache_warm('SELECT …')`, `CALL join_cache_pin(id)`,
//! `CALL join_cache_unpin(id)`, `CALL join_cache_drop(id)`, `CALL join_cache_clear()`.

use super::JoinCache;
use super::queue::Job;
use crate::enforce::Action;
use crate::error::classify;
use crate::pinned::Pinned;
use crate::plan;
use crate::session::EngineSession;
use bowshot_api::{Error, ErrorKind, Result};
use chrono::Utc;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use std::sync::Arc;

/// Rank of what somebody asks for by a statement: before everything else.
const FIRST: f64 = f64::MAX;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheStatement {
    /// Has the joins of a query computed, whatever the history says.
    Warm(String),
    /// Keeps a join whatever it is worth.
    Pin(u64),
    /// Ends that.
    Unpin(u64),
    /// Forgets a join.
    Drop(u64),
    /// Forgets all joins and the history.
    Clear,
    /// Forgets all results.
    ClearResults,
}

/// The statement, if the text is one of these.
///
/// # Errors
/// `Syntax` for one that is not complete.
pub(crate) fn recognise(sql: &str, dialect: &dyn Dialect) -> Result<Option<CacheStatement>> {
    let [call, name] = plan::first_words(sql);
    let about_caches = name.starts_with("join_cache_") || name.starts_with("result_cache_");
    if call != "call" || !about_caches || !plan::begins_with(sql, &call, dialect) {
        return Ok(None);
    }
    parse(sql, dialect).map(Some).map_err(|error| {
        Error::new(ErrorKind::Syntax, format!("syntax error: {error}")).with_hint(
            "write `CALL join_cache_warm('SELECT …')`, `join_cache_pin(id)`, `join_cache_unpin(id)`, \
             `join_cache_drop(id)`, `join_cache_clear()` or `result_cache_clear()`; ids are in `system.join_cache`",
        )
    })
}

fn parse(sql: &str, dialect: &dyn Dialect) -> std::result::Result<CacheStatement, ParserError> {
    let mut parser = Parser::new(dialect).try_with_sql(sql)?;
    parser.next_token();
    let name = parser.parse_identifier()?.value.to_ascii_lowercase();
    parser.expect_token(&Token::LParen)?;
    let statement = match name.as_str() {
        "join_cache_warm" => CacheStatement::Warm(parser.parse_literal_string()?),
        "join_cache_pin" => CacheStatement::Pin(parser.parse_literal_uint()?),
        "join_cache_unpin" => CacheStatement::Unpin(parser.parse_literal_uint()?),
        "join_cache_drop" => CacheStatement::Drop(parser.parse_literal_uint()?),
        "join_cache_clear" => CacheStatement::Clear,
        "result_cache_clear" => CacheStatement::ClearResults,
        other => return Err(ParserError::ParserError(format!("`{other}` is not known"))),
    };
    parser.expect_token(&Token::RParen)?;
    let _ = parser.consume_token(&Token::SemiColon);
    match parser.next_token().token {
        Token::EOF => Ok(statement),
        other => Err(ParserError::ParserError(format!("`{other}` was not expected"))),
    }
}

impl EngineSession {
    /// Runs a statement about the caches. To be called on the query runtime.
    ///
    /// # Errors
    /// `NotFound` for an unknown id, `Unsupported` without a cache, and from planning the query of a warm-up.
    pub async fn steer_cache(&self, statement: &CacheStatement, pinned: &Pinned) -> Result<()> {
        if *statement == CacheStatement::ClearResults {
            let results = self.results().ok_or_else(|| {
                Error::unsupported("the cache of results is off")
                    .with_hint("set `result_cache.memory_bytes` in the server's configuration")
            })?;
            let results = Arc::clone(results);
            let cleared = tokio::task::spawn_blocking(move || results.clear()).await;
            return cleared.map_err(|_| Error::internal("the cache of results could not be cleared"));
        }
        let Some(cache) = self.cache() else {
            return Err(Error::unsupported("the join cache is off")
                .with_hint("set `join_cache.enabled` to true in the server's configuration"));
        };
        match statement {
            CacheStatement::Warm(sql) => {
                let plan = self.plan(sql, pinned).await?;
                if !matches!(plan.action(), Action::Query) {
                    return Err(Error::invalid("only queries can be prepared for"));
                }
                let state = self.state(pinned);
                let optimised = state.optimize(plan.planned().plan()).map_err(classify)?;
                cache.warm(&optimised, &state)
            }
            CacheStatement::Pin(id) => cache.pin(*id, true),
            CacheStatement::Unpin(id) => cache.pin(*id, false),
            CacheStatement::Drop(id) => {
                cache.learn();
                cache.drop_join(*id)
            }
            CacheStatement::ClearResults => Ok(()),
            CacheStatement::Clear => {
                cache.learn();
                cache.watch.clear();
                cache.history.clear();
                cache.queue.clear();
                cache.store.all().iter().for_each(|join| {
                    cache.store.remove(join.id);
                });
                Ok(())
            }
        }
    }
}

impl JoinCache {
    /// Puts the joins of an optimised plan at the front of the queue.
    fn warm(self: &Arc<Self>, plan: &LogicalPlan, state: &SessionState) -> Result<()> {
        self.learn();
        let orders = self.orders(plan, state, Utc::now());
        if orders.is_empty() {
            return Err(Error::invalid("the query has no join that can be cached")
                .with_hint("EXPLAIN says why each join is not"));
        }
        for order in orders {
            let generation = self.watch.generation();
            self.queue.push(Job { order, rank: FIRST, forecast: true, generation });
        }
        Ok(())
    }

    fn pin(&self, id: u64, pinned: bool) -> Result<()> {
        match self.store.pin(id, pinned) {
            Ok(true) => Ok(()),
            Ok(false) => Err(unknown(id)),
            Err(_) => Err(Error::new(
                ErrorKind::LimitReached,
                "pinned joins may take half of the join cache's memory, and this one does not fit beside the others",
            )
            .with_hint("`CALL join_cache_unpin(id)` for another one, or raise `join_cache.memory_bytes`")),
        }
    }

    /// Forgets a join, and that it was asked for: otherwise it would come back by itself.
    fn drop_join(&self, id: u64) -> Result<()> {
        let join = self.store.all().into_iter().find(|join| join.id == id).ok_or_else(|| unknown(id))?;
        let shape = &join.about.shape;
        self.history.forget(shape);
        let running = self.queue.forget(shape);
        self.watch.forget(shape, running);
        self.store.remove_versions_of(shape);
        Ok(())
    }
}

fn unknown(id: u64) -> Error {
    Error::not_found(format!("cached join {id} not found"))
        .with_hint("`SELECT id, tables FROM system.join_cache`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    #[test]
    fn calls_are_recognised_and_others_are_left_alone() {
        let read = |sql| recognise(sql, &GenericDialect {}).map_err(|error| error.kind());
        assert_eq!(read("call JOIN_CACHE_DROP(7);"), Ok(Some(CacheStatement::Drop(7))));
        assert_eq!(read(" CALL join_cache_clear()"), Ok(Some(CacheStatement::Clear)));
        let warm = CacheStatement::Warm("SELECT 'a'".to_owned());
        assert_eq!(read("CALL join_cache_warm('SELECT ''a''')"), Ok(Some(warm)));
        assert_eq!(read("CALL result_cache_clear()"), Ok(Some(CacheStatement::ClearResults)));
        assert_eq!(read("CALL other(7)"), Ok(None));
        assert_eq!(read("SELECT 1"), Ok(None));
        assert_eq!(read("CALL join_cache_drop('x')"), Err(ErrorKind::Syntax));
        assert_eq!(read("CALL join_cache_nothing()"), Err(ErrorKind::Syntax));
    }
}
