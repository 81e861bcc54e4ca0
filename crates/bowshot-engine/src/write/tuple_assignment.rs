//! `SET (a, b) = (1, 2)` and `SET (a, b) = (SELECT …)` as one assignment for each column.

use crate::catalog::names::ident;
use crate::write::change;
use bowshot_api::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, ObjectName, OrderByKind, Query, SelectItem, SetExpr, TableFactor, Value, ValueWithSpan,
};

/// Columns and what is assigned to each.
///
/// # Errors
/// `Invalid` for more or fewer values than columns.
pub(super) fn split(assignments: &[Assignment]) -> Result<Vec<(ObjectName, Expr)>> {
    let mut single = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        match &assignment.target {
            AssignmentTarget::ColumnName(name) => single.push((name.clone(), assignment.value.clone())),
            AssignmentTarget::Tuple(names) => {
                let values = values(&assignment.value, names.len())?;
                if values.len() != names.len() {
                    return Err(Error::invalid(format!(
                        "{} columns are assigned {} values",
                        names.len(),
                        values.len()
                    )));
                }
                single.extend(names.iter().cloned().zip(values));
            }
        }
    }
    Ok(single)
}

fn values(value: &Expr, columns: usize) -> Result<Vec<Expr>> {
    match value {
        Expr::Tuple(values) => Ok(values.clone()),
        Expr::Nested(inner) => values(inner, columns),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            arguments(function)
        }
        Expr::Subquery(query) => (0..columns).map(|column| column_of(query, column, columns)).collect(),
        one if columns == 1 => Ok(vec![one.clone()]),
        other => Err(Error::invalid(format!("`{other}` is no row of values"))),
    }
}

fn arguments(function: &Function) -> Result<Vec<Expr>> {
    let FunctionArguments::List(list) = &function.args else {
        return Err(Error::invalid("ROW takes a list of values"));
    };
    let values = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Ok(value.clone()),
        other => Err(Error::invalid(format!("`{other}` is no value of a row"))),
    });
    values.collect()
}

/// One column of the row that a query gives.
fn column_of(query: &Query, column: usize, columns: usize) -> Result<Expr> {
    let mut one = query.clone();
    if !leave(&mut one, column, columns)? {
        one = selected(query, column, columns)?;
    }
    Ok(Expr::Subquery(Box::new(one)))
}

/// Leaves one column of a plain SELECT; `false` where the others say which row it is.
fn leave(query: &mut Query, column: usize, columns: usize) -> Result<bool> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(false) };
    let items = select.projection.iter().map(|item| match item {
        SelectItem::UnnamedExpr(expr) => Some((expr.clone(), None)),
        SelectItem::ExprWithAlias { expr, alias } => Some((expr.clone(), Some(ident(alias)))),
        _ => None,
    });
    let Some(items) = items.collect::<Option<Vec<_>>>() else { return Ok(false) };
    if items.len() != columns {
        return Err(Error::invalid(format!(
            "{columns} columns are assigned a query with {} columns",
            items.len()
        )));
    }
    let meant = |expr: &Expr| match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(place, _), .. }) => {
            items.get(place.parse::<usize>().ok()?.checked_sub(1)?)
        }
        Expr::Identifier(name) => items.iter().find(|(_, alias)| alias.as_ref() == Some(&ident(name))),
        _ => None,
    };
    let groups_by_items = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(exprs, _) => exprs.iter().any(|expr| meant(expr).is_some()),
    };
    if select.distinct.is_some() || groups_by_items {
        return Ok(false);
    }
    if let Some(order) = &mut query.order_by {
        let OrderByKind::Expressions(keys) = &mut order.kind else { return Ok(false) };
        for key in keys {
            if let Some((expr, _)) = meant(&key.expr) {
                key.expr = expr.clone();
            }
        }
    }
    select.projection = vec![select.projection.swap_remove(column)];
    Ok(true)
}

/// `SELECT c1 FROM (query) AS r (c0, c1)`
fn selected(query: &Query, column: usize, columns: usize) -> Result<Query> {
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    let mut one = change::parse(&format!("SELECT c{column} FROM (SELECT 1) AS r ({})", names.join(", ")))?;
    for table in &mut change::select_of(&mut one)?.from {
        if let TableFactor::Derived { subquery, .. } = &mut table.relation {
            **subquery = query.clone();
        }
    }
    Ok(*one)
}
