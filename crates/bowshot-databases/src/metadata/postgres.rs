//! Tables of PostgreSQL, from its catalog.

use super::{Described, TableMetadata, cell, in_sql, quoted};
use crate::columns::{Column, Comparison, ValueEncoding, utc};
use crate::dialect;
use crate::kind::Kind;
use crate::pool::Pool;
use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use std::sync::Arc;

pub(super) const TABLES: &str = "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c \
     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname <> 'information_schema' \
     AND n.nspname !~ '^pg_' AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')";

pub(super) async fn describe_table(pool: &Arc<Pool>, schema: &str, table: &str) -> Described {
    let relation = quoted(&[schema, table]);
    let Some([relation, of_schema, of_table]) = in_sql(Kind::Postgres, relation, [schema, table]) else {
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
    let rows = pool.query_texts(sql).await?;
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
    let mut described = TableMetadata::new(columns, relation);
    described.rows = count.map(|count| count as u64);
    described.key = key;
    Ok(Some(described))
}

fn column(name: &str, named: &str, row: &[Option<String>]) -> Column {
    use DataType as T;
    let (base, declared, domain) = (cell(row, 1), cell(row, 2), cell(row, 4) == "d");
    let plain = |data_type: T, compares| Column::plain(name, named, data_type, compares);
    let texts = if cell(row, 5) == "true" { Comparison::EqualTexts } else { Comparison::CoarseTexts };
    let all = Comparison::All;
    let column = match base {
        "int2" => plain(T::Int16, all),
        "int4" => plain(T::Int32, all),
        "int8" => plain(T::Int64, all),
        // Unsigned 32 bits.
        "oid" => plain(T::Int64, Comparison::Nothing).with_expression(format!("{named}::int8")),
        "float4" => plain(T::Float32, Comparison::Floats),
        "float8" => plain(T::Float64, Comparison::Floats),
        "bool" => plain(T::Boolean, all),
        "text" | "varchar" => plain(T::Utf8, texts),
        // Trailing spaces count here only.
        "bpchar" => plain(T::Utf8, Comparison::CoarseTexts),
        "bytea" => plain(T::Binary, Comparison::Nothing),
        "date" => plain(T::Date32, all).with_encoding(ValueEncoding::FiniteDays),
        "timestamp" => {
            plain(T::Timestamp(TimeUnit::Microsecond, None), all).with_encoding(ValueEncoding::FiniteMicros)
        }
        "timestamptz" => plain(utc(), all).with_encoding(ValueEncoding::FiniteMicros),
        "time" => plain(T::Time64(TimeUnit::Microsecond), Comparison::Nothing),
        "interval" => plain(T::Interval(IntervalUnit::MonthDayNano), Comparison::Nothing),
        "numeric" => match decimal(cell(row, 3)) {
            Some(decimal) => plain(decimal, all).with_encoding(ValueEncoding::DecimalText),
            None => plain(T::Utf8, Comparison::Nothing).with_expression(format!("{named}::text")),
        },
        // The driver returns other types as bytes or loses something, such as dimensions of arrays or the currency of
        // `money`. PostgreSQL can read their texts again.
        _ => plain(T::Utf8, Comparison::Nothing).with_expression(format!("{named}::text")),
    };
    let column = column.with_declared_type(declared);
    // A domain is selected as its base type: drivers do not know domains that are created later.
    if domain && column.sent == named && !base.is_empty() {
        return column.with_expression(format!("{named}::{base}"));
    }
    column
}

/// `numeric(p, s)` as a decimal, if it fits. `numeric` alone has no limits.
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
