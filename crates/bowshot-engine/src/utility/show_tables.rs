//! `SHOW TABLES`, `SHOW VIEWS`, `SHOW COLUMNS`: over `information_schema`.

use super::describe;
use super::show::{Listing, filtered};
use super::utility_context::{UtilityContext, named, quoted};
use bowshot_api::Result;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, TEMPORARY_CATALOG};
use bowshot_sql::RowFilter;
use bowshot_system_catalog::client::Flavour;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::ObjectName;

/// The schema after FROM, or the one in force with the session's own tables; and its name.
fn place(schema: Option<&ObjectName>, asked: &UtilityContext<'_>) -> Result<(String, String)> {
    let within = |catalog: &str, schema: &str| {
        format!("(table_catalog = {} AND table_schema = {})", quoted(catalog), quoted(schema))
    };
    if let Some(schema) = schema {
        let (catalog, schema) = asked.schema(schema)?;
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
pub(super) fn tables(
    within: Option<&ObjectName>,
    filter: RowFilter,
    asked: &UtilityContext<'_>,
    full: bool,
) -> Result<Parsed> {
    let (condition, schema) = place(within, asked)?;
    let mysql = asked.flavour() == Flavour::MySql;
    let column = match (&filter, mysql) {
        (_, false) => "name".to_owned(),
        (RowFilter::Like(pattern), true) => format!("Tables_in_{schema} ({pattern})"),
        (_, true) => format!("Tables_in_{schema}"),
    };
    let kind = match (full, mysql) {
        (false, _) => "",
        (true, true) => ", table_type AS \"Table_type\"",
        (true, false) => ", table_type",
    };
    let items = format!("table_name AS {}{kind}", named(&column));
    let from = format!("FROM information_schema.tables WHERE {condition}");
    filtered(&Listing { items: &items, from: &from, order: "table_name" }, filter)
}

/// `SHOW VIEWS [FROM s] [LIKE …]`
pub(super) fn views(
    within: Option<&ObjectName>,
    filter: RowFilter,
    asked: &UtilityContext<'_>,
) -> Result<Parsed> {
    let (condition, _) = place(within, asked)?;
    let shown = Listing {
        items: "table_name AS name, view_definition AS definition",
        from: &format!("FROM information_schema.views WHERE {condition}"),
        order: "table_name",
    };
    filtered(&shown, filter)
}

/// `SHOW MODELS [FROM s] [LIKE …]`
pub(super) fn models(
    within: Option<&ObjectName>,
    filter: RowFilter,
    asked: &UtilityContext<'_>,
) -> Result<Parsed> {
    let (catalog, schema) = match within {
        Some(schema) => asked.schema(schema)?,
        None => (asked.names.default_catalog.clone(), asked.names.default_schema.clone()),
    };
    let within = format!("model_catalog = {} AND model_schema = {}", quoted(&catalog), quoted(&schema));
    let shown = Listing {
        items: "model_name AS name, version, format, objective, feature_count, prediction_type, created",
        from: &format!("FROM system.models WHERE {within}"),
        order: "model_name",
    };
    filtered(&shown, filter)
}

/// `SHOW MATERIALIZED VIEWS [FROM s] [LIKE …]`
pub(super) fn materialized(
    within: Option<&ObjectName>,
    filter: RowFilter,
    asked: &UtilityContext<'_>,
) -> Result<Parsed> {
    let schema = match within {
        Some(schema) => asked.schema(schema)?.1,
        None => asked.names.default_schema.clone(),
    };
    let shown = Listing {
        items: "matviewname AS name, definition",
        from: &format!("FROM pg_catalog.pg_matviews WHERE schemaname = {}", quoted(&schema)),
        order: "matviewname",
    };
    filtered(&shown, filter)
}

/// `SHOW PIPES [LIKE …]`
pub(super) fn pipes(filter: RowFilter) -> Result<Parsed> {
    let items = "name, table_catalog, table_schema, table_name, location, \"every\", state, files_loaded, rows_loaded, \
                 last_loaded, last_error";
    filtered(&Listing { items, from: "FROM system.pipes", order: "name" }, filter)
}

/// `SHOW ALL TABLES`, with DuckDB's columns.
pub(super) fn all(filter: RowFilter) -> Result<Parsed> {
    let items = format!(
        "table_catalog AS database, table_schema AS schema, table_name AS name, column_names, column_types, \
         table_catalog = {} AS temporary",
        quoted(TEMPORARY_CATALOG)
    );
    let shown = Listing {
        items: &items,
        from: "FROM (SELECT table_catalog, table_schema, table_name, \
               array_agg(column_name ORDER BY ordinal_position) AS column_names, \
               array_agg(column_type ORDER BY ordinal_position) AS column_types FROM information_schema.columns \
               WHERE table_schema NOT IN ('information_schema', 'pg_catalog', 'system') \
               GROUP BY table_catalog, table_schema, table_name) AS listed",
        order: "concat(table_catalog, '/', table_schema, '/', table_name)",
    };
    filtered(&shown, filter)
}

/// `SHOW TABLE STATUS [FROM s] [LIKE …]`
pub(super) fn status(
    within: Option<&ObjectName>,
    filter: RowFilter,
    asked: &UtilityContext<'_>,
) -> Result<Parsed> {
    let (condition, _) = place(within, asked)?;
    if asked.flavour() == Flavour::MySql {
        return mysql_status(&condition, filter);
    }
    let shown = Listing {
        items: "table_name AS \"Name\", storage AS \"Engine\", version AS \"Version\", row_count AS \"Rows\", \
                bytes AS \"Data_length\"",
        from: &format!("FROM system.tables WHERE {condition}"),
        order: "table_name",
    };
    filtered(&shown, filter)
}

/// `SHOW [FULL] COLUMNS FROM t [FROM s] [LIKE …]`, with MySQL's columns.
pub(super) fn columns(
    table: &ObjectName,
    filter: RowFilter,
    asked: &UtilityContext<'_>,
    full: bool,
) -> Result<Parsed> {
    let table = asked.table(table)?;
    let (collation, more) = match full {
        false => ("", ""),
        true => (
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
    filtered(&Listing { items: &items, from: &from, order: "ordinal_position" }, filter)
}

/// The same with all of MySQL's columns, which its clients find by their places.
fn mysql_status(condition: &str, filter: RowFilter) -> Result<Parsed> {
    let shown = Listing {
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
    filtered(&shown, filter)
}
