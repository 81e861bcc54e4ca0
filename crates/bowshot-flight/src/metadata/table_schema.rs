//! The `table_schema` column of `CommandGetTables`: an encapsulated IPC message with the table's Arrow schema and the
//! field metadata that drivers show.

use crate::type_info::column_type;
use arrow::datatypes::{Field, FieldRef, Schema};
use bowshot_api::TableEntry;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

const CATALOG_NAME: &str = "ARROW:FLIGHT:SQL:CATALOG_NAME";
/// The key as `FlightSql.proto` has it.
const DB_SCHEMA_NAME: &str = "ARROW:FLIGHT:SQL:DB_SCHEMA_NAME";
/// The key as the C++, Go and Java clients read it.
const SCHEMA_NAME: &str = "ARROW:FLIGHT:SQL:SCHEMA_NAME";
const TABLE_NAME: &str = "ARROW:FLIGHT:SQL:TABLE_NAME";
const TYPE_NAME: &str = "ARROW:FLIGHT:SQL:TYPE_NAME";
const PRECISION: &str = "ARROW:FLIGHT:SQL:PRECISION";
const SCALE: &str = "ARROW:FLIGHT:SQL:SCALE";
const IS_AUTO_INCREMENT: &str = "ARROW:FLIGHT:SQL:IS_AUTO_INCREMENT";
const IS_CASE_SENSITIVE: &str = "ARROW:FLIGHT:SQL:IS_CASE_SENSITIVE";
const IS_READ_ONLY: &str = "ARROW:FLIGHT:SQL:IS_READ_ONLY";
const IS_SEARCHABLE: &str = "ARROW:FLIGHT:SQL:IS_SEARCHABLE";
const REMARKS: &str = "ARROW:FLIGHT:SQL:REMARKS";

/// The IPC message. Unreadable tables have no fields; their remarks have the reason.
pub(super) fn bytes(entry: &TableEntry) -> Bytes {
    bowshot_ipc::schema_bytes(&described(entry))
}

pub(super) fn described(entry: &TableEntry) -> Schema {
    let (fields, mut metadata) = match &entry.schema {
        Some(schema) => (
            schema.fields().iter().map(|field| describe_field(entry, field)).collect(),
            schema.metadata().clone(),
        ),
        None => (Vec::new(), HashMap::new()),
    };
    if let Some(remarks) = &entry.remarks {
        metadata.insert(REMARKS.to_owned(), remarks.clone());
    }
    Schema::new_with_metadata(fields, metadata)
}

fn describe_field(entry: &TableEntry, field: &FieldRef) -> Arc<Field> {
    let column = column_type(field.data_type());
    let mut metadata = field.metadata().clone();
    let mut set = |key: &str, value: &str| {
        metadata.insert(key.to_owned(), value.to_owned());
    };
    set(CATALOG_NAME, &entry.catalog);
    set(DB_SCHEMA_NAME, &entry.schema_name);
    set(SCHEMA_NAME, &entry.schema_name);
    set(TABLE_NAME, &entry.name);
    set(TYPE_NAME, column.name);
    if let Some(precision) = column.precision {
        set(PRECISION, &precision.to_string());
    }
    if let Some(scale) = column.scale {
        set(SCALE, &scale.to_string());
    }
    set(IS_AUTO_INCREMENT, "0");
    set(IS_CASE_SENSITIVE, if column.case_sensitive { "1" } else { "0" });
    set(IS_READ_ONLY, "1");
    set(IS_SEARCHABLE, "1");
    if let Some(comment) = field.metadata().get("comment") {
        set(REMARKS, comment);
    }
    Arc::new(field.as_ref().clone().with_metadata(metadata))
}
