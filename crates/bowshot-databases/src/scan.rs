//! The scan of a table of another database: one statement for each partition, whose text EXPLAIN shows.

use crate::columns::Column;
use crate::fault::{Fault, external};
use crate::ranges::{END, Leader};
use crate::reading::{Reading, Wanted};
use crate::settings::Kind;
use crate::source::Source;
use bowshot_tables::EntryName;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
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

/// What is asked of a table.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) relation: String,
    pub(crate) columns: Vec<Arc<Column>>,
    pub(crate) schema: SchemaRef,
    /// Of which all have to hold.
    pub(crate) conditions: Vec<String>,
    pub(crate) limit: Option<usize>,
}

impl Request {
    /// Whether nothing is asked but how many rows there are.
    fn counts(&self) -> bool {
        self.columns.is_empty()
    }

    /// The statement, for a part of the table if one is given.
    pub(crate) fn sql(&self, kind: Kind, part: Option<&str>) -> String {
        let conditions =
            self.conditions.iter().map(String::as_str).chain(part).collect::<Vec<_>>().join(" AND ");
        let mut from = format!("FROM {}", self.relation);
        if !conditions.is_empty() {
            from = format!("{from} WHERE {conditions}");
        }
        if self.counts() {
            return match self.limit {
                None => format!("SELECT count(*) {from}"),
                Some(limit) => format!("SELECT count(*) FROM (SELECT 1 AS one {from} LIMIT {limit}) AS few"),
            };
        }
        let sent = self.columns.iter().map(|column| column.sent.as_str()).collect::<Vec<_>>().join(", ");
        let limit = |limit: Option<usize>| limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        if kind == Kind::Sqlite {
            // The first row shows the driver the types, and goes no further.
            let witness = self.columns.iter().map(|column| column.witness).collect::<Vec<_>>().join(", ");
            let limit = limit(self.limit.map(|limit| limit.saturating_add(1)));
            return format!("SELECT 1, {witness} UNION ALL SELECT 0, {sent} {from}{limit}");
        }
        format!("SELECT {sent} {from}{}", limit(self.limit))
    }
}

/// See the module.
pub(crate) struct DatabaseScan {
    source: Arc<Source>,
    name: EntryName,
    request: Request,
    ranges: Vec<String>,
    rows: Option<u64>,
    run: Arc<tokio::sync::Mutex<Option<Run>>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

/// A run of a scan over several connections.
struct Run {
    leader: Arc<Leader>,
    permit: crate::pool::Permit,
    /// Partitions that have begun.
    begun: Vec<bool>,
}

impl fmt::Debug for DatabaseScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseScan")
            .field("name", &self.name)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

impl DatabaseScan {
    pub(crate) fn new(
        source: Arc<Source>,
        name: EntryName,
        (request, ranges): (Request, Vec<String>),
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

/// What begins one partition.
struct Part {
    source: Arc<Source>,
    name: EntryName,
    wanted: Wanted,
    run: Arc<tokio::sync::Mutex<Option<Run>>>,
    /// Its number and how many there are.
    place: (usize, usize),
}

impl Part {
    async fn begin(self) -> Result<Running, Fault> {
        let Self { source, name, mut wanted, run, place: (number, parts) } = self;
        let pool = Arc::clone(&source.pool);
        if parts == 1 {
            let permit = pool.permit(1).await?;
            let reading = Reading::begin(&pool, permit, wanted)?;
            return Ok(Running { source, name, reading, leader: None });
        }
        let (leader, permit) = {
            let mut run = run.lock().await;
            // A plan that runs once more has another moment.
            if run.as_ref().is_none_or(|run| run.begun.get(number).copied().unwrap_or(true)) {
                // All at once: whoever had some of them and waited for others could wait for ever.
                let permit = pool.permit(parts + 1).await?;
                let leader = led(&pool, Arc::clone(&permit)).await?;
                *run = Some(Run { leader: Arc::new(leader), permit, begun: vec![false; parts] });
            }
            let Some(now) = run.as_mut() else { return Err(Fault::Cancelled) };
            now.begun.get_mut(number).into_iter().for_each(|begun| *begun = true);
            let taken = (Arc::clone(&now.leader), Arc::clone(&now.permit));
            if now.begun.iter().all(|begun| *begun) {
                *run = None;
            }
            taken
        };
        (wanted.before, wanted.after) = (leader.words(), Some(END));
        let reading = Reading::begin(&pool, permit, wanted)?;
        Ok(Running { source, name, reading, leader: Some(leader) })
    }
}

/// The snapshot of a run.
async fn led(pool: &Arc<crate::pool::Pool>, permit: crate::pool::Permit) -> Result<Leader, Fault> {
    let limit = pool.settings.connect_timeout + pool.settings.timeout;
    let (pool, (sender, receiver)) = (Arc::clone(pool), tokio::sync::oneshot::channel());
    let lead = move || drop(sender.send(Leader::begin(&pool, permit)));
    std::thread::Builder::new()
        .name("database".to_owned())
        .spawn(lead)
        .map_err(|error| Fault::Driver(format!("no thread can be started: {error}")))?;
    match tokio::time::timeout(limit, receiver).await {
        Ok(Ok(leader)) => leader,
        Ok(Err(_)) => Err(Fault::Driver("a driver broke down".to_owned())),
        Err(_) => Err(Fault::Late(format!("{limit:?}"))),
    }
}

/// A partition that is read.
struct Running {
    source: Arc<Source>,
    name: EntryName,
    reading: Reading,
    /// Until rows come, by when the partition has the snapshot.
    leader: Option<Arc<Leader>>,
}

impl Running {
    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        let next = self.reading.next().await;
        self.leader = None;
        match next? {
            Ok(rows) => Some(Ok(rows)),
            Err(fault) => Some(Err(failed(&self.source, &self.name, fault))),
        }
    }
}

/// The error of a partition. What was believed of the table may not be true any more.
fn failed(source: &Source, name: &EntryName, fault: Fault) -> datafusion::error::DataFusionError {
    source.forget(&name.schema, &name.name);
    match source.noted::<()>(Err(fault)) {
        Ok(()) => external(bowshot_api::Error::internal("a failure was none")),
        Err(error) => external(error),
    }
}

enum Progress {
    Before(Box<Part>),
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

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

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
        let wanted = Wanted {
            before: Vec::new(),
            sql: self.request.sql(kind, self.ranges.get(partition).map(String::as_str)),
            after: None,
            columns: self.request.columns.clone(),
            schema: Arc::clone(&self.request.schema),
            witness: kind == Kind::Sqlite && !self.request.counts(),
            counted: self.request.counts(),
        };
        let part = Part {
            source: Arc::clone(&self.source),
            name: self.name.clone(),
            wanted,
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
