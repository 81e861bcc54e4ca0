//! Nested loop joins that end when their query does. Such a join evaluates its condition for batch after batch of pairs and gives
//! nothing until some fulfil it, so that a cancel or a deadline is not seen before. Here its condition checks for them.

use bowshot_query_task::step;
use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The same join with a condition that looks whether anybody still wants its rows; `None` for other nodes.
pub(crate) fn interruptible(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() else { return Ok(None) };
    let Some(filter) = join.filter() else { return Ok(None) };
    let condition = stepping(Arc::clone(filter.expression()));
    let filter = JoinFilter::new(condition, filter.column_indices().to_vec(), Arc::clone(filter.schema()));
    let projection = join.projection().as_ref().map(|columns| columns.to_vec());
    let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
    let rebuilt = NestedLoopJoinExec::try_new(left, right, Some(filter), join.join_type(), projection)?;
    Ok(Some(Arc::new(rebuilt)))
}

/// Whether an expression looks whether anybody still wants its value.
pub fn is_stepping(expression: &Arc<dyn PhysicalExpr>) -> bool {
    expression.downcast_ref::<Stepping>().is_some()
}

/// The expression, which looks whether anybody still wants its value.
pub fn stepping(expression: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    Arc::new(Stepping(expression))
}

/// An expression that ends where its job does.
#[derive(Debug)]
struct Stepping(Arc<dyn PhysicalExpr>);

impl PartialEq for Stepping {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq(&other.0)
    }
}

impl Eq for Stepping {}

impl Hash for Stepping {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Stepping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl PhysicalExpr for Stepping {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        step(|| self.0.evaluate(batch))
    }

    bowshot_api::delegate! { 0:
        fn return_field(&self, input_schema: &Schema) -> Result<FieldRef>;
        fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.0]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(match children.pop() {
            Some(child) => Arc::new(Self(child)),
            None => self,
        })
    }
}
