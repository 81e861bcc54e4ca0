//! Groups by the primary key of a table: its other columns may stand in the query, as in PostgreSQL.

use crate::catalog::Visible;
use crate::catalog::names::Names;
use bowshot_policy::Reading;
use bowshot_sql::rewrite::{KeyedTable, add_dependent_columns};
use bowshot_tables::Entry;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::ObjectName;

/// Adds the columns that primary keys determine to the keys of groups: of those columns alone that the caller sees.
pub(crate) fn add(statement: &mut Statement, names: &Names, visible: &Visible) {
    match statement {
        Statement::Statement(statement) => {
            add_dependent_columns(statement, |table| keyed_table(table, names, visible));
        }
        Statement::Explain(explain) => add(&mut explain.statement, names, visible),
        _ => {}
    }
}

fn keyed_table(name: &ObjectName, names: &Names, visible: &Visible) -> Option<KeyedTable> {
    let full = names.resolve(name).ok()?;
    let is_input = name.0.len() == 1 && names.pinned.input().is_some_and(|input| input.name() == full.name);
    let Some(Entry::Table(table)) = visible.pinned.entry(&full).filter(|_| !is_input) else { return None };
    let definition = table.definition();
    let key = definition.primary_key.as_ref()?.columns.clone();
    // What stands in the place of a key may be the same for several rows.
    if let Reading::Limited(limits) = names.access.reading(&full)
        && key.iter().any(|column| limits.masks.contains_key(column))
    {
        return None;
    }
    let columns = definition.columns.iter().map(|column| column.field.name().clone()).collect();
    Some(KeyedTable { columns, key })
}
