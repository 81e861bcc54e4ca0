//! Records plans with uncached joins in the background, so that their queries do not wait.

use super::JoinCache;
use super::lookup::View;
use chrono::{DateTime, Utc};
use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::Notify;

/// Most waiting plans; each holds the state of its tables.
const MAX_WAITING: usize = 64;

/// A running optimized plan, with what identifies its joins.
#[derive(Debug)]
pub(super) struct Sighting {
    pub(super) plan: LogicalPlan,
    pub(super) view: View,
    pub(super) at: DateTime<Utc>,
}

#[derive(Debug, Default)]
pub(super) struct Learner {
    waiting: Mutex<VecDeque<Sighting>>,
    /// Held while a plan is analysed.
    turn: Mutex<()>,
    more: Notify,
}

impl Learner {
    pub(super) fn push(&self, sighting: Sighting) -> Result<(), Box<Sighting>> {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= MAX_WAITING {
            return Err(Box::new(sighting));
        }
        waiting.push_back(sighting);
        drop(waiting);
        self.more.notify_one();
        Ok(())
    }
}

impl JoinCache {
    /// Analyses the waiting plans. Called before the history is read.
    pub(super) fn learn(&self) {
        // At least one turn: the last plan may be in progress.
        let waiting = self.learner.waiting.lock().len().max(1);
        (0..waiting).all(|_| self.learn_one());
    }

    /// Analyses one plan; whether there was one.
    fn learn_one(&self) -> bool {
        let _turn = self.learner.turn.lock();
        // A separate statement, so that the lock is released.
        let next = self.learner.waiting.lock().pop_front();
        let Some(sighting) = next else { return false };
        if catch_unwind(AssertUnwindSafe(|| self.learn_from(&sighting))).is_err() {
            tracing::error!("a plan could not be learned from");
        }
        true
    }
}

/// Analyses plans as long as the cache lives.
pub(super) async fn work(cache: Arc<JoinCache>) {
    loop {
        cache.learner.more.notified().await;
        while cache.learn_one() {
            tokio::task::yield_now().await;
        }
    }
}
