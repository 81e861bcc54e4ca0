//! Clauses of queries: FETCH and TOP as LIMIT or, with ties, by rank, `TABLE t`, `FROM t` alone, GROUP BY … WITH ROLLUP, ORDER BY ALL, samples.

use super::{grouping_sets, with_ties};
use crate::template;
use crate::walk::{Tree, flow};
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    Expr, GroupByExpr, GroupByWithModifier, LimitClause, OrderByExpr, OrderByKind, Query, Select,
    SelectFlavor, SelectItem, SetExpr, SetOperator, Statement, TableFactor, TableSampleKind, TableSampleUnit,
    TopQuantity, Value, VisitorMut, WildcardAdditionalOptions,
};
use std::ops::ControlFlow;

pub(super) fn rewrite(statement: &mut impl Tree) -> Result<()> {
    statement.try_walk(&mut Queries { is_whole: false })
}

struct Queries {
    /// Whether the next query is a statement by itself, whose WITH may change rows.
    is_whole: bool,
}

impl VisitorMut for Queries {
    type Break = Error;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Error> {
        self.is_whole = matches!(statement, Statement::Query(_));
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let is_whole = std::mem::take(&mut self.is_whole);
        flow(of_query(query, is_whole))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        flow(of_select(select))
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        flow(sampled(factor))
    }
}

fn of_query(query: &mut Query, is_whole: bool) -> Result<()> {
    if let Some(with) = &mut query.with {
        // Each is computed where the optimiser finds it best, which is all that the word can ask for.
        with.cte_tables.iter_mut().for_each(|table| table.materialized = None);
        let change = with.cte_tables.iter().find(|table| changes_rows(&table.query.body));
        if let Some(change) = change.filter(|_| !is_whole) {
            let name = &change.alias.name;
            return Err(Error::unsupported(format!(
                "query {name} changes rows, but its WITH does not begin the statement"
            ))
            .with_hint("write INSERT, UPDATE, DELETE and MERGE into the WITH that begins the statement"));
        }
    }
    table(&mut query.body)?;
    order_by_all(query);
    if let Some(fetch) = query.fetch.take() {
        if fetch.percent {
            return Err(Error::unsupported("FETCH takes a number of rows").with_hint("count the rows first"));
        }
        let rows = fetch.quantity.unwrap_or_else(|| number(1));
        if fetch.with_ties { with_ties::ranked(query, rows)? } else { limit(query, rows)? }
    }
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(top) = select.top.take()
    {
        if top.percent {
            return Err(Error::unsupported("TOP takes a number of rows").with_hint("use LIMIT"));
        }
        let rows = match top.quantity {
            Some(TopQuantity::Constant(rows)) => number(rows),
            Some(TopQuantity::Expr(expr)) => expr,
            None => number(1),
        };
        if top.with_ties { with_ties::ranked(query, rows)? } else { limit(query, rows)? }
    }
    without_limit(query);
    with_ties::numbered(query)
}

fn changes_rows(body: &SetExpr) -> bool {
    matches!(body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_))
}

/// `LIMIT NULL` is none.
fn without_limit(query: &mut Query) {
    if let Some(LimitClause::LimitOffset { limit, .. }) = &mut query.limit_clause
        && matches!(limit, Some(Expr::Value(value)) if value.value == Value::Null)
    {
        *limit = None;
    }
}

fn number(number: u64) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
}

fn limit(query: &mut Query, rows: Expr) -> Result<()> {
    let (offset, limit_by) = match query.limit_clause.take() {
        None => (None, Vec::new()),
        Some(LimitClause::LimitOffset { limit: None, offset, limit_by }) => (offset, limit_by),
        Some(_) => return Err(Error::invalid("the query has more than one limit")),
    };
    query.limit_clause = Some(LimitClause::LimitOffset { limit: Some(rows), offset, limit_by });
    Ok(())
}

/// `TABLE t` is `SELECT * FROM t`.
fn table(body: &mut SetExpr) -> Result<()> {
    match body {
        SetExpr::Table(table) => {
            let name = [table.schema_name.as_ref(), table.table_name.as_ref()];
            let name: Vec<String> = name.into_iter().flatten().map(|part| written(part)).collect();
            let query = template::query(&format!("SELECT * FROM {}", name.join(".")), &[])?;
            *body = *query.body;
            Ok(())
        }
        SetExpr::SetOperation { left, right, op, .. } => {
            if *op == SetOperator::Minus {
                *op = SetOperator::Except;
            }
            table(left)?;
            table(right)
        }
        _ => Ok(()),
    }
}

/// A name as text; the parser leaves quotes off here, and upper-case letters only with quotes are what they were.
fn written(part: &str) -> String {
    let plain = part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { part.to_owned() } else { format!("\"{}\"", part.replace('"', "\"\"")) }
}

/// `ORDER BY ALL`: by each column of the result in its turn. A list with `*` is the planner's.
fn order_by_all(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    let all = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let columns = select.projection.len();
    let Some(order_by) = query.order_by.as_mut() else { return };
    let OrderByKind::All(options) = &order_by.kind else { return };
    if select.projection.iter().any(all) {
        return;
    }
    let by = |at: usize| OrderByExpr {
        expr: number(u64::try_from(at).unwrap_or(u64::MAX)),
        options: *options,
        with_fill: None,
    };
    order_by.kind = OrderByKind::Expressions((1..=columns).map(by).collect());
}

fn of_select(select: &mut Select) -> Result<()> {
    if select.flavor == SelectFlavor::FromFirstNoSelect && select.projection.is_empty() {
        select.projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
        select.flavor = SelectFlavor::Standard;
    }
    if is_dual(select) {
        select.from.clear();
    }
    with_modifiers(&mut select.group_by)?;
    grouping_sets::rewrite(&mut select.group_by)
}

/// Oracle's and MySQL's table of one row.
fn is_dual(select: &Select) -> bool {
    let [table] = select.from.as_slice() else { return false };
    matches!(&table.relation, TableFactor::Table { name, alias: None, .. }
        if table.joins.is_empty() && name.to_string().eq_ignore_ascii_case("dual"))
}

/// `GROUP BY a, b WITH ROLLUP` is `GROUP BY ROLLUP (a, b)`.
fn with_modifiers(group_by: &mut GroupByExpr) -> Result<()> {
    let GroupByExpr::Expressions(keys, modifiers) = group_by else { return Ok(()) };
    let Some(modifier) = modifiers.pop() else { return Ok(()) };
    if !modifiers.is_empty() {
        return Err(Error::invalid("GROUP BY takes one of WITH ROLLUP and WITH CUBE"));
    }
    let sets: Vec<Vec<Expr>> = keys.drain(..).map(|key| vec![key]).collect();
    match modifier {
        GroupByWithModifier::Rollup => keys.push(Expr::Rollup(sets)),
        GroupByWithModifier::Cube => keys.push(Expr::Cube(sets)),
        GroupByWithModifier::GroupingSets(sets) => keys.push(sets),
        other => {
            return Err(Error::unsupported(format!("GROUP BY … {other} is not supported"))
                .with_hint("add the totals with ROLLUP, CUBE or GROUPING SETS"));
        }
    }
    Ok(())
}

/// `t TABLESAMPLE (10 PERCENT)`: each row with that probability; `(10 ROWS)`: so many rows by chance.
fn sampled(factor: &mut TableFactor) -> Result<()> {
    let (TableFactor::Table { sample, alias, .. } | TableFactor::Derived { sample, alias, .. }) = factor
    else {
        return Ok(());
    };
    let Some(kind) = sample.take() else { return Ok(()) };
    let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = kind;
    if sample.seed.is_some() || sample.bucket.is_some() || sample.offset.is_some() {
        return Err(Error::unsupported("a sample cannot be repeated").with_hint("keep it in a table"));
    }
    let Some(quantity) = sample.quantity else {
        return Err(
            Error::invalid("TABLESAMPLE needs a number").with_hint("write `TABLESAMPLE (10 PERCENT)`")
        );
    };
    let outer = alias.take();
    let text = match quantity.unit {
        Some(TableSampleUnit::Rows) => "SELECT * FROM t ORDER BY random() LIMIT n",
        Some(TableSampleUnit::Percent) | None => "SELECT * FROM t WHERE random() * 100 < n",
    };
    let mut query = template::query(text, &[("n", &quantity.value)])?;
    let outer = outer.or_else(|| name_of(factor));
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(table) = select.from.first_mut()
    {
        std::mem::swap(&mut table.relation, factor);
        // Not a table any more, but a query of one.
        *factor = TableFactor::Derived { lateral: false, subquery: query, alias: outer, sample: None };
    }
    Ok(())
}

fn name_of(factor: &TableFactor) -> Option<sqlparser::ast::TableAlias> {
    let TableFactor::Table { name, .. } = factor else { return None };
    let name = name.0.last()?.as_ident()?.clone();
    Some(sqlparser::ast::TableAlias { explicit: true, name, columns: Vec::new(), at: None })
}
