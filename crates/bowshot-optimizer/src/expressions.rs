//! Expressions of logical plans, rewritten where they stand.

use super::integers;
use bowshot_types::with_uuids;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};

/// How an expression is rewritten that stands above columns of such a schema.
type Rewrite = fn(Expr, &DFSchema) -> Result<Transformed<Expr>>;

/// The plan with its expressions rewritten, those of its subqueries first. Columns keep their names.
pub(super) fn in_plan(plan: LogicalPlan, rewrite: Rewrite) -> Result<LogicalPlan> {
    let mut changed = false;
    plan.transform_up_with_subqueries(|node| in_node(node, rewrite, &mut changed)).data()
}

/// The same for one operator, above operators that have been rewritten: what it says of types is theirs afterwards. `changed`
/// tells, before and after, whether anything in the plan is another than it was: if nothing is, types are what they were.
pub(super) fn in_node(
    node: LogicalPlan,
    rewrite: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
    changed: &mut bool,
) -> Result<Transformed<LogicalPlan>> {
    if !*changed && has_no_expressions(&node)? {
        return Ok(Transformed::no(node));
    }
    let mut schema = match node.inputs().as_slice() {
        [input] => with_uuids(input).as_ref().clone(),
        inputs => inputs.iter().fold(DFSchema::empty(), |mut all, input| {
            all.merge(&with_uuids(input));
            all
        }),
    };
    if let LogicalPlan::TableScan(scan) = &node {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&node);
    let rewritten = node.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(rewrite(expr, &schema)?.update_data(|expr| name.restore(expr)))
    })?;
    *changed |= rewritten.transformed;
    if *changed { rewritten.map_data(LogicalPlan::recompute_schema) } else { Ok(rewritten) }
}

/// Whether an operator compares two values.
pub(super) fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Whether it only passes columns on.
fn has_no_expressions(node: &LogicalPlan) -> Result<bool> {
    Ok(!any_expression(node, |expr| Ok(!matches!(expr, Expr::Column(_))))?)
}

pub(super) fn any_expression(node: &LogicalPlan, is: impl Fn(&Expr) -> Result<bool>) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found = is(expr)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

pub(super) fn any_node(plan: &LogicalPlan, is: impl Fn(&LogicalPlan) -> Result<bool>) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found = is(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The type of an expression. The planner's own way computes on empty arrays for each operator, and the name of a function for
/// each one around it: asked at every level of a long sum, that takes minutes. Integers of one type need neither.
pub(super) fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    integer_type(expr, schema).map_or_else(|| expr.get_type(schema), Ok)
}

/// `None` where it is no integer, or where it takes the planner to tell.
fn integer_type(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let of = is_arithmetic(*op).then(|| integer_type(right, schema)).flatten()?;
            (integer_type(left, schema)? == of).then_some(of)
        }
        // Both sides have its type.
        Expr::ScalarFunction(call) if integers::is_arithmetic(&call.func) => {
            integer_type(call.args.last()?, schema)
        }
        Expr::Negative(of) => integer_type(of, schema),
        other => other.get_type(schema).ok().filter(DataType::is_integer),
    }
}

/// `+`, `-`, `*`, `/` and `%`.
pub(super) fn is_arithmetic(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
    )
}
