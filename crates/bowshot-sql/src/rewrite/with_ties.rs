//! `FETCH FIRST n ROWS WITH TIES`: the rows up to that rank, in the order of the query. `LIMIT o.n` and `OFFSET o.n` of a
//! query beside others: the rows up to that number, or behind it.

use crate::calls::arguments;
use crate::sqlparser_statement::PERCENT;
use crate::template::{self, meaning};
use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    Expr, Function, LimitClause, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, Value, WindowType,
};

/// Keeps the rows up to a rank. OFFSET stays what it is, and its rows are counted.
pub(super) fn ranked(query: &mut Query, rows: Expr) -> Result<()> {
    let keys = match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(keys)) if !keys.is_empty() => keys.clone(),
        _ => return Err(Error::invalid("WITH TIES needs an ORDER BY").with_hint("say in which order")),
    };
    let before = match &query.limit_clause {
        None => None,
        Some(LimitClause::LimitOffset { limit: None, offset, .. }) => {
            offset.as_ref().map(|offset| offset.value.clone())
        }
        Some(_) => return Err(Error::invalid("the query has more than one limit")),
    };
    let rows = match before {
        Some(before) => template::expression("a + b", &[("a", &before), ("b", &rows)])?,
        None => rows,
    };
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(unclear()) };
    if select.distinct.is_some() || select.qualify.is_some() {
        return Err(unclear());
    }
    let keys = keys.into_iter().map(|key| meant(key, &select.projection)).collect::<Result<Vec<_>>>()?;
    let mut condition = template::expression("rank() OVER (ORDER BY k) <= n", &[("n", &rows)])?;
    order_window(&mut condition, keys);
    select.qualify = Some(condition);
    Ok(())
}

fn unclear() -> Error {
    Error::unsupported("WITH TIES takes a plain SELECT without DISTINCT and QUALIFY")
        .with_hint("put the query into FROM: `SELECT * FROM (…) AS q ORDER BY … FETCH … WITH TIES`")
}

/// A key with the expression in the place of its number or name among the columns of the result.
fn meant(key: OrderByExpr, columns: &[SelectItem]) -> Result<OrderByExpr> {
    let column = match &key.expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => {
                let place = number.to_string().parse::<usize>().ok().and_then(|place| place.checked_sub(1));
                let all = |item: &SelectItem| {
                    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
                };
                if columns.iter().any(all) {
                    return Err(unclear());
                }
                place.and_then(|place| columns.get(place))
            }
            _ => None,
        },
        Expr::Identifier(name) => columns.iter().find(
            |item| matches!(item, SelectItem::ExprWithAlias { alias, .. } if meaning(alias) == meaning(name)),
        ),
        _ => None,
    };
    Ok(match column {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
            OrderByExpr { expr: expr.clone(), ..key }
        }
        _ => key,
    })
}

/// Keeps so many rows, behind so many others, as columns of an outer query say, which a limit of the planner does not see.
pub(super) fn numbered(query: &mut Query) -> Result<()> {
    let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause else {
        return Ok(());
    };
    let percent = limit.as_ref().and_then(percentage);
    let has_column = limit.as_ref().is_some_and(super::joins::has_column)
        || offset.as_ref().is_some_and(|offset| super::joins::has_column(&offset.value));
    let is_plain = if percent.is_some() { offset.is_some() } else { !has_column };
    if is_plain {
        return Ok(());
    }
    let (written, before) = (limit.take(), offset.take().map(|offset| offset.value));
    let rows = percent.clone().or(written);
    let keys = match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(keys)) => keys.clone(),
        _ => Vec::new(),
    };
    let unclear = || {
        Error::unsupported("LIMIT with a column or % takes a plain SELECT without DISTINCT and QUALIFY")
            .with_hint("put the query into FROM: `SELECT * FROM (…) AS q ORDER BY … LIMIT …`")
    };
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(unclear()) };
    if select.distinct.is_some() || select.qualify.is_some() {
        return Err(unclear());
    }
    let keys = keys.into_iter().map(|key| meant(key, &select.projection)).collect::<Result<Vec<_>>>()?;
    let mut number = template::expression("row_number() OVER (ORDER BY k)", &[])?;
    order_window(&mut number, keys);
    let text = match (&percent, &rows, &before) {
        (Some(_), ..) => "r <= floor(count(*) OVER () * n / 100.0)",
        (None, _, None) => "n IS NULL OR r <= n",
        (None, None, Some(_)) => "r > coalesce(b, 0)",
        (None, Some(_), Some(_)) => "r > coalesce(b, 0) AND (n IS NULL OR r <= coalesce(b, 0) + n)",
    };
    let all = Expr::value(Value::Null);
    let (rows, before) = (rows.as_ref().unwrap_or(&all), before.as_ref().unwrap_or(&all));
    select.qualify = Some(template::expression(text, &[("r", &number), ("n", rows), ("b", before)])?);
    Ok(())
}

/// The number of `LIMIT 50%`.
fn percentage(limit: &Expr) -> Option<Expr> {
    let Expr::Function(function) = limit else { return None };
    match arguments(function)?.as_slice() {
        [number] if function.name.to_string() == PERCENT => Some((*number).clone()),
        _ => None,
    }
}

/// Puts the keys into the window.
fn order_window(expr: &mut Expr, mut keys: Vec<OrderByExpr>) {
    expr.change_expressions(|part| {
        if let Expr::Function(Function { over: Some(WindowType::WindowSpec(window)), .. }) = part {
            window.order_by = std::mem::take(&mut keys);
        }
    });
}
