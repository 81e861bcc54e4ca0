//! `SHOW CREATE TABLE t`, `SHOW CREATE VIEW v`: the statement that would make it again.

use crate::catalog::names::{Names, last};
use bowshot_api::{Error, Result};
use bowshot_storage::tables::Entry;
use bowshot_system_catalog::definition_text::{external_text, literal, table_text, view_text};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{ObjectName, ShowCreateObject, Statement};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// A query that gives the text, in the place of the statement; other statements as they are.
///
/// # Errors
/// `NotFound` without the table or view.
pub(crate) fn expanded(statement: Parsed, names: &Names) -> Result<Parsed> {
    let Parsed::Statement(inner) = &statement else { return Ok(statement) };
    let Statement::ShowCreate { obj_type: ShowCreateObject::Table | ShowCreateObject::View, obj_name } =
        inner.as_ref()
    else {
        return Ok(statement);
    };
    let text = text_of(obj_name, names)?;
    let sql = format!(
        "SELECT {} AS table_name, {} AS create_statement",
        literal(&last(obj_name)?.value),
        literal(&text)
    );
    let mut parsed = Parser::parse_sql(&GenericDialect {}, &sql)
        .map_err(|error| Error::internal(format!("a query was not parsed: {error}")))?;
    match parsed.pop() {
        Some(query) => Ok(Parsed::Statement(Box::new(query))),
        None => Err(Error::internal("a query was parsed as nothing")),
    }
}

fn text_of(name: &ObjectName, names: &Names) -> Result<String> {
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
