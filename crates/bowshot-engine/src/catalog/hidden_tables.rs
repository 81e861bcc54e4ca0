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
use datafusion::sql::sqlparser::ast::{ObjectName, TableFactor, VisitorMut};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Marks the tables that a statement names with their schema, where one of the session's own has the same name.
pub(crate) fn mark(statement: &mut Statement, names: &Names, visible: &Visible) {
    let own = names.pinned.own().names(TEMPORARY_CATALOG, DEFAULT_SCHEMA);
    if own.is_empty() || visible.flavour() == Flavour::MySql {
        return;
    }
    match statement {
        Statement::Statement(statement) => {
            let ControlFlow::Continue(()) = statement.walk(&mut Marks { names, visible });
        }
        Statement::Explain(explain) => mark(&mut explain.statement, names, visible),
        _ => {}
    }
}

struct Marks<'a> {
    names: &'a Names,
    visible: &'a Visible,
}

impl Marks<'_> {
    fn is_hidden(&self, name: &ObjectName) -> bool {
        if name.0.len() < 2 {
            return false;
        }
        let Ok(full) = self.names.resolve(name) else { return false };
        let own = EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, &full.name);
        full.catalog == self.names.default_catalog
            && full.schema == self.names.default_schema
            && self.names.pinned.entry(&own).is_some()
            && self.names.access.sees(&full)
            && self.visible.has(&full)
    }
}

impl VisitorMut for Marks<'_> {
    type Break = Infallible;

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor
            && self.is_hidden(name)
        {
            mark_shared(name, alias);
        }
        ControlFlow::Continue(())
    }
}
