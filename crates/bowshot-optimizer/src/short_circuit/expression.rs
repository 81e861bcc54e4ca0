//! AND and OR whose right side may fail.

use super::failure::can_fail;
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::kernels::boolean::{and_kleene, is_null, not, or, or_kleene};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The expression with each AND and OR guarded whose right side may fail.
pub fn guarded(
    expression: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expression.transform_up(|node| {
        let needed = node.downcast_ref::<BinaryExpr>().is_some_and(|binary| {
            matches!(binary.op(), Operator::And | Operator::Or) && can_fail(binary.right(), schema)
        });
        Ok(if needed {
            Transformed::yes(Arc::new(Guarded { exact: node }) as Arc<_>)
        } else {
            Transformed::no(node)
        })
    })
}

/// Whether AND or OR is guarded, if it is one of those.
pub fn guarded_operator(expression: &Arc<dyn PhysicalExpr>) -> Option<Operator> {
    expression.downcast_ref::<Guarded>()?.binary().ok().map(|binary| *binary.op())
}

/// The guarded AND or OR of two sides.
pub fn guard(
    left: Arc<dyn PhysicalExpr>,
    operator: Operator,
    right: Arc<dyn PhysicalExpr>,
) -> Arc<dyn PhysicalExpr> {
    Arc::new(Guarded { exact: Arc::new(BinaryExpr::new(left, operator, right)) })
}

/// Wraps an expression and changes only its evaluation.
#[derive(Debug)]
struct Guarded {
    /// A [`BinaryExpr`] of AND or OR.
    exact: Arc<dyn PhysicalExpr>,
}

// By hand, since deriving fails for an `Arc` of a trait (rust-lang/rust#78808).
impl PartialEq for Guarded {
    fn eq(&self, other: &Self) -> bool {
        self.exact.eq(&other.exact)
    }
}

impl Eq for Guarded {}

impl Hash for Guarded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.exact.hash(state);
    }
}

impl Guarded {
    fn binary(&self) -> Result<&BinaryExpr> {
        self.exact.downcast_ref().ok_or_else(|| internal_datafusion_err!("a guarded condition has two sides"))
    }

    /// The right side only for rows that need it.
    fn row_by_row(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let (binary, rows) = (self.binary()?, batch.num_rows());
        let is_and = *binary.op() == Operator::And;
        let left = binary.left().evaluate(batch)?.into_array(rows)?;
        let left = as_boolean_array(&left)?;
        let open = open(left, is_and)?;
        let right = if open.true_count() == 0 {
            BooleanArray::new_null(rows)
        } else {
            let right = binary.right().evaluate_selection(batch, &open)?.into_array(rows)?;
            as_boolean_array(&right)?.clone()
        };
        let both = if is_and { and_kleene(left, &right)? } else { or_kleene(left, &right)? };
        Ok(ColumnarValue::Array(Arc::new(both)))
    }
}

/// The rows whose answer the left side leaves open.
fn open(left: &BooleanArray, is_and: bool) -> Result<BooleanArray> {
    let unknown = is_null(left)?;
    let values = if is_and { left.clone() } else { not(left)? };
    let known = BooleanArray::new(values.values().clone(), None);
    let known = arrow::compute::kernels::boolean::and(&known, &not(&unknown)?)?;
    Ok(or(&known, &unknown)?)
}

impl PhysicalExpr for Guarded {
    bowshot_api::delegate! { exact:
        fn data_type(&self, schema: &Schema) -> Result<DataType>;
        fn nullable(&self, schema: &Schema) -> Result<bool>;
        fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>>;
        fn evaluate_bounds(&self, children: &[&Interval]) -> Result<Interval>;
        fn get_properties(&self, children: &[ExprProperties]) -> Result<ExprProperties>;
        fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        // Mostly nothing fails, and then whole batches are the fastest.
        self.exact.evaluate(batch).or_else(|_| self.row_by_row(batch))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Self { exact: Arc::clone(&self.exact).with_new_children(children)? }))
    }
}

impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.exact.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::Field;
    use datafusion::common::ScalarValue;
    use datafusion::physical_expr::expressions::{binary, col, lit};

    fn condition(of: &Schema, operator: Operator) -> Arc<dyn PhysicalExpr> {
        let zero = || lit(ScalarValue::Int64(Some(0)));
        let compared = if operator == Operator::And { Operator::NotEq } else { Operator::Eq };
        let left = binary(col("x", of).expect("x"), compared, zero(), of).expect("left");
        let divided =
            binary(lit(ScalarValue::Int64(Some(10))), Operator::Divide, col("x", of).expect("x"), of);
        let one = lit(ScalarValue::Int64(Some(1)));
        let right = binary(divided.expect("division"), Operator::Gt, one, of).expect("right");
        binary(left, operator, right, of).expect("condition")
    }

    #[test]
    fn rows_that_the_left_side_settles_are_not_divided() {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
        let values = Int64Array::from(vec![Some(0), Some(1), Some(20), None]);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(values)]).expect("batch");
        for (operator, expected) in [
            (Operator::And, vec![Some(false), Some(true), Some(false), None]),
            (Operator::Or, vec![Some(true), Some(true), Some(false), None]),
        ] {
            let exact = condition(&schema, operator);
            assert!(exact.evaluate(&batch).is_err(), "{exact}");
            let guarded = guarded(exact, &schema).expect("guarded").data;
            let answer = guarded.evaluate(&batch).and_then(|value| value.into_array(4)).expect("value");
            assert_eq!(as_boolean_array(&answer).expect("boolean"), &BooleanArray::from(expected));
        }
    }
}
