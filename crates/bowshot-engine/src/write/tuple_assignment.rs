//! `SET (a, b) = (1, 2)` and `SET (a, b) = (SELECT …)` as one assignment for each column.

use bowshot_api::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    ObjectName, Query, SetExpr,
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

/// The query with one of its columns alone.
fn column_of(query: &Query, column: usize, columns: usize) -> Result<Expr> {
    let mut query = query.clone();
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(Error::unsupported("only a plain SELECT gives the values of several columns")
            .with_hint("select from the query: `(SELECT a, b FROM (…))`"));
    };
    if select.projection.len() != columns {
        return Err(Error::invalid(format!(
            "{columns} columns are assigned a query with {} columns",
            select.projection.len()
        )));
    }
    select.projection = vec![select.projection.swap_remove(column)];
    Ok(Expr::Subquery(Box::new(query)))
}
