//! IN lists of floating-point numbers. DataFusion looks up long lists by the bits of the numbers, by which two zeros differ.

use super::order::zero_of;
use crate::expressions::in_plan;
use bowshot_functions::balanced;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, lit};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Adds the other zero to lists of floating-point numbers with one. Types must have been settled before.
pub(crate) fn both_zeros(plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
    in_plan(plan, |expr, schema| {
        expr.transform_up(|node| match node {
            Expr::InList(list) => {
                let of = list.expr.get_type(schema).ok();
                Ok(with_both_zeros(list, of))
            }
            node => Ok(Transformed::no(node)),
        })
    })
}

/// The same for the lists that the optimiser makes of `a = 0 OR a IN (1, 2)`.
#[derive(Debug)]
pub(crate) struct BothZeros;

impl OptimizerRule for BothZeros {
    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = expr.transform_up(|part| match part {
                    Expr::InList(list) => {
                        let of = list.list.iter().find_map(|value| match value {
                            Expr::Literal(value, _) => Some(value.data_type()),
                            _ => None,
                        });
                        Ok(with_both_zeros(list, of))
                    }
                    part => Ok(Transformed::no(part)),
                })?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
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

fn with_both_zeros(mut list: InList, of: Option<DataType>) -> Transformed<Expr> {
    let zero = of.and_then(|data_type| zero_of(&data_type));
    let zeros = zero.and_then(|zero| Some([zero.arithmetic_negate().ok()?, zero]));
    let Some(zeros) = zeros else { return Transformed::no(Expr::InList(list)) };
    let written = zeros.map(|zero| Expr::Literal(zero, None));
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
        Expr::Literal(value, _) => ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| {
            let is_negative_zero = || value.arithmetic_negate().is_ok_and(|negated| negated == zero);
            zero == *value || (value.data_type().is_floating() && is_negative_zero())
        }),
        _ => false,
    }
}
