//! Tables of SQLite. The type of a column is the affinity of its declaration; a value of another type is an error when it is read.

use super::{Described, TableMetadata, cell, quoted};
use crate::columns::{Column, Comparison, ValueEncoding};
use crate::dialect;
use crate::kind::Kind;
use crate::pool::Pool;
use datafusion::arrow::datatypes::DataType;
use std::sync::Arc;

const SCHEMA: &str = "main";

/// Schemas and names of tables.
pub(super) const TABLES: &str = "SELECT 'main', name FROM main.sqlite_master WHERE type IN ('table', 'view') \
     AND substr(name, 1, 7) <> 'sqlite_'";

pub(super) async fn describe_table(pool: &Arc<Pool>, schema: &str, table: &str) -> Described {
    let (Some(relation), Some(name)) = (quoted(&[SCHEMA, table]), dialect::text(Kind::Sqlite, table)) else {
        return Ok(None);
    };
    if schema != SCHEMA {
        return Ok(None);
    }
    // An exact comparison: SQLite ignores the case of table names.
    let sql = format!(
        "SELECT c.name, c.type FROM main.sqlite_master AS m, pragma_table_xinfo(m.name, 'main') AS c \
         WHERE m.name = {name} AND m.type IN ('table', 'view') AND c.hidden <> 1 ORDER BY c.cid"
    );
    let count = format!("SELECT max(rowid) FROM {relation}");
    let settings = Arc::clone(&pool.settings);
    let answer = pool.ask(move |connection, cancellation| {
        let columns = connection.query_texts(&sql, cancellation, &settings)?;
        // Some tables, and views, have no rowid.
        let count = connection.query_texts(&count, cancellation, &settings).unwrap_or_default();
        Ok((columns, count))
    });
    let (rows, count) = answer.await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let columns = rows.iter().map(|row| column(cell(row, 0), cell(row, 1))).collect::<Option<Vec<_>>>();
    let Some(columns) = columns else { return Ok(None) };
    let mut described = TableMetadata::new(columns, relation);
    described.rows = count.first().and_then(|row| cell(row, 0).parse().ok());
    Ok(Some(described))
}

fn column(name: &str, declared: &str) -> Option<Column> {
    use DataType as T;
    let named = dialect::name(name)?;
    let column = |data_type: T, compares, witness| {
        Column::plain(name, &named, data_type, compares)
            .with_type_sample(witness)
            .with_declared_type(declared)
    };
    let word = declared.to_ascii_uppercase();
    let has = |part: &str| word.contains(part);
    // In the order of SQLite's rules of affinity.
    Some(if has("INT") {
        column(T::Int64, Comparison::All, "0")
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        column(T::Utf8, Comparison::CoarseTexts, "''").with_expression(format!("CAST({named} AS TEXT)"))
    } else if has("BLOB") {
        // The driver would return any other value as bytes too.
        let sent =
            format!("CASE typeof({named}) WHEN 'blob' THEN hex({named}) WHEN 'null' THEN NULL ELSE '-' END");
        column(T::Binary, Comparison::Nothing, "''")
            .with_expression(sent)
            .with_encoding(ValueEncoding::Digits)
    } else if has("REAL") || has("FLOA") || has("DOUB") {
        column(T::Float64, Comparison::Floats, "0.5")
    } else if has("BOOL") {
        column(T::Boolean, Comparison::Nothing, "0").with_encoding(ValueEncoding::Numbers)
    } else if has("NUMERIC") || has("DECIMAL") {
        // Integers that a double cannot hold are selected as text, which is an error.
        let whole = "9007199254740992";
        let sent = format!(
            "CASE WHEN typeof({named}) = 'integer' AND ({named} > {whole} OR {named} < -{whole}) \
             THEN 'too long' ELSE {named} END"
        );
        column(T::Float64, Comparison::Nothing, "0.5").with_expression(sent)
    } else {
        // Dates, times and untyped columns are texts.
        column(T::Utf8, Comparison::Nothing, "''").with_expression(format!("CAST({named} AS TEXT)"))
    })
}
