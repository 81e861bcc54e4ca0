//! Tables, views and indexes by their numbers, and their numbers by their names.

use crate::functions::about_tables::written;
use crate::functions::{BOOL, Call, FunctionSpec, LONG, LONGS, TEXT, sequences, spec, text};
use crate::information_schema::{self, KeyKind, key_name, reference_name};
use crate::pg_catalog::{self, oids};
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA, PG_CATALOG, SYSTEM_SCHEMA};
use bowshot_tables::{Definition, EntryName};
use datafusion::arrow::array::{Int64Array, ListArray, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[
    // Tables have no parts that are tables themselves.
    spec("pg_partition_ancestor_list", (1, 1), LONGS, |_| {
        Ok(ScalarValue::List(ScalarValue::new_list_nullable(&[], &DataType::Int64)))
    }),
    spec("pg_partition_root", (1, 1), LONG, |_| Ok(ScalarValue::Int64(None))),
    spec("pg_expanded_array", (1, 1), EXPANDED, expanded),
    spec("pg_relation_is_publishable", (1, 1), BOOL, |call| {
        Ok(ScalarValue::Boolean(call.number(0).map(|_| false)))
    }),
    spec("pg_get_partkeydef", (1, 1), TEXT, none),
    spec("pg_get_partition_constraintdef", (1, 1), TEXT, none),
    spec("pg_get_ruledef", (1, 2), TEXT, none),
    spec("pg_get_triggerdef", (1, 2), TEXT, none),
    spec("pg_get_statisticsobjdef", (1, 1), TEXT, none),
    spec("pg_get_statisticsobjdef_columns", (1, 1), TEXT, none),
    spec("pg_get_functiondef", (1, 1), TEXT, none),
    spec("pg_get_function_arguments", (1, 1), TEXT, anything),
    spec("pg_get_function_identity_arguments", (1, 1), TEXT, anything),
    spec("pg_get_function_result", (1, 1), TEXT, anything),
    spec("pg_get_function_sqlbody", (1, 1), TEXT, none),
    spec("pg_relation_filenode", (1, 1), LONG, |call| Ok(ScalarValue::Int64(call.number(0)))),
    spec("pg_relation_filepath", (1, 1), TEXT, none),
];

fn none(_: &Call<'_>) -> Result<ScalarValue> {
    Ok(ScalarValue::Utf8(None))
}

/// What functions take and give depends on what they are called with.
fn anything(call: &Call<'_>) -> Result<ScalarValue> {
    if call.number(0).is_none() { Ok(ScalarValue::Utf8(None)) } else { text("\"any\"") }
}

/// Elements with their places, from one.
const EXPANDED: fn() -> DataType =
    || DataType::List(Arc::new(Field::new("item", DataType::Struct(pair()), true)));

fn pair() -> Fields {
    Fields::from(vec![Field::new("x", DataType::Int64, true), Field::new("n", DataType::Int64, true)])
}

fn expanded(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(elements) = call.elements(0) else { return ScalarValue::try_from(&EXPANDED()) };
    let values: Int64Array = elements
        .iter()
        .map(|element| match element.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) => number,
            _ => None,
        })
        .collect();
    let places: Int64Array = (1_i64..).take(elements.len()).map(Some).collect();
    let rows = StructArray::try_new(pair(), vec![Arc::new(values), Arc::new(places)], None)?;
    let item = Arc::new(Field::new("item", DataType::Struct(pair()), true));
    let list = ListArray::try_new(item, OffsetBuffer::from_lengths([elements.len()]), Arc::new(rows), None)?;
    Ok(ScalarValue::List(Arc::new(list)))
}

/// The parts of a name as PostgreSQL's clients write it in a text.
pub(crate) fn parts(name: &str) -> Option<Vec<String>> {
    let object = bowshot_sql::read_name(name)?;
    object.0.iter().map(|part| part.as_ident().map(bowshot_types::names::identifier)).collect()
}

/// A name as it stands in SQL.
pub fn quoted(name: &str) -> String {
    let begins = name.chars().next().is_some_and(|first| first.is_ascii_lowercase() || first == '_');
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if begins && name.chars().all(is_part) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// The number of a table, view or index.
pub(crate) fn number(call: &Call<'_>, name: &str) -> Option<i64> {
    let full = written(call, name)?;
    if is_there(call, &full) {
        return Some(oids::table(&full));
    }
    // Names without a schema are looked for among PostgreSQL's own last.
    if parts(name)?.len() == 1 && pg_catalog::find(&full.name).is_some() {
        return Some(oids::table(&EntryName::new(call.catalog(), PG_CATALOG, &full.name)));
    }
    let found = keys(call).into_iter().find(|(table, index)| {
        table.catalog == full.catalog && table.schema == full.schema && *index == full.name
    });
    let index = found.map(|(table, index)| oids::constraint(&table, &index));
    index.or_else(|| sequences::by_name(call, name).map(|sequence| sequence.oid()))
}

/// The number of the type of the rows of a table or view, or of that of arrays of them.
pub(crate) fn row_type(call: &Call<'_>, name: &str, is_array: bool) -> Option<i64> {
    let full = written(call, name).filter(|full| !is_internal(full) && is_there(call, full))?;
    Some(if is_array { oids::row_array(&full) } else { oids::row_type(&full) })
}

/// Whether a table is one of the server's own, whose rows have no type.
pub(crate) fn is_internal(name: &EntryName) -> bool {
    [PG_CATALOG, INFORMATION_SCHEMA, SYSTEM_SCHEMA].contains(&name.schema.as_str())
}

fn is_there(call: &Call<'_>, name: &EntryName) -> bool {
    match name.schema.as_str() {
        PG_CATALOG => pg_catalog::find(&name.name).is_some(),
        INFORMATION_SCHEMA => information_schema::names().any(|known| known == name.name),
        SYSTEM_SCHEMA => system(call).contains(&name.name),
        _ => call.pinned().entry(name).is_some() || call.facts.tables.is_file_table(name),
    }
}

fn system(call: &Call<'_>) -> Vec<String> {
    call.facts.tables.system_names()
}

/// The name of a table, view or index, with its schema where it is not found without.
pub(crate) fn name(call: &Call<'_>, oid: i64) -> Option<String> {
    if let Some(found) = call.table(oid) {
        return Some(text_of_name(call, found, &found.name));
    }
    let Some((table, definition)) = call.constrained(oid) else {
        let sequence = sequences::by_number(call, oid)?;
        return Some(text_of_name(call, &sequence.table, &sequence.name()));
    };
    let index = named(table, &definition).into_iter().find(|index| oids::constraint(table, index) == oid)?;
    Some(text_of_name(call, table, &index))
}

/// The name of the type of a table's rows, or of arrays of them.
pub(crate) fn row_type_name(call: &Call<'_>, oid: i64) -> Option<String> {
    let (table, is_array) = call.row_type(oid)?;
    let name = text_of_name(call, table, &table.name);
    Some(if is_array { format!("{name}[]") } else { name })
}

/// A name with the schema of its table where it is not found without.
fn text_of_name(call: &Call<'_>, table: &EntryName, name: &str) -> String {
    let is_visible = table.schema == PG_CATALOG || call.unqualified(&table.name) == *table;
    let name = quoted(name);
    if is_visible { name } else { format!("{}.{name}", quoted(&table.schema)) }
}

pub(crate) fn index(call: &Call<'_>, oid: i64) -> Option<EntryName> {
    let (table, definition) = call.constrained(oid)?;
    let is_key = named(table, &definition).iter().any(|index| oids::constraint(table, index) == oid);
    is_key.then(|| table.clone())
}

/// All tables and views that there are.
pub(crate) fn tables(call: &Call<'_>) -> Vec<EntryName> {
    let pinned = call.pinned();
    let mut all = Vec::new();
    for side in [pinned.own(), pinned.shared()] {
        for catalog in side.catalogs() {
            for schema in side.schemas(&catalog) {
                let names = side.names(&catalog, &schema);
                all.extend(names.into_iter().map(|name| EntryName::new(&catalog, &schema, name)));
            }
        }
    }
    let files = call.facts.tables.file_names().into_iter();
    all.extend(files.map(|name| EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, name)));
    let own = |schema: &'static str| move |name: String| EntryName::new(call.catalog(), schema, name);
    all.extend(pg_catalog::names().map(str::to_owned).map(own(PG_CATALOG)));
    all.extend(information_schema::names().map(str::to_owned).map(own(INFORMATION_SCHEMA)));
    all.extend(system(call).into_iter().map(own(SYSTEM_SCHEMA)));
    all
}

/// The keys of all tables, by the names of the indexes that PostgreSQL would have for them.
fn keys(call: &Call<'_>) -> Vec<(EntryName, String)> {
    let pinned = call.pinned();
    let tables = pinned.own().tables().chain(pinned.shared().tables());
    let mut all = Vec::new();
    for (name, table) in tables {
        all.extend(named(&name, table.definition()).into_iter().map(|key| (name.clone(), key)));
    }
    all
}

/// What the indexes are called that PostgreSQL would have for the keys of a table.
pub(crate) fn named(name: &EntryName, definition: &Definition) -> Vec<String> {
    let primary = definition.primary_key.iter().map(|key| key_name(name, key, KeyKind::Primary));
    primary.chain(definition.unique.iter().map(|key| key_name(name, key, KeyKind::Unique))).collect()
}

/// What the constraints of a table are called.
pub(crate) fn constraints(name: &EntryName, definition: &Definition) -> Vec<String> {
    let references = definition.references.iter().map(|reference| reference_name(name, reference));
    let checks = definition.checks.iter().map(|check| check.name.clone());
    named(name, definition).into_iter().chain(checks).chain(references).collect()
}
