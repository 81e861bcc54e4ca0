//! Columns of the queries around a subquery.
//!
//! The planner looks for `c.id` in the innermost query alone first, where a column `c` with a field `id` will do, and only
//! then for a table `c` of a query around it. In SQL the table comes first: a field is `(c).id`. So a column of a table
//! around gets one more qualifier, [`AROUND`], which no column is called: only a table fits then, since the planner lets
//! any schema pass before a table that is written without one. Nothing of it is left in the plan.

use super::scopes::{Known, Scopes, change_in_scopes, dotted, with_access};
use crate::template::{meaning, quoted};
use crate::walk::Tree;
use sqlparser::ast::{AccessExpr, Expr, Ident, Value};

/// Stands before the name of a table of a query around. No text can have it as the name of a column.
pub const AROUND: &str = "\u{1}";

pub(super) fn qualify(statement: &mut impl Tree) {
    change_in_scopes(statement, |scopes, expr| {
        let read = dotted(expr).and_then(|(names, rest)| read(scopes, &names, rest));
        if let Some(read) = read {
            *expr = read;
        }
    });
}

/// Takes `table.column` for a field of a column of the innermost query after all, where no table around has the column.
/// Returns whether there was one.
pub fn inside(statement: &mut impl Tree, table: &str, column: &str) -> bool {
    let mut found = false;
    statement.change_expressions(|expr| {
        if let Expr::CompoundIdentifier(names) = expr
            && let [mark, of, name] = names.as_slice()
            && mark.value == AROUND
            && meaning(of) == table
            && meaning(name) == column
        {
            names.remove(0);
            found = true;
        }
    });
    found
}

/// How many of the names stand before the column, as far as that can be told from them.
pub(super) fn qualifiers(names: &[Ident]) -> usize {
    let marked = names.first().is_some_and(|first| first.value == AROUND);
    if marked { names.len().saturating_sub(1) } else { 1 }
}

/// What a name says that begins with a table of a query around.
fn read(scopes: &Scopes, names: &[Ident], rest: &[AccessExpr]) -> Option<Expr> {
    let (qualifiers, known) = table(scopes, names)?;
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
fn table<'s>(scopes: &'s Scopes, names: &[Ident]) -> Option<(usize, &'s Known)> {
    let names: Vec<String> = names.iter().map(meaning).collect();
    for (place, tables) in scopes.seen().enumerate() {
        for end in (1..names.len().min(4)).rev() {
            let qualifier = names.get(..end).unwrap_or_default();
            if let Some(known) = tables.iter().find(|known| known.parts.ends_with(qualifier)) {
                return (place > 0).then_some((end, known));
            }
        }
    }
    None
}
