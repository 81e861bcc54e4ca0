//! Recursive queries that the planner takes, but not for what they say: it casts the rows of the recursive term to the types of
//! the first one without a word, and a total of no rows is a row, so that a recursion with one never ends.

use crate::error::classify;
use bowshot_api::{Error, Result};
use bowshot_sql::rewrite::CAST_TO;
use bowshot_types::names;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, RecursiveQuery};

/// Checks the recursions of a plan that nothing has changed yet.
///
/// # Errors
/// `Invalid`, with what to write.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    let mut found = Ok(());
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::RecursiveQuery(recursion) = node {
            found = check_one(recursion);
        }
        Ok(if found.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.map_err(classify)?;
    found
}

fn check_one(recursion: &RecursiveQuery) -> Result<()> {
    if gives_totals(&recursion.recursive_term, &recursion.name).map_err(classify)? {
        return Err(Error::invalid(
            "aggregate functions are not allowed in the recursive term of a recursive query",
        )
        .with_hint("aggregate in the query that reads the recursive one"));
    }
    if reads_itself_below(&recursion.recursive_term, &recursion.name).map_err(classify)? {
        return Err(Error::invalid(format!(
            "recursive reference to query `{}` must not appear within a subquery",
            recursion.name
        ))
        .with_hint("read it in FROM of the recursive term"));
    }
    let LogicalPlan::Projection(projection) = recursion.recursive_term.as_ref() else { return Ok(()) };
    let columns = recursion.static_term.schema().fields().iter();
    for (column, expr) in columns.zip(&projection.expr) {
        if let Some(given) = silently_cast(expr, projection.input.schema()) {
            let (first, given) = (names::sql_type(column.data_type()), names::sql_type(&given));
            let name = bowshot_api::display_name(column.name());
            return Err(Error::invalid(format!(
                "column `{name}` of recursive query `{}` has type {first} in its first term, and {given} in the recursive one",
                recursion.name
            ))
            .with_hint(format!("write it in one type in both: `CAST(… AS {given})`")));
        }
    }
    Ok(())
}

/// Whether a term makes one row of all that the recursion gave before.
fn gives_totals(term: &LogicalPlan, name: &str) -> datafusion::error::Result<bool> {
    let mut found = false;
    term.apply(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node
            && aggregate.group_expr.is_empty()
        {
            aggregate.input.as_ref().apply(|below| {
                found |= matches!(below, LogicalPlan::TableScan(scan) if scan.table_name.table() == name);
                Ok::<_, DataFusionError>(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Whether a subquery among the expressions of a term reads what the recursion gave before, which only FROM of the term has.
fn reads_itself_below(term: &LogicalPlan, name: &str) -> datafusion::error::Result<bool> {
    let mut found = false;
    term.apply_with_subqueries(|node| {
        node.apply_subqueries(|subquery| {
            subquery.apply_with_subqueries(|below| {
                found |= is_rows_before(below, name);
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

fn is_rows_before(node: &LogicalPlan, name: &str) -> bool {
    let LogicalPlan::TableScan(scan) = node else { return false };
    scan.table_name.table() == name
        && source_as_provider(&scan.source).is_ok_and(|table| table.is::<CteWorkTable>())
}

/// The type of what the planner casts to one that cannot hold it. Casts that were written have a function within.
fn silently_cast(expr: &Expr, columns: &DFSchema) -> Option<DataType> {
    let Expr::Cast(cast) = expr.clone().unalias() else { return None };
    match cast.expr.as_ref() {
        Expr::Literal(..) | Expr::Placeholder(_) => return None,
        Expr::ScalarFunction(call) if call.func.name() == CAST_TO => return None,
        _ => {}
    }
    let given = cast.expr.get_type(columns).ok()?;
    (!holds(cast.field.data_type(), &given)).then_some(given)
}

/// Whether a type has all values of another one, or says so where it does not.
fn holds(wide: &DataType, narrow: &DataType) -> bool {
    let text = |of: &DataType| matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match (wide, narrow) {
        (_, DataType::Null) => true,
        (wide, narrow) if wide.is_integer() => narrow.is_integer() || digits(narrow) == Some(0),
        (wide, narrow) if wide.is_floating() => narrow.is_numeric(),
        (wide, narrow) if wide.is_decimal() => {
            narrow.is_integer() || digits(narrow).is_some_and(|given| digits(wide) >= Some(given))
        }
        (wide, narrow) if text(wide) => text(narrow),
        (DataType::Timestamp(..), DataType::Timestamp(..) | DataType::Date32 | DataType::Date64) => true,
        (DataType::Dictionary(_, wide), narrow) => holds(wide, narrow),
        (wide, DataType::Dictionary(_, narrow)) => holds(wide, narrow),
        (wide, narrow) => match (element(wide), element(narrow)) {
            (Some(wide), Some(narrow)) => holds(wide, narrow),
            _ => wide.equals_datatype(narrow),
        },
    }
}

/// The type of the elements of a list.
fn element(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type())
        }
        _ => None,
    }
}

/// Digits behind the point.
fn digits(decimal: &DataType) -> Option<i8> {
    match decimal {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some((*scale).max(0)),
        _ => None,
    }
}
