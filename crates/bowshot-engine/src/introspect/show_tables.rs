//! `SHOW TABLES`, `SHOW VIEWS`, `SHOW COLUMNS`: over `information_schema`.

use super::asked::{Asked, named, quoted};
use super::describe;
use super::parse::Words;
use super::show::{Modifier, Shown, Wanted, filtered, wanted};
use bowshot_api::Result;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, TEMPORARY_CATALOG};
use bowshot_system_catalog::client::Flavour;
use datafusion::sql::parser::Statement as Parsed;

/// The schema after FROM, or the one in force with the session's own tables; and its name.
fn place(words: &mut Words<'_>, asked: &Asked<'_>) -> Result<(String, String)> {
    let within = |catalog: &str, schema: &str| {
        format!("(table_catalog = {} AND table_schema = {})", quoted(catalog), quoted(schema))
    };
    if words.take_any(&["from", "in"]) {
        let (catalog, schema) = asked.schema(&words.name()?)?;
        return Ok((within(&catalog, &schema), schema));
    }
    let names = asked.names;
    let condition = format!(
        "({} OR {})",
        within(&names.default_catalog, &names.default_schema),
        within(TEMPORARY_CATALOG, DEFAULT_SCHEMA)
    );
    Ok((condition, names.default_schema.clone()))
}

/// `SHOW [FULL] TABLES [FROM s] [LIKE …]`
pub(super) fn tables(mut words: Words<'_>, asked: &Asked<'_>, modifier: Modifier) -> Result<Parsed> {
    let (condition, schema) = place(&mut words, asked)?;
    let wanted = wanted(&mut words)?;
    let mysql = asked.flavour() == Flavour::MySql;
    let column = match (&wanted, mysql) {
        (_, false) => "name".to_owned(),
        (Wanted::Like(pattern), true) => format!("Tables_in_{schema} ({pattern})"),
        (_, true) => format!("Tables_in_{schema}"),
    };
    let kind = match (modifier, mysql) {
        (Modifier::None, _) => "",
        (Modifier::Full, true) => ", table_type AS \"Table_type\"",
        (Modifier::Full, false) => ", table_type",
    };
    let items = format!("table_name AS {}{kind}", named(&column));
    let from = format!("FROM information_schema.tables WHERE {condition}");
    filtered(&Shown { items: &items, from: &from, order: "table_name" }, wanted)
}

/// `SHOW VIEWS [FROM s] [LIKE …]`
pub(super) fn views(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    let (condition, _) = place(&mut words, asked)?;
    let wanted = wanted(&mut words)?;
    let shown = Shown {
        items: "table_name AS name, view_definition AS definition",
        from: &format!("FROM information_schema.views WHERE {condition}"),
        order: "table_name",
    };
    filtered(&shown, wanted)
}

/// `SHOW MODELS [FROM s] [LIKE …]`
pub(super) fn models(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    let (catalog, schema) = if words.take_any(&["from", "in"]) {
        asked.schema(&words.name()?)?
    } else {
        (asked.names.default_catalog.clone(), asked.names.default_schema.clone())
    };
    let wanted = wanted(&mut words)?;
    let within = format!("model_catalog = {} AND model_schema = {}", quoted(&catalog), quoted(&schema));
    let shown = Shown {
        items: "model_name AS name, version, format, objective, feature_count, prediction_type, created",
        from: &format!("FROM system.models WHERE {within}"),
        order: "model_name",
    };
    filtered(&shown, wanted)
}

/// `SHOW MATERIALIZED VIEWS [FROM s] [LIKE …]`
pub(super) fn materialised(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    let schema = if words.take_any(&["from", "in"]) {
        asked.schema(&words.name()?)?.1
    } else {
        asked.names.default_schema.clone()
    };
    let wanted = wanted(&mut words)?;
    let shown = Shown {
        items: "matviewname AS name, definition",
        from: &format!("FROM pg_catalog.pg_matviews WHERE schemaname = {}", quoted(&schema)),
        order: "matviewname",
    };
    filtered(&shown, wanted)
}

/// `SHOW ALL TABLES`, with DuckDB's columns.
pub(super) fn all(mut words: Words<'_>) -> Result<Parsed> {
    let wanted = wanted(&mut words)?;
    let items = format!(
        "table_catalog AS database, table_schema AS schema, table_name AS name, column_names, column_types, \
         table_catalog = {} AS temporary",
        quoted(TEMPORARY_CATALOG)
    );
    let shown = Shown {
        items: &items,
        from: "FROM (SELECT table_catalog, table_schema, table_name, \
               array_agg(column_name ORDER BY ordinal_position) AS column_names, \
               array_agg(column_type ORDER BY ordinal_position) AS column_types FROM information_schema.columns \
               WHERE table_schema NOT IN ('information_schema', 'pg_catalog', 'system') \
               GROUP BY table_catalog, table_schema, table_name) AS listed",
        order: "concat(table_catalog, '/', table_schema, '/', table_name)",
    };
    filtered(&shown, wanted)
}

/// `SHOW TABLE STATUS [FROM s] [LIKE …]`
pub(super) fn status(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    let (condition, _) = place(&mut words, asked)?;
    let wanted = wanted(&mut words)?;
    if asked.flavour() == Flavour::MySql {
        return mysql_status(&condition, wanted);
    }
    let shown = Shown {
        items: "table_name AS \"Name\", storage AS \"Engine\", version AS \"Version\", row_count AS \"Rows\", \
                bytes AS \"Data_length\"",
        from: &format!("FROM system.tables WHERE {condition}"),
        order: "table_name",
    };
    filtered(&shown, wanted)
}

/// `SHOW [FULL] COLUMNS FROM t [FROM s] [LIKE …]`, with MySQL's columns.
pub(super) fn columns(mut words: Words<'_>, asked: &Asked<'_>, modifier: Modifier) -> Result<Parsed> {
    if !words.take_any(&["from", "in"]) {
        return Err(words.unexpected().with_hint("write `SHOW COLUMNS FROM table`"));
    }
    let mut name = words.name()?;
    if words.take_any(&["from", "in"]) {
        let mut full = words.name()?;
        full.0.append(&mut name.0);
        name = full;
    }
    let table = asked.table(&name)?;
    let wanted = wanted(&mut words)?;
    let (collation, more) = match modifier {
        Modifier::None => ("", ""),
        Modifier::Full => (
            " CASE WHEN collation_name IS NOT NULL THEN 'utf8mb4_bin' END AS \"Collation\",",
            ", 'select,insert,update,references' AS \"Privileges\", coalesce(column_comment, '') AS \"Comment\"",
        ),
    };
    let items = format!(
        "column_name AS \"Field\", column_type AS \"Type\",{collation} is_nullable AS \"Null\", column_key AS \"Key\", \
         {} AS \"Default\", extra AS \"Extra\"{more}",
        describe::DEFAULT
    );
    let from = format!("FROM information_schema.columns WHERE {}", describe::is(&table));
    filtered(&Shown { items: &items, from: &from, order: "ordinal_position" }, wanted)
}

/// The same with all of MySQL's columns, which its clients find by their places.
fn mysql_status(condition: &str, wanted: Wanted) -> Result<Parsed> {
    let shown = Shown {
        items: "table_name AS \"Name\", 'Bowshot' AS \"Engine\", version AS \"Version\", CAST(NULL AS VARCHAR) AS \"Row_format\", \
                row_count AS \"Rows\", CASE WHEN row_count > 0 THEN bytes / row_count ELSE 0 END AS \"Avg_row_length\", \
                bytes AS \"Data_length\", CAST(NULL AS BIGINT) AS \"Max_data_length\", CAST(NULL AS BIGINT) AS \"Index_length\", \
                CAST(NULL AS BIGINT) AS \"Data_free\", CAST(NULL AS BIGINT) AS \"Auto_increment\", \
                CAST(NULL AS TIMESTAMP) AS \"Create_time\", CAST(NULL AS TIMESTAMP) AS \"Update_time\", \
                CAST(NULL AS TIMESTAMP) AS \"Check_time\", 'utf8mb4_bin' AS \"Collation\", \
                CAST(NULL AS VARCHAR) AS \"Checksum\", coalesce(create_options, '') AS \"Create_options\", \
                coalesce(table_comment, '') AS \"Comment\"",
        from: &format!(
            "FROM (SELECT t.*, i.create_options, i.table_comment FROM system.tables AS t \
             LEFT JOIN information_schema.tables AS i ON i.table_catalog = t.table_catalog \
             AND i.table_schema = t.table_schema AND i.table_name = t.table_name) AS listed WHERE {condition}"
        ),
        order: "table_name",
    };
    filtered(&shown, wanted)
}
