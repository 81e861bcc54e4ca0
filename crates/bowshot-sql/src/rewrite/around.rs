//! Columns of the queries around a subquery.
//!
//! The planner looks for `c.id` in the innermost query alone first, where a column `c` with a field `id` will do, and only
//! then for a table `c` of a query around it. In SQL the table comes first: a field is `(c).id`. So a column of a table
//! around gets one more qualifier, [`AROUND`], which no column is called: only a table fits then, since the planner lets
//! any schema pass before a table that is written without one. Nothing of it is left in the plan.

use super::scopes::{Known, Scopes, dotted, with_access};
use crate::template::{meaning, quoted};
use crate::walk::Tree;
use sqlparser::ast::{AccessExpr, Expr, Ident, Query, Select, Statement, TableFactor, Value, VisitorMut};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Stands before the name of a table of a query around. No text can have it as the name of a column.
pub const AROUND: &str = "\u{1}";

pub(super) fn qualify(statement: &mut impl Tree) {
    let ControlFlow::Continue(()) = statement.walk(&mut Around::default());
}

/// Takes `table.column` for a field of a column of the innermost query after all, where no table around has the column.
/// Returns whether there was one.
pub fn inside(statement: &mut impl Tree, table: &str, column: &str) -> bool {
    let mut inside = Inside { table, column, found: false };
    let ControlFlow::Continue(()) = statement.walk(&mut inside);
    inside.found
}

/// How many of the names stand before the column, as far as that can be told from them.
pub(super) fn qualifiers(names: &[Ident]) -> usize {
    let marked = names.first().is_some_and(|first| first.value == AROUND);
    if marked { names.len().saturating_sub(1) } else { 1 }
}

#[derive(Default)]
struct Around(Scopes);

impl Around {
    /// What a name says that begins with a table of a query around.
    fn read(&self, names: &[Ident], rest: &[AccessExpr]) -> Option<Expr> {
        let (qualifiers, known) = self.table(names)?;
        let mut column: Vec<Ident> = Vec::with_capacity(names.len() + 2);
        if known.parts.len() < 3 {
            column.push(quoted(AROUND));
        }
        // The schema as FROM has it, and what the name says itself.
        let schema = known.parts.len().saturating_sub(qualifiers);
        column.extend(known.parts.iter().take(schema).map(|part| quoted(part)));
        let mut own = names.iter().skip(qualifiers);
        column.extend(names.iter().take(qualifiers).chain(own.next()).cloned());
        // What follows the column is a field of it.
        let field = |name: &Ident| AccessExpr::Dot(Expr::value(Value::SingleQuotedString(meaning(name))));
        Some(with_access(column, own.map(field).chain(rest.iter().cloned()).collect()))
    }

    /// How many names belong to the table, and the table; `None` for one of the innermost query, or none at all.
    fn table(&self, names: &[Ident]) -> Option<(usize, &Known)> {
        let names: Vec<String> = names.iter().map(meaning).collect();
        for (place, tables) in self.0.seen().enumerate() {
            for end in (1..names.len().min(4)).rev() {
                let qualifier = names.get(..end).unwrap_or_default();
                if let Some(known) = tables.iter().find(|known| known.parts.ends_with(qualifier)) {
                    return (place > 0).then_some((end, known));
                }
            }
        }
        None
    }
}

impl VisitorMut for Around {
    type Break = Infallible;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Infallible> {
        self.0.enter_statement(statement);
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, _: &mut Statement) -> ControlFlow<Infallible> {
        self.0.leave_statement();
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.0.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.0.leave_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        self.0.enter_select(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Infallible> {
        self.0.leave_select();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        self.0.enter_factor(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let read = dotted(expr).and_then(|(names, rest)| self.read(&names, rest));
        if let Some(read) = read {
            *expr = read;
        }
        ControlFlow::Continue(())
    }
}

struct Inside<'a> {
    table: &'a str,
    column: &'a str,
    found: bool,
}

impl VisitorMut for Inside<'_> {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::CompoundIdentifier(names) = expr
            && let [mark, table, column] = names.as_slice()
            && mark.value == AROUND
            && meaning(table) == self.table
            && meaning(column) == self.column
        {
            names.remove(0);
            self.found = true;
        }
        ControlFlow::Continue(())
    }
}
