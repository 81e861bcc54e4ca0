//! Lists of floating-point numbers. One of more than a few numbers is looked up by their bits, which tell two zeros apart.

use crate::rules::expressions::in_plan;
use bowshot_functions::balanced;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, lit};
use datafusion::optimizer::AnalyzerRule;

/// Adds the other zero to lists of floating-point numbers with one. Types must have been settled before.
#[derive(Debug)]
pub(in crate::rules) struct BothZeros;

impl AnalyzerRule for BothZeros {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        in_plan(plan, |expr, schema| {
            expr.transform_up(|node| match node {
                Expr::InList(list) => Ok(with_both_zeros(list, schema)),
                node => Ok(Transformed::no(node)),
            })
        })
    }

    fn name(&self) -> &'static str {
        "both_zeros"
    }
}

/// `a IN (b, 1, 2)` as `a IN (1, 2) OR a = b`. The optimiser intersects and subtracts lists by what is written in them, which
/// says something of constants alone.
pub(super) fn columns_apart(list: InList) -> Transformed<Expr> {
    let InList { expr, list, negated } = list;
    let (constants, columns): (Vec<_>, Vec<_>) = list.into_iter().partition(is_constant);
    if columns.is_empty() || expr.is_volatile() {
        let list = constants.into_iter().chain(columns).collect();
        return Transformed::no(Expr::InList(InList { expr, list, negated }));
    }
    let compared = |with: Expr| {
        if negated { expr.as_ref().clone().not_eq(with) } else { expr.as_ref().clone().eq(with) }
    };
    let mut parts: Vec<_> = columns.into_iter().map(compared).collect();
    if !constants.is_empty() {
        parts.insert(0, Expr::InList(InList { expr: expr.clone(), list: constants, negated }));
    }
    let all = balanced(parts, if negated { Expr::and } else { Expr::or });
    Transformed::yes(all.unwrap_or_else(|| lit(negated)))
}

fn is_constant(expr: &Expr) -> bool {
    !expr.any_column_refs()
        && !expr.contains_outer()
        && !expr.is_volatile()
        && !expr.contains_scalar_subquery()
}

fn with_both_zeros(mut list: InList, schema: &DFSchema) -> Transformed<Expr> {
    let zeros = match list.expr.get_type(schema) {
        Ok(DataType::Float64) => [0.0, -0.0].map(|zero| ScalarValue::Float64(Some(zero))),
        Ok(DataType::Float32) => [0.0, -0.0].map(|zero| ScalarValue::Float32(Some(zero))),
        _ => return Transformed::no(Expr::InList(list)),
    };
    let written = zeros.clone().map(|zero| Expr::Literal(zero, None));
    // The analysis runs on what was analysed before, too.
    if !list.list.iter().any(is_zero) || written.iter().all(|zero| list.list.contains(zero)) {
        return Transformed::no(Expr::InList(list));
    }
    list.list.extend(written);
    Transformed::yes(Expr::InList(list))
}

fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(Cast { expr, .. }) => is_zero(expr),
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => *value == 0.0,
        Expr::Literal(ScalarValue::Float32(Some(value)), _) => *value == 0.0,
        Expr::Literal(value, _) => ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| zero == *value),
        _ => false,
    }
}
