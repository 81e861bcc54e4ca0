//! Joins that the planner does not know: SEMI and ANTI, APPLY, ASOF, UNNEST of a column beside it, PIVOT and UNPIVOT.

use crate::template::{self, meaning, quoted};
use crate::walk::{Tree, flow};
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, ExprWithAlias, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    PivotValueSource, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, VisitorMut,
};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Columns of one UNPIVOT. Each is a query that names all of them, and as many queries may be written in one statement.
const MAX_UNPIVOTED: usize = 500;
/// Columns that one PIVOT makes: as many as one SELECT may give.
const MAX_PIVOTED: usize = 10_000;

pub(super) fn rewrite(statement: &mut impl Tree) -> Result<()> {
    statement.try_walk(&mut Joins)
}

struct Joins;

impl VisitorMut for Joins {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        for table in &mut select.from {
            if let Err(error) = lateral(&mut table.relation) {
                return ControlFlow::Break(error);
            }
            for at in 0..table.joins.len() {
                // What USING compares with, if it can be only one table.
                let left = if at == 0 { called(&table.relation) } else { None };
                let Some(join) = table.joins.get_mut(at) else { continue };
                if let Err(error) = lateral(&mut join.relation).and_then(|()| of_join(join, left)) {
                    return ControlFlow::Break(error);
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let turned = match factor {
            TableFactor::Pivot { .. } => pivot(factor),
            TableFactor::Unpivot { .. } => unpivot(factor),
            _ => Ok(()),
        };
        flow(turned)
    }
}

fn of_join(join: &mut Join, left: Option<Ident>) -> Result<()> {
    let none = || JoinConstraint::None;
    join.join_operator = match std::mem::replace(&mut join.join_operator, JoinOperator::CrossJoin(none())) {
        JoinOperator::Semi(constraint) => JoinOperator::LeftSemi(constraint),
        JoinOperator::Anti(constraint) => JoinOperator::LeftAnti(constraint),
        JoinOperator::CrossApply => {
            beside(&mut join.relation);
            JoinOperator::CrossJoin(none())
        }
        JoinOperator::OuterApply => {
            beside(&mut join.relation);
            JoinOperator::Left(JoinConstraint::On(always()))
        }
        // The words that ASOF was read as.
        JoinOperator::StraightJoin(constraint) => {
            let outer = std::mem::take(&mut join.global);
            match (constraint, left) {
                (JoinConstraint::Using(columns), Some(left)) => {
                    latest_of_columns(&mut join.relation, &columns, &left)?;
                }
                (constraint, _) => latest(&mut join.relation, constraint)?,
            }
            if outer {
                JoinOperator::Left(JoinConstraint::On(always()))
            } else {
                JoinOperator::CrossJoin(none())
            }
        }
        other => other,
    };
    Ok(())
}

fn always() -> Expr {
    Expr::value(sqlparser::ast::Value::Boolean(true))
}

/// Lets a query see the tables before it.
fn beside(factor: &mut TableFactor) {
    if let TableFactor::Derived { lateral, .. } = factor {
        *lateral = true;
    }
}

/// `FROM d, unnest(d.b) WITH ORDINALITY AS u(x, n)`: a query that sees the tables before it. One of constants is the
/// planner's, if it counts nothing.
fn lateral(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::UNNEST { alias, array_exprs, with_ordinality, with_offset: false, .. } = factor else {
        return Ok(());
    };
    tell_apart(array_exprs)?;
    if array_exprs.is_empty() || !*with_ordinality && !array_exprs.iter().any(has_column) {
        return Ok(());
    }
    let mut items: Vec<String> = Vec::new();
    let names: Vec<String> = (0..array_exprs.len()).map(|at| format!("__list_{at}")).collect();
    for (at, name) in names.iter().enumerate() {
        let column = if at == 0 { "unnest".to_owned() } else { format!("unnest_{at}") };
        items.push(format!("unnest({name}) AS \"{column}\""));
    }
    if *with_ordinality {
        items.push(
            "unnest(generate_series(1, CAST(array_length(__list_0) AS BIGINT))) AS \"ordinality\"".to_owned(),
        );
    }
    let holes: Vec<(&str, &Expr)> = names.iter().map(String::as_str).zip(array_exprs.iter()).collect();
    let subquery = template::query(&format!("SELECT {}", items.join(", ")), &holes)?;
    let mut alias = alias.take();
    // `unnest(x) AS u` names the column too, as in PostgreSQL.
    if let Some(alias) = &mut alias
        && alias.columns.is_empty()
        && !*with_ordinality
        && array_exprs.len() == 1
    {
        let name = alias.name.clone();
        alias.columns.push(sqlparser::ast::TableAliasColumnDef { name, data_type: None });
    }
    let alias = alias.or_else(|| Some(named("unnest")));
    *factor = TableFactor::Derived { lateral: true, subquery, alias, sample: None };
    Ok(())
}

/// Arrays of one UNNEST up to which equal ones are looked for.
const MAX_ARRAYS: usize = 100;

/// `unnest(a, a)`: the planner calls what it unnests by what it is made of, so that equal arrays would have one name.
fn tell_apart(arrays: &mut [Expr]) -> Result<()> {
    for at in 1..arrays.len().min(MAX_ARRAYS) {
        let (before, rest) = arrays.split_at_mut(at);
        let Some(array) = rest.first_mut() else { continue };
        while before.contains(array) {
            let other = template::expression("coalesce(__list)", &[("__list", &*array)])?;
            *array = other;
        }
    }
    Ok(())
}

fn named(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: quoted(name), columns: Vec::new(), at: None }
}

pub(super) fn has_column(expr: &Expr) -> bool {
    expr.has_expression(|part| matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_)))
}

/// `a ASOF JOIN b ON a.k = b.k AND a.t >= b.t`: of the rows of `b` that fit, the one that is nearest.
fn latest(factor: &mut TableFactor, constraint: JoinConstraint) -> Result<()> {
    let JoinConstraint::On(condition) = constraint else { return Err(as_of_form()) };
    let Some(alias) = called(factor) else { return Err(as_of_form()) };
    let (by, descending) = nearest(&condition, &meaning(&alias))?;
    let order = if descending { "DESC" } else { "ASC" };
    let text = format!("SELECT * FROM t WHERE __on ORDER BY __by {order} LIMIT 1");
    replace(factor, alias, template::query(&text, &[("__on", &condition), ("__by", &by)])?);
    Ok(())
}

/// `a ASOF JOIN b USING (k, t)`: equal keys, and the nearest `t` that is not later. The columns are those of `a`.
fn latest_of_columns(factor: &mut TableFactor, columns: &[ObjectName], left: &Ident) -> Result<()> {
    let Some(alias) = called(factor) else { return Err(as_of_form()) };
    let names: Vec<&Ident> = columns.iter().filter_map(|name| name.0.last()?.as_ident()).collect();
    let Some((last, keys)) = names.split_last() else { return Err(as_of_form()) };
    let mut tests: Vec<String> = keys.iter().map(|key| format!("{left}.{key} = {alias}.{key}")).collect();
    tests.push(format!("{left}.{last} >= {alias}.{last}"));
    let shared: Vec<String> = names.iter().map(ToString::to_string).collect();
    let text = format!(
        "SELECT * EXCLUDE ({}) FROM t WHERE {} ORDER BY {alias}.{last} DESC LIMIT 1",
        shared.join(", "),
        tests.join(" AND ")
    );
    replace(factor, alias, template::query(&text, &[])?);
    Ok(())
}

/// What the columns of a table are qualified with.
fn called(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => Some(alias.name.clone()),
            None => name.0.last().and_then(|part| part.as_ident()).cloned(),
        },
        TableFactor::Derived { alias, .. } => alias.as_ref().map(|alias| alias.name.clone()),
        _ => None,
    }
}

/// Puts a query of the table in its place, which sees the tables before it.
fn replace(factor: &mut TableFactor, alias: Ident, mut query: Box<Query>) {
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(table) = select.from.first_mut()
    {
        std::mem::swap(&mut table.relation, factor);
    }
    let alias = TableAlias { explicit: true, name: alias, columns: Vec::new(), at: None };
    *factor = TableFactor::Derived { lateral: true, subquery: query, alias: Some(alias), sample: None };
}

fn as_of_form() -> Error {
    Error::invalid("ASOF JOIN needs a condition with one inequality")
        .with_hint("write `a ASOF JOIN b ON a.k = b.k AND a.t >= b.t`")
}

/// What the rows are ordered by, and whether the greatest is wanted.
fn nearest(condition: &Expr, alias: &str) -> Result<(Expr, bool)> {
    match condition {
        Expr::Nested(inner) => nearest(inner, alias),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            match (nearest(left, alias), nearest(right, alias)) {
                (Ok(_), Ok(_)) | (Err(_), Err(_)) => Err(as_of_form()),
                (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found),
            }
        }
        Expr::BinaryOp { left, op, right } => {
            let greater = match op {
                BinaryOperator::Gt | BinaryOperator::GtEq => true,
                BinaryOperator::Lt | BinaryOperator::LtEq => false,
                _ => return Err(as_of_form()),
            };
            let is_left = |expr: &Expr| {
                matches!(expr, Expr::CompoundIdentifier(names)
                    if names.len() > 1 && names.get(names.len() - 2).is_some_and(|name| meaning(name) == alias))
            };
            Ok(if is_left(left) {
                (left.as_ref().clone(), !greater)
            } else {
                (right.as_ref().clone(), greater)
            })
        }
        _ => Err(as_of_form()),
    }
}

/// `t PIVOT (sum(v) FOR g IN ('a', 'b'))`: one column for each value, grouped by all other columns.
fn pivot(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Pivot { table, aggregate_functions, value_column, value_source, .. } = &*factor else {
        return Ok(());
    };
    let (PivotValueSource::List(values), [column]) = (value_source, value_column.as_slice()) else {
        return Err(Error::unsupported("PIVOT needs one column and its values")
            .with_hint("write `PIVOT (sum(v) FOR g IN ('a', 'b'))`"));
    };
    check_pivot(column, aggregate_functions, values)?;
    let mut names = vec![last_name(column)];
    aggregate_functions.iter().for_each(|function| columns_of(&function.expr, &mut names));
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let mut query =
        template::query(&format!("SELECT * EXCLUDE ({}) FROM t GROUP BY ALL", names.join(", ")), &[])?;
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    for value in values {
        for function in aggregate_functions.iter() {
            select.projection.push(pivoted(function, column, value, aggregate_functions.len() > 1)?);
        }
    }
    if let Some(from) = select.from.first_mut() {
        from.relation = table.as_ref().clone();
    }
    derive(factor, query, alias_of(factor))
}

fn check_pivot(column: &Expr, functions: &[ExprWithAlias], values: &[ExprWithAlias]) -> Result<()> {
    let items = functions.len().saturating_mul(values.len());
    if items > MAX_PIVOTED {
        let message = format!("PIVOT would have {items} columns, and the limit is {MAX_PIVOTED}");
        return Err(Error::new(ErrorKind::LimitReached, message)
            .with_hint("name fewer values, or aggregate with GROUP BY"));
    }
    template::check_copies(column, items)?;
    template::check_copies(&written(functions), values.len())?;
    template::check_copies(&written(values), functions.len())
}

fn written(parts: &[ExprWithAlias]) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn alias_of(factor: &TableFactor) -> Option<TableAlias> {
    match factor {
        TableFactor::Pivot { alias, .. } | TableFactor::Unpivot { alias, .. } => alias.clone(),
        _ => None,
    }
}

fn derive(factor: &mut TableFactor, subquery: Box<Query>, alias: Option<TableAlias>) -> Result<()> {
    *factor = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
    Ok(())
}

fn pivoted(
    function: &ExprWithAlias,
    column: &Expr,
    value: &ExprWithAlias,
    several: bool,
) -> Result<SelectItem> {
    let Expr::Function(mut called) = function.expr.clone() else {
        return Err(Error::invalid(format!("`{}` is no aggregate", function.expr)));
    };
    called.filter = Some(Box::new(template::expression("c = x", &[("c", column), ("x", &value.expr)])?));
    let mut name = match &value.alias {
        Some(alias) => meaning(alias),
        None => value.expr.to_string().trim_matches('\'').to_owned(),
    };
    if several || function.alias.is_some() {
        let suffix = function.alias.as_ref().map_or_else(|| function.expr.to_string(), meaning);
        name = format!("{name}_{suffix}");
    }
    Ok(SelectItem::ExprWithAlias { expr: Expr::Function(called), alias: quoted(&name) })
}

fn columns_of(expr: &Expr, found: &mut Vec<String>) {
    expr.each_expression(|part| {
        if matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            found.push(last_name(part));
        }
    });
}

fn last_name(expr: &Expr) -> String {
    match expr {
        Expr::CompoundIdentifier(names) => names.last().map(ToString::to_string).unwrap_or_default(),
        other => other.to_string(),
    }
}

/// `t UNPIVOT (value FOR name IN (a, b))`: a row for each of the columns.
fn unpivot(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Unpivot { table, value, name, columns, null_inclusion, .. } = &*factor else {
        return Ok(());
    };
    let Expr::Identifier(value) = value else {
        return Err(Error::unsupported("UNPIVOT of several values at once is not supported"));
    };
    if columns.len() > MAX_UNPIVOTED {
        let message = format!("UNPIVOT has {} columns, and the limit is {MAX_UNPIVOTED}", columns.len());
        return Err(Error::new(ErrorKind::LimitReached, message)
            .with_hint("keep the rows of some columns at a time: `INSERT INTO … SELECT … UNPIVOT …`"));
    }
    template::check_copies(&*factor, columns.len())?;
    let with_nulls = matches!(null_inclusion, Some(sqlparser::ast::NullInclusion::IncludeNulls));
    let left_out: Vec<String> = columns.iter().map(|column| last_name(&column.expr)).collect();
    let branches: Vec<String> =
        columns.iter().map(|column| branch(column, (&left_out, value, name), with_nulls)).collect();
    let mut query = template::query(&branches.join(" UNION ALL "), &[])?;
    fill_tables(&mut query.body, table);
    derive(factor, query, alias_of(factor))
}

fn branch(
    column: &ExprWithAlias,
    (left_out, value, name): (&[String], &Ident, &Ident),
    with_nulls: bool,
) -> String {
    let of = last_name(&column.expr);
    let label = match &column.alias {
        Some(alias) => alias.value.clone(),
        None => of.trim_matches('"').to_owned(),
    };
    let label = label.replace('\'', "''");
    let filter = if with_nulls { String::new() } else { format!(" WHERE {of} IS NOT NULL") };
    format!("SELECT * EXCLUDE ({}), '{label}' AS {name}, {of} AS {value} FROM t{filter}", left_out.join(", "))
}

fn fill_tables(body: &mut SetExpr, table: &TableFactor) {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            fill_tables(left, table);
            fill_tables(right, table);
        }
        SetExpr::Select(select) => {
            if let Some(from) = select.from.first_mut() {
                from.relation = table.clone();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::DialectName;
    use crate::rewrite::tests::read_sql;
    use bowshot_api::ErrorKind;

    fn refused(sql: &str) -> Option<ErrorKind> {
        super::rewrite(&mut read_sql(sql, DialectName::Ansi)).err().map(|error| error.kind())
    }

    fn numbered(name: &str, count: usize) -> String {
        (0..count).map(|at| format!("{name}{at}")).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn columns_that_are_turned_have_a_limit() {
        let unpivot =
            |count: usize| format!("SELECT * FROM t UNPIVOT (v FOR n IN ({}))", numbered("c", count));
        assert_eq!(refused(&unpivot(20)), None);
        assert_eq!(refused(&unpivot(501)), Some(ErrorKind::LimitReached));
        assert_eq!(refused(&unpivot(50_000)), Some(ErrorKind::LimitReached));
        let pivot = |values: usize, functions: &str| {
            format!("SELECT * FROM t PIVOT ({functions} FOR g IN ({}))", numbered("", values))
        };
        assert_eq!(refused(&pivot(50, "sum(v)")), None);
        assert_eq!(refused(&pivot(5_001, "sum(v) AS s, min(v) AS m")), Some(ErrorKind::LimitReached));
        assert_eq!(refused(&pivot(50_000, "sum(v)")), Some(ErrorKind::LimitReached));
        let long = format!("f({})", numbered("c", 2_000));
        assert_eq!(refused(&pivot(5_000, &long)), Some(ErrorKind::LimitReached));
    }
}
