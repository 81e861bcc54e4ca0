//! Tables of MySQL and MariaDB, from `information_schema`. It ignores the case of names, so they are compared again here.

use super::{Described, TableMetadata, cell, in_sql};
use crate::columns::{Column, Comparison, utc};
use crate::dialect;
use crate::kind::{Kind, ZeroDates};
use crate::pool::Pool;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use std::sync::Arc;

/// System schemas, visible only if the operator lists them.
const SYSTEM_SCHEMAS: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];
/// The character set whose bytes are UTF-8. Others are converted by the server.
const SAME_BYTES: &str = "utf8mb4";

pub(super) const TABLES: &str = "SELECT table_schema, table_name FROM information_schema.tables \
     WHERE table_type NOT IN ('SYSTEM VIEW', 'SEQUENCE', 'TEMPORARY')";

pub(super) fn is_seen(pool: &Pool, schema: &str) -> bool {
    !SYSTEM_SCHEMAS.contains(&schema) || pool.settings.schemas.iter().any(|named| named == schema)
}

pub(super) async fn describe_table(pool: &Arc<Pool>, schema: &str, table: &str) -> Described {
    let relation = quoted(&[schema, table]);
    let Some([relation, of_schema, of_table]) = in_sql(Kind::Mysql, relation, [schema, table]) else {
        return Ok(None);
    };
    if !is_seen(pool, schema) {
        return Ok(None);
    }
    let columns = format!(
        "SELECT table_schema, table_name, column_name, data_type, column_type, is_nullable, column_key, \
         character_set_name, numeric_precision, numeric_scale FROM information_schema.columns \
         WHERE table_schema = {of_schema} AND table_name = {of_table} ORDER BY ordinal_position"
    );
    let about = format!(
        "SELECT t.table_schema, t.table_name, t.table_type, e.transactions, t.table_rows \
         FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine \
         WHERE t.table_schema = {of_schema} AND t.table_name = {of_table}"
    );
    let settings = Arc::clone(&pool.settings);
    let answer = pool.ask(move |connection, cancellation| {
        let columns = connection.query_texts(&columns, cancellation, &settings)?;
        Ok((columns, connection.query_texts(&about, cancellation, &settings)?))
    });
    let (mut rows, mut about) = answer.await?;
    let is_it = |row: &Vec<Option<String>>| cell(row, 0) == schema && cell(row, 1) == table;
    rows.retain(is_it);
    about.retain(is_it);
    let Some(about) = about.first().filter(|_| !rows.is_empty()) else { return Ok(None) };
    let of_view = cell(about, 2).ends_with("VIEW");
    let mut columns = Vec::with_capacity(rows.len());
    let mut keys = Vec::new();
    for row in &rows {
        let Some(named) = dialect::backticked(cell(row, 2)) else { return Ok(None) };
        let column = column((cell(row, 2), &named), row, pool.settings.zero_dates);
        if cell(row, 6) == "PRI" {
            keys.push((named, column.field.data_type().is_signed_integer()));
        }
        // Views may return NULL in columns that are declared NOT NULL.
        columns.push(if of_view { nullable(column) } else { column });
    }
    let mut described = TableMetadata::new(columns, relation);
    described.rows = cell(about, 4).parse().ok();
    described.key = match keys.as_slice() {
        [(key, true)] => Some(key.clone()),
        _ => None,
    };
    described.undoes = cell(about, 3) == "YES";
    Ok(Some(described))
}

fn quoted(parts: &[&str]) -> Option<String> {
    let parts: Option<Vec<String>> = parts.iter().map(|part| dialect::backticked(part)).collect();
    Some(parts?.join("."))
}

fn nullable(column: Column) -> Column {
    let field = column.field.as_ref().clone().with_nullable(true);
    Column { field: Arc::new(field), ..column }
}

fn column((name, named): (&str, &str), row: &[Option<String>], zero_dates: ZeroDates) -> Column {
    use DataType as T;
    let (base, declared) = (cell(row, 3).to_ascii_lowercase(), cell(row, 4));
    let plain = |data_type: T, compares| Column::plain(name, named, data_type, compares);
    let whole = |signed: T, unsigned: T| {
        plain(if declared.contains("unsigned") { unsigned } else { signed }, Comparison::All)
    };
    let text = || match cell(row, 7) {
        SAME_BYTES => plain(T::Utf8, Comparison::ByteTexts),
        _ => plain(T::Utf8, Comparison::ByteTexts)
            .with_expression(format!("CONVERT({named} USING {SAME_BYTES})")),
    };
    let column = match base.as_str() {
        "tinyint" => whole(T::Int8, T::UInt8),
        "smallint" => whole(T::Int16, T::UInt16),
        "mediumint" | "int" => whole(T::Int32, T::UInt32),
        "bigint" => whole(T::Int64, T::UInt64),
        // MySQL reads two-digit years differently.
        "year" => plain(T::Int16, Comparison::Nothing),
        "bit" if declared == "bit(1)" => plain(T::Boolean, Comparison::All),
        "bit" => plain(T::UInt64, Comparison::All),
        "decimal" => match decimal(cell(row, 8), cell(row, 9)) {
            Some(decimal) => plain(decimal, Comparison::All),
            None => plain(T::Utf8, Comparison::Nothing),
        },
        "float" => plain(T::Float32, Comparison::Floats),
        "double" => plain(T::Float64, Comparison::Floats),
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" => text(),
        // MySQL compares sets as numbers, and JSON by its own order.
        "set" | "json" => plain(T::Utf8, Comparison::Nothing),
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "vector" => {
            plain(T::Binary, Comparison::Nothing)
        }
        "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geometrycollection" | "geomcollection" => plain(T::Binary, Comparison::Nothing),
        "date" => plain(T::Date32, Comparison::Days),
        "datetime" => plain(T::Timestamp(TimeUnit::Microsecond, None), Comparison::Days),
        "timestamp" => plain(utc(), Comparison::Days),
        // Times may be negative, and longer than a day.
        "time" => plain(T::Duration(TimeUnit::Microsecond), Comparison::Nothing),
        _ => plain(T::Utf8, Comparison::Nothing).with_expression(format!("CAST({named} AS CHAR)")),
    };
    let becomes_null = column.compares == Comparison::Days && zero_dates == ZeroDates::Null;
    let column = column.with_declared_type(declared);
    if cell(row, 5) == "NO" && !becomes_null { column.not_null() } else { column }
}

/// `decimal(p, s)` as a decimal, if it fits.
fn decimal(precision: &str, scale: &str) -> Option<DataType> {
    let (precision, scale) = (precision.parse::<u8>().ok()?, scale.parse::<i8>().ok()?);
    let fits = (1..=38).contains(&precision) && scale >= 0 && scale.unsigned_abs() <= precision;
    fits.then_some(DataType::Decimal128(precision, scale))
}
