//! Rewrites statements, on the tree alone. Each file is one kind of change; [`statement`] has their order.

mod bare_tables;
mod casts;
mod catalog;
mod changes;
mod collations;
mod column_names;
mod conditions;
mod error_position;
mod expansion;
mod files;
mod floats;
mod foreign_keys;
mod frames;
mod functions;
mod group_keys;
mod grouping_sets;
mod having;
mod intervals;
mod joins;
mod json_constructors;
mod like_escape;
mod literals;
mod mysql;
mod mysql_conditions;
mod mysql_functions;
mod name_corrections;
mod operators;
mod order_names;
mod outer_aggregates;
mod outer_columns;
mod patterns;
mod placeholders;
mod queries;
mod records;
mod recursion;
mod result_column_names;
mod same_names;
mod schema_qualified_columns;
mod scopes;
mod shadowed;
mod shared_queries;
mod value_rows;
mod variants;
mod versions;
mod whole_rows;
mod wildcards;
mod windows;
mod with_names;
mod with_ties;

use crate::dialect::DialectName;
use crate::walk::Tree;
use bowshot_api::Result;
use same_names::Changes;
use sqlparser::ast::{Expr, Query, Statement};

#[cfg(test)]
mod tests;

pub use crate::exclusions::EXCLUDING;
pub use bare_tables::qualify_bare_tables;
pub use casts::CAST_TO;
pub use catalog::{array_elements, array_parts};
pub use changes::{NamedChanges, changes};
pub use column_names::{MARK, shown};
pub use error_position::{Wanted, place};
pub use files::{FileOption, NamedFiles, files};
pub use frames::FRAME_OFFSET;
pub use group_keys::{KeyedTable, add_dependent_columns};
pub use mysql_functions::{CAST_TO_SIGNED, CAST_TO_UNSIGNED};
pub use name_corrections::{inline_alias, spell};
pub use order_names::KEPT_APART;
pub(crate) use outer_aggregates::is_aggregate;
pub use outer_columns::{AROUND, inside};
pub use schema_qualified_columns::{Defaults, keep_strangers_out, stranger};
pub use shared_queries::{SHARED, share_queries};
pub use versions::{AsOf, mark_shared, marked, plain, shared, unmarked};
pub use whole_rows::{WHOLE_ROW, whole_row};
pub use wildcards::{Named, expand, probe};

/// What is known of the text that a statement comes from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'text> {
    /// The text, in whose lines and columns the places of the statement are.
    pub text: &'text str,
    /// What it is written in.
    pub dialect: DialectName,
}

/// `?` as `$1`, `$2`, … alone, for texts that are planned as they are.
pub fn placeholders(statement: &mut Statement) {
    placeholders::number(statement);
}

/// An expression by itself, such as a default, in forms that the planner knows.
pub fn expression(expr: &mut Expr, dialect: DialectName) -> Result<()> {
    floats::in_casts(expr, dialect);
    catalog::rewrite(expr, dialect)?;
    functions::rewrite(expr, dialect)?;
    conditions::rewrite(expr)?;
    collations::rewrite(expr, dialect)?;
    operators::rewrite(expr, dialect)
}

/// The statement in forms that the planner knows and takes for what they mean.
///
/// # Errors
/// `Syntax`, `Invalid` or `Unsupported` for forms that cannot be meant, each with what to write instead.
pub fn statement(statement: &mut Statement, source: Source<'_>) -> Result<()> {
    mysql::check(statement, source.dialect)?;
    mysql::assigned_row(statement)?;
    mysql::empty_row(statement);
    mysql::databases(statement, source.dialect);
    foreign_keys::as_notes(statement, source.dialect);
    result_column_names::names(statement, source.dialect);
    floats::in_columns(statement, source.dialect);
    placeholders::number(statement);
    all(statement, source)
}

/// A query that is part of a statement which the parser does not know. See [`statement`].
pub fn query(query: &mut Query, source: Source<'_>) -> Result<()> {
    placeholders::number(query);
    all(query, source)
}

fn all<T: Tree + Changes>(statement: &mut T, source: Source<'_>) -> Result<()> {
    expansion::check(statement)?;
    recursion::rewrite(statement)?;
    // Names are what was written, so they come before anything is changed.
    column_names::name(statement, source)?;
    value_rows::rewrite(statement, source.dialect)?;
    floats::in_casts(statement, source.dialect);
    if source.dialect == DialectName::MySql {
        mysql::assigned_variables(statement)?;
        mysql::null_order(statement);
    }
    catalog::rewrite(statement, source.dialect)?;
    versions::mark(statement)?;
    files::mark(statement)?;
    changes::mark(statement)?;
    having::rewrite(statement, source.dialect);
    queries::rewrite(statement)?;
    windows::rewrite(statement)?;
    outer_aggregates::rewrite(statement)?;
    frames::rewrite(statement)?;
    shadowed::rename(statement);
    functions::rewrite(statement, source.dialect)?;
    joins::rewrite(statement)?;
    same_names::tell_apart(statement)?;
    outer_columns::qualify(statement);
    conditions::rewrite(statement)?;
    collations::rewrite(statement, source.dialect)?;
    operators::rewrite(statement, source.dialect)?;
    casts::tell_apart(statement)?;
    order_names::mark(statement, source.dialect)
}
