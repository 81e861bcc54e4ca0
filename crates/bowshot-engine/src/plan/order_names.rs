//! `SELECT -a AS a FROM t ORDER BY a + 0`: within an expression of ORDER BY a name is that of a column of the tables, as the
//! standard and PostgreSQL have it; alone it is that of a column of the result. `bowshot-sql` marks such names, which the planner
//! takes for those of the result. A subquery in ORDER BY that reads columns of the tables is computed with these, too.

use bowshot_sql::rewrite::KEPT_APART;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Sort};
use std::sync::Arc;

/// The plan in which marked names are those of the tables' columns where they have them.
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

fn in_sort(mut sort: Sort) -> Result<Transformed<LogicalPlan>> {
    let result = match sort.input.as_ref() {
        LogicalPlan::Projection(result) => Some(result),
        _ => None,
    };
    let mut hidden = Vec::new();
    let mut changed = false;
    for key in &mut sort.expr {
        let rewritten = std::mem::take(&mut key.expr).transform_down(|part| {
            let name = format!("__order_{}", hidden.len());
            let Some((column, table)) = marked(&part) else {
                if !result.is_some_and(|result| reads_tables(&part, result)) {
                    return Ok(Transformed::no(part));
                }
                hidden.push(part.alias(name.clone()));
                return Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))));
            };
            let of_table =
                result.and_then(|result| only(result.input.schema(), &column.name, table.as_deref()));
            let Some(of_table) = of_table else {
                return match table {
                    Some(table) => plan_err!("cannot order by column {table}.{} here", column.name),
                    None => Ok(Transformed::yes(Expr::Column(column))),
                };
            };
            hidden.push(Expr::Column(of_table).alias(name.clone()));
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
        })?;
        changed |= rewritten.transformed;
        key.expr = rewritten.data;
    }
    match result {
        Some(result) if !hidden.is_empty() => {
            let shown = result.schema.columns().into_iter().map(Expr::Column).collect();
            let with_keys = result.expr.iter().cloned().chain(hidden).collect();
            let with_keys = Projection::try_new(with_keys, Arc::clone(&result.input))?;
            let input = Arc::new(LogicalPlan::Projection(with_keys));
            let sorted = LogicalPlan::Sort(Sort { expr: sort.expr, input, fetch: sort.fetch });
            Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(shown, Arc::new(sorted))?)))
        }
        _ if changed => Ok(Transformed::yes(LogicalPlan::Sort(sort))),
        _ => Ok(Transformed::no(LogicalPlan::Sort(sort))),
    }
}

/// The column of a marked name, and the table that it is said to be of.
fn marked(expr: &Expr) -> Option<(Column, Option<String>)> {
    match expr {
        Expr::ScalarFunction(call) if call.name() == KEPT_APART => {
            let column = call.args.first()?.try_as_col().cloned()?;
            let table = match call.args.get(1) {
                Some(Expr::Literal(table, _)) => table.try_as_str().flatten().map(str::to_owned),
                _ => None,
            };
            Some((column, table))
        }
        _ => None,
    }
}

/// The column of that name, if there is one alone.
fn only(tables: &DFSchema, name: &str, of: Option<&str>) -> Option<Column> {
    let mut found = tables.qualified_fields_with_unqualified_name(name);
    found.retain(|(table, _)| of.is_none_or(|of| table.is_some_and(|table| table.table() == of)));
    match found.as_slice() {
        [(qualifier, field)] => Some(Column::new(qualifier.map(|table| (*table).clone()), field.name())),
        _ => None,
    }
}

/// Whether it is a subquery that reads columns of the tables which the result does not have.
fn reads_tables(expr: &Expr, result: &Projection) -> bool {
    let subquery = match expr {
        Expr::ScalarSubquery(subquery) => subquery,
        Expr::Exists(exists) => &exists.subquery,
        _ => return false,
    };
    let outer = subquery.outer_ref_columns.iter().filter_map(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) => Some(column),
        _ => None,
    });
    let (tables, result) = (result.input.schema(), &result.schema);
    outer.clone().any(|column| tables.has_column(column) && !result.has_column(column))
        && outer.clone().all(|column| tables.has_column(column) || !result.has_column(column))
}
