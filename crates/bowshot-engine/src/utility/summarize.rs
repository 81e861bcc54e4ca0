//! `SUMMARIZE t`, `SUMMARIZE query`: statistics of each column, as DuckDB has them, in one pass over the rows.

use super::utility_context::{parsed, quoted};
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_types::names;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Query, Statement};
use std::fmt::Write as _;

/// Columns that are summarised at once: each is ten aggregates.
const MAX_COLUMNS: usize = 500;
/// Statistics of a column, in their order, with what the aggregates are called.
const STATISTICS: [(&str, &str); 10] = [
    ("min", "min"),
    ("max", "max"),
    ("approx_unique", "u"),
    ("avg", "avg"),
    ("std", "std"),
    ("q25", "p25"),
    ("q50", "p50"),
    ("q75", "p75"),
    ("count", "n"),
    ("null_percentage", "nulls"),
];

/// The query whose rows are the statistics of another one's columns.
///
/// # Errors
/// `LimitReached` for too many columns.
pub(crate) fn query(inner: Parsed, schema: &Schema) -> Result<Parsed> {
    let fields = schema.fields();
    if fields.is_empty() || fields.len() > MAX_COLUMNS {
        let message = format!("a query of {} columns cannot be summarised", fields.len());
        return Err(Error::new(ErrorKind::LimitReached, message)
            .with_hint(format!("name 1 to {MAX_COLUMNS} columns: `SUMMARIZE SELECT a, b FROM t`")));
    }
    let columns: Vec<String> = (0..fields.len()).map(|n| format!("c{n}")).collect();
    let (mut aggregates, mut rows) = (vec!["count(*) AS total".to_owned()], Vec::new());
    for (n, field) in fields.iter().enumerate() {
        aggregates.push(aggregate(n, field));
        rows.push(format!(
            "({n}, {}, {})",
            quoted(bowshot_api::display_name(field.name())),
            quoted(&names::sql(field))
        ));
    }
    let sql = format!(
        "WITH s({}) AS (SELECT 1), a AS (SELECT {} FROM s) SELECT name AS column_name, type AS column_type, {} \
         FROM a CROSS JOIN (VALUES {}) AS v(place, name, type) ORDER BY place",
        columns.join(", "),
        aggregates.join(", "),
        shown(fields.len()),
        rows.join(", ")
    );
    let mut outer = parsed(&sql)?;
    put(&mut outer, inner)?;
    Ok(outer)
}

/// The aggregates over one column.
fn aggregate(n: usize, field: &Field) -> String {
    let data_type = field.data_type();
    // What has no order of its own is compared as text.
    let ordered = if has_order(data_type) { format!("c{n}") } else { format!("CAST(c{n} AS VARCHAR)") };
    let mut text = format!(
        "CAST(min({ordered}) AS VARCHAR) AS min{n}, CAST(max({ordered}) AS VARCHAR) AS max{n}, \
         CAST(approx_distinct(CAST(c{n} AS VARCHAR)) AS BIGINT) AS u{n}, count(c{n}) AS k{n}"
    );
    if data_type.is_numeric() {
        let number = format!("CAST(c{n} AS DOUBLE)");
        let _ = write!(
            text,
            ", CAST(avg({number}) AS VARCHAR) AS avg{n}, CAST(stddev({number}) AS VARCHAR) AS std{n}"
        );
        for percent in [25, 50, 75] {
            let _ = write!(
                text,
                ", CAST(approx_percentile_cont(0.{percent:02}) WITHIN GROUP (ORDER BY {number}) AS VARCHAR) \
                 AS p{percent}{n}"
            );
        }
    } else {
        for name in ["avg", "std", "p25", "p50", "p75"] {
            let _ = write!(text, ", CAST(NULL AS VARCHAR) AS {name}{n}");
        }
    }
    text
}

fn has_order(data_type: &DataType) -> bool {
    data_type.is_numeric()
        || data_type.is_temporal()
        || matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// For each statistic, the one of the column of this row.
fn shown(columns: usize) -> String {
    let of_column = |value: &dyn Fn(usize) -> String| {
        let cases: Vec<String> = (0..columns).map(|n| format!("WHEN {n} THEN {}", value(n))).collect();
        format!("CASE place {} END", cases.join(" "))
    };
    let items = STATISTICS.iter().map(|(name, aggregate)| {
        let value = match *aggregate {
            "n" => "total".to_owned(),
            "nulls" => of_column(&|n| {
                format!("CASE WHEN total > 0 THEN CAST(100.0 * (total - k{n}) / total AS DECIMAL(9, 2)) END")
            }),
            aggregate => of_column(&|n| format!("{aggregate}{n}")),
        };
        format!("{value} AS \"{name}\"")
    });
    items.collect::<Vec<_>>().join(", ")
}

/// Puts a query in the place of the first one after WITH.
pub(super) fn put(outer: &mut Parsed, inner: Parsed) -> Result<()> {
    let not_one = || Error::invalid("SUMMARIZE takes a table or a query");
    let inner: Box<Query> = match inner {
        Parsed::Statement(statement) => match *statement {
            Statement::Query(query) => query,
            _ => return Err(not_one()),
        },
        _ => return Err(not_one()),
    };
    let Parsed::Statement(statement) = outer else { return Err(not_one()) };
    let Statement::Query(query) = statement.as_mut() else { return Err(not_one()) };
    let place = query.with.as_mut().and_then(|with| with.cte_tables.first_mut()).ok_or_else(not_one)?;
    place.query = inner;
    Ok(())
}
