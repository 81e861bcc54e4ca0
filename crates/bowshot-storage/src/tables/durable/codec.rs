//! What the catalog keeps as text and bytes: definitions and views as JSON, few rows as an Arrow IPC stream.

use super::types::{field_from_json, field_to_json};
use crate::tables::segment::fitted;
use crate::tables::{Check, Column, Definition, Error, Key, Storage, View};
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use serde_json::{Value, json};
use std::io::Cursor;
use std::sync::Arc;
use uuid::Uuid;

pub(super) fn definition_to_text(definition: &Definition) -> Result<String, Error> {
    let column = |column: &Column| {
        let field = field_to_json(&column.field, None).ok_or_else(|| {
            let (name, data_type) = (column.field.name(), column.field.data_type());
            Error::Invalid(format!("column `{name}` of type {data_type} cannot be kept in a durable table"))
        })?;
        Ok(json!({"field": field, "default": column.default, "comment": column.comment}))
    };
    let columns = definition.columns.iter().map(column).collect::<Result<Vec<_>, Error>>()?;
    let checks = definition.checks.iter().map(|check| json!({"name": check.name, "sql": check.sql}));
    let key = definition.primary_key.as_ref().map(|key| json!({"name": key.name, "columns": key.columns}));
    Ok(json!({
        "columns": columns,
        "primary_key": key,
        "checks": checks.collect::<Vec<_>>(),
        "comment": definition.comment,
    })
    .to_string())
}

pub(super) fn definition_from_text(text: &str) -> Result<Definition, Error> {
    let value: Value = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    parse_definition(&value).ok_or_else(|| damaged(&"a definition of a table is incomplete"))
}

fn parse_definition(value: &Value) -> Option<Definition> {
    let column = |column: &Value| {
        let field = Arc::new(field_from_json(&column["field"])?);
        Some(Column { field, default: optional(&column["default"]), comment: optional(&column["comment"]) })
    };
    let check =
        |check: &Value| Some(Check { name: optional(&check["name"])?, sql: optional(&check["sql"])? });
    let primary_key = match &value["primary_key"] {
        Value::Null => None,
        key => Some(Key { name: optional(&key["name"]), columns: texts(&key["columns"])? }),
    };
    Some(Definition {
        storage: Storage::Durable,
        columns: value["columns"].as_array()?.iter().map(column).collect::<Option<_>>()?,
        primary_key,
        checks: value["checks"].as_array()?.iter().map(check).collect::<Option<_>>()?,
        comment: optional(&value["comment"]),
    })
}

pub(super) fn view_to_text(view: &View) -> String {
    json!({
        "sql": view.sql,
        "default_catalog": view.default_catalog,
        "default_schema": view.default_schema,
        "columns": view.columns,
        "comment": view.comment,
    })
    .to_string()
}

pub(super) fn view_from_text(id: Uuid, text: &str) -> Result<View, Error> {
    let value: Value = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    let view = || {
        Some(View {
            id,
            sql: optional(&value["sql"])?,
            default_catalog: optional(&value["default_catalog"])?,
            default_schema: optional(&value["default_schema"])?,
            columns: texts(&value["columns"])?,
            comment: optional(&value["comment"]),
        })
    };
    view().ok_or_else(|| damaged(&"a definition of a view is incomplete"))
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
