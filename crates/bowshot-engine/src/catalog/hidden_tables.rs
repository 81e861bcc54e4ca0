//! `public.t` beside a table `t` of the session's own: a name with its schema is the table of that schema, as in PostgreSQL. The
//! planner asks for tables by full names alone, so these are marked. In MySQL a temporary table hides the other one from everybody
//! who names it.

use crate::catalog::Visible;
use crate::catalog::names::Names;
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, TEMPORARY_CATALOG};
use bowshot_sql::Tree;
use bowshot_sql::rewrite::mark_shared;
use bowshot_system_catalog::client::Flavour;
use bowshot_tables::EntryName;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{ObjectName, TableFactor};

/// Marks the tables that a statement names with their schema, where one of the session's own has the same name.
pub(crate) fn mark(statement: &mut Statement, names: &Names, visible: &Visible) {
    let own = names.pinned.own().names(TEMPORARY_CATALOG, DEFAULT_SCHEMA);
    if own.is_empty() || visible.flavour() == Flavour::MySql {
        return;
    }
    match statement {
        Statement::Statement(statement) => {
            statement.change_tables(|factor| {
                if let TableFactor::Table { name, alias, args: None, .. } = factor
                    && is_hidden(name, names, visible)
                {
                    mark_shared(name, alias);
                }
            });
        }
        Statement::Explain(explain) => mark(&mut explain.statement, names, visible),
        _ => {}
    }
}

fn is_hidden(name: &ObjectName, names: &Names, visible: &Visible) -> bool {
    if name.0.len() < 2 {
        return false;
    }
    let Ok(full) = names.resolve(name) else { return false };
    let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, &full.name);
    full.catalog == names.default_catalog
        && full.schema == names.default_schema
        && names.pinned.entry(&own).is_some()
        && names.access.sees(&full)
        && visible.has(&full)
}
