//! Columns qualified by a schema that no table in scope has, as in `SELECT arch.m.a FROM m` with `m` of another schema. The planner
//! ignores the schema. Here the name becomes a field of a column `arch`; if there is none, [`stranger`] names the missing table.

use super::scopes::{Known, Scopes, change_in_scopes, dotted};
use crate::template::meaning;
use crate::walk::Tree;
use sqlparser::ast::{AccessExpr, Expr, Ident, Value};

/// Schemas and catalogs whose tables are found without them as well.
const EVERYWHERE: [&str; 3] = ["pg_catalog", "pg_temp", "temp"];

/// Where names of tables are looked for that do not say it.
#[derive(Debug, Clone, Copy)]
pub struct Defaults<'a> {
    /// Of names without a catalog.
    pub catalog: &'a str,
    /// Of names without a schema.
    pub schema: &'a str,
}

/// Keeps columns of tables that are not there under that schema from being those of others. To be called before anything
/// else is changed.
pub fn keep_strangers_out(statement: &mut impl Tree, defaults: Defaults<'_>) {
    change_in_scopes(statement, |scopes, expr| {
        let stranger = dotted(expr)
            .filter(|(names, _)| names.len() > 2 && defaults.is_stranger(scopes, names))
            .and_then(|(names, rest)| as_fields(&names, rest));
        if let Some(stranger) = stranger {
            *expr = stranger;
        }
    });
}

/// The table that was asked for by what has been written as a field of this column, and the line and column of its name.
pub fn stranger(statement: &impl Tree, column: &str) -> Option<(String, (u64, u64))> {
    statement.find_expression(|expr| {
        let Expr::CompoundFieldAccess { root, access_chain } = expr else { return None };
        let Expr::Identifier(root) = root.as_ref() else { return None };
        let fields = access_chain.iter().map_while(|access| match access {
            AccessExpr::Dot(Expr::Value(field)) => field.value.clone().into_string(),
            _ => None,
        });
        let mut table: Vec<String> = std::iter::once(meaning(root)).chain(fields).collect();
        // The last one is the column.
        table.pop();
        let start = root.span.start;
        (meaning(root) == column && table.len() > 1).then(|| (table.join("."), (start.line, start.column)))
    })
}

impl Defaults<'_> {
    /// Whether the planner would take a name for a column of another table than it says.
    fn is_stranger(&self, scopes: &Scopes, names: &[Ident]) -> bool {
        let written: Vec<String> = names.iter().map(meaning).collect();
        let qualifiers = |from: usize| (from..written.len().min(4)).filter_map(|end| written.get(..end));
        let mut taken = false;
        for known in scopes.seen().flatten() {
            if qualifiers(1).any(|wanted| self.is(known, wanted)) {
                return false;
            }
            taken |= qualifiers(2).any(|wanted| is_taken_for(known, wanted));
        }
        taken
    }

    /// Whether the table may be called so.
    fn is(&self, known: &Known, wanted: &[String]) -> bool {
        if known.parts.ends_with(wanted) {
            return true;
        }
        let Self { catalog, schema } = *self;
        let full: Vec<&str> = match known.parts.as_slice() {
            [table] => vec![catalog, schema, table.as_str()],
            [schema, table] => vec![catalog, schema.as_str(), table.as_str()],
            _ => return false,
        };
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let everywhere = wanted.iter().rev().skip(1).any(|part| EVERYWHERE.contains(part));
        known.plain && (full.ends_with(&wanted) || everywhere && full.last() == wanted.last())
    }
}

/// Whether the planner would take the table for it.
fn is_taken_for(known: &Known, wanted: &[String]) -> bool {
    known.parts.len() < wanted.len() && wanted.ends_with(&known.parts)
}

/// A column and its fields. The planner takes texts for nothing else.
fn as_fields(names: &[Ident], rest: &[AccessExpr]) -> Option<Expr> {
    let (column, fields) = names.split_first()?;
    let field = |name: &Ident| AccessExpr::Dot(Expr::value(Value::SingleQuotedString(meaning(name))));
    let access_chain = fields.iter().map(field).chain(rest.iter().cloned()).collect();
    Some(Expr::CompoundFieldAccess { root: Box::new(Expr::Identifier(column.clone())), access_chain })
}
