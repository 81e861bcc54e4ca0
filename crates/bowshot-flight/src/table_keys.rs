//! The key commands. Foreign keys are not reported: those answers are empty, with the right schema. `key_name`
//! follows `key_sequence` as in the C++, Go and Java implementations, unlike the comment in `FlightSql.proto`.

use crate::metadata::batch;
use arrow::array::{Int32Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow_flight::sql::CommandGetPrimaryKeys;
use bowshot_api::{ErrorKind, PrimaryKey, Result, Session, TableName};
use std::sync::{Arc, LazyLock};

/// Answer of `CommandGetPrimaryKeys`.
pub(crate) fn primary_schema() -> SchemaRef {
    Arc::clone(&PRIMARY)
}

/// Answer of `CommandGetExportedKeys`, `CommandGetImportedKeys` and `CommandGetCrossReference`.
pub(crate) fn foreign_schema() -> SchemaRef {
    Arc::clone(&FOREIGN)
}

/// Answers `CommandGetPrimaryKeys`: a row for each column, in the order of the key.
///
/// A table that is not there has no keys, as JDBC and the reference servers have it.
pub(crate) async fn primary(session: &dyn Session, command: &CommandGetPrimaryKeys) -> Result<RecordBatch> {
    // Empty names ask for tables without a catalog or schema; every table here has both.
    if command.catalog.as_deref() == Some("") || command.db_schema.as_deref() == Some("") {
        return Ok(RecordBatch::new_empty(primary_schema()));
    }
    let table = TableName {
        catalog: command.catalog.clone(),
        schema_name: command.db_schema.clone(),
        name: command.table.clone(),
    };
    match session.primary_key(&table).await {
        Ok(Some(key)) => primary_rows(&key),
        Ok(None) => Ok(RecordBatch::new_empty(primary_schema())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(RecordBatch::new_empty(primary_schema())),
        Err(error) => Err(error),
    }
}

fn primary_rows(key: &PrimaryKey) -> Result<RecordBatch> {
    let same = |value: Option<&str>| Arc::new(StringArray::from_iter(key.columns.iter().map(|_| value)));
    let [catalog, schema, table] = &key.table;
    batch(
        primary_schema(),
        vec![
            same(Some(catalog)),
            same(Some(schema)),
            same(Some(table)),
            Arc::new(StringArray::from_iter_values(&key.columns)),
            Arc::new(Int32Array::from_iter_values((1..).take(key.columns.len()))),
            same(key.name.as_deref()),
        ],
    )
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
