//! Aggregates over whole partitions beside each row: rows are grouped by the keys of the partitions as they come and kept, in memory or in
//! files, until all are there; then each gets the values of its group. Groups themselves have to fit into memory.

use crate::coarser_sets::accumulator_of_groups;
use crate::materialized_rows::{MaterializedRows, Materializing};
use datafusion::arrow::array::{Array, ArrayRef, UInt64Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result, Statistics, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Totals {
    pub(super) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) functions: Vec<Arc<AggregateFunctionExpr>>,
    /// The columns of the input, and one for each function.
    pub(super) schema: SchemaRef,
}

#[derive(Debug)]
pub(crate) struct PartitionTotalsExec {
    input: Arc<dyn ExecutionPlan>,
    totals: Arc<Totals>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl PartitionTotalsExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, totals: Arc<Totals>) -> Result<Self> {
        let equivalences = EquivalenceProperties::new(Arc::clone(&totals.schema));
        let mut equivalences = equivalences.extend(input.equivalence_properties().clone())?;
        // A rule that moves sorts with a limit below operators that keep the order would take rows from the totals.
        equivalences.clear_orderings();
        let partitioning = input.output_partitioning().clone();
        let properties =
            PlanProperties::new(equivalences, partitioning, EmissionType::Final, input.boundedness());
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { input, totals, metrics, properties: Arc::new(properties) })
    }

    /// The functions, whose values are in the last columns.
    pub(crate) fn functions(&self) -> &[Arc<AggregateFunctionExpr>] {
        &self.totals.functions
    }
}

impl DisplayAs for PartitionTotalsExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.totals.keys.iter().map(ToString::to_string).collect();
        let functions: Vec<&str> = self.totals.functions.iter().map(|function| function.name()).collect();
        write!(
            f,
            "PartitionTotalsExec: partition=[{}], functions=[{}]",
            keys.join(", "),
            functions.join(", ")
        )
    }
}

impl ExecutionPlan for PartitionTotalsExec {
    fn name(&self) -> &'static str {
        "PartitionTotalsExec"
    }

    bowshot_api::getters!(properties: &Arc<PlanProperties>);

    crate::one_input!(input, |plan, input| Self::new(input, Arc::clone(&plan.totals))?, |plan| {
        let arguments = plan.totals.functions.iter().flat_map(|function| function.expressions());
        plan.totals.keys.iter().cloned().chain(arguments)
    });

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::KeyPartitioned(self.totals.keys.clone())]
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    crate::statistics_of_input!(|plan, input| {
        let mut statistics = Statistics::clone(input);
        statistics.total_byte_size = Precision::Absent;
        let columns = plan.totals.schema.fields().len();
        statistics.column_statistics.resize(columns, ColumnStatistics::new_unknown());
        Arc::new(statistics)
    });

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let groups = Groups::new(Arc::clone(&self.totals), &input.schema(), &context, &self.metrics)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = stream::once(groups.of_all(input)).map_ok({
            let schema = Arc::clone(&schema);
            move |known| {
                let (schema, metrics) = (Arc::clone(&schema), metrics.clone());
                known.rows().map(move |batch| {
                    let batch = known.beside(&batch?, &schema)?;
                    metrics.record_output(batch.num_rows());
                    Ok::<_, DataFusionError>(batch)
                })
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches.try_flatten())))
    }
}

/// The groups while rows come.
struct Groups {
    totals: Arc<Totals>,
    partitions: Box<dyn GroupValues>,
    /// With their arguments.
    functions: Vec<(Vec<Arc<dyn PhysicalExpr>>, Box<dyn GroupsAccumulator>)>,
    memory: MemoryReservation,
    /// With the number of the group of each.
    rows: Materializing,
    /// Their columns.
    schema: SchemaRef,
    numbers: Vec<usize>,
}

impl Groups {
    fn new(
        totals: Arc<Totals>,
        input: &Schema,
        context: &TaskContext,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Self> {
        let keys = totals.keys.iter().map(|key| Ok(Field::new("key", key.data_type(input)?, true)));
        let keys = Arc::new(Schema::new(keys.collect::<Result<Vec<_>>>()?));
        let functions = totals.functions.iter();
        let functions =
            functions.map(|function| Ok((function.expressions(), accumulator_of_groups(function)?)));
        let functions = functions.collect::<Result<Vec<_>>>()?;
        let number = Arc::new(Field::new("group", DataType::UInt64, false));
        let fields = input.fields().iter().cloned().chain([number]);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self {
            totals,
            partitions: new_group_values(keys, &GroupOrdering::None)?,
            functions,
            memory: MemoryConsumer::new("PartitionTotals").register(context.memory_pool()),
            rows: Materializing::new(Arc::clone(&schema), 1, context, metrics),
            schema,
            numbers: Vec::new(),
        })
    }

    async fn of_all(mut self, mut input: SendableRecordBatchStream) -> Result<Known> {
        while let Some(batch) = input.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                self.add(&batch)?;
            }
        }
        drop(input);
        self.finish()
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.numbers.clear();
        self.partitions.intern(&arrays(&self.totals.keys, batch)?, &mut self.numbers)?;
        for (arguments, function) in &mut self.functions {
            let arguments = arrays(arguments.iter(), batch)?;
            function.update_batch(&arguments, &self.numbers, None, self.partitions.len())?;
        }
        let numbers = UInt64Array::from_iter_values(self.numbers.iter().map(|number| *number as u64));
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(numbers));
        self.rows.add(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)?;
        let functions: usize = self.functions.iter().map(|(_, function)| function.size()).sum();
        let bytes = functions + self.partitions.size();
        if self.memory.try_resize(bytes).is_ok() {
            return Ok(());
        }
        self.rows.spill()?;
        self.memory.try_resize(bytes)
    }

    fn finish(self) -> Result<Known> {
        let Self { partitions, functions, memory, rows, .. } = self;
        drop(partitions);
        let values = functions.into_iter().map(|(_, mut function)| function.evaluate(EmitTo::All));
        let values = values.collect::<Result<Vec<_>>>()?;
        memory.try_resize(values.iter().map(|values| values.get_array_memory_size()).sum())?;
        Ok(Known { values, rows: Arc::new(rows.finish()?), _memory: memory })
    }
}

/// All rows, and the values of their groups.
struct Known {
    rows: Arc<MaterializedRows>,
    /// For each function those of all groups.
    values: Vec<ArrayRef>,
    _memory: MemoryReservation,
}

impl Known {
    fn rows(&self) -> SendableRecordBatchStream {
        Arc::clone(&self.rows).read(0)
    }

    fn beside(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let Some((numbers, columns)) = batch.columns().split_last() else {
            return internal_err!("rows have the number of their group");
        };
        let mut columns = columns.to_vec();
        for values in &self.values {
            columns.push(take(values.as_ref(), numbers.as_ref(), None)?);
        }
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

pub(super) fn arrays<'a>(
    expressions: impl IntoIterator<Item = &'a Arc<dyn PhysicalExpr>>,
    batch: &RecordBatch,
) -> Result<Vec<ArrayRef>> {
    let expressions = expressions.into_iter();
    expressions.map(|expression| expression.evaluate(batch)?.into_array(batch.num_rows())).collect()
}
