//! `PRAGMA …`: the ones of SQLite and DuckDB that ask about tables.

use super::describe;
use super::utility_context::{UtilityContext, named, parsed, quoted};
use bowshot_api::Result;
use bowshot_sql::Pragma;
use datafusion::sql::parser::Statement as Parsed;

/// The rows that are asked for.
///
/// # Errors
/// `NotFound` for a table that is not there.
pub(crate) fn rows(pragma: &Pragma, asked: &UtilityContext<'_>) -> Result<Parsed> {
    match pragma {
        Pragma::Version => {
            let version = quoted(env!("CARGO_PKG_VERSION"));
            parsed(&format!("SELECT {version} AS library_version, '' AS source_id"))
        }
        Pragma::DatabaseList => parsed(
            "SELECT row_number() OVER (ORDER BY name) - 1 AS seq, name, CAST(NULL AS VARCHAR) AS file \
             FROM (SELECT DISTINCT catalog_name AS name FROM information_schema.schemata) ORDER BY name",
        ),
        // With SQLite's columns.
        Pragma::TableInfo(name) => {
            let table = asked.table(name)?;
            parsed(&format!(
                "SELECT CAST(ordinal_position - 1 AS INTEGER) AS cid, column_name AS name, column_type AS type, \
                 is_nullable = 'NO' AS {}, column_default AS dflt_value, column_key = 'PRI' AS pk \
                 FROM information_schema.columns WHERE {} ORDER BY ordinal_position",
                named("notnull"),
                describe::is(&table)
            ))
        }
    }
}
