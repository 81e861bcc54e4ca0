//! Records plans with uncached joins in the background, so that their queries do not wait.

use super::JoinCache;
use super::lookup::View;
use chrono::{DateTime, Utc};
use datafusion::logical_expr::LogicalPlan;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Plans that may wait; each keeps the tables that it reads as they were.
const MAX_WAITING: usize = 64;

/// An optimised plan that runs, with what its joins are known by.
#[derive(Debug)]
pub(super) struct Sighting {
    pub(super) plan: LogicalPlan,
    pub(super) view: View,
    pub(super) at: DateTime<Utc>,
}

#[derive(Debug, Default)]
pub(super) struct Learner {
    waiting: Mutex<VecDeque<Sighting>>,
    /// Held while a plan is looked at.
    turn: Mutex<()>,
    more: Notify,
}

impl Learner {
    /// Takes a plan in.
    pub(super) fn push(&self, sighting: Sighting) -> Result<(), Box<Sighting>> {
        let mut waiting = self.lock();
        if waiting.len() >= MAX_WAITING {
            return Err(Box::new(sighting));
        }
        waiting.push_back(sighting);
        drop(waiting);
        self.more.notify_one();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Sighting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JoinCache {
    /// Learns from the plans that wait at this moment. Whoever shows the history or acts on it calls this before.
    pub(super) fn learn(&self) {
        // At least one turn: the last plan may be in work.
        let waiting = self.learner.lock().len().max(1);
        (0..waiting).all(|_| self.learn_one());
    }

    /// Learns from one plan; whether there was one.
    fn learn_one(&self) -> bool {
        let _turn = self.learner.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // A statement of its own: the lock is not held while the plan is looked at.
        let next = self.learner.lock().pop_front();
        let Some(sighting) = next else { return false };
        if catch_unwind(AssertUnwindSafe(|| self.learn_from(&sighting))).is_err() {
            tracing::error!("a plan could not be learned from");
        }
        true
    }
}

/// Learns for as long as the cache is there.
pub(super) async fn work(cache: Arc<JoinCache>) {
    loop {
        cache.learner.more.notified().await;
        while cache.learn_one() {
            tokio::task::yield_now().await;
        }
    }
}
