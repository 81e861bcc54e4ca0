//! Computes joins for the cache, one after another, on threads of low priority with memory of their own. After an append to one of our tables,
//! only the new rows are joined.

use super::plan_builder::Builder;
use super::queue::Job;
use super::{JoinCache, JoinCacheConfig, codes, log};
use crate::background::{Throttle, ThrottleRule};
use crate::cache::{
    CachedJoin, ColumnRef, Content, EntryInfo, JoinInfo, JoinShape, Loaded, Member, short_names,
};
use crate::deep_copy;
use crate::keys::{self, Found};
use crate::settings::in_settings;
use bowshot_engine::internals::{FileViews, builder_from, watched};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, exec_err, resources_err};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::execute_stream;
use futures::{FutureExt, StreamExt};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Approximate bytes of a join without its rows: its descriptions in memory and on disk.
const ENTRY_BYTES: u64 = 4 << 10;
const BATCH_ROWS: usize = 64 << 10;
/// Bytes at which a cached batch is full.
const BATCH_BYTES: usize = 4 << 20;
/// Batch size of operators.
const COMPUTED_ROWS: usize = 8 << 10;
/// Shortest pause of a join after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// Pause of a join if there was nothing to compute.
const AFTER_NOTHING: Duration = Duration::from_secs(2);
/// Most batches of a join that is extended; with more it is recomputed.
const MAX_BATCHES: usize = 1_024;
/// New rows are joined alone if they are at most this fraction of the rows.
const SMALL_PART: u64 = 2;

pub(super) fn state(
    template: &SessionState,
    config: &JoinCacheConfig,
    throttle: &Arc<Throttle>,
) -> Result<SessionState> {
    let bytes = usize::try_from(config.memory_bytes).unwrap_or(usize::MAX);
    let runtime = RuntimeEnvBuilder::from_runtime_env(template.runtime_env())
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(bytes)))
        .build_arc()?;
    let session = template.config().clone().with_batch_size(COMPUTED_ROWS).with_target_partitions(1);
    Ok(builder_from(template)
        .with_config(session)
        .with_runtime_env(runtime)
        .with_physical_optimizer_rule(Arc::new(ThrottleRule(Arc::clone(throttle))))
        .build())
}

pub(super) async fn work(cache: Arc<JoinCache>) {
    loop {
        cache.queue.filled().await;
        let turn = cache.throttle.turn().await;
        let Some(job) = cache.queue.next() else { continue };
        let (started, waited) = (Instant::now(), cache.throttle.waited());
        let (filling, wanted) = (Arc::clone(&cache), job.clone());
        // The time limit is part of the job, so that it has ended before the next one.
        let fill = async move {
            // A panic in an operator ends only this job.
            let fill = AssertUnwindSafe(filling.fill_in_time(&wanted)).catch_unwind();
            let filled = filling.throttle.within(filling.config.fill_timeout, fill).await;
            filled.map(|done| done.unwrap_or_else(|_| exec_err!("an operator panicked")))
        };
        let filled = cache.handoff.run(fill.boxed()).await;
        let filled = filled.unwrap_or_else(|| Some(exec_err!("the server ends")));
        let outcome = cache.outcome(&job, filled, started.elapsed());
        let least = match outcome {
            "too_large" | "no_room" | "failed" | "timeout" => AFTER_FAILURE,
            "there" | "absent" => AFTER_NOTHING,
            _ => Duration::ZERO,
        };
        if outcome != "discarded" {
            cache.watch.ended(&job.order, cache.worked(started, waited), least);
        }
        cache.queue.end();
        drop(turn);
        metrics::counter!("bowshot_join_cache_fills_total", "outcome" => outcome).increment(1);
        metrics::histogram!("bowshot_join_cache_fill_seconds").record(started.elapsed().as_secs_f64());
    }
}

pub(super) enum Outcome {
    New {
        rows: u64,
    },
    /// It is cached already.
    There,
    /// A table does not exist, or its version is unknown.
    Absent,
    /// Planning took longer than listings of files are valid.
    Late,
    /// Cached joins are more valuable.
    NoRoom,
    Discarded,
}

struct Rows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    bytes: u64,
}

impl Rows {
    fn push(&mut self, batches: &[RecordBatch]) -> Result<()> {
        let batch = concat_batches(&self.schema, batches)?;
        if batch.num_rows() > 0 {
            self.bytes += batch.get_array_memory_size() as u64;
            self.batches.push(batch);
        }
        Ok(())
    }
}

/// A join with its tables as they are now.
struct Target {
    shape: JoinShape,
    columns: Vec<ColumnRef>,
    /// In the order of the shape.
    tables: Vec<Found>,
}

impl JoinCache {
    /// The name of the outcome for metrics and logs.
    fn outcome(&self, job: &Job, filled: Option<Result<Outcome>>, took: Duration) -> &'static str {
        let tables = || short_names(&job.order.tables);
        match filled {
            Some(Ok(Outcome::New { rows })) => {
                let (forecast, milliseconds) = (job.forecast, took.as_millis() as u64);
                tracing::debug!(tables = tables(), rows, forecast, milliseconds, "a join is cached");
                "computed"
            }
            Some(Ok(Outcome::There)) => "there",
            Some(Ok(Outcome::Absent)) => "absent",
            Some(Ok(Outcome::Late)) => "late",
            Some(Ok(Outcome::NoRoom)) => "no_room",
            Some(Ok(Outcome::Discarded)) => "discarded",
            Some(Err(error)) if is_too_large(&error) => {
                tracing::debug!(%error, "a join needs more memory than the cache has");
                "too_large"
            }
            Some(Err(error)) => {
                // The query has usually failed in the same way.
                tracing::debug!(%error, "a join cannot be computed for the cache");
                "failed"
            }
            None => "timeout",
        }
    }

    /// Computes one join. Listings of files are valid for some seconds only: if that was too short, the second attempt
    /// runs without pauses.
    async fn fill_in_time(&self, job: &Job) -> Result<Outcome> {
        match self.fill(job).await {
            Ok(Outcome::Late) => {
                let _urgent = self.throttle.urgent();
                self.fill(job).await
            }
            filled => filled,
        }
    }

    /// Computes one join from the newest state of its tables.
    pub(super) async fn fill(&self, job: &Job) -> Result<Outcome> {
        if self.history.does_not_fit(&job.order) {
            return Ok(Outcome::Absent);
        }
        let Some(target) = self.target(job).await else { return Ok(Outcome::Absent) };
        let needed = target.columns.iter().cloned().collect();
        if self.store.find(&target.shape, &target.shape.tree.conditions, &needed).is_some() {
            return Ok(Outcome::There);
        }
        let (started, waited) = (Instant::now(), self.throttle.waited());
        let earlier = self.earlier(&target);
        let (rows, columns, cost) = match &earlier {
            Some(earlier) => {
                let Some(rows) = self.appended(&target, earlier).await? else { return Ok(Outcome::Late) };
                metrics::counter!("bowshot_join_cache_updates_total").increment(1);
                // The cost is that of the whole join.
                (rows, earlier.about.columns.clone(), earlier.info.cost)
            }
            None => {
                let providers: Vec<_> =
                    target.tables.iter().map(|found| Arc::clone(&found.provider)).collect();
                let rows = self.compute(&target.shape, &target.columns, &providers, 0).await?;
                let Some(rows) = rows else { return Ok(Outcome::Late) };
                (rows, target.columns.clone(), self.worked(started, waited))
            }
        };
        self.note_unused(&target.shape);
        let count = rows.batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let cost_ms = u64::try_from(cost.as_millis()).unwrap_or(u64::MAX);
        self.history.computed(&target.shape, cost_ms, rows.bytes);
        let about = JoinInfo { shape: target.shape, columns, forecast: job.forecast };
        let (cost, created) = (cost.max(Duration::from_millis(1)), SystemTime::now());
        let info = EntryInfo { rows: count, bytes: rows.bytes + ENTRY_BYTES, cost, created };
        let Some(join) = self.keep(about, info, &rows)? else { return Ok(Outcome::NoRoom) };
        if self.queue.is_cancelled() {
            self.store.remove(join.id);
            return Ok(Outcome::Discarded);
        }
        tokio::task::block_in_place(|| self.store.write(&join, &|| self.throttle.pass_blocking()));
        Ok(Outcome::New { rows: count })
    }

    /// Time since a moment, without pauses.
    fn worked(&self, started: Instant, waited: Duration) -> Duration {
        started.elapsed().saturating_sub(self.throttle.waited().saturating_sub(waited))
    }

    /// The shape of a join with the current versions of its tables.
    async fn target(&self, job: &Job) -> Option<Target> {
        let mut tables = Vec::with_capacity(job.order.tables.len());
        for name in &job.order.tables {
            tables.push(keys::find(name, &self.sources).await?);
        }
        let keys = tables.iter().map(|found| found.key.clone()).collect();
        let (shape, numbers) = JoinShape::new(keys, &job.order.tree, job.order.settings.clone());
        let mut sorted: Vec<(usize, Found)> = numbers.iter().copied().zip(tables).collect();
        sorted.sort_by_key(|(number, _)| *number);
        let tables: Vec<Found> = sorted.into_iter().map(|(_, found)| found).collect();
        let columns = job.order.columns.iter().map(|column| ColumnRef {
            table: numbers.get(column.table).copied().unwrap_or(column.table),
            column: column.column.clone(),
        });
        // A column that an earlier day had may be gone.
        let there = |column: &ColumnRef| {
            let schema = tables.get(column.table).map(|found| found.provider.schema());
            schema.is_some_and(|schema| schema.column_with_name(&column.column).is_some())
        };
        let mut columns: Vec<ColumnRef> = columns.filter(there).collect();
        if columns.is_empty() {
            // Rows need a column: those of the conditions, or any.
            let table = tables.first()?.provider.schema();
            columns.push(ColumnRef { table: 0, column: table.fields().first()?.name().clone() });
            if shape.tree.members.iter().all(|member| *member != Member::Table(0)) {
                return None;
            }
        }
        columns.sort();
        columns.dedup();
        Some(Target { shape, columns, tables })
    }

    /// A join of an earlier state to whose tables rows were only appended.
    fn earlier(&self, target: &Target) -> Option<Arc<CachedJoin>> {
        if target.shape.tree.has_outer() {
            return None;
        }
        self.store.earlier(&target.shape).into_iter().find(|join| {
            let keys = join.about.shape.tables.iter().zip(&target.tables);
            target.columns.iter().all(|column| join.about.columns.contains(column))
                && join.memory().is_some_and(|rows| rows.batches.len() < MAX_BATCHES)
                && keys.clone().all(|(old, found)| is_part(&old.content, found))
        })
    }

    /// The rows of an earlier version, and the joins of the new rows.
    async fn appended(&self, target: &Target, earlier: &CachedJoin) -> Result<Option<Rows>> {
        let there = earlier.batches().map_err(|error| DataFusionError::External(Box::new(error)))?;
        // Mapped rows would stay mapped, without a check for truncation.
        if there.is_mapped() {
            return Ok(None);
        }
        let (schema, batches) = (there.schema, there.batches.to_vec());
        let (_, plain) = codes::without_codes(&schema, &batches)?;
        let bytes = plain.iter().map(|batch| batch.get_array_memory_size() as u64).sum();
        let mut all = Rows { schema, batches, bytes };
        let old: Vec<Vec<u64>> =
            earlier.about.shape.tables.iter().map(|key| segments(&key.content)).collect();
        for (place, (found, segments)) in target.tables.iter().zip(&old).enumerate() {
            let Some(table) = &found.table else { continue };
            let added = table.part(segments, false);
            if added.rows() == 0 {
                continue;
            }
            // Tables before this one with their new rows, those after it without.
            let providers =
                target.tables.iter().zip(&old).enumerate().map(|(other, (found, segments))| {
                    match (&found.table, other.cmp(&place)) {
                        (Some(_), std::cmp::Ordering::Equal) => Arc::new(added.clone()).provider(),
                        (Some(table), std::cmp::Ordering::Greater) => {
                            Arc::new(table.part(segments, true)).provider()
                        }
                        _ => Arc::clone(&found.provider),
                    }
                });
            let providers: Vec<_> = providers.collect();
            let rows = self.compute(&target.shape, &earlier.about.columns, &providers, all.bytes).await?;
            let Some(rows) = rows else { return Ok(None) };
            all.bytes += rows.bytes;
            all.batches.extend(rows.batches);
        }
        Ok(Some(all))
    }

    fn state_in(&self, settings: &str) -> SessionState {
        let options = in_settings(self.state.config_options(), settings);
        // Not by a builder, which would make other functions than a session.
        let mut state = self.state.clone();
        let own = state.config_mut().options_mut();
        own.execution.time_zone.clone_from(&options.execution.time_zone);
        own.sql_parser.dialect = options.sql_parser.dialect;
        // Functions read these options.
        state.execution_props_mut().mark_start_execution(options);
        state
    }

    /// Computes a join; `None` if listings of files may be outdated. `taken` bytes count against
    /// the largest size already. A join that is too large is recorded.
    async fn compute(
        &self,
        shape: &JoinShape,
        columns: &[ColumnRef],
        providers: &[Arc<dyn TableProvider>],
        taken: u64,
    ) -> Result<Option<Rows>> {
        let computed = self.computed(shape, columns, providers, taken).await;
        if computed.as_ref().is_err_and(|error| is_too_large(error) && !is_of_disk(error)) {
            self.note_too_large(shape);
        }
        computed
    }

    async fn computed(
        &self,
        shape: &JoinShape,
        columns: &[ColumnRef],
        providers: &[Arc<dyn TableProvider>],
        taken: u64,
    ) -> Result<Option<Rows>> {
        let state = self.state_in(&shape.settings);
        let plan = Builder { providers, state: &state }.plan(&shape.tree, columns)?;
        let schema = SchemaRef::clone(plan.schema().inner());
        let physical = state.create_physical_plan(&plan).await?;
        if !providers.iter().all(|provider| keys::is_pinned(provider.as_ref())) {
            return Ok(None);
        }
        let views = FileViews::of(physical.as_ref());
        let mut stream = watched(execute_stream(physical, state.task_ctx())?, views.as_ref());
        let held = MemoryConsumer::new("join cache").register(&state.runtime_env().memory_pool);
        let (mut rows, mut few) = (Rows { schema, batches: Vec::new(), bytes: 0 }, Vec::new());
        let (mut few_rows, mut few_bytes) = (0, 0);
        while let Some(batch) = stream.next().await {
            let batch = deep_copy::batch(&batch?, &rows.schema)?;
            let bytes = batch.get_array_memory_size();
            held.try_grow(bytes)?;
            (few_rows, few_bytes) = (few_rows + batch.num_rows(), few_bytes + bytes);
            if taken + rows.bytes + few_bytes as u64 > self.store.largest() {
                return resources_err!("the join has more than {} bytes", self.store.largest());
            }
            few.push(batch);
            if few_rows >= BATCH_ROWS || few_bytes >= BATCH_BYTES {
                rows.push(&std::mem::take(&mut few))?;
                (few_rows, few_bytes) = (0, 0);
            }
        }
        rows.push(&few)?;
        Ok(Some(rows))
    }

    /// Records that a join does not fit; earlier versions are not updated any more.
    fn note_too_large(&self, shape: &JoinShape) {
        if self.history.too_large(shape) {
            self.store.remove_versions_of(shape);
            tracing::warn!(
                tables = short_names(&shape.names()),
                largest_bytes = self.store.largest(),
                "a join is too large for the cache, or computing it is: parts of it that queries ask for may fit; raise \
                 `join_cache.memory_bytes` for all of it"
            );
        }
    }

    /// The rows with codes for their texts, if there is room for these.
    fn with_codes(&self, plain: &Rows, rows: &Rows) -> Option<Rows> {
        let pause = || self.throttle.pass_blocking();
        let coded = tokio::task::block_in_place(|| codes::add_codes(&rows.schema, &rows.batches, &pause));
        let (schema, batches, bytes) = coded.inspect_err(|error| log("codes", error)).ok()?;
        let bytes = plain.bytes + bytes;
        (bytes <= self.store.largest()).then_some(Rows { schema, batches, bytes })
    }

    /// Inserts a join, with codes for its texts if there is room; `None` if there is no room at all.
    fn keep(&self, about: JoinInfo, info: EntryInfo, rows: &Rows) -> Result<Option<Arc<CachedJoin>>> {
        let (schema, batches) = codes::without_codes(&rows.schema, &rows.batches)?;
        let plain = Rows { schema, batches, bytes: rows.bytes };
        if let Some(coded) = self.with_codes(&plain, rows) {
            let info = EntryInfo { bytes: coded.bytes + ENTRY_BYTES, ..info.clone() };
            let coded = Loaded::in_memory(coded.schema, coded.batches);
            if let Ok(join) = self.store.insert(about.clone(), info, coded) {
                return Ok(Some(join));
            }
        }
        Ok(self.store.insert(about, info, Loaded::in_memory(plain.schema, plain.batches)).ok())
    }

    /// Records that replaced joins of earlier versions were not used.
    fn note_unused(&self, shape: &JoinShape) {
        if self.store.earlier(shape).iter().any(|join| join.hits() == 0) {
            self.history.used(shape, false);
        }
    }
}

fn is_too_large(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// Whether spill space was the reason, which is temporary.
fn is_of_disk(error: &DataFusionError) -> bool {
    error.to_string().contains("disk space")
}

/// Whether the new version has all rows of the old one, and few more.
fn is_part(old: &Content, found: &Found) -> bool {
    let (
        Content::Own { id, columns, segments, .. },
        Content::Own { id: now_id, columns: now, segments: all, .. },
    ) = (old, &found.key.content)
    else {
        return *old == found.key.content;
    };
    let few = found
        .table
        .as_ref()
        .is_some_and(|table| table.part(segments, false).rows() * SMALL_PART <= table.rows());
    id == now_id && columns == now && segments.iter().all(|segment| all.contains(segment)) && few
}

fn segments(content: &Content) -> Vec<u64> {
    match content {
        Content::Own { segments, .. } => segments.clone(),
        Content::Files { .. } => Vec::new(),
    }
}
