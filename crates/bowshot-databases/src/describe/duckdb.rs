//! Tables of DuckDB: names from its own functions, types from what it gives of no rows.

use super::{Described, cell, pairs, quoted, texts};
use crate::columns::{Column, Compares, Given, of_driver};
use crate::dialect;
use crate::fault::Fault;
use crate::link::schema_of;
use crate::pool::Pool;
use crate::reading::rows_of;
use crate::settings::Kind;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use std::sync::Arc;

/// Types whose values come as something that is not what they are, and are asked for as texts.
const AS_TEXT: [&str; 7] = ["HUGEINT", "UHUGEINT", "UUID", "BIT", "TIME WITH TIME ZONE", "BIGNUM", "VARINT"];

pub(super) async fn listed(pool: &Arc<Pool>) -> Result<Vec<(String, String)>, Fault> {
    const SQL: &str = "SELECT schema_name, table_name FROM duckdb_tables() \
         WHERE NOT internal AND NOT temporary AND database_name = current_database() \
         UNION ALL SELECT schema_name, view_name FROM duckdb_views() \
         WHERE NOT internal AND NOT temporary AND database_name = current_database()";
    let settings = Arc::clone(&pool.settings);
    let rows = pool.ask(move |connection, stop| texts(&rows_of(connection, SQL, stop, &settings)?)).await?;
    Ok(pairs(rows))
}

pub(super) async fn described(
    pool: &Arc<Pool>,
    schema: &str,
    table: &str,
) -> Result<Option<Described>, Fault> {
    let text = |text: &str| dialect::text(Kind::DuckDb, text);
    let (Some(relation), Some(of_schema), Some(of_table)) =
        (quoted(&[schema, table]), text(schema), text(table))
    else {
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
    let answer = pool.ask(move |connection, stop| {
        let rows = texts(&rows_of(connection, &sql, stop, &settings)?)?;
        let names = rows.iter().map(|row| dialect::name(cell(row, 0))).collect::<Option<Vec<_>>>();
        let Some(names) = names.filter(|names| !names.is_empty()) else { return Ok(None) };
        let given = schema_of(
            connection,
            &format!("SELECT {} FROM {from} LIMIT 0", names.join(", ")),
            stop,
            &settings,
        )?;
        let size = texts(&rows_of(connection, &size, stop, &settings)?)?;
        Ok(Some((rows, names, given, size)))
    });
    let Some((rows, names, given, size)) = answer.await? else { return Ok(None) };
    let columns = rows.iter().zip(&names).zip(given.fields());
    let columns =
        columns.map(|((row, named), field)| column((cell(row, 0), named), cell(row, 1), field.data_type()));
    let mut described = Described::new(columns.collect(), relation);
    described.rows = size.first().and_then(|row| cell(row, 0).parse().ok());
    Ok(Some(described))
}

fn column((name, named): (&str, &str), declared: &str, given: &DataType) -> Column {
    let known = if AS_TEXT.contains(&declared) { None } else { of_driver(name, named, given) };
    let column = known.unwrap_or_else(|| {
        Column::plain(name, named, DataType::Utf8, Compares::Nothing)
            .sent_as(format!("CAST({named} AS VARCHAR)"))
    });
    let finite = match column.field.data_type() {
        DataType::Date32 => Given::FiniteDays,
        DataType::Timestamp(TimeUnit::Microsecond, _) => Given::FiniteMicros,
        _ => column.given,
    };
    column.given_as(finite).declared_as(declared)
}
