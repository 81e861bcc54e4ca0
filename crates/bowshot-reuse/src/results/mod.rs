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

use crate::cache::ResultFiles;
use crate::columns::{batch, real, text, time, whole};
use crate::settings::results_are_on;
use bowshot_api::BatchStream;
use bowshot_engine::reuse::{Asked, Form};
use bowshot_engine::{Execution, ProgressMeter};
use bowshot_tables::TableStore;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Explain, ExplainFormat, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use key::Question;
use query_patterns::Questions;
pub(crate) use recording::Recording;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{CachedResult, Store};
use tokio::sync::Semaphore;

pub(crate) use precompute::work as ask_ahead;

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
    store: Store,
    questions: Questions,
    tables: Arc<TableStore>,
    files: Option<Arc<ResultFiles>>,
    /// Held while a result comes from disk.
    restoring: tokio::sync::Mutex<()>,
    /// Places for results that wait to be written.
    writers: Arc<Semaphore>,
    /// Held while a result goes to disk.
    writing: tokio::sync::Mutex<()>,
    /// How often all was forgotten: what began before is not kept afterwards.
    cleared: AtomicU64,
}

/// What is known of the result of a query.
pub(crate) enum CachedAnswer {
    /// It is there.
    Found(Execution),
    /// It is to be computed, and may be kept.
    Missing(Box<Recording>),
    /// It is to be computed each time.
    Never,
}

impl ResultCache {
    /// The cache of a configuration; none without memory.
    pub(crate) fn new(config: &ResultCacheConfig, tables: &Arc<TableStore>) -> Option<Arc<Self>> {
        let files = disk::open(config, tables).map(Arc::new);
        (config.memory_bytes > 0).then(|| {
            Arc::new(Self {
                store: Store::new(config.memory_bytes),
                questions: Questions::default(),
                tables: Arc::clone(tables),
                files,
                restoring: tokio::sync::Mutex::default(),
                writers: Arc::new(Semaphore::new(MAX_WRITERS)),
                writing: tokio::sync::Mutex::default(),
                cleared: AtomicU64::new(0),
            })
        })
    }

    /// The answer to a plan that is authorised, has its parameters bound, and is not optimised. `asked` is its text if it
    /// may be asked ahead the next time.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        plan: &LogicalPlan,
        state: &SessionState,
        form: Form,
        asked: Option<Asked>,
    ) -> CachedAnswer {
        if !results_are_on(state) {
            return CachedAnswer::Never;
        }
        let Ok(question) = Question::of(plan, state, form, &self.tables.snapshot()) else {
            return CachedAnswer::Never;
        };
        let cleared = self.cleared();
        let kept = match self.store.find(&question) {
            None => self.restored(&question, asked.as_ref()).await,
            found => found,
        };
        match kept.filter(|_| question.still_holds()) {
            Some(kept) => {
                self.store.hit(&kept);
                self.save(question.digest, &kept, cleared);
                if let Some(asked) = asked {
                    self.questions.again(&asked, &kept);
                }
                CachedAnswer::Found(kept.execution())
            }
            None => {
                metrics::counter!("bowshot_result_cache_misses_total").increment(1);
                CachedAnswer::Missing(Box::new(Recording::new(question, asked, Arc::clone(self))))
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
            Some(kept) => {
                let age = kept.created.elapsed().unwrap_or_default().as_secs();
                format!("hit: the result is there ({} rows, computed {age} s ago)", kept.rows)
            }
            None if self.is_on_disk(&question) => "hit: the result is on disk".to_owned(),
            None => "miss: the result is computed, and kept if it is worth that".to_owned(),
        }
    }

    /// Forgets all results, and what was asked. Blocks while files are removed.
    pub(crate) fn clear(&self) {
        self.cleared.fetch_add(1, Ordering::AcqRel);
        self.store.clear();
        self.questions.clear();
        if let Some(files) = &self.files {
            files.clear();
        }
    }

    fn cleared(&self) -> u64 {
        self.cleared.load(Ordering::Acquire)
    }
}

/// The rows of `system.result_cache`. They show names of tables, and no values that statements compare with: those may be
/// somebody else's secrets.
pub(crate) fn rows(cache: Option<&ResultCache>) -> bowshot_api::Result<RecordBatch> {
    let results = cache.map(|cache| cache.store.all()).unwrap_or_default();
    let results = results.as_slice();
    let names = |result: &CachedResult| {
        let names: Vec<String> = result.key.names().map(crate::cache::TableName::short).collect();
        names.join(", ")
    };
    batch(vec![
        ("tables", text(results, |result| names(result))),
        ("column_count", whole(results, |result| result.schema.fields().len() as u64)),
        ("row_count", whole(results, |result| result.rows)),
        ("bytes", whole(results, |result| result.bytes)),
        ("cost_ms", real(results, |result| result.cost.as_secs_f64() * 1e3)),
        ("hits", whole(results, |result| result.hits())),
        ("created", time(results, |result| result.created)),
    ])
}

impl CachedResult {
    /// The rows as a query gives them that has run.
    fn execution(&self) -> Execution {
        let stream = |batches: &Vec<RecordBatch>| {
            BatchStream::from_batches(SchemaRef::clone(&self.schema), batches.clone())
        };
        Execution {
            schema: SchemaRef::clone(&self.schema),
            streams: self.streams.iter().map(stream).collect(),
            ordered: self.ordered,
            rows: self.promised,
            progress: ProgressMeter::default(),
            opening: None,
        }
    }
}
