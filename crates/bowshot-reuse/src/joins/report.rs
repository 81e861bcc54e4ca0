//! What EXPLAIN says about the joins of a plan: which are read from the cache, and why others are not.

use super::JoinCache;
use super::block::{Reason, Shaped};
use super::lookup::Candidate;
use crate::cache::{CachedJoin, Mismatch};
use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::logical_expr::{Explain, LogicalPlan};
use std::sync::Arc;

/// What became of the joins of a plan, if somebody wants to know.
#[derive(Debug, Default)]
pub(super) struct Report {
    lines: Option<Vec<String>>,
}

impl Report {
    /// For somebody who wants to know.
    pub(super) fn wanted() -> Self {
        Self { lines: Some(Vec::new()) }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.lines.is_some()
    }

    pub(super) fn off(&mut self) {
        self.line(|| "not used: the session has set join_cache off".to_owned());
    }

    pub(super) fn hit(&mut self, shaped: &Shaped, join: &CachedJoin) {
        self.line(|| {
            let age = join.info.created.elapsed().unwrap_or_default().as_secs();
            let (names, id, rows) = (names(shaped), join.id, join.info.rows);
            format!("hit: {names} is read from join_cache_{id} ({rows} rows, computed {age} s ago)")
        });
    }

    pub(super) fn miss(&mut self, shaped: &Shaped, reason: impl FnOnce() -> String) {
        self.line(|| format!("miss: {} is computed: {}", names(shaped), reason()));
    }

    pub(super) fn refused(&mut self, reason: Reason) {
        self.line(|| format!("not cached: {reason}"));
    }

    /// The explained plan, with the joins in it that are read, and a line for each.
    pub(super) fn explain(self, mut explain: Explain, plan: Option<LogicalPlan>) -> Explain {
        if let Some(plan) = plan {
            explain.plan = Arc::new(plan);
        }
        let lines = self.lines.into_iter().flatten().map(|line| format!("JoinCache: {line}"));
        let text = lines.collect::<Vec<_>>().join("\n");
        if !text.is_empty() {
            explain.stringified_plans.push(StringifiedPlan::new(PlanType::FinalLogicalPlan, text));
        }
        explain
    }

    fn line(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(line());
        }
    }
}

impl JoinCache {
    /// Why a join is computed although there is a cache. It says nothing of values that others have compared with.
    pub(super) fn why_not(&self, candidate: &Candidate<'_>) -> String {
        self.learn();
        let Shaped { shape, conditions, columns, .. } = &candidate.shaped;
        if self.store.find(shape, conditions, columns).is_some() {
            return "a cached join has its rows, but several conditions on them may fail for rows that others take out"
                .to_owned();
        }
        if self.queue.is_at(shape) {
            return "it is being computed, or waits for that".to_owned();
        }
        let ((seen, too_large), enough) = (self.history.known(shape), self.config.fill_after);
        if too_large {
            return "it has more bytes than a cached join may have (half of `join_cache.memory_bytes`)"
                .to_owned();
        }
        match self.store.near(shape, conditions) {
            Some(Mismatch::Columns) => return "the cached one lacks columns that this query uses".to_owned(),
            Some(Mismatch::Conditions) => {
                return "the cached one lacks rows: it has conditions that this query does not have"
                    .to_owned();
            }
            Some(Mismatch::Version(name)) => {
                return format!("the cached one is of another version of `{}`", name.short());
            }
            None => {}
        }
        if candidate.cut {
            "only its first rows are wanted".to_owned()
        } else if seen < enough {
            format!("it was asked for {seen} times, and is cached after {enough} (`join_cache.fill_after`)")
        } else {
            "it is not in the cache".to_owned()
        }
    }
}

fn names(shaped: &Shaped) -> String {
    let names: Vec<String> =
        shaped.shape.tables.iter().map(|key| format!("`{}`", key.name.short())).collect();
    format!("the join of {}", names.join(", "))
}
