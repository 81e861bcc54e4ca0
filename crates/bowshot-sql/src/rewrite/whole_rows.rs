//! Whole rows by the names of their tables: `SELECT t FROM t`, `count(t)`, `row_to_json(t)`, `row(t.*)`. Which columns they have is
//! known when the planner has found no column of that name.

use super::scopes::Scopes;
use crate::calls::call;
use crate::template::{self, meaning, quoted};
use crate::walk::Tree;
use sqlparser::ast::{
    Expr, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr, Statement, TableFactor, Value,
    VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Begins the name of a row that is written as `t.*`, which no column can be.
pub const WHOLE_ROW: char = '\u{5}';

/// `t.*` in a call.
pub(super) fn written(table: &ObjectName) -> Option<Expr> {
    let table = meaning(table.0.last()?.as_ident()?);
    Some(Expr::Identifier(quoted(&format!("{WHOLE_ROW}{table}"))))
}

/// Puts a struct of the columns in the place of a row, wherever a query reads the table itself. Returns whether there was one.
pub fn whole_row(statement: &mut impl Tree, name: &str, columns: &[&str]) -> bool {
    let table = name.trim_start_matches(WHOLE_ROW);
    let (scopes, joined) = (Scopes::default(), Vec::new());
    let mut rows = Rows { name, table, columns, scopes, joined, found: false };
    let ControlFlow::Continue(()) = statement.walk(&mut rows);
    rows.found
}

struct Rows<'a> {
    name: &'a str,
    table: &'a str,
    columns: &'a [&'a str],
    scopes: Scopes,
    /// Whether the queries around have outer joins, which give NULL for rows that are not there.
    joined: Vec<bool>,
    found: bool,
}

impl Rows<'_> {
    fn is_row(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Nested(inner) => self.is_row(inner),
            Expr::Identifier(ident) if meaning(ident) == self.name => {
                let tables = self.scopes.seen().next().unwrap_or_default();
                tables.iter().any(|known| known.parts.last().is_some_and(|last| last == self.table))
            }
            _ => false,
        }
    }

    fn column(&self, name: &str) -> Expr {
        Expr::CompoundIdentifier(vec![quoted(self.table), quoted(name)])
    }

    /// Whether a column is known, or is not, as `wanted` has it: `wanted IN (a IS NOT NULL, b IS NOT NULL)`.
    fn known(&self, wanted: bool, negated: bool) -> Expr {
        let list = self.columns.iter().map(|name| Expr::IsNotNull(Box::new(self.column(name)))).collect();
        Expr::InList { expr: Box::new(Expr::value(Value::Boolean(wanted))), list, negated }
    }

    fn row(&self) -> Option<Expr> {
        let members = self
            .columns
            .iter()
            .flat_map(|name| [Expr::value(Value::SingleQuotedString((*name).to_owned())), self.column(name)]);
        let row = call("named_struct", members);
        if !self.joined.last().is_some_and(|joined| *joined) {
            return Some(row);
        }
        template::expression("CASE WHEN c THEN r END", &[("c", &self.known(true, false)), ("r", &row)]).ok()
    }
}

fn has_outer_joins(select: &Select) -> bool {
    let mut joins = select.from.iter().flat_map(|table| &table.joins);
    joins.any(|join| {
        matches!(
            join.join_operator,
            JoinOperator::Left(_)
                | JoinOperator::LeftOuter(_)
                | JoinOperator::Right(_)
                | JoinOperator::RightOuter(_)
                | JoinOperator::FullOuter(_)
        )
    })
}

impl VisitorMut for Rows<'_> {
    type Break = Infallible;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Infallible> {
        self.scopes.enter_statement(statement);
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, _: &mut Statement) -> ControlFlow<Infallible> {
        self.scopes.leave_statement();
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.scopes.enter_query(query);
        self.joined.push(matches!(query.body.as_ref(), SetExpr::Select(select) if has_outer_joins(select)));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.scopes.leave_query();
        self.joined.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        self.scopes.enter_select(select);
        self.joined.push(has_outer_joins(select));
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && self.is_row(expr)
                && let Some(expr) = self.row()
            {
                *item = SelectItem::ExprWithAlias { expr, alias: quoted(self.table) };
                self.found = true;
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Infallible> {
        self.scopes.leave_select();
        self.joined.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        self.scopes.enter_factor(factor);
        ControlFlow::Continue(())
    }

    /// A row is NULL where all of its columns are, and not NULL where none is.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let put = match &*expr {
            Expr::IsNull(row) if self.is_row(row) => Some(self.known(true, true)),
            Expr::IsNotNull(row) if self.is_row(row) => Some(self.known(false, true)),
            row if self.is_row(row) => self.row(),
            _ => None,
        };
        if let Some(put) = put {
            *expr = put;
            self.found = true;
        }
        ControlFlow::Continue(())
    }
}
