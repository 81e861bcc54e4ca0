//! Statements that change the join cache.

use super::JoinCache;
use super::queue::Job;
use bowshot_api::{Error, ErrorKind, Result};
use chrono::Utc;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;

/// Rank of joins that a statement requests: before all others.
const FIRST: f64 = f64::MAX;

impl JoinCache {
    /// Puts the joins of an optimized plan at the front of the queue.
    pub(crate) fn warm(self: &Arc<Self>, plan: &LogicalPlan, state: &SessionState) -> Result<()> {
        self.learn();
        let orders = self.orders(plan, state, Utc::now());
        if orders.is_empty() {
            return Err(Error::invalid("the query has no join that can be cached")
                .with_hint("EXPLAIN says why each join is not"));
        }
        for order in orders {
            self.queue.push(Job { order, rank: FIRST, forecast: true });
        }
        Ok(())
    }

    pub(crate) fn pin(&self, id: u64, pinned: bool) -> Result<()> {
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

    /// Drops a join and its history: otherwise it would be computed again.
    pub(crate) fn drop_join(&self, id: u64) -> Result<()> {
        self.learn();
        let join = self.store.all().into_iter().find(|join| join.id == id).ok_or_else(|| unknown(id))?;
        let shape = &join.about.shape;
        self.history.forget(shape);
        self.queue.forget(shape);
        self.watch.forget(shape);
        self.store.remove_versions_of(shape);
        Ok(())
    }

    /// Drops all joins and the history.
    pub(crate) fn clear(&self) {
        self.learn();
        self.watch.clear();
        self.history.clear();
        self.queue.clear();
        self.store.remove_all(|_| true);
    }
}

fn unknown(id: u64) -> Error {
    Error::not_found(format!("cached join {id} not found"))
        .with_hint("`SELECT id, tables FROM system.join_cache`")
}
