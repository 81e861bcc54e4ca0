//! `CHECK TABLE t, …` of MySQL, with what it says of tables that have no check of their own.

use super::utility_context::{UtilityContext, texts};
use bowshot_api::Result;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::ObjectName;

/// The rows that say it.
///
/// # Errors
/// `NotFound` for a table that is not there.
pub(crate) fn check_tables(tables: &[ObjectName], asked: &UtilityContext<'_>) -> Result<Parsed> {
    let row = |name: &ObjectName| {
        let full = asked.table(name)?;
        let table = format!("{}.{}", full.schema, full.name);
        let note = "The storage engine for the table doesn't support check";
        Ok([table.as_str(), "check", "note", note].map(|text| Some(text.to_owned())).to_vec())
    };
    let rows = tables.iter().map(row).collect::<Result<Vec<_>>>()?;
    texts(&["Table", "Op", "Msg_type", "Msg_text"], &rows)
}
