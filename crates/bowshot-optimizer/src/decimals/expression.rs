//! One operation on decimals within an expression.

use arrow::array::RecordBatch;
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Schema};
use bowshot_kernels::decimals;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_expr_common::datum::apply;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The expression with its sums, differences and products of decimals taken the short way.
pub(super) fn narrowed(
    expression: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expression.transform_up(|node| {
        let arithmetic = node.downcast_ref::<BinaryExpr>().map(|exact| is_of_decimals(exact, schema));
        if !arithmetic.transpose()?.unwrap_or(false) {
            return Ok(Transformed::no(node));
        }
        let result = node.data_type(schema)?;
        Ok(Transformed::yes(Arc::new(DecimalArithmetic { exact: node, result }) as Arc<_>))
    })
}

/// Operator and result of arithmetic that takes the short way, if it does.
pub fn narrow_arithmetic(expression: &Arc<dyn PhysicalExpr>) -> Option<(Operator, &DataType)> {
    let narrow = expression.downcast_ref::<DecimalArithmetic>()?;
    Some((*narrow.binary().ok()?.op(), &narrow.result))
}

/// Such arithmetic of two sides.
pub fn narrow(
    left: Arc<dyn PhysicalExpr>,
    operator: Operator,
    right: Arc<dyn PhysicalExpr>,
    result: DataType,
) -> Arc<dyn PhysicalExpr> {
    Arc::new(DecimalArithmetic { exact: Arc::new(BinaryExpr::new(left, operator, right)), result })
}

fn is_of_decimals(exact: &BinaryExpr, schema: &Schema) -> Result<bool> {
    if !matches!(exact.op(), Operator::Plus | Operator::Minus | Operator::Multiply) {
        return Ok(false);
    }
    let is_decimal = |side: &Arc<dyn PhysicalExpr>| {
        side.data_type(schema).map(|kind| matches!(kind, DataType::Decimal128(..)))
    };
    Ok(is_decimal(exact.left())? && is_decimal(exact.right())?)
}

/// Wraps an expression and changes only its evaluation.
#[derive(Debug)]
struct DecimalArithmetic {
    /// A [`BinaryExpr`] of two decimals.
    exact: Arc<dyn PhysicalExpr>,
    result: DataType,
}

// By hand, since deriving fails for an `Arc` of a trait (rust-lang/rust#78808).
impl PartialEq for DecimalArithmetic {
    fn eq(&self, other: &Self) -> bool {
        self.exact.eq(&other.exact) && self.result == other.result
    }
}

impl Eq for DecimalArithmetic {}

impl Hash for DecimalArithmetic {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.exact.hash(state);
        self.result.hash(state);
    }
}

impl DecimalArithmetic {
    fn binary(&self) -> Result<&BinaryExpr> {
        self.exact.downcast_ref().ok_or_else(|| internal_datafusion_err!("decimal arithmetic has two sides"))
    }
}

impl PhysicalExpr for DecimalArithmetic {
    fn data_type(&self, _schema: &Schema) -> Result<DataType> {
        Ok(self.result.clone())
    }

    bowshot_api::delegate! { exact:
        fn nullable(&self, schema: &Schema) -> Result<bool>;
        fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>>;
        fn evaluate_bounds(&self, children: &[&Interval]) -> Result<Interval>;
        fn get_properties(&self, children: &[ExprProperties]) -> Result<ExprProperties>;
        fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let binary = self.binary()?;
        let left = binary.left().evaluate(batch)?;
        let right = binary.right().evaluate(batch)?;
        if let Some(values) = decimals::narrow(*binary.op(), &left, &right, &self.result) {
            return Ok(ColumnarValue::Array(values));
        }
        let wide = match binary.op() {
            Operator::Plus => apply(&left, &right, numeric::add),
            Operator::Minus => apply(&left, &right, numeric::sub),
            Operator::Multiply => apply(&left, &right, numeric::mul),
            other => internal_err!("{other} is no decimal arithmetic"),
        }?;
        decimals::in_range(&wide, &self.result)?;
        Ok(wide)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        // Of what type those are, nobody tells.
        Arc::clone(&self.exact).with_new_children(children)
    }
}

impl fmt::Display for DecimalArithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.exact.fmt(f)
    }
}

/// Whether some part of the expression takes the short way.
#[cfg(test)]
pub(super) fn is_narrowed(expression: &Arc<dyn PhysicalExpr>) -> bool {
    expression.exists(|node| Ok(node.downcast_ref::<DecimalArithmetic>().is_some())).unwrap_or(false)
}
