//! Joins that wait to be computed, by the time that they save. The queue is bounded.

use crate::cache::{JoinShape, Order};
use parking_lot::Mutex;
use tokio::sync::Notify;

const MAX_WAITING: usize = 64;

/// A join to be computed.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) order: Order,
    pub(super) rank: f64,
    /// Whether nobody has asked for it yet.
    pub(super) forecast: bool,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    jobs: Mutex<Jobs>,
    more: Notify,
    /// Told at the end of each computation.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Jobs {
    waiting: Vec<Job>,
    /// The one that is being computed.
    current: Option<Job>,
    /// Whether that one is to be thrown away.
    cancelled: bool,
}

impl Queue {
    /// Adds a join, or makes the one that waits wider. The least one leaves a full queue.
    pub(super) fn push(&self, job: Job) {
        let mut jobs = self.jobs.lock();
        // What is at work already is looked at again when it has come to its end.
        if !jobs.cancelled && jobs.current.as_ref().is_some_and(|at| at.order == job.order) {
            return;
        }
        let waiting = &mut jobs.waiting;
        let same = waiting.iter_mut().find(|other| other.order.is_like(&job.order));
        match same {
            Some(other) => *other = Job { rank: job.rank.max(other.rank), ..job },
            None => waiting.push(job),
        }
        waiting.sort_by(|one, other| other.rank.total_cmp(&one.rank));
        waiting.truncate(MAX_WAITING);
        drop(jobs);
        self.more.notify_one();
    }

    /// Waits until there is a join.
    pub(super) async fn filled(&self) {
        while self.jobs.lock().waiting.is_empty() {
            self.more.notified().await;
        }
    }

    /// The next join, if there is one. It counts as being computed until [`Queue::end`].
    pub(super) fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        if jobs.waiting.is_empty() {
            return None;
        }
        let job = jobs.waiting.remove(0);
        (jobs.current, jobs.cancelled) = (Some(job.clone()), false);
        Some(job)
    }

    /// The computation is over, whatever came of it.
    pub(super) fn end(&self) {
        self.jobs.lock().current = None;
        self.ended.notify_waiters();
    }

    /// Waits until a join is neither computed nor waiting for that.
    pub(super) async fn wait(&self, order: &Order) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // From here on no end is missed.
            ended.as_mut().enable();
            {
                let jobs = self.jobs.lock();
                if jobs.current.as_ref().is_none_or(|job| job.order != *order)
                    && jobs.waiting.iter().all(|job| job.order != *order)
                {
                    return;
                }
            }
            ended.await;
        }
    }

    /// Forgets the orders of a join, and has what is computed of them thrown away.
    pub(super) fn forget(&self, shape: &JoinShape) {
        let mut jobs = self.jobs.lock();
        jobs.waiting.retain(|job| !job.order.is_of(shape));
        let is_running = jobs.current.as_ref().is_some_and(|job| job.order.is_of(shape));
        jobs.cancelled |= is_running;
        self.ended.notify_waiters();
    }

    /// Forgets all orders, and has what is being computed thrown away.
    pub(super) fn clear(&self) {
        let mut jobs = self.jobs.lock();
        jobs.waiting.clear();
        jobs.cancelled = true;
        self.ended.notify_waiters();
    }

    /// Whether what is being computed is to be thrown away.
    pub(super) fn is_cancelled(&self) -> bool {
        self.jobs.lock().cancelled
    }

    /// Whether a join is being computed, or waits for that.
    pub(super) fn is_busy(&self) -> bool {
        let jobs = self.jobs.lock();
        jobs.current.is_some() || !jobs.waiting.is_empty()
    }

    /// Whether a join that has all rows of this one is being computed, or waits for that.
    pub(super) fn is_at(&self, shape: &JoinShape) -> bool {
        let (jobs, filters) = (self.jobs.lock(), shape.tree.filters());
        let mut orders = jobs.waiting.iter().chain(&jobs.current).map(|job| &job.order);
        orders.any(|order| order.is_of(shape) && order.tree.filters().is_subset(&filters))
    }

    /// What waits, the next one first.
    pub(super) fn waiting(&self) -> Vec<Job> {
        self.jobs.lock().waiting.clone()
    }
}
