//! Whole results: a query that was asked before, over tables that hold what they held then, is answered from memory.
//!
//! The place is before the optimiser, so that a hit costs neither planning nor running. [`key`] says what a query is and
//! what its tables hold, [`recording`] takes the rows on their way to the client, [`store`] keeps them within a budget.
//!
//! A result belongs to the authorised plan: whatever a reader may not see is not in the plan, or stands in it as
//! conditions, so readers who may see different things never ask for the same result.

mod key;
mod recording;
mod store;
#[cfg(test)]
mod tests;

use super::{SessionCache, tables};
use crate::about_tables::batch;
use crate::execute::Execution;
use crate::progress::ProgressMeter;
use bowshot_api::{BatchStream, Layout};
use bowshot_storage::tables::TableStore;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use key::Question;
pub(crate) use recording::Recording;
use std::sync::Arc;
use store::{KeptResult, Store};

/// The table of `system` that is made here.
pub(crate) const NAME: &str = "result_cache";

/// The results that an engine keeps.
#[derive(Debug)]
pub(crate) struct ResultCache {
    store: Arc<Store>,
    tables: Arc<TableStore>,
}

/// What is known of the result of a query.
pub(crate) enum Answer {
    /// It is there.
    Kept(Execution),
    /// It is to be computed, and may be kept.
    Missing(Box<Recording>),
    /// It is to be computed each time.
    Never,
}

impl ResultCache {
    /// A cache of so many bytes; none of 0.
    pub(crate) fn new(memory_bytes: u64, tables: &Arc<TableStore>) -> Option<Arc<Self>> {
        let store = || Arc::new(Store::new(memory_bytes));
        (memory_bytes > 0).then(|| Arc::new(Self { store: store(), tables: Arc::clone(tables) }))
    }

    /// The answer to a plan that is authorised, has its parameters bound, and is not optimised.
    pub(crate) fn answer(&self, plan: &LogicalPlan, state: &SessionState, layout: Layout) -> Answer {
        if !is_on(state) {
            return Answer::Never;
        }
        let Ok(question) = Question::of(plan, state, layout, &self.tables.snapshot()) else {
            return Answer::Never;
        };
        match self.store.find(&question).filter(|_| question.still_holds()) {
            Some(kept) => {
                self.store.hit(&kept);
                Answer::Kept(kept.execution(state.config().target_partitions()))
            }
            None => {
                metrics::counter!("bowshot_result_cache_misses_total").increment(1);
                Answer::Missing(Box::new(Recording::new(question, Arc::clone(&self.store))))
            }
        }
    }

    /// EXPLAIN with a line about the result of the query that it explains, which is not optimised.
    pub(crate) fn explained(
        &self,
        plan: LogicalPlan,
        query: &LogicalPlan,
        (state, layout): (&SessionState, Layout),
    ) -> LogicalPlan {
        let LogicalPlan::Explain(mut explain) = plan else { return plan };
        let line = if is_on(state) {
            match Question::of(query, state, layout, &self.tables.snapshot()) {
                Ok(question) => match self.store.find(&question).filter(|_| question.still_holds()) {
                    Some(kept) => {
                        let age = kept.created.elapsed().unwrap_or_default().as_secs();
                        format!("hit: the result is there ({} rows, computed {age} s ago)", kept.rows)
                    }
                    None => "miss: the result is computed".to_owned(),
                },
                Err(reason) => format!("not kept: {reason}"),
            }
        } else {
            "not used: the session has set result_cache off".to_owned()
        };
        let line = StringifiedPlan::new(PlanType::FinalLogicalPlan, format!("ResultCache: {line}"));
        explain.stringified_plans.push(line);
        LogicalPlan::Explain(explain)
    }

    /// Forgets all results.
    pub(crate) fn clear(&self) {
        self.store.clear();
    }
}

/// The rows of `system.result_cache`. They show names of tables, and no values that statements compare with: those may be
/// somebody else's secrets.
pub(crate) fn about(cache: Option<&ResultCache>) -> bowshot_api::Result<RecordBatch> {
    let results = cache.map(|cache| cache.store.all()).unwrap_or_default();
    let results = results.as_slice();
    let names = |result: &KeptResult| {
        let names: Vec<String> = result.key.names().map(bowshot_cache::TableName::short).collect();
        names.join(", ")
    };
    batch(vec![
        ("tables", tables::text(results, |result| names(result))),
        ("column_count", tables::whole(results, |result| result.schema.fields().len() as u64)),
        ("row_count", tables::whole(results, |result| result.rows)),
        ("bytes", tables::whole(results, |result| result.bytes)),
        ("cost_ms", tables::real(results, |result| result.cost.as_secs_f64() * 1e3)),
        ("hits", tables::whole(results, |result| result.hits())),
        ("created", tables::time(results, |result| result.created)),
    ])
}

impl KeptResult {
    /// The rows as a query gives them that has run.
    fn execution(&self, partitions: usize) -> Execution {
        let streams = if self.ordered { 1 } else { partitions.clamp(1, self.batches.len().max(1)) };
        let share = self.batches.len().div_ceil(streams).max(1);
        let stream = |batches: &[RecordBatch]| {
            BatchStream::from_batches(SchemaRef::clone(&self.schema), batches.to_vec())
        };
        let mut streams: Vec<BatchStream> = self.batches.chunks(share).map(stream).collect();
        if streams.is_empty() {
            streams.push(stream(&[]));
        }
        Execution {
            schema: SchemaRef::clone(&self.schema),
            streams,
            ordered: self.ordered,
            rows: Some(self.rows),
            progress: ProgressMeter::default(),
        }
    }
}

fn is_on(state: &SessionState) -> bool {
    state.config_options().extensions.get::<SessionCache>().is_none_or(|session| session.results)
}
