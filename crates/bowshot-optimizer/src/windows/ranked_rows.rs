//! Passes on the rows that may be among the first of their partition: those that fewer than so many of the rows before them, here in this
//! stream, come before. Only the sort keys of those are kept, so rows stay where they are and nothing is read again; where that takes
//! too much memory, or most rows pass anyway, all later ones do.

use super::partition_totals::arrays;
use datafusion::arrow::array::BooleanArray;
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, Statistics};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::WindowUDFExpr;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::stream::{self, StreamExt};
use std::fmt;
use std::sync::Arc;

/// Bytes that the keys of one stream may take.
const MOST_BYTES: usize = 16 << 20;
/// Rows after which it is first looked at how many have passed; then after twice as many.
const FIRST_LOOK: usize = 1 << 17;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    RowNumber,
    Rank,
    DenseRank,
}

impl Rank {
    /// `None` for a function that is none of these.
    pub(super) fn of(function: &Arc<dyn WindowExpr>) -> Option<Self> {
        let function = function.as_any().downcast_ref::<StandardWindowExpr>()?.get_standard_func_expr();
        match function.as_any().downcast_ref::<WindowUDFExpr>()?.fun().name() {
            "row_number" => Some(Self::RowNumber),
            "rank" => Some(Self::Rank),
            "dense_rank" => Some(Self::DenseRank),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Ranks {
    pub(super) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) order: Vec<PhysicalSortExpr>,
    pub(super) rank: Rank,
    pub(super) most: usize,
}

impl Ranks {
    /// What compares rows as the sort of the window does; `None` for types without such keys.
    fn converter(&self, schema: &Schema) -> Result<Option<RowConverter>> {
        let fields = self
            .order
            .iter()
            .map(|key| key.expr.data_type(schema).map(|of| SortField::new_with_options(of, key.options)));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        if !RowConverter::supports_fields(&fields) {
            return Ok(None);
        }
        Ok(Some(RowConverter::new(fields)?))
    }

    /// What numbers the partitions, if there are several.
    fn partitions(&self, schema: &Schema) -> Result<Option<Box<dyn GroupValues>>> {
        if self.keys.is_empty() {
            return Ok(None);
        }
        let fields = self.keys.iter().map(|key| Ok(Field::new("key", key.data_type(schema)?, true)));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        new_group_values(Arc::new(Schema::new(fields)), &GroupOrdering::None).map(Some)
    }
}

#[derive(Debug)]
pub(super) struct RankedRowsExec {
    input: Arc<dyn ExecutionPlan>,
    ranks: Arc<Ranks>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl RankedRowsExec {
    /// `None` where rows cannot be compared by keys.
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, ranks: Arc<Ranks>) -> Result<Option<Self>> {
        let can_compare = ranks.converter(&input.schema())?.is_some();
        Ok(can_compare.then(|| Self::above(input, ranks)))
    }

    fn above(input: Arc<dyn ExecutionPlan>, ranks: Arc<Ranks>) -> Self {
        let known = input.properties();
        // A rule would move the window's sort below an operator that keeps the order.
        let mut equivalences = input.equivalence_properties().clone();
        equivalences.clear_orderings();
        let partitioning = input.output_partitioning().clone();
        let properties =
            PlanProperties::new(equivalences, partitioning, known.emission_type, known.boundedness);
        Self { input, ranks, metrics: ExecutionPlanMetricsSet::new(), properties: Arc::new(properties) }
    }
}

impl DisplayAs for RankedRowsExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ranks { keys, order, rank, most } = self.ranks.as_ref();
        let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
        let order: Vec<String> = order.iter().map(ToString::to_string).collect();
        let (keys, order) = (keys.join(", "), order.join(", "));
        write!(f, "RankedRowsExec: {rank:?} <= {most}, partition=[{keys}], order=[{order}]")
    }
}

impl ExecutionPlan for RankedRowsExec {
    fn name(&self) -> &'static str {
        "RankedRowsExec"
    }

    bowshot_api::getters!(properties: &Arc<PlanProperties>);

    crate::one_input!(input, |plan, input| Self::above(input, Arc::clone(&plan.ranks)), |plan| {
        plan.ranks.keys.iter().chain(plan.ranks.order.iter().map(|key| &key.expr))
    });

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    crate::statistics_of_input!(|_plan, input| Arc::new(Statistics::clone(input).to_inexact()));

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let memory = MemoryConsumer::new("RankedRows").register(context.memory_pool());
        let rows = Rows {
            input: Some(input),
            passed: BatchCoalescer::new(Arc::clone(&schema), context.session_config().batch_size()),
            first: First::new(Arc::clone(&self.ranks), &schema, memory)?,
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = stream::try_unfold(rows, |mut rows| async move {
            let batch = rows.next().await?;
            Ok::<_, DataFusionError>(batch.map(|batch| (batch, rows)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

struct Rows {
    /// Until it has ended.
    input: Option<SendableRecordBatchStream>,
    passed: BatchCoalescer,
    /// Until all rows pass.
    first: Option<First>,
    metrics: BaselineMetrics,
}

impl Rows {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.passed.next_completed_batch() {
                self.metrics.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            match input.next().await {
                Some(batch) => self.push(batch?)?,
                None => {
                    self.input = None;
                    self.passed.finish_buffered_batch()?;
                }
            }
        }
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let Some(first) = &mut self.first else { return Ok(self.passed.push_batch(batch)?) };
        let passing = first.passing(&batch)?;
        if first.gives_up() {
            self.first = None;
        }
        Ok(self.passed.push_batch_with_filter(batch, &passing)?)
    }
}

/// The first rows of all partitions so far.
struct First {
    ranks: Arc<Ranks>,
    partitions: Option<Box<dyn GroupValues>>,
    converter: RowConverter,
    keys: Vec<FirstKeys>,
    bytes: usize,
    memory: MemoryReservation,
    /// Rows since the last look at them, those of them that have passed, and when the next one is.
    looked_at: [usize; 2],
    next_look: usize,
    /// The partition of each row of a batch.
    numbers: Vec<usize>,
}

impl First {
    fn new(ranks: Arc<Ranks>, schema: &Schema, memory: MemoryReservation) -> Result<Option<Self>> {
        let Some(converter) = ranks.converter(schema)? else { return Ok(None) };
        let partitions = ranks.partitions(schema)?;
        Ok(Some(Self {
            ranks,
            partitions,
            converter,
            keys: Vec::new(),
            bytes: 0,
            memory,
            looked_at: [0, 0],
            next_look: FIRST_LOOK,
            numbers: Vec::new(),
        }))
    }

    /// Which rows of a batch may be among the first of their partitions.
    fn passing(&mut self, batch: &RecordBatch) -> Result<BooleanArray> {
        let rows = batch.num_rows();
        self.numbers.clear();
        match &mut self.partitions {
            Some(partitions) => {
                let keys = arrays(&self.ranks.keys, batch)?;
                partitions.intern(&keys, &mut self.numbers)?;
                self.keys.resize_with(partitions.len(), FirstKeys::default);
            }
            None => {
                self.numbers.resize(rows, 0);
                self.keys.resize_with(1, FirstKeys::default);
            }
        }
        let order = arrays(self.ranks.order.iter().map(|key| &key.expr), batch)?;
        let order = self.converter.convert_columns(&order)?;
        let (rank, most) = (self.ranks.rank, self.ranks.most);
        let (known, bytes) = (&mut self.keys, &mut self.bytes);
        let rows = order.iter().zip(&self.numbers).map(|(key, partition)| {
            known.get_mut(*partition).is_none_or(|first| first.add(key.data(), rank, most, bytes))
        });
        let passing = BooleanArray::from(rows.collect::<Vec<bool>>());
        self.looked_at[0] += self.numbers.len();
        self.looked_at[1] += passing.true_count();
        Ok(passing)
    }

    /// Whether it is not worth it to go on: there is no memory, or three of four rows pass.
    fn gives_up(&mut self) -> bool {
        let partitions = self.partitions.as_ref().map_or(0, |partitions| partitions.size());
        let bytes = self.bytes + partitions + self.keys.capacity() * size_of::<FirstKeys>();
        if bytes > MOST_BYTES || self.memory.try_resize(bytes).is_err() {
            return true;
        }
        let [seen, passed] = self.looked_at;
        if seen < self.next_look {
            return false;
        }
        self.next_look *= 2;
        self.looked_at = [0, 0];
        passed > seen / 4 * 3
    }
}

/// The sort keys of the first rows of one partition, in their order.
#[derive(Default)]
struct FirstKeys(Vec<Box<[u8]>>);

impl FirstKeys {
    /// Adds the key of a row, unless so many rows come before it that it is not wanted; says whether it is.
    fn add(&mut self, key: &[u8], rank: Rank, most: usize, bytes: &mut usize) -> bool {
        let is_full = self.0.len() >= most;
        if is_full && let Some(last) = self.0.last() {
            match key.cmp(last.as_ref()) {
                std::cmp::Ordering::Greater => return false,
                // Of rows that are equal any one has that number, and all of them that rank.
                std::cmp::Ordering::Equal => return rank != Rank::RowNumber,
                std::cmp::Ordering::Less => {}
            }
        }
        let place = match rank {
            Rank::DenseRank => match self.0.binary_search_by(|known| known.as_ref().cmp(key)) {
                Ok(_) => return true,
                Err(place) => place,
            },
            Rank::RowNumber | Rank::Rank => self.0.partition_point(|known| known.as_ref() <= key),
        };
        if is_full && let Some(last) = self.0.pop() {
            *bytes -= cost(&last);
        }
        *bytes += cost(key);
        self.0.insert(place, key.into());
        true
    }
}

fn cost(key: &[u8]) -> usize {
    key.len() + size_of::<Box<[u8]>>()
}
