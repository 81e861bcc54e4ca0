//! Names within expressions of ORDER BY are those of columns of the tables first, and only alone those of columns of the result,
//! as in PostgreSQL and DuckDB. The planner takes the result's in both cases, so a name that both may have goes into a function
//! that gives what it is given, where the plan is told apart.

use super::outer_aggregates::is_aggregate;
use crate::dialect::DialectName;
use crate::template::{self, meaning};
use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr,
    TableFactor, VisitorMut,
};
use std::ops::ControlFlow;

/// The function around a name that is one of the tables if they have it.
pub const KEPT_APART: &str = "kept_apart";

pub(super) fn mark(statement: &mut impl Tree, dialect: DialectName) -> Result<()> {
    // There, a name is that of a column of the result first.
    if dialect == DialectName::MySql {
        return Ok(());
    }
    match statement.walk(&mut Orders) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Orders;

impl VisitorMut for Orders {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let SetExpr::Select(select) = query.body.as_ref() else { return ControlFlow::Continue(()) };
        let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else {
            return ControlFlow::Continue(());
        };
        let names: Vec<String> = select.projection.iter().filter_map(new_name).collect();
        if names.is_empty() || matches!(select.distinct, Some(Distinct::On(_))) {
            return ControlFlow::Continue(());
        }
        for key in keys {
            if matches!(alone(&key.expr), Expr::Identifier(_)) {
                continue;
            }
            let written = key.expr.clone();
            let (table, is_plain) = (table(select), is_plain(select));
            key.expr.walk(&mut Marks { names: &names, table, is_plain, queries: 0, aggregates: 0 })?;
            if key.expr != written
                && let Some(name) = column(select, &written)
            {
                key.expr = Expr::Identifier(name);
            }
        }
        ControlFlow::Continue(())
    }
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
    let [from] = select.from.as_slice() else { return None };
    let (TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. }) = &from.relation else {
        return None;
    };
    let name = match (&from.relation, alias) {
        (_, Some(alias)) => Some(&alias.name),
        (TableFactor::Table { name, .. }, None) => name.0.last()?.as_ident(),
        _ => None,
    };
    name.filter(|_| from.joins.is_empty()).cloned()
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
    table: Option<Ident>,
    /// Whether the rows of the result are those of the tables.
    is_plain: bool,
    /// How many of each are around; windows are among the aggregates.
    queries: usize,
    aggregates: usize,
}

impl VisitorMut for Marks<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        self.aggregates += usize::from(is_gathered(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        self.aggregates -= usize::from(is_gathered(expr));
        let (name, is_qualified) = match (&*expr, &self.table) {
            (Expr::Identifier(name), _) => (name.clone(), false),
            // Beside a column of the result of that name the planner takes it for ambiguous.
            (Expr::CompoundIdentifier(names), Some(table)) if self.is_plain => match names.as_slice() {
                [of, name] if meaning(of) == meaning(table) => (name.clone(), true),
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
                && !is_qualified
            {
                *expr = Expr::CompoundIdentifier(vec![table.clone(), name]);
            }
            return ControlFlow::Continue(());
        }
        match template::expression(&format!("{KEPT_APART}(x)"), &[("x", &Expr::Identifier(name))]) {
            Ok(marked) => *expr = marked,
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}
