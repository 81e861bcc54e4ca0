//! What the catalog keeps as text and bytes: definitions, views and external tables as JSON, few rows as an Arrow IPC stream.

use super::types::{field_from_json, field_to_json};
use crate::segment::fitted;
use crate::{Column, DECLARED, Definition, Entry, Error, External, Storage, View};
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use bowshot_formats::read_options::OptionValue;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Serialize, Deserialize)]
struct StoredColumn {
    field: Value,
    default: Option<String>,
    comment: Option<String>,
    declared: Option<String>,
    #[serde(default)]
    metadata: HashMap<String, String>,
}

impl StoredColumn {
    fn new(column: &Column) -> Result<Self, Error> {
        let field = field_to_json(&column.field, None).ok_or_else(|| {
            let (name, data_type) = (column.field.name(), column.field.data_type());
            Error::Invalid(format!("column `{name}` of type {data_type} cannot be kept in a durable table"))
        })?;
        let mut metadata = column.field.metadata().clone();
        let declared = metadata.remove(DECLARED);
        let (default, comment) = (column.default.clone(), column.comment.clone());
        Ok(Self { field, default, comment, declared, metadata })
    }

    fn read(self) -> Option<Column> {
        let mut metadata = self.metadata;
        metadata.extend(self.declared.map(|declared| (DECLARED.to_owned(), declared)));
        let field = Arc::new(field_from_json(&self.field)?.with_metadata(metadata));
        Some(Column { field, default: self.default, comment: self.comment })
    }
}

pub(super) fn definition_to_text(definition: &Definition) -> Result<String, Error> {
    let columns = definition.columns.iter().map(StoredColumn::new).collect::<Result<Vec<_>, Error>>()?;
    let mut value = json!(definition);
    value["columns"] = json!(columns);
    Ok(value.to_string())
}

pub(super) fn definition_from_text(text: &str) -> Result<Definition, Error> {
    let value: Value = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    let read = || {
        let columns = Vec::<StoredColumn>::deserialize(&value["columns"]).ok()?;
        let columns = columns.into_iter().map(StoredColumn::read).collect::<Option<Vec<_>>>()?;
        let others = Definition::deserialize(&value).ok()?;
        Some(Definition { storage: Storage::Durable, columns, ..others })
    };
    read().ok_or_else(|| damaged(&"a definition of a table is incomplete"))
}

/// Whether a definition is read back as it was written.
#[cfg(test)]
pub(crate) fn survives(definition: &Definition) -> bool {
    let text = definition_to_text(definition);
    text.is_ok_and(|text| definition_from_text(&text).is_ok_and(|read| read == *definition))
}

pub(super) fn view_to_text(view: &View) -> String {
    json!(view).to_string()
}

/// What is kept as a view: one, or an external table.
pub(super) fn view_or_external(id: Uuid, text: &str) -> Result<Entry, Error> {
    let value: Value = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    if value["external"].is_null() {
        let view = View::deserialize(&value).map_err(|_| damaged(&"a definition of a view is incomplete"))?;
        return Ok(Entry::View(Arc::new(View { id, ..view })));
    }
    let external = external_from_json(id, &value);
    let external = external.ok_or_else(|| damaged(&"a definition of an external table is incomplete"))?;
    Ok(Entry::External(Arc::new(external)))
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
