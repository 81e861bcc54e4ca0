//! Catalogs, schemas, tables and table types: schemas, filters and row order.

use super::{batch, table_schema};
use arrow::array::{ArrayRef, BinaryArray, StringArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow_flight::sql::{CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables};
use bowshot_api::{Result, Session, TableEntry, TableFilter, TableKind};
use bytes::Bytes;
use std::sync::Arc;

pub(super) fn catalogs_schema() -> SchemaRef {
    CommandGetCatalogs {}.into_builder().schema()
}

pub(super) fn schemas_schema() -> SchemaRef {
    CommandGetDbSchemas::default().into_builder().schema()
}

pub(super) fn tables_schema(include_schema: bool) -> SchemaRef {
    CommandGetTables { include_schema, ..CommandGetTables::default() }.into_builder().schema()
}

pub(super) fn table_types_schema() -> SchemaRef {
    CommandGetTableTypes {}.into_builder().schema()
}

pub(super) async fn catalogs(session: &dyn Session) -> Result<RecordBatch> {
    let mut names = session.catalogs().await?;
    names.sort_unstable();
    batch(catalogs_schema(), vec![strings(names.iter().map(String::as_str))])
}

pub(super) async fn schemas(session: &dyn Session, command: &CommandGetDbSchemas) -> Result<RecordBatch> {
    let mut pairs = match command.catalog.as_deref() {
        // An empty name means no catalog; every schema has one.
        Some("") => Vec::new(),
        catalog => session.schemas(catalog, command.db_schema_filter_pattern.as_deref()).await?,
    };
    pairs.sort_unstable();
    let catalogs = strings(pairs.iter().map(|(catalog, _)| catalog.as_str()));
    let schemas = strings(pairs.iter().map(|(_, schema)| schema.as_str()));
    batch(schemas_schema(), vec![catalogs, schemas])
}

pub(super) async fn tables(session: &dyn Session, command: &CommandGetTables) -> Result<RecordBatch> {
    let mut entries = session.tables(&filter(command)).await?;
    entries.sort_by(|a, b| order(a).cmp(&order(b)));
    let mut columns = vec![
        strings(entries.iter().map(|entry| entry.catalog.as_str())),
        strings(entries.iter().map(|entry| entry.schema_name.as_str())),
        strings(entries.iter().map(|entry| entry.name.as_str())),
        strings(entries.iter().map(|entry| entry.kind.name())),
    ];
    if command.include_schema {
        let schemas: Vec<Bytes> = entries.iter().map(table_schema::bytes).collect();
        columns.push(Arc::new(BinaryArray::from_iter_values(&schemas)));
    }
    batch(tables_schema(command.include_schema), columns)
}

pub(super) fn table_types() -> Result<RecordBatch> {
    let mut names = TableKind::ALL.map(TableKind::name);
    names.sort_unstable();
    batch(table_types_schema(), vec![strings(names.into_iter())])
}

/// An empty list of types means all; only unknown types mean none.
fn filter(command: &CommandGetTables) -> TableFilter {
    let kinds: Vec<TableKind> =
        command.table_types.iter().filter_map(|name| TableKind::parse(name)).collect();
    TableFilter {
        catalog: command.catalog.clone(),
        schema_pattern: command.db_schema_filter_pattern.clone(),
        table_pattern: command.table_name_filter_pattern.clone(),
        kinds: if command.table_types.is_empty() { None } else { Some(kinds) },
        include_schema: command.include_schema,
    }
}

fn order(entry: &TableEntry) -> (&str, &str, &str, &str) {
    (&entry.catalog, &entry.schema_name, &entry.name, entry.kind.name())
}

fn strings<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}
