//! The scan of rows that a client sends along with its statement: one partition, whose batches come when the client sends them.
//!
//! Conditions are judged here, batch by batch. DataFusion's filter would gather rows until it has a full batch, and a client that
//! waits for the answer to a row before it sends the next one would wait for ever.

use bowshot_policy::snapshot::input::StreamedTable;
use datafusion::arrow::array::BooleanArray;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::{StreamExt, stream};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

/// What the scan says of its size, which nobody knows. A join gathers the side that it takes to be smaller before it looks at
/// the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guess {
    /// More than any table: joins gather the tables, and rows go through them while they come.
    Large,
    /// Less than any table: for statements that change rows of one, which give nothing before they have read all.
    Small,
}

/// The scan of the rows that a client sends with its statement.
#[derive(Debug)]
pub(crate) struct InputScan {
    table: Arc<StreamedTable>,
    columns: Vec<usize>,
    condition: Option<Arc<dyn PhysicalExpr>>,
    guess: Guess,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl InputScan {
    /// A scan of some columns, for rows of which a condition over all columns is true.
    pub(crate) fn new(
        table: Arc<StreamedTable>,
        columns: Vec<usize>,
        condition: Option<Arc<dyn PhysicalExpr>>,
        guess: Guess,
    ) -> Result<Self> {
        let schema = Arc::new(table.schema().project(&columns)?);
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        table.counts_scan(true);
        Ok(Self { table, columns, condition, guess, schema, properties })
    }
}

impl Drop for InputScan {
    fn drop(&mut self) {
        self.table.counts_scan(false);
    }
}

impl DisplayAs for InputScan {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "{}: table={}, columns=[{}]", self.name(), self.table.name(), columns.join(", "))?;
        match &self.condition {
            Some(condition) => write!(f, ", condition={condition}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for InputScan {
    fn name(&self) -> &'static str {
        "InputScan"
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
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.condition.as_ref().map_or(Ok(TreeNodeRecursion::Continue), f)
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let (rows, bytes) = match self.guess {
            Guess::Large => (1 << 31, 1 << 38),
            Guess::Small => (1 << 7, 1 << 12),
        };
        let mut statistics = Statistics::new_unknown(&self.schema);
        statistics.num_rows = Precision::Inexact(rows);
        statistics.total_byte_size = Precision::Inexact(bytes);
        Ok(Arc::new(statistics))
    }

    fn execute(&self, _partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (table, pool) = (Arc::clone(&self.table), Arc::clone(context.memory_pool()));
        let chosen = (self.columns.clone(), self.condition.clone(), Arc::clone(&self.schema));
        let batches = stream::unfold(0, move |number| {
            let (table, pool) = (Arc::clone(&table), Arc::clone(&pool));
            async move {
                let batch = poll_fn(|cx| table.poll_batch(number, &pool, cx)).await?;
                Some((batch.map_err(|error| DataFusionError::External(Box::new(error))), number + 1))
            }
        });
        let batches = batches.map(move |batch| cut(&batch?, &chosen.0, chosen.1.as_deref(), &chosen.2));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches)))
    }
}

/// The rows of a batch that the condition keeps, and its columns that are asked for.
fn cut(
    batch: &RecordBatch,
    columns: &[usize],
    condition: Option<&dyn PhysicalExpr>,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let kept = match condition {
        Some(condition) => {
            let truth = condition.evaluate(batch)?.into_array(batch.num_rows())?;
            let truth: &BooleanArray = as_boolean_array(&truth)?;
            &filter_record_batch(batch, truth)?
        }
        None => batch,
    };
    let arrays = columns.iter().map(|column| Arc::clone(kept.column(*column))).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(kept.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
}
