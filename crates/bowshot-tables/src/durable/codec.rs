//! What the catalog keeps as text and bytes: definitions, views and external tables as JSON, few rows as an Arrow IPC stream.

use super::types::{field_from_json, field_to_json};
use crate::segment::fitted;
use crate::{
    Check, Column, DECLARED, Definition, Entry, Error, External, Generated, Identity, IdentityKind, Key,
    LastRefresh, Materialized, Reference, SourceVersion, Storage, View,
};
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use bowshot_formats::read_options::OptionValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

pub(super) fn definition_to_text(definition: &Definition) -> Result<String, Error> {
    let column = |column: &Column| {
        let field = field_to_json(&column.field, None).ok_or_else(|| {
            let (name, data_type) = (column.field.name(), column.field.data_type());
            Error::Invalid(format!("column `{name}` of type {data_type} cannot be kept in a durable table"))
        })?;
        let mut metadata = column.field.metadata().clone();
        let declared = metadata.remove(DECLARED);
        Ok(json!({
            "field": field,
            "default": column.default,
            "comment": column.comment,
            "declared": declared,
            "metadata": metadata,
        }))
    };
    let columns = definition.columns.iter().map(column).collect::<Result<Vec<_>, Error>>()?;
    let checks = definition
        .checks
        .iter()
        .map(|check| json!({"name": check.name, "sql": check.sql, "comment": check.comment}));
    Ok(json!({
        "columns": columns,
        "primary_key": definition.primary_key.as_ref().map(key_to_json),
        "unique": definition.unique.iter().map(key_to_json).collect::<Vec<_>>(),
        "checks": checks.collect::<Vec<_>>(),
        "identities": definition.identities.iter().map(identity_to_json).collect::<Vec<_>>(),
        "generated": definition
            .generated
            .iter()
            .map(|generated| json!({"column": generated.column, "sql": generated.sql}))
            .collect::<Vec<_>>(),
        "references": definition.references.iter().map(reference_to_json).collect::<Vec<_>>(),
        "materialized": definition.materialized.as_ref().map(materialized_to_json),
        "comment": definition.comment,
        "clauses": definition.clauses,
    })
    .to_string())
}

pub(super) fn definition_from_text(text: &str) -> Result<Definition, Error> {
    let value: Value = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    parse_definition(&value).ok_or_else(|| damaged(&"a definition of a table is incomplete"))
}

/// Whether a definition is read back as it was written.
#[cfg(test)]
pub(crate) fn survives(definition: &Definition) -> bool {
    let text = definition_to_text(definition);
    text.is_ok_and(|text| definition_from_text(&text).is_ok_and(|read| read == *definition))
}

fn parse_definition(value: &Value) -> Option<Definition> {
    let column = |column: &Value| {
        let field = field_from_json(&column["field"])?;
        let others = column["metadata"].as_object().into_iter().flatten();
        let mut metadata: HashMap<String, String> =
            others.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        metadata.extend(optional(&column["declared"]).map(|declared| (DECLARED.to_owned(), declared)));
        let field = Arc::new(field.with_metadata(metadata));
        Some(Column { field, default: optional(&column["default"]), comment: optional(&column["comment"]) })
    };
    let check = |check: &Value| {
        let (name, sql) = (optional(&check["name"])?, optional(&check["sql"])?);
        Some(Check { name, sql, comment: optional(&check["comment"]) })
    };
    let primary_key = match &value["primary_key"] {
        Value::Null => None,
        key => Some(key_from_json(key)?),
    };
    let generated = |generated: &Value| {
        Some(Generated { column: optional(&generated["column"])?, sql: optional(&generated["sql"])? })
    };
    let materialized = match &value["materialized"] {
        Value::Null => None,
        view => Some(materialized_from_json(view)?),
    };
    Some(Definition {
        storage: Storage::Durable,
        columns: value["columns"].as_array()?.iter().map(column).collect::<Option<_>>()?,
        primary_key,
        unique: each(&value["unique"], key_from_json)?,
        checks: value["checks"].as_array()?.iter().map(check).collect::<Option<_>>()?,
        identities: each(&value["identities"], identity_from_json)?,
        generated: each(&value["generated"], generated)?,
        references: each(&value["references"], reference_from_json)?,
        materialized,
        comment: optional(&value["comment"]),
        clauses: optional(&value["clauses"]),
    })
}

/// The parts of a list, which catalogs of earlier versions lack.
fn each<T>(list: &Value, part: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    match list {
        Value::Null => Some(Vec::new()),
        list => list.as_array()?.iter().map(part).collect(),
    }
}

fn materialized_to_json(view: &Materialized) -> Value {
    let sources = view.sources.iter();
    let sources = sources.map(|source| json!({"table": source.table.to_string(), "version": source.version}));
    let last = view.last.as_ref().map(
        |last| json!({"ended_us": last.ended_us, "took_us": microseconds(last.took), "full": last.full}),
    );
    json!({
        "sql": view.sql,
        "dialect": view.dialect,
        "default_catalog": view.default_catalog,
        "default_schema": view.default_schema,
        "every_us": view.every.map(microseconds),
        "sources": sources.collect::<Vec<_>>(),
        "last": last,
    })
}

/// Views of earlier versions have neither sources nor an interval.
fn materialized_from_json(view: &Value) -> Option<Materialized> {
    let source = |source: &Value| {
        let table = Uuid::parse_str(source["table"].as_str()?).ok()?;
        Some(SourceVersion { table, version: source["version"].as_u64()? })
    };
    let last = match &view["last"] {
        Value::Null => None,
        last => Some(LastRefresh {
            ended_us: last["ended_us"].as_i64()?,
            took: Duration::from_micros(last["took_us"].as_u64()?),
            full: optional(&last["full"]),
        }),
    };
    Some(Materialized {
        sql: optional(&view["sql"])?,
        dialect: optional(&view["dialect"])?,
        default_catalog: optional(&view["default_catalog"])?,
        default_schema: optional(&view["default_schema"])?,
        every: view["every_us"].as_u64().map(Duration::from_micros),
        sources: each(&view["sources"], source)?,
        last,
    })
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn key_to_json(key: &Key) -> Value {
    json!({"name": key.name, "columns": key.columns, "comment": key.comment})
}

fn key_from_json(key: &Value) -> Option<Key> {
    let (name, comment) = (optional(&key["name"]), optional(&key["comment"]));
    Some(Key { name, columns: texts(&key["columns"])?, comment })
}

fn identity_to_json(identity: &Identity) -> Value {
    json!({
        "column": identity.column,
        "id": identity.id.to_string(),
        "start": identity.start,
        "step": identity.step,
        "always": identity.is_always(),
        "serial": identity.kind == IdentityKind::Serial,
    })
}

fn identity_from_json(identity: &Value) -> Option<Identity> {
    let kind = match (identity["always"].as_bool()?, identity["serial"].as_bool()) {
        (true, _) => IdentityKind::Always,
        (false, Some(true)) => IdentityKind::Serial,
        (false, _) => IdentityKind::ByDefault,
    };
    Some(Identity {
        column: optional(&identity["column"])?,
        id: Uuid::parse_str(identity["id"].as_str()?).ok()?,
        start: identity["start"].as_i64()?,
        step: identity["step"].as_i64()?,
        kind,
    })
}

fn reference_to_json(reference: &Reference) -> Value {
    json!({
        "name": reference.name,
        "columns": reference.columns,
        "table": reference.table,
        "referred": reference.referred,
        "on_delete": reference.on_delete,
        "on_update": reference.on_update,
        "comment": reference.comment,
    })
}

fn reference_from_json(reference: &Value) -> Option<Reference> {
    Some(Reference {
        name: optional(&reference["name"]),
        columns: texts(&reference["columns"])?,
        table: optional(&reference["table"])?,
        referred: texts(&reference["referred"])?,
        on_delete: optional(&reference["on_delete"]),
        on_update: optional(&reference["on_update"]),
        comment: optional(&reference["comment"]),
    })
}

pub(super) fn view_to_text(view: &View) -> String {
    json!({
        "sql": view.sql,
        "dialect": view.dialect,
        "default_catalog": view.default_catalog,
        "default_schema": view.default_schema,
        "columns": view.columns,
        "comment": view.comment,
    })
    .to_string()
}

/// What is kept as a view: one, or an external table.
pub(super) fn view_or_external(id: Uuid, text: &str) -> Result<Entry, Error> {
    let value: Value = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    if value["external"].is_null() {
        return Ok(Entry::View(Arc::new(view_from_json(id, &value)?)));
    }
    let external = external_from_json(id, &value);
    let external = external.ok_or_else(|| damaged(&"a definition of an external table is incomplete"))?;
    Ok(Entry::External(Arc::new(external)))
}

fn view_from_json(id: Uuid, value: &Value) -> Result<View, Error> {
    let view = || {
        Some(View {
            id,
            sql: optional(&value["sql"])?,
            // Views of earlier versions tell none.
            dialect: optional(&value["dialect"]).unwrap_or_else(|| "ansi".to_owned()),
            default_catalog: optional(&value["default_catalog"])?,
            default_schema: optional(&value["default_schema"])?,
            columns: texts(&value["columns"])?,
            comment: optional(&value["comment"]),
        })
    };
    view().ok_or_else(|| damaged(&"a definition of a view is incomplete"))
}

pub(super) fn external_to_text(external: &External) -> String {
    let option = |(name, value): &(String, OptionValue)| match value {
        OptionValue::Text(text) => json!({"name": name, "text": text}),
        OptionValue::List(list) => json!({"name": name, "list": list}),
        OptionValue::Map(pairs) => json!({"name": name, "pairs": pairs}),
    };
    let options: Vec<Value> = external.options.iter().map(option).collect();
    json!({
        "external": {
            "format": external.format,
            "location": external.location,
            "found": external.found,
            "options": options,
        },
        "comment": external.comment,
    })
    .to_string()
}

fn external_from_json(id: Uuid, value: &Value) -> Option<External> {
    let pair = |pair: &Value| Some((optional(&pair[0])?, optional(&pair[1])?));
    let option = |option: &Value| {
        let value = if let Some(text) = optional(&option["text"]) {
            OptionValue::Text(text)
        } else if !option["list"].is_null() {
            OptionValue::List(texts(&option["list"])?)
        } else {
            OptionValue::Map(option["pairs"].as_array()?.iter().map(pair).collect::<Option<_>>()?)
        };
        Some((optional(&option["name"])?, value))
    };
    let external = &value["external"];
    Some(External {
        id,
        format: optional(&external["format"])?,
        location: optional(&external["location"])?,
        found: optional(&external["found"]),
        options: external["options"].as_array()?.iter().map(option).collect::<Option<_>>()?,
        comment: optional(&value["comment"]),
    })
}

fn optional(value: &Value) -> Option<String> {
    value.as_str().map(ToOwned::to_owned)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(optional).collect()
}

pub(super) fn rows_to_bytes(rows: &RecordBatch) -> Result<Vec<u8>, Error> {
    let mut writer = StreamWriter::try_new(Vec::new(), rows.schema_ref())?;
    writer.write(rows)?;
    Ok(writer.into_inner()?)
}

pub(super) fn rows_from_bytes(bytes: Vec<u8>) -> Result<RecordBatch, Error> {
    let reader = StreamReader::try_new(Cursor::new(bytes), None)?;
    let schema: SchemaRef = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>()?;
    let rows = concat_batches(&schema, &batches)?;
    Ok(fitted(&schema, rows.columns().to_vec(), rows.num_rows())?)
}

pub(super) fn damaged(reason: &dyn std::fmt::Display) -> Error {
    Error::Catalog { doing: "is damaged", reason: reason.to_string() }
}
