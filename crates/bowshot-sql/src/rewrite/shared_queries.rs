//! Queries of WITH that are read more than once. Each is read from a table of its own, by whose name the engine knows it, and
//! decides whether its rows are computed once for all readers.

use crate::template::{self, meaning, quoted};
use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{Cte, ObjectName, Query, SetExpr, Statement, TableFactor, VisitorMut};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// What the name of such a table begins with; the name of the query follows.
pub const SHARED: &str = "__bowshot_shared_";

/// Names the queries that are read more than once. `WITH a AS (q)` becomes `WITH a AS (SELECT * FROM (q) AS __bowshot_shared_a)`.
pub fn share_queries(statement: &mut Statement) -> Result<()> {
    let reads = Reads::within(&*statement);
    statement.try_walk(&mut Sharing(reads))
}

/// How often each name is read. Too often for a name that stands for several things, which does no harm.
#[derive(Default)]
struct Reads(HashMap<String, usize>);

impl Reads {
    fn within(part: &impl Tree) -> Self {
        let mut reads = Self::default();
        part.has_relation(|relation| {
            if let [part] = relation.0.as_slice()
                && let Some(name) = part.as_ident()
            {
                *reads.0.entry(name.value.to_lowercase()).or_default() += 1;
            }
            false
        });
        reads
    }

    fn count(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or_default()
    }
}

struct Sharing(Reads);

impl VisitorMut for Sharing {
    type Break = Error;

    // After what is within, so that nothing is named twice.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let Some(with) = &mut query.with else { return ControlFlow::Continue(()) };
        for table in &mut with.cte_tables {
            let name = table.alias.name.value.to_lowercase();
            let own = Reads::within(&table.query).count(&name);
            let is_query = matches!(
                table.query.body.as_ref(),
                SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::SetOperation { .. } | SetExpr::Values(_)
            );
            if is_query && self.0.count(&name).saturating_sub(own) > 1 {
                let nested = if with.recursive && own > 0 { nest(table) } else { Ok(()) };
                if let Err(error) = nested.and_then(|()| share(table)) {
                    return ControlFlow::Break(error);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn share(table: &mut Cte) -> Result<()> {
    let mut outer = template::query("SELECT * FROM (SELECT 1) AS shared", &[])?;
    match first_table(&mut outer) {
        Some(TableFactor::Derived { subquery, alias: Some(alias), .. }) => {
            alias.name = quoted(&format!("{SHARED}{}", meaning(&table.alias.name)));
            std::mem::swap(subquery, &mut table.query);
        }
        _ => return Err(Error::internal("a query of a query has no table")),
    }
    table.query = outer;
    Ok(())
}

/// A query that reads itself becomes one that reads a recursive query of the same name.
fn nest(table: &mut Cte) -> Result<()> {
    let mut outer = template::query("WITH RECURSIVE nested AS (SELECT 1) SELECT * FROM nested", &[])?;
    let Some(TableFactor::Table { name, .. }) = first_table(&mut outer) else {
        return Err(Error::internal("a query of a query has no table"));
    };
    *name = ObjectName::from(vec![table.alias.name.clone()]);
    let Some(nested) = outer.with.as_mut().and_then(|with| with.cte_tables.first_mut()) else {
        return Err(Error::internal("a query with WITH has none"));
    };
    nested.alias = table.alias.clone();
    std::mem::swap(&mut nested.query, &mut table.query);
    table.query = outer;
    Ok(())
}

fn first_table(query: &mut Query) -> Option<&mut TableFactor> {
    match query.body.as_mut() {
        SetExpr::Select(select) => select.from.first_mut().map(|table| &mut table.relation),
        _ => None,
    }
}
