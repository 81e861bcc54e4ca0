//! `DESCRIBE t` and `DESCRIBE query`: columns with their types.

use super::utility_context::{UtilityContext, named, parsed, quoted, texts};
use bowshot_api::Result;
use bowshot_system_catalog::client::Flavour;
use bowshot_tables::EntryName;
use bowshot_types::names;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::ObjectName;

/// DuckDB's columns, and MySQL's.
const COLUMNS: [&str; 6] = ["column_name", "column_type", "null", "key", "default", "extra"];
const MYSQL_COLUMNS: [&str; 6] = ["Field", "Type", "Null", "Key", "Default", "Extra"];

/// The columns of a table, or those whose names a pattern says.
///
/// # Errors
/// `NotFound` for a table that is not there.
pub(crate) fn named_table(
    name: &ObjectName,
    column: Option<&str>,
    asked: &UtilityContext<'_>,
) -> Result<Parsed> {
    let table = asked.table(name)?;
    match column {
        None => self::table(&table, asked.flavour()),
        Some(column) => {
            parsed(&sql(&table, asked.flavour(), &format!("AND column_name ILIKE {}", quoted(column))))
        }
    }
}

/// The default of a column as MySQL shows it: the text itself, not as it is written in a statement.
pub(super) const DEFAULT: &str = "CASE WHEN column_default LIKE '''%''' \
                                  THEN replace(substr(column_default, 2, length(column_default) - 2), '''''', '''') \
                                  ELSE column_default END";

/// The columns of a table.
pub(super) fn table(table: &EntryName, flavour: Flavour) -> Result<Parsed> {
    parsed(&sql(table, flavour, ""))
}

fn sql(table: &EntryName, flavour: Flavour, more: &str) -> String {
    let shown = match flavour {
        Flavour::MySql => MYSQL_COLUMNS,
        Flavour::Bowshot | Flavour::Postgres => COLUMNS,
    };
    let default = if flavour == Flavour::MySql { DEFAULT } else { "column_default" };
    let given = ["column_name", "column_type", "is_nullable", "column_key", default, "extra"];
    let items: Vec<String> =
        given.iter().zip(shown).map(|(given, shown)| format!("{given} AS {}", named(shown))).collect();
    format!(
        "SELECT {} FROM information_schema.columns WHERE {} {more} ORDER BY ordinal_position",
        items.join(", "),
        is(table)
    )
}

/// The condition that rows of `information_schema` are about a table.
pub(super) fn is(table: &EntryName) -> String {
    is_of(table, "")
}

/// The same of columns that have something before their names.
pub(super) fn is_of(table: &EntryName, prefix: &str) -> String {
    format!(
        "{prefix}table_catalog = {} AND {prefix}table_schema = {} AND {prefix}table_name = {}",
        quoted(&table.catalog),
        quoted(&table.schema),
        quoted(&table.name)
    )
}

/// The columns of a query.
pub(crate) fn query(schema: &Schema, flavour: Flavour) -> Result<Parsed> {
    let row = |field: &Field| {
        let (name, nullable) = match flavour {
            Flavour::MySql => (names::mysql(field), field.is_nullable()),
            Flavour::Bowshot | Flavour::Postgres => (names::sql(field), field.is_nullable()),
        };
        let nullable = if nullable { "YES" } else { "NO" };
        vec![
            Some(bowshot_api::display_name(field.name()).to_owned()),
            Some(name),
            Some(nullable.to_owned()),
            None,
            None,
            None,
        ]
    };
    let rows: Vec<_> = schema.fields().iter().map(|field| row(field)).collect();
    let columns = if flavour == Flavour::MySql { MYSQL_COLUMNS } else { COLUMNS };
    texts(&columns, &rows)
}
