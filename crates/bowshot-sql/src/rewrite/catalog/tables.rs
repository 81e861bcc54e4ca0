//! Functions of PostgreSQL's catalog that give rows: in FROM, and in the list of columns.

use super::{column, unqualified};
use crate::calls::{arguments, call, cloned_values};
use crate::dialect::DialectName;
use crate::literal;
use crate::template;
use bowshot_api::Result;
use sqlparser::ast::{
    AccessExpr, Expr, Function, Ident, Subscript, TableAlias, TableAliasColumnDef, TableFactor, Value,
};

/// The function that gives a row for each element of an array, with its place.
const EXPANDED: &str = "_pg_expandarray";

/// Functions over lists of ours that have the rows of those: in the list of columns they stand under `unnest`.
const LISTS: [(&str, &str); 2] =
    [(EXPANDED, "pg_expanded_array"), ("pg_partition_ancestors", "pg_partition_ancestor_list")];

/// Functions that never give a row here, and their columns.
const NONE: [(&str, &str); 2] = [
    ("pg_options_to_table", "SELECT '' AS option_name, '' AS option_value WHERE FALSE"),
    ("pg_get_publication_tables", "SELECT 0 AS pubid, 0 AS relid WHERE FALSE"),
];

/// `pg_catalog.unnest(l)`, which the parser takes for a call like any other.
fn unnest(factor: &mut TableFactor) {
    let TableFactor::Table { args: Some(arguments), alias, with_ordinality, .. } = factor else { return };
    let Some(array_exprs) = cloned_values(&arguments.args) else { return };
    *factor = TableFactor::UNNEST {
        alias: alias.take(),
        array_exprs,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: *with_ordinality,
    };
}

/// In PostgreSQL `FROM unnest(l) AS x` has a column `x`, and without an alias one called `unnest`.
fn name_elements(factor: &mut TableFactor) {
    let TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality: false, .. } = factor
    else {
        return;
    };
    if array_exprs.len() != 1 {
        return;
    }
    let plain = || TableAlias { explicit: true, name: Ident::new("unnest"), columns: Vec::new(), at: None };
    let alias = alias.get_or_insert_with(plain);
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
}

/// Functions that give one value and are read as tables of it.
const VALUES: [&str; 11] = [
    "array_remove",
    "clock_timestamp",
    "current_database",
    "current_schema",
    "current_setting",
    "now",
    "parse_ident",
    "pg_backend_pid",
    "pg_sleep",
    "string_to_array",
    "version",
];

/// `FROM version() AS v` is `FROM (SELECT version() AS v) AS v`: a table of one row, whose column is called as it is.
fn of_value(factor: &mut TableFactor, name: &str) -> Result<()> {
    let (args, alias) = match factor {
        TableFactor::Table { args: Some(arguments), alias, .. } => (&arguments.args, alias),
        TableFactor::Function { args, alias, .. } => (&*args, alias),
        _ => return Ok(()),
    };
    let Some(values) = cloned_values(args) else { return Ok(()) };
    let plain = || TableAlias { explicit: true, name: Ident::new(name), columns: Vec::new(), at: None };
    let mut alias = alias.take().unwrap_or_else(plain);
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
    let subquery = template::query("SELECT value", &[("value", &call(name, values))])?;
    *factor = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
    Ok(())
}

/// A function in FROM by its plain name.
pub(super) fn rewrite(factor: &mut TableFactor, dialect: DialectName) -> Result<()> {
    if dialect == DialectName::Postgres {
        name_elements(factor);
    }
    let (name, alias) = match factor {
        TableFactor::Table { name, args: Some(_), alias, .. } | TableFactor::Function { name, alias, .. } => {
            (name, alias)
        }
        _ => return Ok(()),
    };
    unqualified(name);
    let called = name.to_string().to_ascii_lowercase();
    if called == "unnest" {
        unnest(factor);
        if dialect == DialectName::Postgres {
            name_elements(factor);
        }
        return Ok(());
    }
    if VALUES.contains(&called.as_str()) {
        return of_value(factor, &called);
    }
    let Some((_, rows)) = NONE.iter().find(|(known, _)| *known == called) else { return Ok(()) };
    *factor = TableFactor::Derived {
        lateral: false,
        subquery: template::query(rows, &[])?,
        alias: alias.take(),
        sample: None,
    };
    Ok(())
}

/// Such a function in the list of columns.
pub(super) fn in_a_list(function: &Function) -> Option<Expr> {
    let list = list(function)?;
    let inner = call(list, arguments(function)?.into_iter().cloned());
    Some(call("unnest", vec![inner]))
}

fn list(function: &Function) -> Option<&'static str> {
    let name = function.name.to_string().to_ascii_lowercase();
    LISTS.iter().find(|(known, _)| *known == name).map(|(_, list)| *list)
}

/// `(information_schema._pg_expandarray(a)).n` is the place of an element, and `.x` the element. The call has become one of
/// `unnest` already.
pub(super) fn field(root: &Expr, access_chain: &[AccessExpr]) -> Option<Expr> {
    let [AccessExpr::Dot(Expr::Identifier(field))] = access_chain else { return None };
    let array = match root {
        Expr::Nested(inner) => return self::field(inner, access_chain),
        Expr::Function(function) if function.name.to_string() == "unnest" => {
            match arguments(function)?.as_slice() {
                [Expr::Function(inner)] if inner.name.to_string() == "pg_expanded_array" => {
                    (*arguments(inner)?.first()?).clone()
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    let elements = match field.value.to_ascii_lowercase().as_str() {
        "n" => call("list_subscripts", vec![array, Expr::value(number("1"))]),
        "x" => array,
        _ => return None,
    };
    Some(call("unnest", vec![elements]))
}

/// `typname[0]` is the first letter: PostgreSQL's type of names is an array, too.
pub(super) fn letter(root: &Expr, access_chain: &[AccessExpr]) -> Option<Expr> {
    let [AccessExpr::Subscript(Subscript::Index { index })] = access_chain else { return None };
    let place = literal::number(index)?.parse::<u32>().ok()?.checked_add(1)?;
    (column(root)? == "typname").then(|| {
        let (place, one) = (Expr::value(number(&place.to_string())), Expr::value(number("1")));
        call("substr", vec![root.clone(), place, one])
    })
}

fn number(text: &str) -> Value {
    Value::Number(text.to_owned(), false)
}
