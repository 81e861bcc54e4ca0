//! Tables and columns of a database. Names are compared exactly, since rights and policies use them.

mod duckdb;
mod flightsql;
mod mysql;
mod postgres;
mod sqlite;

use crate::columns::{Column, schema};
use crate::connection::TextRows;
use crate::dialect;
use crate::error::DatabaseError;
use crate::kind::Kind;
use crate::pool::Pool;
use datafusion::arrow::datatypes::SchemaRef;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A table of a database.
#[derive(Debug)]
pub(crate) struct TableMetadata {
    pub(crate) columns: Vec<Arc<Column>>,
    pub(crate) schema: SchemaRef,
    /// Its quoted name in FROM.
    pub(crate) relation: String,
    /// Approximate number of rows.
    pub(crate) rows: Option<u64>,
    /// The quoted primary key, if it is one integer column.
    pub(crate) key: Option<String>,
    /// Its smallest and largest value, read when they are needed.
    pub(crate) ends: OnceCell<Option<(i64, i64)>>,
    /// Whether an insert can be rolled back.
    pub(crate) undoes: bool,
}

/// A table, if there is one of the name.
type Described = Result<Option<TableMetadata>, DatabaseError>;

impl TableMetadata {
    fn new(columns: Vec<Column>, relation: String) -> Self {
        let schema = schema(&columns);
        let columns = columns.into_iter().map(Arc::new).collect();
        Self { columns, schema, relation, rows: None, key: None, ends: OnceCell::new(), undoes: true }
    }
}

/// Schemas and tables, sorted.
pub(crate) async fn list_tables(pool: &Arc<Pool>) -> Result<Vec<(String, String)>, DatabaseError> {
    let mut listed = match pool.settings.kind {
        Kind::Postgres => pairs(pool.query_texts(postgres::TABLES.to_owned()).await?),
        Kind::Sqlite => pairs(pool.query_texts(sqlite::TABLES.to_owned()).await?),
        Kind::DuckDb => pairs(pool.query_texts(duckdb::TABLES.to_owned()).await?),
        Kind::Mysql => pairs(pool.query_texts(mysql::TABLES.to_owned()).await?),
        Kind::FlightSql => flightsql::list_tables(pool).await?,
    };
    if pool.settings.kind == Kind::Mysql {
        listed.retain(|(schema, _)| mysql::is_seen(pool, schema));
    }
    let allowed = &pool.settings.schemas;
    listed.retain(|(schema, _)| allowed.is_empty() || allowed.contains(schema));
    listed.sort();
    listed.dedup();
    Ok(listed)
}

/// A table of exactly this name.
pub(crate) async fn describe_table(pool: &Arc<Pool>, schema: &str, table: &str) -> Described {
    let found = match pool.settings.kind {
        Kind::Postgres => postgres::describe_table(pool, schema, table).await?,
        Kind::Sqlite => sqlite::describe_table(pool, schema, table).await?,
        Kind::DuckDb => duckdb::describe_table(pool, schema, table).await?,
        Kind::FlightSql => flightsql::describe_table(pool, schema, table).await?,
        Kind::Mysql => mysql::describe_table(pool, schema, table).await?,
    };
    // Columns are told apart by case here.
    if let Some(found) = &found {
        let names: Vec<&str> = found.schema.fields().iter().map(|field| field.name().as_str()).collect();
        if let Some(twice) =
            names.iter().enumerate().find(|(at, name)| names.iter().skip(at + 1).any(|other| other == *name))
        {
            return Err(DatabaseError::Value(format!("has two columns `{}` in `{schema}.{table}`", twice.1)));
        }
    }
    Ok(found)
}

/// The first two columns, where both are there.
fn pairs(rows: TextRows) -> Vec<(String, String)> {
    let pair = |row: Vec<Option<String>>| {
        let mut row = row.into_iter();
        Some((row.next()??, row.next()??))
    };
    rows.into_iter().filter_map(pair).collect()
}

fn cell(row: &[Option<String>], at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}

/// The name of a table in FROM, and its schema and its own as texts.
fn in_sql(kind: Kind, relation: Option<String>, [schema, table]: [&str; 2]) -> Option<[String; 3]> {
    Some([relation?, dialect::text(kind, schema)?, dialect::text(kind, table)?])
}

fn quoted(parts: &[&str]) -> Option<String> {
    dialect::path(parts)
}
