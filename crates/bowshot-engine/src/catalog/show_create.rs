//! `SHOW CREATE TABLE t`, `SHOW CREATE VIEW v`: the statement that would make it again.

use crate::catalog::names::Names;
use bowshot_api::Result;
use bowshot_system_catalog::definition_text::{external_text, table_text, view_text};
use bowshot_tables::Entry;
use datafusion::sql::sqlparser::ast::ObjectName;

/// The statement that makes a table or view.
///
/// # Errors
/// `NotFound` without the table or view.
pub(crate) fn text_of(name: &ObjectName, names: &Names) -> Result<String> {
    let full = names.resolve(name)?;
    names.check_text(&full)?;
    match names.entry(&full) {
        Some(Entry::Table(table)) => {
            let seen = (&names.pinned, &names.access);
            Ok(table_text(&full, table.definition(), names.parts.tables.has_folder(), seen))
        }
        Some(Entry::View(view)) => Ok(view_text(&full, view)),
        Some(Entry::External(external)) => Ok(external_text(&full, external)),
        Some(Entry::Broken(broken)) => Err(broken.error(&full).into()),
        None => Err(names.not_there(&full)),
    }
}
