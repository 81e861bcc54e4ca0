//! Tables of DuckDB: names from its functions, types from an empty result.

use super::{Described, TableMetadata, cell, in_sql, quoted};
use crate::columns::{Column, Comparison, ValueEncoding, from_driver};
use crate::connection::schema_of;
use crate::dialect;
use crate::kind::Kind;
use crate::pool::Pool;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use std::sync::Arc;

/// Types that the driver returns in a wrong type, and that are selected as texts.
const AS_TEXT: [&str; 7] = ["HUGEINT", "UHUGEINT", "UUID", "BIT", "TIME WITH TIME ZONE", "BIGNUM", "VARINT"];

pub(super) const TABLES: &str = "SELECT schema_name, table_name FROM duckdb_tables() \
     WHERE NOT internal AND NOT temporary AND database_name = current_database() \
     UNION ALL SELECT schema_name, view_name FROM duckdb_views() \
     WHERE NOT internal AND NOT temporary AND database_name = current_database()";

pub(super) async fn describe_table(pool: &Arc<Pool>, schema: &str, table: &str) -> Described {
    let relation = quoted(&[schema, table]);
    let Some([relation, of_schema, of_table]) = in_sql(Kind::DuckDb, relation, [schema, table]) else {
        return Ok(None);
    };
    let sql = format!(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE NOT internal \
         AND database_name = current_database() AND schema_name = {of_schema} AND table_name = {of_table} \
         ORDER BY column_index"
    );
    let size = format!(
        "SELECT estimated_size FROM duckdb_tables() WHERE database_name = current_database() \
         AND schema_name = {of_schema} AND table_name = {of_table}"
    );
    let (settings, from) = (Arc::clone(&pool.settings), relation.clone());
    let answer = pool.ask(move |connection, cancellation| {
        let rows = connection.query_texts(&sql, cancellation, &settings)?;
        let names = rows.iter().map(|row| dialect::name(cell(row, 0))).collect::<Option<Vec<_>>>();
        let Some(names) = names.filter(|names| !names.is_empty()) else { return Ok(None) };
        let given = schema_of(
            connection,
            &format!("SELECT {} FROM {from} LIMIT 0", names.join(", ")),
            cancellation,
            &settings,
        )?;
        let size = connection.query_texts(&size, cancellation, &settings)?;
        Ok(Some((rows, names, given, size)))
    });
    let Some((rows, names, given, size)) = answer.await? else { return Ok(None) };
    let columns = rows.iter().zip(&names).zip(given.fields());
    let columns =
        columns.map(|((row, named), field)| column((cell(row, 0), named), cell(row, 1), field.data_type()));
    let mut described = TableMetadata::new(columns.collect(), relation);
    described.rows = size.first().and_then(|row| cell(row, 0).parse().ok());
    Ok(Some(described))
}

fn column((name, named): (&str, &str), declared: &str, given: &DataType) -> Column {
    let known = if AS_TEXT.contains(&declared) { None } else { from_driver(name, named, given) };
    let column = known.unwrap_or_else(|| {
        Column::plain(name, named, DataType::Utf8, Comparison::Nothing)
            .with_expression(format!("CAST({named} AS VARCHAR)"))
    });
    let finite = match column.field.data_type() {
        DataType::Date32 => ValueEncoding::FiniteDays,
        DataType::Timestamp(TimeUnit::Microsecond, _) => ValueEncoding::FiniteMicros,
        _ => column.given,
    };
    column.with_encoding(finite).with_declared_type(declared)
}
