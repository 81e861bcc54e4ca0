//! What PostgreSQL's clients ask about tables by their names or numbers.

use crate::functions::{BOOL, Call, FunctionSpec, LONG, TEXT, relations, spec, text};
use crate::information_schema::{KeyKind, key_name, reference_name, with_kinds};
use crate::pg_catalog::constraints::{actions, comments, referred_columns, seen_referred};
use crate::pg_catalog::oids;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, PG_TEMP, PUBLIC, TEMPORARY_CATALOG};
use bowshot_tables::{Definition, Entry, EntryName, Key, Reference};
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[
    spec("pg_get_viewdef", (1, 2), TEXT, view_text),
    spec("pg_table_size", (1, 1), LONG, size),
    spec("pg_relation_size", (1, 2), LONG, size),
    spec("pg_total_relation_size", (1, 1), LONG, size),
    spec("pg_indexes_size", (1, 1), LONG, |_| Ok(ScalarValue::from(0_i64))),
    spec("obj_description", (1, 2), TEXT, comment),
    spec("col_description", (2, 2), TEXT, column_comment),
    spec("shobj_description", (2, 2), TEXT, |_| Ok(ScalarValue::Utf8(None))),
    spec("pg_get_constraintdef", (1, 2), TEXT, constraint_text),
    spec("pg_get_indexdef", (1, 3), TEXT, index_text),
    // Texts of defaults and checks are kept as they are.
    spec("pg_get_expr", (2, 3), TEXT, |call| Ok(ScalarValue::Utf8(call.text(0)))),
    spec("pg_table_is_visible", (1, 1), BOOL, is_visible),
];

/// The name of a table as PostgreSQL's clients write it in a text.
pub(crate) fn written(call: &Call<'_>, name: &str) -> Option<EntryName> {
    let object = bowshot_sql::read_name(name)?;
    let part = |place: usize| {
        object.0.get(place).and_then(|part| part.as_ident()).map(bowshot_types::names::identifier)
    };
    let full = match object.0.len() {
        1 => return Some(call.unqualified(&part(0)?)),
        2 if [PG_TEMP, TEMPORARY_CATALOG].contains(&part(0)?.as_str()) => {
            EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, part(1)?)
        }
        2 => EntryName::new(call.catalog(), part(0)?, part(1)?),
        _ => EntryName::new(part(0)?, part(1)?, part(2)?),
    };
    let pinned = call.pinned();
    if full.schema == PUBLIC && !pinned.has_schema(&full.catalog, PUBLIC) {
        return Some(EntryName { schema: DEFAULT_SCHEMA.to_owned(), ..full });
    }
    Some(full)
}

/// What an argument means: a name, or the number of a table or view.
fn found(call: &Call<'_>) -> Option<(EntryName, Option<Entry>)> {
    let pinned = call.pinned();
    let Some(oid) = call.number(0) else {
        let name = written(call, &call.text(0)?)?;
        let entry = pinned.entry(&name).cloned();
        return Some((name, entry));
    };
    let name = call.table(oid)?;
    let entry = pinned.entry(name).cloned()?;
    Some((name.clone(), Some(entry)))
}

fn view_text(call: &Call<'_>) -> Result<ScalarValue> {
    match found(call) {
        Some((_, Some(Entry::View(view)))) => text(&view.sql),
        _ => Ok(ScalarValue::Utf8(None)),
    }
}

fn size(call: &Call<'_>) -> Result<ScalarValue> {
    Ok(ScalarValue::Int64(match found(call) {
        Some((_, Some(Entry::Table(table)))) => Some(table.bytes().cast_signed()),
        Some((_, Some(Entry::View(_) | Entry::External(_)))) => Some(0),
        _ => None,
    }))
}

fn comment(call: &Call<'_>) -> Result<ScalarValue> {
    Ok(ScalarValue::Utf8(match found(call) {
        Some((_, Some(Entry::Table(table)))) => table.definition().comment.clone(),
        Some((_, Some(Entry::View(view)))) => view.comment.clone(),
        Some((_, Some(Entry::External(external)))) => external.comment.clone(),
        Some(_) => None,
        None => constraint_comment(call),
    }))
}

fn constraint_comment(call: &Call<'_>) -> Option<String> {
    let oid = call.number(0)?;
    if call.text(1).is_some_and(|catalog| catalog != "pg_constraint") {
        return None;
    }
    let (table, definition) = call.constrained(oid)?;
    let all = comments(table, &definition);
    let found = all.into_iter().find(|(name, _)| oids::constraint(table, name) == oid);
    found.map(|(_, comment)| comment.clone())
}

fn column_comment(call: &Call<'_>) -> Result<ScalarValue> {
    let place = call.number(1).and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
    Ok(ScalarValue::Utf8(match (found(call), place) {
        (Some((_, Some(Entry::Table(table)))), Some(place)) => {
            table.definition().columns.get(place).and_then(|column| column.comment.clone())
        }
        _ => None,
    }))
}

fn constraint_text(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(oid) = call.number(0) else { return Ok(ScalarValue::Utf8(None)) };
    let found = call.constrained(oid).and_then(|(name, definition)| {
        constraint(oid, name, &definition).or_else(|| reference(call, oid, name, &definition))
    });
    Ok(ScalarValue::Utf8(found))
}

/// The index that stands for a key, or the name of one of its columns.
fn index_text(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(oid) = call.number(0) else { return Ok(ScalarValue::Utf8(None)) };
    let place = call.number(1).and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
    let found = call.constrained(oid).and_then(|(name, definition)| {
        let (key, kind) = with_kinds(&definition)
            .find(|(key, kind)| oids::constraint(name, &key_name(name, key, *kind)) == oid)?;
        Some(match place.checked_sub(1) {
            Some(place) => key.columns.get(place).cloned().unwrap_or_default(),
            None => {
                let (columns, index) = (key.columns.join(", "), key_name(name, key, kind));
                let near = name.catalog == call.catalog() && name.schema == call.schema();
                let table = match call.truth(2) {
                    Some(true) if near => name.name.clone(),
                    _ => format!("{}.{}", name.schema, name.name),
                };
                format!("CREATE UNIQUE INDEX {index} ON {table} USING btree ({columns})")
            }
        })
    });
    Ok(ScalarValue::Utf8(found))
}

fn constraint(oid: i64, name: &EntryName, definition: &Definition) -> Option<String> {
    let is_asked = |(key, kind): &(&Key, KeyKind)| oids::constraint(name, &key_name(name, key, *kind)) == oid;
    if let Some((key, kind)) = with_kinds(definition).find(is_asked) {
        return Some(format!("{} ({})", kind.in_sql(), key.columns.join(", ")));
    }
    let check = definition.checks.iter().find(|check| oids::constraint(name, &check.name) == oid)?;
    Some(format!("CHECK ({})", check.sql))
}

/// What points to another table, as PostgreSQL writes it.
fn reference(call: &Call<'_>, oid: i64, name: &EntryName, definition: &Definition) -> Option<String> {
    let named = |reference: &&Reference| oids::constraint(name, &reference_name(name, reference)) == oid;
    let reference = definition.references.iter().find(named)?;
    let pinned = call.pinned();
    let other = seen_referred(name, reference, (&pinned, &call.access()))?;
    let columns = match pinned.entry(&other) {
        Some(Entry::Table(table)) => referred_columns(reference, table.definition()),
        _ => reference.referred.clone(),
    };
    let near = other.catalog == name.catalog && other.schema == call.schema();
    let table = match near {
        true => relations::quoted(&other.name),
        false => format!("{}.{}", relations::quoted(&other.schema), relations::quoted(&other.name)),
    };
    let list = |columns: &[String]| {
        columns.iter().map(|column| relations::quoted(column)).collect::<Vec<_>>().join(", ")
    };
    Some(format!(
        "FOREIGN KEY ({}) REFERENCES {table}({}){}",
        list(&reference.columns),
        list(&columns),
        actions(reference)
    ))
}

/// Whether a name without a schema means it.
fn is_visible(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(oid) = call.number(0) else { return Ok(ScalarValue::Boolean(None)) };
    // Indexes are seen where their tables are.
    let index = || relations::index(call, oid);
    let name = found(call).map(|(name, _)| name).or_else(index).or_else(|| call.table(oid).cloned());
    Ok(ScalarValue::from(name.is_some_and(|name| call.unqualified(&name.name) == name)))
}
