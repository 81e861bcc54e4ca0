//! The scan of a table: one statement for each partition, shown by EXPLAIN.

use crate::error::{DatabaseError, external};
use crate::kind::Kind;
use crate::pool::{Permit, Pool};
use crate::query_worker::{ReadStatement, RowStream};
use crate::request::ScanRequest;
use crate::snapshot::{END, SharedSnapshot};
use crate::source::Source;
use bowshot_tables::EntryName;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::{StreamExt, stream};
use std::fmt;
use std::sync::Arc;

pub(crate) struct DatabaseScan {
    source: Arc<Source>,
    name: EntryName,
    request: ScanRequest,
    ranges: Vec<String>,
    rows: Option<u64>,
    run: Arc<tokio::sync::Mutex<Option<Run>>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

/// One execution of a scan over several connections.
struct Run {
    snapshot: Arc<SharedSnapshot>,
    permit: Permit,
    /// Partitions that have started.
    begun: Vec<bool>,
}

bowshot_api::debug_fields!(DatabaseScan { name, request });

impl DatabaseScan {
    pub(crate) fn new(
        source: Arc<Source>,
        name: EntryName,
        (request, ranges): (ScanRequest, Vec<String>),
        rows: Option<u64>,
    ) -> Self {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&request.schema)),
            Partitioning::UnknownPartitioning(ranges.len().max(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Self {
            source,
            name,
            request,
            ranges,
            rows,
            run: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        }
    }
}

/// A partition before its start.
struct ScanPartition {
    source: Arc<Source>,
    name: EntryName,
    statement: ReadStatement,
    run: Arc<tokio::sync::Mutex<Option<Run>>>,
    /// Its number, and the number of partitions.
    place: (usize, usize),
}

impl ScanPartition {
    async fn begin(self) -> Result<Running, DatabaseError> {
        let Self { source, name, mut statement, run, place: (number, parts) } = self;
        let pool = Arc::clone(&source.pool);
        if parts == 1 {
            let permit = pool.permit(1).await?;
            let rows = RowStream::begin(&pool, permit, statement)?;
            return Ok(Running { source, name, rows, snapshot: None });
        }
        let (snapshot, permit) = {
            let mut run = run.lock().await;
            // A plan that runs again needs a new snapshot.
            if run.as_ref().is_none_or(|run| run.begun.get(number).copied().unwrap_or(true)) {
                // All permits at once: two scans with half of them each would wait for ever.
                let permit = pool.permit(parts + 1).await?;
                let snapshot = export_snapshot(&pool, Arc::clone(&permit)).await?;
                *run = Some(Run { snapshot: Arc::new(snapshot), permit, begun: vec![false; parts] });
            }
            let Some(now) = run.as_mut() else { return Err(DatabaseError::Cancelled) };
            now.begun.get_mut(number).into_iter().for_each(|begun| *begun = true);
            let taken = (Arc::clone(&now.snapshot), Arc::clone(&now.permit));
            if now.begun.iter().all(|begun| *begun) {
                *run = None;
            }
            taken
        };
        (statement.before, statement.after) = (snapshot.import_statements(), Some(END));
        let rows = RowStream::begin(&pool, permit, statement)?;
        Ok(Running { source, name, rows, snapshot: Some(snapshot) })
    }
}

async fn export_snapshot(pool: &Arc<Pool>, permit: Permit) -> Result<SharedSnapshot, DatabaseError> {
    let limit = pool.settings.connect_timeout + pool.settings.timeout;
    let (pool, (sender, receiver)) = (Arc::clone(pool), tokio::sync::oneshot::channel());
    let export = move || drop(sender.send(SharedSnapshot::begin(&pool, permit)));
    std::thread::Builder::new()
        .name("database".to_owned())
        .spawn(export)
        .map_err(|error| DatabaseError::Driver(format!("cannot start a thread: {error}")))?;
    match tokio::time::timeout(limit, receiver).await {
        Ok(Ok(snapshot)) => snapshot,
        Ok(Err(_)) => Err(DatabaseError::Driver("the driver failed".to_owned())),
        Err(_) => Err(DatabaseError::Timeout(format!("{limit:?}"))),
    }
}

/// A running partition.
struct Running {
    source: Arc<Source>,
    name: EntryName,
    rows: RowStream,
    /// Held until the first rows, when the partition has the snapshot.
    snapshot: Option<Arc<SharedSnapshot>>,
}

impl Running {
    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        let next = self.rows.next().await;
        self.snapshot = None;
        match next? {
            Ok(rows) => Some(Ok(rows)),
            Err(fault) => Some(Err(failed(&self.source, &self.name, fault))),
        }
    }
}

/// The error of a partition. Cached metadata of the table may be outdated.
fn failed(source: &Source, name: &EntryName, fault: DatabaseError) -> datafusion::error::DataFusionError {
    source.forget(&name.schema, &name.name);
    match source.record::<()>(Err(fault)) {
        Ok(()) => external(bowshot_api::Error::internal("a failed partition has no error")),
        Err(error) => external(error),
    }
}

enum Progress {
    Before(Box<ScanPartition>),
    Running(Box<Running>),
    Ended,
}

impl DisplayAs for DatabaseScan {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.ranges.first().map(String::as_str);
        write!(
            f,
            "DatabaseScan: table={}, sql={}",
            self.name,
            self.request.sql(self.source.settings.kind, first)
        )?;
        match self.ranges.len() {
            0 => Ok(()),
            parts => write!(f, ", parts={parts}"),
        }
    }
}

impl ExecutionPlan for DatabaseScan {
    fn name(&self) -> &'static str {
        "DatabaseScan"
    }

    bowshot_api::getters!(properties: &Arc<PlanProperties>);

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a scan has no inputs") }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.request.schema);
        let rows = self.rows.and_then(|rows| usize::try_from(rows).ok());
        let rows = match (rows, self.request.limit) {
            (Some(rows), Some(limit)) => Some(rows.min(limit)),
            (rows, limit) => rows.or(limit),
        };
        if let Some(rows) = rows {
            statistics.num_rows = Precision::Inexact(rows);
        }
        Ok(Arc::new(statistics))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let kind = self.source.settings.kind;
        let statement = ReadStatement {
            before: Vec::new(),
            sql: self.request.sql(kind, self.ranges.get(partition).map(String::as_str)),
            after: None,
            columns: self.request.columns.clone(),
            schema: Arc::clone(&self.request.schema),
            witness: kind == Kind::Sqlite && !self.request.counts(),
            counted: self.request.counts(),
        };
        let part = ScanPartition {
            source: Arc::clone(&self.source),
            name: self.name.clone(),
            statement,
            run: Arc::clone(&self.run),
            place: (partition, self.ranges.len().max(1)),
        };
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let rows = stream::unfold(Progress::Before(Box::new(part)), |progress| async move {
            let mut running = match progress {
                Progress::Before(part) => {
                    let (source, name) = (Arc::clone(&part.source), part.name.clone());
                    match part.begin().await {
                        Ok(running) => Box::new(running),
                        Err(fault) => return Some((Err(failed(&source, &name, fault)), Progress::Ended)),
                    }
                }
                Progress::Running(running) => running,
                Progress::Ended => return None,
            };
            match running.next().await? {
                Ok(rows) => Some((Ok(rows), Progress::Running(running))),
                Err(error) => Some((Err(error), Progress::Ended)),
            }
        });
        let rows = rows.map(move |rows| rows.record_output(&metrics));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.request.schema), rows)))
    }
}
