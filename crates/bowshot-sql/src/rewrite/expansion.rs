//! Limits the expansion of WITH queries, which are in the plan as often as they are named: forty that each name the previous one twice
//! make a plan that no memory holds. The planner cannot be stopped, so tables are counted first.

use crate::walk::Tree;
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::{Ident, ObjectName, Query, Visitor};
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Tables that a statement reads, each as often as it does. Each is a step of the plan at least, of which there may be as many.
const MAX_TABLES: u64 = 5_000;

pub(super) fn check(statement: &impl Tree) -> Result<()> {
    let mut tables = Tables { most: 0, around: Vec::new() };
    let ControlFlow::Continue(()) = statement.look(&mut tables);
    if tables.most <= MAX_TABLES {
        return Ok(());
    }
    let message = format!(
        "the statement reads more than {MAX_TABLES} tables, with those of queries of WITH that are named more than once"
    );
    Err(Error::new(ErrorKind::LimitReached, message)
        .with_hint("keep the rows of one of them: `CREATE TABLE … AS SELECT …`"))
}

struct Tables {
    /// Of the query that reads most.
    most: u64,
    /// The queries around this place, the outermost first.
    around: Vec<Around>,
}

#[derive(Default)]
struct Around {
    /// Its queries of WITH that have not been left yet, the last one first.
    coming: Vec<Coming>,
    /// How many tables those read that have been left.
    known: HashMap<String, u64>,
    tables: u64,
}

struct Coming {
    name: String,
    /// Compared, and never followed.
    query: *const Query,
}

impl Visitor for Tables {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Infallible> {
        let with = query.with.iter().flat_map(|with| with.cte_tables.iter().rev());
        let coming =
            with.map(|table| Coming { name: folded(&table.alias.name), query: table.query.as_ref() });
        self.around.push(Around { coming: coming.collect(), ..Around::default() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Infallible> {
        let Some(left) = self.around.pop() else { return ControlFlow::Continue(()) };
        // Without a table it is a step too.
        let tables = left.tables.max(1);
        self.most = self.most.max(tables);
        if let Some(around) = self.around.last_mut() {
            match around.coming.pop_if(|coming| std::ptr::eq(coming.query, query)) {
                Some(coming) => {
                    around.known.insert(coming.name, tables);
                }
                None => around.tables = around.tables.saturating_add(tables),
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Infallible> {
        let name = match relation.0.as_slice() {
            [part] => part.as_ident().map(folded),
            _ => None,
        };
        let of_with = name.and_then(|name| self.around.iter().rev().find_map(|query| query.known.get(&name)));
        let tables = of_with.copied().unwrap_or(1);
        if let Some(query) = self.around.last_mut() {
            query.tables = query.tables.saturating_add(tables);
        }
        ControlFlow::Continue(())
    }
}

/// The name as it is compared.
fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::DialectName;
    use crate::rewrite::tests::read_sql;

    fn is_refused(sql: &str) -> bool {
        check(&read_sql(sql, DialectName::Ansi)).is_err()
    }

    fn chain(times: usize, query: &str) -> String {
        let rest: Vec<String> = (1..=times)
            .map(|at| format!("c{at} AS ({})", query.replace("{}", &format!("c{}", at - 1))))
            .collect();
        format!("WITH c0 AS (SELECT 1 AS x), {} SELECT count(*) FROM c{times}", rest.join(", "))
    }

    #[test]
    fn tables_count_as_often_as_they_are_read() {
        for query in [
            "SELECT a.x FROM {} a, {} b",
            "SELECT x FROM {} UNION ALL SELECT x FROM {}",
            "SELECT (SELECT max(x) FROM {}) + (SELECT min(x) FROM {}) AS x",
            "SELECT x FROM {} WHERE x IN (SELECT x FROM {})",
            "WITH c AS (SELECT x FROM {}) SELECT a.x FROM c a, C b",
        ] {
            assert!(!is_refused(&chain(10, query)), "{query}");
            assert!(is_refused(&chain(13, query)), "{query}");
            assert!(is_refused(&chain(90, query)), "{query}");
        }
        assert!(!is_refused(&chain(90, "SELECT x + x AS x FROM {}")));
        assert!(!is_refused(
            "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT a.x FROM r a, r b) SELECT * FROM r"
        ));
        // Those of another schema, and of another query, are others.
        assert!(!is_refused(&chain(40, "SELECT a.x FROM s.{} a, {} b")));
        assert!(!is_refused(
            "SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c), (WITH c AS (SELECT 2) SELECT * FROM c)"
        ));
    }
}
