//! Schemas of the key commands. Bowshot's tables have no primary or foreign keys, so the answers are empty; clients
//! still want them with the right schema instead of an error.
//!
//! The comment in `FlightSql.proto` lists `key_name` before `key_sequence`; the C++, Go and Java implementations have
//! it the other way round, and clients compare with those.

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::{Arc, LazyLock};

/// Answer of `CommandGetPrimaryKeys`.
pub(crate) fn primary_schema() -> SchemaRef {
    Arc::clone(&PRIMARY)
}

/// Answer of `CommandGetExportedKeys`, `CommandGetImportedKeys` and `CommandGetCrossReference`.
pub(crate) fn foreign_schema() -> SchemaRef {
    Arc::clone(&FOREIGN)
}

static PRIMARY: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("catalog_name", DataType::Utf8, true),
        Field::new("db_schema_name", DataType::Utf8, true),
        Field::new("table_name", DataType::Utf8, false),
        Field::new("column_name", DataType::Utf8, false),
        Field::new("key_sequence", DataType::Int32, false),
        Field::new("key_name", DataType::Utf8, true),
    ]))
});

static FOREIGN: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("pk_catalog_name", DataType::Utf8, true),
        Field::new("pk_db_schema_name", DataType::Utf8, true),
        Field::new("pk_table_name", DataType::Utf8, false),
        Field::new("pk_column_name", DataType::Utf8, false),
        Field::new("fk_catalog_name", DataType::Utf8, true),
        Field::new("fk_db_schema_name", DataType::Utf8, true),
        Field::new("fk_table_name", DataType::Utf8, false),
        Field::new("fk_column_name", DataType::Utf8, false),
        Field::new("key_sequence", DataType::Int32, false),
        Field::new("fk_key_name", DataType::Utf8, true),
        Field::new("pk_key_name", DataType::Utf8, true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
});
