//! Cached results, looked up before the optimizer, so that a hit costs neither planning nor running. [`key`] identifies a query and the
//! contents of its tables, [`recording`] copies rows on their way to the client, [`store`] and [`disk`] hold them. [`query_patterns`] and
//! [`precompute`] compute results of the next tables of a sequence. Results belong to authorized plans: readers with other rights never share.

mod disk;
mod key;
mod precompute;
mod query_patterns;
mod recording;
mod store;
mod stored_key;
#[cfg(test)]
mod tests;

use crate::background::Throttle;
use crate::cache::{Store, short_names};
use crate::columns::{batch, real, text, time, whole};
use crate::settings::results_are_on;
use bowshot_engine::reuse::{Answer, Form, Query};
use bowshot_tables::TableStore;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Explain, ExplainFormat, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use key::Question;
use query_patterns::Questions;
use recording::Recording;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{BegunBytes, ResultInfo};
use tokio::sync::Semaphore;

pub(crate) use precompute::work as ask_ahead;

/// One result has at most one part of so many of the memory.
const LARGEST_PART: u64 = 8;
/// Results on their way have at most one part of so many of the memory, and the rest is for the cached ones.
const BEGUN_PART: u64 = 4;
/// Results that may wait to be written to disk.
const MAX_WRITERS: usize = 64;
/// The table of `system` that is made here.
pub(crate) const TABLE: &str = "result_cache";

bowshot_api::defaults! {
    /// What results may take.
    #[derive(Debug, Clone)]
    pub struct ResultCacheConfig {
        /// Bytes in memory; without them nothing is kept.
        pub memory_bytes: u64 = 256 << 20,
        /// Bytes of files.
        pub disk_bytes: u64 = 1 << 30,
        /// Folder of the files; without one nothing survives a restart.
        pub folder: Option<PathBuf> = None,
    }
}

/// The results that an engine keeps.
#[derive(Debug)]
pub(crate) struct ResultCache {
    store: Store<ResultInfo>,
    begun: BegunBytes,
    largest: u64,
    questions: Questions,
    tables: Arc<TableStore>,
    /// Held while a result comes from disk.
    restoring: tokio::sync::Mutex<()>,
    writers: Arc<Semaphore>,
    /// Held while a result goes to disk.
    writing: tokio::sync::Mutex<()>,
    /// How often all was forgotten: what began before is not kept afterwards.
    cleared: AtomicU64,
}

impl ResultCache {
    /// The cache of a configuration; none without memory.
    pub(crate) fn new(config: &ResultCacheConfig, tables: &Arc<TableStore>) -> Option<Arc<Self>> {
        let begun = config.memory_bytes / BEGUN_PART;
        let store = disk::open(config, config.memory_bytes - begun, tables);
        (config.memory_bytes > 0).then(|| {
            Arc::new(Self {
                store,
                begun: BegunBytes::new(begun),
                largest: config.memory_bytes / LARGEST_PART,
                questions: Questions::default(),
                tables: Arc::clone(tables),
                restoring: tokio::sync::Mutex::default(),
                writers: Arc::new(Semaphore::new(MAX_WRITERS)),
                writing: tokio::sync::Mutex::default(),
                cleared: AtomicU64::new(0),
            })
        })
    }

    /// The answer to a query; `background` is what it steps aside by if it is asked ahead.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        query: Query<'_>,
        background: Option<&Arc<Throttle>>,
    ) -> Answer {
        let Query { plan, state, form, asked, .. } = query;
        if !results_are_on(state) {
            return Answer::Unknown;
        }
        let Ok(question) = Question::of(plan, state, form, &self.tables.snapshot()) else {
            return Answer::Unknown;
        };
        let found = match self.store.find(&question) {
            None => self.restored(&question, asked.as_ref()).await,
            found => found,
        };
        match found.filter(|_| question.still_holds()) {
            Some(found) => {
                self.store.hit(&found.result);
                metrics::counter!("bowshot_result_cache_hits_total").increment(1);
                self.save(&found.result);
                if let Some(asked) = asked {
                    self.questions.again(&asked, &found.asked);
                }
                Answer::Known(found.execution())
            }
            None => {
                metrics::counter!("bowshot_result_cache_misses_total").increment(1);
                let recording = Recording::new((question, asked), Arc::clone(self), background);
                Answer::Wanted(Box::new(move |computed| recording.of(computed)))
            }
        }
    }

    /// What EXPLAIN shows, with a line about the result of the query that it explains. `explain` is not optimised. Formats for
    /// programs stay as they are.
    pub(crate) fn explained(
        &self,
        shown: Arc<dyn ExecutionPlan>,
        explain: &Explain,
        (state, form): (&SessionState, Form),
    ) -> Arc<dyn ExecutionPlan> {
        let for_people = matches!(explain.explain_format, ExplainFormat::Indent | ExplainFormat::Tree);
        let Some(plans) = shown.downcast_ref::<ExplainExec>().filter(|_| for_people) else { return shown };
        let mut all = plans.stringified_plans().to_vec();
        let line = format!("ResultCache: {}", self.told(&explain.plan, state, form));
        all.push(StringifiedPlan::new(PlanType::FinalLogicalPlan, line));
        Arc::new(ExplainExec::new(shown.schema(), all, plans.verbose()))
    }

    fn told(&self, query: &LogicalPlan, state: &SessionState, form: Form) -> String {
        if !results_are_on(state) {
            return "not used: the session has set result_cache off".to_owned();
        }
        let question = match Question::of(query, state, form, &self.tables.snapshot()) {
            Ok(question) => question,
            Err(reason) => return format!("not kept: {reason}"),
        };
        match self.store.find(&question).filter(|_| question.still_holds()) {
            Some(found) => {
                let info = &found.result.info;
                let age = info.created.elapsed().unwrap_or_default().as_secs();
                format!("hit: the result is there ({} rows, computed {age} s ago)", info.rows)
            }
            None if self.store.find_on_disk(&question).is_some() => "hit: the result is on disk".to_owned(),
            None => "miss: the result is computed, and kept if it is worth that".to_owned(),
        }
    }

    /// Forgets all results, and what was asked. Blocks while files are removed.
    pub(crate) fn clear(&self) {
        self.cleared.fetch_add(1, Ordering::AcqRel);
        self.store.remove_all(|_| true);
        self.questions.clear();
    }

    fn cleared(&self) -> u64 {
        self.cleared.load(Ordering::Acquire)
    }
}

/// The rows of `system.result_cache`, of results in memory. They show names of tables, and no values that statements compare
/// with: those may be somebody else's secrets.
pub(crate) fn rows(cache: Option<&ResultCache>) -> bowshot_api::Result<RecordBatch> {
    let all = cache.map(|cache| cache.store.all()).unwrap_or_default().into_iter();
    let results: Vec<_> =
        all.filter_map(|result| result.memory().map(|rows| (result, rows.schema))).collect();
    let results = results.as_slice();
    batch(vec![
        (
            "tables",
            text(results, |(result, _)| short_names(result.about.tables.iter().map(|table| &table.name))),
        ),
        ("column_count", whole(results, |(_, schema)| schema.fields().len() as u64)),
        ("row_count", whole(results, |(result, _)| result.info.rows)),
        ("bytes", whole(results, |(result, _)| result.info.bytes)),
        ("cost_ms", real(results, |(result, _)| result.info.cost.as_secs_f64() * 1e3)),
        ("hits", whole(results, |(result, _)| result.hits())),
        ("created", time(results, |(result, _)| result.info.created)),
    ])
}
