//! `SELECT -a AS a FROM t ORDER BY a + 0`: within an expression of ORDER BY a name is that of a column of the tables, as the
//! standard and PostgreSQL have it; alone it is that of a column of the result. The planner takes the result's in both cases.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Sort};
use std::sync::Arc;

/// The plan in which such names are those of the tables' columns, as the planner made it.
///
/// # Errors
/// When the plan cannot be built.
pub(crate) fn of_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Sort(sort) => in_sort(sort),
        node => Ok(Transformed::no(node)),
    })
    .data()
}

fn in_sort(sort: Sort) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(result) = sort.input.as_ref() else {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    };
    let mut keys = Vec::with_capacity(sort.expr.len());
    let mut hidden = Vec::new();
    for key in &sort.expr {
        keys.push(match of_tables(&key.expr, result)? {
            Some(expr) => {
                let name = format!("__order_{}", hidden.len());
                hidden.push(expr.alias(name.clone()));
                SortExpr { expr: Expr::Column(Column::new_unqualified(name)), ..key.clone() }
            }
            None => key.clone(),
        });
    }
    if hidden.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    }
    let shown: Vec<Expr> = result.schema.columns().into_iter().map(Expr::Column).collect();
    let with_keys = result.expr.iter().cloned().chain(hidden).collect();
    let with_keys = Projection::try_new(with_keys, Arc::clone(&result.input))?;
    let input = Arc::new(LogicalPlan::Projection(with_keys));
    let sorted = LogicalPlan::Sort(Sort { expr: keys, input, fetch: sort.fetch });
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(shown, Arc::new(sorted))?)))
}

/// The key over the columns of the tables, if it computes with a name that both they and the result have.
fn of_tables(key: &Expr, result: &Projection) -> Result<Option<Expr>> {
    if matches!(key, Expr::Column(_)) {
        return Ok(None);
    }
    let tables = result.input.schema();
    let mut both = false;
    let rewritten = key.clone().transform(|part| {
        let Expr::Column(column) = &part else { return Ok(Transformed::no(part)) };
        if column.relation.is_none()
            && let Some(of_table) = only(tables, &column.name)
        {
            both |= defined(result, column).is_some_and(|expr| *expr != Expr::Column(of_table.clone()));
            return Ok(Transformed::yes(Expr::Column(of_table)));
        }
        // What only the result has.
        Ok(match defined(result, column) {
            Some(expr) if !tables.has_column(column) => Transformed::yes(expr.clone()),
            _ => Transformed::no(part),
        })
    })?;
    Ok(both.then_some(rewritten.data))
}

/// What a column of the result is computed of.
fn defined<'a>(result: &'a Projection, column: &Column) -> Option<&'a Expr> {
    match result.expr.get(result.schema.maybe_index_of_column(column)?)? {
        Expr::Alias(alias) => Some(&alias.expr),
        other => Some(other),
    }
}

/// The column of that name, if there is one alone.
fn only(tables: &DFSchema, name: &str) -> Option<Column> {
    match tables.qualified_fields_with_unqualified_name(name).as_slice() {
        [(qualifier, field)] => Some(Column::new(qualifier.map(|table| (*table).clone()), field.name())),
        _ => None,
    }
}
