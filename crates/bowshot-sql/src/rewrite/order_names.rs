//! Names within expressions of ORDER BY are those of columns of the tables first, and only alone those of columns of the result,
//! as in PostgreSQL and DuckDB. The planner takes the result's in both cases, so a name that both may have goes into a function
//! that gives what it is given, where the plan is told apart.

use super::outer_aggregates::is_aggregate;
use crate::dialect::DialectName;
use crate::template::{self, meaning};
use crate::walk::{Tree, count_queries};
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr,
    TableFactor, TableWithJoins, Value, VisitorMut,
};
use std::ops::ControlFlow;

/// The function around a name that is one of the tables if they have it.
pub const KEPT_APART: &str = "kept_apart";

pub(super) fn mark(statement: &mut impl Tree, dialect: DialectName) -> Result<()> {
    // There, a name is that of a column of the result first.
    if dialect == DialectName::MySql {
        return Ok(());
    }
    statement.try_change_queries(in_query)
}

fn in_query(query: &mut Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else {
        return Ok(());
    };
    let names: Vec<String> = select.projection.iter().filter_map(new_name).collect();
    if names.is_empty() || matches!(select.distinct, Some(Distinct::On(_))) {
        return Ok(());
    }
    for key in keys {
        if matches!(alone(&key.expr), Expr::Identifier(_)) {
            continue;
        }
        let written = key.expr.clone();
        let (table, tables, is_plain) = (table(select), tables(select), is_plain(select));
        let (queries, aggregates) = (0, 0);
        key.expr.try_walk(&mut Marks { names: &names, table, tables, is_plain, queries, aggregates })?;
        if key.expr != written
            && let Some(name) = column(select, &written)
        {
            key.expr = Expr::Identifier(name);
        }
    }
    Ok(())
}

fn alone(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => alone(inner),
        expr => expr,
    }
}

/// The name of a column of the result, if it is another thing than a column of that name.
fn new_name(item: &SelectItem) -> Option<String> {
    let SelectItem::ExprWithAlias { expr, alias } = item else { return None };
    let column = match alone(expr) {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(names) => names.last(),
        _ => None,
    };
    let name = meaning(alias);
    column.is_none_or(|column| meaning(column) != name).then_some(name)
}

/// The name of the column of the result that is that expression.
fn column(select: &Select, written: &Expr) -> Option<Ident> {
    select.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if alone(expr) == alone(written) => Some(alias.clone()),
        _ => None,
    })
}

/// The name of the only table.
fn table(select: &Select) -> Option<Ident> {
    match select.from.as_slice() {
        [from] if from.joins.is_empty() => name_of(&from.relation).cloned(),
        _ => None,
    }
}

/// The names of tables beside others.
fn tables(select: &Select) -> Vec<Ident> {
    let joined = |from: &TableWithJoins| {
        let tables = std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation));
        tables.filter_map(name_of).cloned().collect::<Vec<_>>()
    };
    select.from.iter().flat_map(joined).collect()
}

fn name_of(table: &TableFactor) -> Option<&Ident> {
    let (TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. }) = table else { return None };
    match (table, alias) {
        (_, Some(alias)) => Some(&alias.name),
        (TableFactor::Table { name, .. }, None) => name.0.last()?.as_ident(),
        _ => None,
    }
}

fn is_plain(select: &Select) -> bool {
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    select.distinct.is_none() && !grouped
}

/// Whether it takes columns of the tables alone.
fn is_gathered(expr: &Expr) -> bool {
    is_aggregate(expr) || matches!(expr, Expr::Function(function) if function.over.is_some())
}

struct Marks<'a> {
    names: &'a [String],
    /// The only table.
    table: Option<Ident>,
    tables: Vec<Ident>,
    /// Whether the rows of the result are those of the tables.
    is_plain: bool,
    /// How many of each are around; windows are among the aggregates.
    queries: usize,
    aggregates: usize,
}

impl VisitorMut for Marks<'_> {
    type Break = Error;

    count_queries!(queries: &mut Query);

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        self.aggregates += usize::from(is_gathered(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        self.aggregates -= usize::from(is_gathered(expr));
        let (name, of) = match &*expr {
            Expr::Identifier(name) => (name.clone(), None),
            // Beside a column of the result of that name the planner takes it for ambiguous.
            Expr::CompoundIdentifier(names) if self.is_plain => match names.as_slice() {
                [of, name] if self.tables.iter().any(|table| meaning(table) == meaning(of)) => {
                    (name.clone(), Some(meaning(of)))
                }
                _ => return ControlFlow::Continue(()),
            },
            _ => return ControlFlow::Continue(()),
        };
        if self.queries > 0 || !self.names.contains(&meaning(&name)) {
            return ControlFlow::Continue(());
        }
        // An aggregate never takes columns of the result.
        if self.aggregates > 0 {
            if let Some(table) = &self.table
                && of.is_none()
            {
                *expr = Expr::CompoundIdentifier(vec![table.clone(), name]);
            }
            return ControlFlow::Continue(());
        }
        let name = Expr::Identifier(name);
        let marked = match of.filter(|_| self.table.is_none()) {
            Some(of) => {
                let of = Expr::value(Value::SingleQuotedString(of));
                template::expression(&format!("{KEPT_APART}(x, y)"), &[("x", &name), ("y", &of)])
            }
            None => template::expression(&format!("{KEPT_APART}(x)"), &[("x", &name)]),
        };
        match marked {
            Ok(marked) => *expr = marked,
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}
