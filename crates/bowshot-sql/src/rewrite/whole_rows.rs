//! Whole rows by the names of their tables: `SELECT t FROM t`, `count(t)`, `row_to_json(t)`, `row(t.*)`. Which columns they have is
//! known when the planner has found no column of that name.

use super::scopes::{Scopes, change_selects_in_scopes};
use crate::calls::call;
use crate::template::{self, meaning, quoted};
use crate::walk::Tree;
use sqlparser::ast::{Expr, ObjectName, Select, SelectItem, Value};
use std::cell::Cell;

/// Begins the name of a row that is written as `t.*`, which no column can be.
pub const WHOLE_ROW: char = '\u{5}';

/// `t.*` in a call.
pub(super) fn written(table: &ObjectName) -> Option<Expr> {
    let table = meaning(table.0.last()?.as_ident()?);
    Some(Expr::Identifier(quoted(&format!("{WHOLE_ROW}{table}"))))
}

/// Puts a struct of the columns in the place of a row, wherever a query reads the table itself. Returns whether there was one.
pub fn whole_row(statement: &mut impl Tree, name: &str, columns: &[&str]) -> bool {
    let rows = Rows { name, table: name.trim_start_matches(WHOLE_ROW), columns };
    let found = Cell::new(false);
    let in_select = |scopes: &Scopes, select: &mut Select| {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && rows.is_row(expr, scopes)
                && let Some(expr) = rows.row(scopes)
            {
                *item = SelectItem::ExprWithAlias { expr, alias: quoted(rows.table) };
                found.set(true);
            }
        }
    };
    change_selects_in_scopes(statement, in_select, |scopes, expr| {
        // A row is NULL where all of its columns are, and not NULL where none is.
        let put = match &*expr {
            Expr::IsNull(row) if rows.is_row(row, scopes) => Some(rows.known(true, true)),
            Expr::IsNotNull(row) if rows.is_row(row, scopes) => Some(rows.known(false, true)),
            row if rows.is_row(row, scopes) => rows.row(scopes),
            _ => None,
        };
        if let Some(put) = put {
            *expr = put;
            found.set(true);
        }
    });
    found.get()
}

struct Rows<'a> {
    name: &'a str,
    table: &'a str,
    columns: &'a [&'a str],
}

impl Rows<'_> {
    fn is_row(&self, expr: &Expr, scopes: &Scopes) -> bool {
        match expr {
            Expr::Nested(inner) => self.is_row(inner, scopes),
            Expr::Identifier(ident) if meaning(ident) == self.name => {
                let tables = scopes.seen().next().unwrap_or_default();
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

    fn row(&self, scopes: &Scopes) -> Option<Expr> {
        let members = self
            .columns
            .iter()
            .flat_map(|name| [Expr::value(Value::SingleQuotedString((*name).to_owned())), self.column(name)]);
        let row = call("named_struct", members);
        if !scopes.has_outer_joins() {
            return Some(row);
        }
        template::expression("CASE WHEN c THEN r END", &[("c", &self.known(true, false)), ("r", &row)]).ok()
    }
}
