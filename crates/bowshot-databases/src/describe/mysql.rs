//! Tables of MySQL and MariaDB, from `information_schema`, which finds names in any case: they are compared here.

use super::{Described, cell, pairs, texts};
use crate::columns::{Column, Compares, utc};
use crate::dialect;
use crate::fault::Fault;
use crate::pool::Pool;
use crate::reading::rows_of;
use crate::settings::{Kind, ZeroDates};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use std::sync::Arc;

/// Schemas in which a server keeps what it is made of, accounts among it. They are seen only where the operator names them.
const OF_THE_SERVER: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];
/// The character set in which every text is the same bytes as here. Others are converted there.
const SAME_BYTES: &str = "utf8mb4";

pub(super) async fn listed(pool: &Arc<Pool>) -> Result<Vec<(String, String)>, Fault> {
    const SQL: &str = "SELECT table_schema, table_name FROM information_schema.tables \
         WHERE table_type NOT IN ('SYSTEM VIEW', 'SEQUENCE', 'TEMPORARY')";
    let settings = Arc::clone(&pool.settings);
    let rows = pool.ask(move |connection, stop| texts(&rows_of(connection, SQL, stop, &settings)?)).await?;
    let mut listed = pairs(rows);
    listed.retain(|(schema, _)| is_seen(pool, schema));
    Ok(listed)
}

fn is_seen(pool: &Pool, schema: &str) -> bool {
    !OF_THE_SERVER.contains(&schema) || pool.settings.schemas.iter().any(|named| named == schema)
}

pub(super) async fn described(
    pool: &Arc<Pool>,
    schema: &str,
    table: &str,
) -> Result<Option<Described>, Fault> {
    let text = |text: &str| dialect::text(Kind::Mysql, text);
    let (Some(relation), Some(of_schema), Some(of_table)) =
        (quoted(&[schema, table]), text(schema), text(table))
    else {
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
    let answer = pool.ask(move |connection, stop| {
        let columns = texts(&rows_of(connection, &columns, stop, &settings)?)?;
        Ok((columns, texts(&rows_of(connection, &about, stop, &settings)?)?))
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
        // What a view gives is not held against what it says.
        columns.push(if of_view { nullable(column) } else { column });
    }
    let mut described = Described::new(columns, relation);
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
        plain(if declared.contains("unsigned") { unsigned } else { signed }, Compares::All)
    };
    let text = || match cell(row, 7) {
        SAME_BYTES => plain(T::Utf8, Compares::ByteTexts),
        _ => plain(T::Utf8, Compares::ByteTexts).sent_as(format!("CONVERT({named} USING {SAME_BYTES})")),
    };
    let column = match base.as_str() {
        "tinyint" => whole(T::Int8, T::UInt8),
        "smallint" => whole(T::Int16, T::UInt16),
        "mediumint" | "int" => whole(T::Int32, T::UInt32),
        "bigint" => whole(T::Int64, T::UInt64),
        // A year of two digits is another one there.
        "year" => plain(T::Int16, Compares::Nothing),
        "bit" if declared == "bit(1)" => plain(T::Boolean, Compares::All),
        "bit" => plain(T::UInt64, Compares::All),
        "decimal" => match decimal(cell(row, 8), cell(row, 9)) {
            Some(decimal) => plain(decimal, Compares::All),
            None => plain(T::Utf8, Compares::Nothing),
        },
        "float" => plain(T::Float32, Compares::Floats),
        "double" => plain(T::Float64, Compares::Floats),
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" => {
            plain(T::Utf8, texts)
        }
        // Sets are compared as numbers, documents as documents.
        "set" | "json" => plain(T::Utf8, Compares::Nothing),
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "vector" => {
            plain(T::Binary, Compares::Nothing)
        }
        "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geometrycollection" | "geomcollection" => plain(T::Binary, Compares::Nothing),
        "date" => plain(T::Date32, Compares::Days),
        "datetime" => plain(T::Timestamp(TimeUnit::Microsecond, None), Compares::Days),
        "timestamp" => plain(utc(), Compares::Days),
        // They may be negative, and longer than a day.
        "time" => plain(T::Duration(TimeUnit::Microsecond), Compares::Nothing),
        _ => plain(T::Utf8, Compares::Nothing).sent_as(format!("CAST({named} AS CHAR)")),
    };
    let becomes_null = column.compares == Compares::Days && zero_dates == ZeroDates::Null;
    let column = column.declared_as(declared);
    if cell(row, 5) == "NO" && !becomes_null { column.never_null() } else { column }
}

/// `decimal(p, s)` where it is a decimal here.
fn decimal(precision: &str, scale: &str) -> Option<DataType> {
    let (precision, scale) = (precision.parse::<u8>().ok()?, scale.parse::<i8>().ok()?);
    let fits = (1..=38).contains(&precision) && scale >= 0 && scale.unsigned_abs() <= precision;
    fits.then_some(DataType::Decimal128(precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(base: &str, declared: &str, nullable: &str, charset: &str) -> Column {
        let cells = ["s", "t", "c", base, declared, nullable, "", charset, "10", "2"];
        let row: Vec<_> = cells.iter().map(|cell| Some((*cell).to_owned())).collect();
        column(("c", "`c`"), &row, ZeroDates::Error)
    }

    #[test]
    fn columns_are_what_they_are_declared_as() {
        let unsigned = of("bigint", "bigint(20) unsigned", "NO", "");
        assert_eq!((unsigned.field.data_type(), unsigned.field.is_nullable()), (&DataType::UInt64, false));
        assert_eq!(*of("decimal", "decimal(10,2)", "YES", "").field.data_type(), DataType::Decimal128(10, 2));
        assert_eq!(decimal("39", "2"), None);
        assert_eq!(decimal("38", "30"), Some(DataType::Decimal128(38, 30)));
        assert_eq!(*of("bit", "bit(1)", "YES", "").field.data_type(), DataType::Boolean);
        assert_eq!(of("varchar", "varchar(9)", "YES", "utf8mb4").compares, Compares::ByteTexts);
        assert_eq!(of("varchar", "varchar(9)", "YES", "latin1").sent, "CONVERT(`c` USING utf8mb4)");
        assert_eq!(of("uuid", "uuid", "YES", "").sent, "CAST(`c` AS CHAR)");
        assert_eq!(of("enum", "enum('unsigned')", "YES", "utf8mb4").declared, "enum('unsigned')");
    }
}
