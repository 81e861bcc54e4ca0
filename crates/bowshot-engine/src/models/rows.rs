//! `FROM predict('m', TABLE t)`: the rows of a table with what a model says of each, its columns found by their names. The
//! text before this has a query in the place of `TABLE t` (`bowshot-sql`); here the call becomes a query that asks the
//! model about columns, which is planned as any other.

use super::function::{Found, Wanted, finder};
use bowshot_api::{Error, Reason, Result};
use bowshot_sql::Tree;
use datafusion::common::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, ObjectNamePart, Query, SetExpr, Statement, TableFactor,
};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Calls in one statement.
const MAX_CALLS: usize = 64;
/// What the rows are called within the query that takes the place of a call.
const ROWS: &str = "__bowshot_rows";
/// Columns that an error names.
const NAMED_COLUMNS: usize = 20;

/// Puts queries in the place of all such calls, the innermost first.
pub(crate) fn by_columns<'a>(
    state: &'a SessionState,
    statement: &'a mut Statement,
) -> BoxFuture<'a, datafusion::error::Result<()>> {
    async move {
        let Some(finder) = finder(state) else { return Ok(()) };
        for _ in 0..MAX_CALLS {
            let found = statement.try_change_tables(|factor| call(factor).map_or(Ok(()), Err));
            let Err(Call { wanted, model, rows }) = found else { return Ok(()) };
            let external = |error: Error| DataFusionError::External(Box::new(error));
            let model = model.ok_or_else(|| external(not_so(wanted)))?;
            let found = finder.find(&model).map_err(external)?;
            let columns = columns_of(state, &rows).await;
            let arguments = match (columns, found.model.feature_names()) {
                (Ok(columns), names) => chosen(&found, names, &columns).map_err(external)?,
                // Its tables may be those of a query around it, which are not seen from here.
                (Err(_), names) if !names.is_empty() => names.to_vec(),
                (Err(error), _) => return Err(error),
            };
            put_query(statement, query(wanted, &model, &arguments, *rows).map_err(external)?);
        }
        Err(DataFusionError::Plan(format!("the statement calls models for more than {MAX_CALLS} tables")))
    }
    .boxed()
}

/// A call that was found.
struct Call {
    wanted: Wanted,
    /// `None` for a call of another form.
    model: Option<String>,
    rows: Box<Query>,
}

/// The call that a table is, if it is one.
fn call(factor: &TableFactor) -> Option<Call> {
    let TableFactor::Table { name, args: Some(args), .. } = factor else { return None };
    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
    let wanted = Wanted::named(&name.value)?;
    let expr = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let form = match args.args.as_slice() {
        [model, rows] => match (expr(model), expr(rows)) {
            (Some(Expr::Value(model)), Some(Expr::Subquery(rows))) => {
                model.value.into_string().map(|model| (model, rows))
            }
            _ => None,
        },
        _ => None,
    };
    let (model, rows) = match form {
        Some((model, rows)) => (Some(model), rows),
        None => (None, bowshot_sql::read_query("SELECT 1").ok()?),
    };
    Some(Call { wanted, model, rows })
}

fn not_so(wanted: Wanted) -> Error {
    let function = wanted.function();
    Error::invalid(format!("{function} in FROM takes the name of a model and the rows")).with_hint(format!(
        "write `FROM {function}('model', TABLE t)`, or a query in brackets in the place of `TABLE t`"
    ))
}

/// Replaces the first call.
fn put_query(statement: &mut Statement, instead: TableFactor) {
    let mut instead = Some(instead);
    let _ = statement.try_change_tables(|factor| {
        if call(factor).is_none() {
            return Ok(());
        }
        let mut instead = instead.take().ok_or(())?;
        if let (TableFactor::Table { alias: Some(named), .. }, TableFactor::Derived { alias, .. }) =
            (&*factor, &mut instead)
        {
            *alias = Some(named.clone());
        }
        *factor = instead;
        Err(())
    });
}

/// The names of the columns that a query gives.
async fn columns_of(state: &SessionState, rows: &Query) -> datafusion::error::Result<Vec<String>> {
    let statement = Parsed::Statement(Box::new(Statement::Query(Box::new(rows.clone()))));
    let plan = Box::pin(state.statement_to_plan(statement)).await?;
    Ok(plan.schema().fields().iter().map(|field| field.name().clone()).collect())
}

/// The columns that a model is asked about: those of its names, in any case where only one has it; those that there are, in
/// their order, for a model without names.
fn chosen(found: &Found, names: &[String], columns: &[String]) -> Result<Vec<String>> {
    if names.is_empty() {
        let count = found.model.feature_count();
        if columns.len() == count {
            return Ok(columns.to_vec());
        }
        let model = &found.name;
        return Err(Error::invalid(format!(
            "model `{model}` takes {count} columns without names, but the input has {}",
            columns.len()
        ))
        .with_hint(format!("choose the columns: `predict('{model}', (SELECT a, b, … FROM t))`")));
    }
    names
        .iter()
        .map(|name| match columns.iter().find(|column| *column == name) {
            Some(column) => Ok(column.clone()),
            None => match &columns.iter().filter(|column| column.eq_ignore_ascii_case(name)).collect::<Vec<_>>()[..] {
                [column] => Ok((*column).clone()),
                _ => Err(missing(found, name, columns)),
            },
        })
        .collect()
}

fn missing(found: &Found, name: &str, columns: &[String]) -> Error {
    let mut there = columns.iter().take(NAMED_COLUMNS).map(String::as_str).collect::<Vec<_>>().join(", ");
    if columns.len() > NAMED_COLUMNS {
        there.push_str(", …");
    }
    let message = format!("model `{}` needs a column `{name}`, which the input does not have", found.name);
    Error::invalid(message).with_reason(Reason::UndefinedColumn).with_hint(format!(
        "the input has {there}; rename columns in a query: `predict('m', (SELECT a AS b FROM t))`"
    ))
}

/// The query in the place of a call.
fn query(wanted: Wanted, model: &str, columns: &[String], rows: Query) -> Result<TableFactor> {
    let (function, model) = (wanted.function(), model.replace('\'', "''"));
    let columns: Vec<String> =
        columns.iter().map(|name| format!("{ROWS}.\"{}\"", name.replace('"', "\"\""))).collect();
    let mut outer = bowshot_sql::read_query(&format!(
        "SELECT * FROM (SELECT {ROWS}.*, {function}('{model}', {}) AS \"{}\" FROM (SELECT 1) AS {ROWS}) AS {function}",
        columns.join(", "),
        wanted.column(),
    ))?;
    let strange = || Error::internal("a query of our own was read as something else");
    let mut made = first_table(&mut outer).ok_or_else(strange)?.clone();
    let TableFactor::Derived { subquery, .. } = &mut made else { return Err(strange()) };
    let Some(TableFactor::Derived { subquery, .. }) = first_table(subquery) else { return Err(strange()) };
    **subquery = rows;
    Ok(made)
}

fn first_table(query: &mut Query) -> Option<&mut TableFactor> {
    match query.body.as_mut() {
        SetExpr::Select(select) => select.from.first_mut().map(|from| &mut from.relation),
        _ => None,
    }
}
