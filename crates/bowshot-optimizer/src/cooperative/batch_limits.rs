//! Short batches for long constants. A constant beside a column becomes a column with as many copies as the batch has rows: 8 GB
//! for a text of a megabyte, in one step that nothing can end. Operators with such a constant, and files whose reader computes
//! one, work on batches so short that the copies stay small.

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties, replace_children_if_necessary,
};
use futures::{StreamExt, stream};
use std::fmt;
use std::sync::Arc;

/// Bytes from which a constant is long. A whole batch of shorter ones fits what a statement may take in a step.
const LONG: usize = 8 << 10;
const COPIES: usize = 16 << 20;

/// The operator with short batches below it, if its constants ask for them.
pub fn below(node: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let bytes = longest(node.as_ref())?;
    if bytes < LONG {
        return Ok(node);
    }
    let rows = (COPIES / bytes).max(1);
    if node.children().is_empty() {
        return Ok(read(&node, rows).unwrap_or(node));
    }
    let children =
        node.children().into_iter().map(|child| ShortBatches::of(Arc::clone(child), rows)).collect();
    replace_children_if_necessary(node, children)
}

/// The scan of files, read in batches of at most so many rows.
fn read(node: &Arc<dyn ExecutionPlan>, rows: usize) -> Option<Arc<dyn ExecutionPlan>> {
    let source = node.downcast_ref::<DataSourceExec>()?.data_source();
    let config = source.downcast_ref::<FileScanConfig>()?.clone();
    let config = FileScanConfigBuilder::from(config).with_batch_size(Some(rows)).build();
    Some(DataSourceExec::from_data_source(config))
}

/// Bytes of the longest constant in an operator's own expressions.
fn longest(node: &dyn ExecutionPlan) -> Result<usize> {
    let mut longest = 0;
    node.apply_expressions(&mut |root: &Arc<dyn PhysicalExpr>| {
        root.apply(|expr| {
            if let Some(literal) = expr.downcast_ref::<Literal>() {
                longest = longest.max(literal.value().size());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(longest)
}

/// Its input, in batches of at most so many rows.
#[derive(Debug)]
pub struct ShortBatches {
    input: Arc<dyn ExecutionPlan>,
    rows: usize,
}

impl ShortBatches {
    pub fn rows(plan: &dyn ExecutionPlan) -> Option<usize> {
        plan.downcast_ref::<Self>().map(|short| short.rows)
    }

    pub fn of(input: Arc<dyn ExecutionPlan>, rows: usize) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { input, rows })
    }
}

impl DisplayAs for ShortBatches {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: rows={}", self.name(), self.rows)
    }
}

impl ExecutionPlan for ShortBatches {
    fn name(&self) -> &'static str {
        "ShortBatches"
    }

    bowshot_api::delegate! { input: fn properties(&self) -> &Arc<PlanProperties>; }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    crate::one_input!(input, |plan, input| Self { input, rows: plan.rows });

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let (schema, rows) = (input.schema(), self.rows);
        let parts = input.flat_map(move |batch| match batch {
            Ok(batch) => stream::iter(parts(batch, rows)).map(Ok).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, parts)))
    }
}

/// The batch in parts of so many rows, the last one shorter; an empty batch as it is.
fn parts(batch: RecordBatch, rows: usize) -> impl Iterator<Item = RecordBatch> {
    let count = batch.num_rows().div_ceil(rows).max(1);
    (0..count).map(move |part| {
        let start = part * rows;
        batch.slice(start, rows.min(batch.num_rows() - start))
    })
}

#[cfg(test)]
mod tests {
    use super::parts;
    use datafusion::arrow::array::{Array, Int64Array};
    use datafusion::arrow::record_batch::RecordBatch;
    use std::sync::Arc;

    #[test]
    fn every_row_is_in_one_part() {
        for (rows, length, expected) in
            [(3, 7, vec![3, 3, 1]), (3, 6, vec![3, 3]), (3, 0, vec![0]), (9, 2, vec![2])]
        {
            let column = Arc::new(Int64Array::from_iter_values(0..length)) as Arc<dyn Array>;
            let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
            let lengths: Vec<_> = parts(batch, rows).map(|part| part.num_rows()).collect();
            assert_eq!(lengths, expected);
        }
    }
}
