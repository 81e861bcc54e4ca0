//! `tableoid`, a column that every table of PostgreSQL has and `*` does not show: the number of the table that a row is of. Of the
//! tables of the catalog it is known from the text.

use crate::calls::call;
use crate::template::meaning;
use crate::walk::Tree;
use sqlparser::ast::{Expr, Ident, Select, SelectItem, TableFactor, Value};

const COLUMN: &str = "tableoid";

/// Puts the numbers in the place of the column, in a SELECT and what is in it.
pub(super) fn rewrite(select: &mut Select) {
    let tables = tables(select);
    if tables.is_empty() {
        return;
    }
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Some(number) = number(expr, &tables)
        {
            *item = SelectItem::ExprWithAlias { expr: number, alias: Ident::new(COLUMN) };
        }
    }
    select.change_expressions(|expr| {
        if let Some(number) = number(expr, &tables) {
            *expr = number;
        }
    });
}

/// The tables of the catalog that are read, with the names that they are called by.
fn tables(select: &Select) -> Vec<(String, String)> {
    let factors = select.from.iter().flat_map(|table| {
        std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation))
    });
    let named = factors.filter_map(|factor| {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return None };
        let table = meaning(name.0.last()?.as_ident()?);
        let called = alias.as_ref().map_or_else(|| table.clone(), |alias| meaning(&alias.name));
        table.starts_with("pg_").then_some((called, table))
    });
    named.collect()
}

fn number(expr: &Expr, tables: &[(String, String)]) -> Option<Expr> {
    let table = match expr {
        Expr::Identifier(name) if meaning(name) == COLUMN => match tables {
            [(_, table)] => table,
            _ => return None,
        },
        Expr::CompoundIdentifier(names) => match names.as_slice() {
            [.., table, name] if meaning(name) == COLUMN => {
                let table = meaning(table);
                &tables.iter().find(|(called, _)| *called == table)?.1
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(call("regclass", vec![Expr::value(Value::SingleQuotedString(format!("pg_catalog.{table}")))]))
}
