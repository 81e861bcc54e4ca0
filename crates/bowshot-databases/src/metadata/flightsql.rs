//! Tables of a Flight SQL server, by the metadata of the protocol.

use super::{Described, TableMetadata, quoted};
use crate::columns::{Column, Comparison, from_driver};
use crate::dialect;
use crate::error::DatabaseError;
use crate::pool::Pool;
use adbc_core::Connection;
use adbc_core::error::Status;
use adbc_core::options::ObjectDepth;
use datafusion::arrow::array::{Array, AsArray, RecordBatch, StructArray};
use datafusion::arrow::datatypes::DataType;
use std::sync::Arc;

const SYSTEM_SCHEMAS: [&str; 3] = ["information_schema", "pg_catalog", "system"];

pub(super) async fn list_tables(pool: &Arc<Pool>) -> Result<Vec<(String, String)>, DatabaseError> {
    let settings = Arc::clone(&pool.settings);
    pool.ask(move |connection, _| {
        let catalog = settings.catalog.as_deref();
        let objects = connection.driver()?.get_objects(ObjectDepth::Tables, catalog, None, None, None, None);
        let objects = objects.map_err(|error| DatabaseError::from_statement(&error, &settings))?;
        let mut listed = Vec::new();
        for batch in objects {
            let batch = batch.map_err(|error| DatabaseError::from_rows(&error, &settings))?;
            tables(&batch, &mut listed)
                .ok_or_else(|| DatabaseError::Unexpected("invalid list of tables".to_owned()))?;
        }
        Ok(listed)
    })
    .await
}

/// Reads ADBC's nested lists of catalogs, schemas and tables.
fn tables(batch: &RecordBatch, listed: &mut Vec<(String, String)>) -> Option<()> {
    batch.columns().iter().try_for_each(|column| column.to_data().validate_full().ok())?;
    let schemas = batch.column_by_name("catalog_db_schemas")?.as_list_opt::<i32>()?;
    for catalog in 0..batch.num_rows() {
        if schemas.is_null(catalog) {
            continue;
        }
        let schemas = schemas.value(catalog);
        let schemas: &StructArray = schemas.as_struct_opt()?;
        let names = schemas.column_by_name("db_schema_name")?.as_string_opt::<i32>()?;
        let tables = schemas.column_by_name("db_schema_tables")?.as_list_opt::<i32>()?;
        for schema in 0..schemas.len() {
            if tables.is_null(schema)
                || names.is_null(schema)
                || SYSTEM_SCHEMAS.contains(&names.value(schema))
            {
                continue;
            }
            let tables = tables.value(schema);
            let of_schema = tables.as_struct_opt()?.column_by_name("table_name")?;
            let of_schema = of_schema.as_string_opt::<i32>()?;
            listed.extend(
                of_schema.iter().flatten().map(|table| (names.value(schema).to_owned(), table.to_owned())),
            );
        }
    }
    Some(())
}

/// The name must be in the list: servers treat names as patterns, or ignore their case.
pub(super) async fn describe_table(pool: &Arc<Pool>, schema: &str, table: &str) -> Described {
    let catalog = pool.settings.catalog.clone();
    let parts: Vec<&str> = catalog.iter().map(String::as_str).chain([schema, table]).collect();
    let Some(relation) = quoted(&parts) else { return Ok(None) };
    let (settings, of_schema, of_table) = (Arc::clone(&pool.settings), schema.to_owned(), table.to_owned());
    let given = pool.ask(move |connection, _| {
        match connection.driver()?.get_table_schema(settings.catalog.as_deref(), Some(&of_schema), &of_table)
        {
            Ok(given) => Ok(Some(given)),
            Err(error) if error.status == Status::NotFound => Ok(None),
            Err(error) => Err(DatabaseError::from_statement(&error, &settings)),
        }
    });
    let Some(given) = given.await? else { return Ok(None) };
    let mut columns = Vec::with_capacity(given.fields().len());
    for field in given.fields() {
        let name = field.name();
        let Some(named) = dialect::name(name) else { return Ok(None) };
        let known = from_driver(name, &named, field.data_type());
        columns.push(known.unwrap_or_else(|| {
            let sent = format!("CAST({named} AS VARCHAR)");
            Column::plain(name, &named, DataType::Utf8, Comparison::Nothing).with_expression(sent)
        }));
    }
    Ok(Some(TableMetadata::new(columns, relation)))
}
