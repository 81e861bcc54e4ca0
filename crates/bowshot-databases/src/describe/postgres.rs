//! Tables of PostgreSQL, from its catalog.

use super::{Described, cell, pairs, quoted, texts};
use crate::columns::{Column, Compares, Given, utc};
use crate::dialect;
use crate::fault::Fault;
use crate::pool::Pool;
use crate::reading::rows_of;
use crate::settings::Kind;
use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use std::sync::Arc;

pub(super) async fn listed(pool: &Arc<Pool>) -> Result<Vec<(String, String)>, Fault> {
    const SQL: &str = "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname <> 'information_schema' \
         AND n.nspname !~ '^pg_' AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')";
    let settings = Arc::clone(&pool.settings);
    let rows = pool.ask(move |connection, stop| texts(&rows_of(connection, SQL, stop, &settings)?)).await?;
    Ok(pairs(rows))
}

pub(super) async fn described(
    pool: &Arc<Pool>,
    schema: &str,
    table: &str,
) -> Result<Option<Described>, Fault> {
    let text = |text: &str| dialect::text(Kind::Postgres, text);
    let (Some(relation), Some(of_schema), Some(of_table)) =
        (quoted(&[schema, table]), text(schema), text(table))
    else {
        return Ok(None);
    };
    let sql = format!(
        "SELECT a.attname::text, CASE WHEN bt.typnamespace = 'pg_catalog'::regnamespace THEN bt.typname::text END, \
         pg_catalog.format_type(a.atttypid, a.atttypmod)::text, \
         (CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END)::text, t.typtype::text, \
         coalesce(co.collisdeterministic, true)::text, \
         (i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)::text, c.reltuples::text, c.relkind::text \
         FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
         JOIN pg_catalog.pg_type bt ON bt.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END \
         LEFT JOIN pg_catalog.pg_collation co ON co.oid = a.attcollation \
         LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary \
         WHERE n.nspname = {of_schema} AND c.relname = {of_table} AND c.relkind IN ('r', 'v', 'm', 'f', 'p') \
         AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    );
    let settings = Arc::clone(&pool.settings);
    let rows = pool.ask(move |connection, stop| texts(&rows_of(connection, &sql, stop, &settings)?)).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let count = cell(first, 7).parse::<f64>().ok().filter(|count| *count >= 0.0 && cell(first, 8) != "v");
    let mut columns = Vec::with_capacity(rows.len());
    let mut key = None;
    for row in &rows {
        let name = cell(row, 0);
        let Some(named) = dialect::name(name) else { return Ok(None) };
        let column = column(name, &named, row);
        if cell(row, 6) == "true" && column.field.data_type().is_signed_integer() {
            key = Some(named);
        }
        columns.push(column);
    }
    let mut described = Described::new(columns, relation);
    described.rows = count.map(|count| count as u64);
    described.key = key;
    Ok(Some(described))
}

fn column(name: &str, named: &str, row: &[Option<String>]) -> Column {
    use DataType as T;
    let (base, declared, domain) = (cell(row, 1), cell(row, 2), cell(row, 4) == "d");
    let plain = |data_type: T, compares| Column::plain(name, named, data_type, compares);
    let texts = if cell(row, 5) == "true" { Compares::EqualTexts } else { Compares::CoarseTexts };
    let all = Compares::All;
    let column = match base {
        "int2" => plain(T::Int16, all),
        "int4" => plain(T::Int32, all),
        "int8" => plain(T::Int64, all),
        // They are larger than 31 bits.
        "oid" => plain(T::Int64, Compares::Nothing).sent_as(format!("{named}::int8")),
        "float4" => plain(T::Float32, Compares::Floats),
        "float8" => plain(T::Float64, Compares::Floats),
        "bool" => plain(T::Boolean, all),
        "text" | "varchar" => plain(T::Utf8, texts),
        // Spaces at the end count here and not there.
        "bpchar" => plain(T::Utf8, Compares::CoarseTexts),
        "bytea" => plain(T::Binary, Compares::Nothing),
        "date" => plain(T::Date32, all).given_as(Given::FiniteDays),
        "timestamp" => plain(T::Timestamp(TimeUnit::Microsecond, None), all).given_as(Given::FiniteMicros),
        "timestamptz" => plain(utc(), all).given_as(Given::FiniteMicros),
        "time" => plain(T::Time64(TimeUnit::Microsecond), Compares::Nothing),
        "interval" => plain(T::Interval(IntervalUnit::MonthDayNano), Compares::Nothing),
        "numeric" => match decimal(cell(row, 3)) {
            Some(decimal) => plain(decimal, all).given_as(Given::DecimalText),
            None => plain(T::Utf8, Compares::Nothing).sent_as(format!("{named}::text")),
        },
        // The driver gives bytes of which it says nothing, or less than there is: of arrays one dimension, of `money` no
        // currency. Their texts are what PostgreSQL itself reads again.
        _ => plain(T::Utf8, Compares::Nothing).sent_as(format!("{named}::text")),
    };
    let column = column.declared_as(declared);
    // A domain is sent as what it is made of: drivers do not know those that were made after they were opened.
    if domain && column.sent == named && !base.is_empty() {
        return column.sent_as(format!("{named}::{base}"));
    }
    column
}

/// `numeric(p, s)` where it is a decimal here. `numeric` alone has no limit on either side of its point.
fn decimal(modifier: &str) -> Option<DataType> {
    let modifier = modifier.parse::<i32>().ok()?.checked_sub(4).filter(|modifier| *modifier >= 0)?;
    let (precision, scale) = ((modifier >> 16) & 0xffff, modifier & 0x7ff);
    let fits = (1..=38).contains(&precision) && scale <= precision;
    Some(DataType::Decimal128(u8::try_from(precision).ok().filter(|_| fits)?, i8::try_from(scale).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_those_that_fit() {
        assert_eq!(decimal("655366"), Some(DataType::Decimal128(10, 2)));
        assert_eq!(decimal("-1"), None);
        // numeric(40, 2), numeric(3, -2), numeric(2, 4)
        assert_eq!(decimal(&((40 << 16 | 2) + 4).to_string()), None);
        assert_eq!(decimal(&((3 << 16 | 0x7fe) + 4).to_string()), None);
        assert_eq!(decimal(&((2 << 16 | 4) + 4).to_string()), None);
    }
}
