//! What is in a database: its tables, and their columns. Each kind has its own way to tell; names are compared exactly, since
//! rights and policies go by them.

mod duckdb;
mod flightsql;
mod mysql;
mod postgres;
mod sqlite;

use crate::columns::{Column, schema};
use crate::fault::Fault;
use crate::pool::Pool;
use crate::settings::Kind;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A table of a database.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) columns: Vec<Arc<Column>>,
    pub(crate) schema: SchemaRef,
    /// As FROM names it.
    pub(crate) relation: String,
    /// About how many rows it has.
    pub(crate) rows: Option<u64>,
    /// The primary key, if it is one column of whole numbers, as it is written.
    pub(crate) key: Option<String>,
    /// Its smallest and its largest value, when they are asked for.
    pub(crate) ends: OnceCell<Option<(i64, i64)>>,
    /// Whether rows that are added to it are undone with their transaction, as far as that is known.
    pub(crate) undoes: bool,
}

impl Described {
    fn new(columns: Vec<Column>, relation: String) -> Self {
        let schema = schema(&columns);
        let columns = columns.into_iter().map(Arc::new).collect();
        Self { columns, schema, relation, rows: None, key: None, ends: OnceCell::new(), undoes: true }
    }
}

/// Schemas and tables, sorted.
pub(crate) async fn listed(pool: &Arc<Pool>) -> Result<Vec<(String, String)>, Fault> {
    let mut listed = match pool.settings.kind {
        Kind::Postgres => postgres::listed(pool).await?,
        Kind::Sqlite => sqlite::listed(pool).await?,
        Kind::DuckDb => duckdb::listed(pool).await?,
        Kind::FlightSql => flightsql::listed(pool).await?,
        Kind::Mysql => mysql::listed(pool).await?,
    };
    let allowed = &pool.settings.schemas;
    listed.retain(|(schema, _)| allowed.is_empty() || allowed.contains(schema));
    listed.sort();
    listed.dedup();
    Ok(listed)
}

/// A table, if there is one of this very name.
pub(crate) async fn described(
    pool: &Arc<Pool>,
    schema: &str,
    table: &str,
) -> Result<Option<Described>, Fault> {
    let found = match pool.settings.kind {
        Kind::Postgres => postgres::described(pool, schema, table).await?,
        Kind::Sqlite => sqlite::described(pool, schema, table).await?,
        Kind::DuckDb => duckdb::described(pool, schema, table).await?,
        Kind::FlightSql => flightsql::described(pool, schema, table).await?,
        Kind::Mysql => mysql::described(pool, schema, table).await?,
    };
    // Names that differ in nothing but their letters' case are two here.
    if let Some(found) = &found {
        let names: Vec<&str> = found.schema.fields().iter().map(|field| field.name().as_str()).collect();
        if let Some(twice) =
            names.iter().enumerate().find(|(at, name)| names.iter().skip(at + 1).any(|other| other == *name))
        {
            return Err(Fault::Value(format!("has two columns `{}` in `{schema}.{table}`", twice.1)));
        }
    }
    Ok(found)
}

/// The rows of an answer as texts.
pub(crate) fn texts(batches: &[RecordBatch]) -> Result<Vec<Vec<Option<String>>>, Fault> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns =
            batch.columns().iter().map(|column| cast(column, &DataType::Utf8)).collect::<Result<Vec<_>, _>>();
        let columns = columns.map_err(|error| Fault::Unexpected(error.to_string()))?;
        for column in &columns {
            column
                .to_data()
                .validate_full()
                .map_err(|_| Fault::Unexpected("a name is not valid UTF-8".to_owned()))?;
        }
        for row in 0..batch.num_rows() {
            let value = |column: &Arc<dyn Array>| {
                column.is_valid(row).then(|| column.as_string::<i32>().value(row).to_owned())
            };
            rows.push(columns.iter().map(value).collect());
        }
    }
    Ok(rows)
}

/// The first two columns, where both are there.
fn pairs(rows: Vec<Vec<Option<String>>>) -> Vec<(String, String)> {
    let pair = |row: Vec<Option<String>>| {
        let mut row = row.into_iter();
        Some((row.next()??, row.next()??))
    };
    rows.into_iter().filter_map(pair).collect()
}

fn cell(row: &[Option<String>], at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}

/// A name that no database can have names nothing.
fn quoted(parts: &[&str]) -> Option<String> {
    crate::dialect::path(parts)
}
