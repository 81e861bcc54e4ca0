//! Tables of SQLite. It keeps values of any type in any column; the type of a column is that which its declaration tends to,
//! and a value of another one is an error when it comes.

use super::{Described, cell, pairs, quoted, texts};
use crate::columns::{Column, Compares, Given};
use crate::dialect;
use crate::fault::Fault;
use crate::pool::Pool;
use crate::reading::rows_of;
use crate::settings::Kind;
use datafusion::arrow::datatypes::DataType;
use std::sync::Arc;

/// The schema of the file itself.
const SCHEMA: &str = "main";

pub(super) async fn listed(pool: &Arc<Pool>) -> Result<Vec<(String, String)>, Fault> {
    const SQL: &str = "SELECT 'main', name FROM main.sqlite_master WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_'";
    let settings = Arc::clone(&pool.settings);
    let rows = pool.ask(move |connection, stop| texts(&rows_of(connection, SQL, stop, &settings)?)).await?;
    Ok(pairs(rows))
}

pub(super) async fn described(
    pool: &Arc<Pool>,
    schema: &str,
    table: &str,
) -> Result<Option<Described>, Fault> {
    let (Some(relation), Some(name)) = (quoted(&[SCHEMA, table]), dialect::text(Kind::Sqlite, table)) else {
        return Ok(None);
    };
    if schema != SCHEMA {
        return Ok(None);
    }
    // The comparison with the very name: SQLite itself finds tables in any case.
    let sql = format!(
        "SELECT c.name, c.type FROM main.sqlite_master AS m, pragma_table_xinfo(m.name, 'main') AS c \
         WHERE m.name = {name} AND m.type IN ('table', 'view') AND c.hidden <> 1 ORDER BY c.cid"
    );
    let count = format!("SELECT max(rowid) FROM {relation}");
    let settings = Arc::clone(&pool.settings);
    let answer = pool.ask(move |connection, stop| {
        let columns = texts(&rows_of(connection, &sql, stop, &settings)?)?;
        // Some tables have no numbers of rows, and views have none.
        let count =
            rows_of(connection, &count, stop, &settings).and_then(|rows| texts(&rows)).unwrap_or_default();
        Ok((columns, count))
    });
    let (rows, count) = answer.await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let columns = rows.iter().map(|row| column(cell(row, 0), cell(row, 1))).collect::<Option<Vec<_>>>();
    let Some(columns) = columns else { return Ok(None) };
    let mut described = Described::new(columns, relation);
    described.rows = count.first().and_then(|row| cell(row, 0).parse().ok());
    Ok(Some(described))
}

fn column(name: &str, declared: &str) -> Option<Column> {
    use DataType as T;
    let named = dialect::name(name)?;
    let column = |data_type: T, compares, witness| {
        Column::plain(name, &named, data_type, compares).witnessed_by(witness).declared_as(declared)
    };
    let word = declared.to_ascii_uppercase();
    let has = |part: &str| word.contains(part);
    // The order is that of SQLite's own rules.
    Some(if has("INT") {
        column(T::Int64, Compares::All, "0")
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        column(T::Utf8, Compares::CoarseTexts, "''").sent_as(format!("CAST({named} AS TEXT)"))
    } else if has("BLOB") {
        // Bytes are what the driver makes of any other value too.
        let sent =
            format!("CASE typeof({named}) WHEN 'blob' THEN hex({named}) WHEN 'null' THEN NULL ELSE '-' END");
        column(T::Binary, Compares::Nothing, "''").sent_as(sent).given_as(Given::Digits)
    } else if has("REAL") || has("FLOA") || has("DOUB") {
        column(T::Float64, Compares::Floats, "0.5")
    } else if has("BOOL") {
        column(T::Boolean, Compares::Nothing, "0").given_as(Given::Numbers)
    } else if has("NUMERIC") || has("DECIMAL") {
        // Whole numbers that a floating-point number does not hold come as a text, and are errors like that.
        let whole = "9007199254740992";
        let sent = format!(
            "CASE WHEN typeof({named}) = 'integer' AND ({named} > {whole} OR {named} < -{whole}) \
             THEN 'too long' ELSE {named} END"
        );
        column(T::Float64, Compares::Nothing, "0.5").sent_as(sent)
    } else {
        // Days and times have no type of their own, and neither have columns without one.
        column(T::Utf8, Compares::Nothing, "''").sent_as(format!("CAST({named} AS TEXT)"))
    })
}
