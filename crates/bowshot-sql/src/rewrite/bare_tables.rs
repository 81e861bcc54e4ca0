//! The tables that a statement names without a schema, for who knows in which schema they are.

use super::with_names::WithNames;
use crate::template::{meaning, quoted};
use crate::walk::Tree;
use sqlparser::ast::{Ident, ObjectNamePart, Query, TableFactor, VisitorMut};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Puts the schema that `find_schema` gives before each table that is named by one word. Names of WITH are no tables.
pub fn qualify_bare_tables(statement: &mut impl Tree, find_schema: impl FnMut(&Ident) -> Option<String>) {
    let mut visitor = BareTables { find_schema, around: WithNames::default() };
    let ControlFlow::Continue(()) = statement.walk(&mut visitor);
}

struct BareTables<F> {
    find_schema: F,
    around: WithNames,
}

impl<F: FnMut(&Ident) -> Option<String>> VisitorMut for BareTables<F> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.around.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.around.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        let TableFactor::Table { name, args: None, .. } = factor else { return ControlFlow::Continue(()) };
        if let [ObjectNamePart::Identifier(table)] = name.0.as_slice()
            && self.around.find(&meaning(table)).is_none()
            && let Some(schema) = (self.find_schema)(table)
        {
            name.0.insert(0, ObjectNamePart::Identifier(quoted(&schema)));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::qualify_bare_tables;
    use crate::DialectName;
    use crate::rewrite::tests::read_sql;

    #[test]
    fn names_of_with_are_no_tables() {
        let qualified = |sql: &str| {
            let mut statement = read_sql(sql, DialectName::Ansi);
            qualify_bare_tables(&mut statement, |table| (table.value != "near").then(|| "b".to_owned()));
            statement.to_string()
        };
        for (sql, expected) in [
            ("SELECT * FROM t, a.t, near", r#"SELECT * FROM "b".t, a.t, near"#),
            (
                "WITH t AS (SELECT * FROM t), u AS (SELECT * FROM t) SELECT * FROM u, v",
                r#"WITH t AS (SELECT * FROM "b".t), u AS (SELECT * FROM t) SELECT * FROM u, "b".v"#,
            ),
            (
                "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT (SELECT 1 FROM T)",
                "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT (SELECT 1 FROM T)",
            ),
            (
                "UPDATE t SET a = 1 FROM u WHERE t.a = u.a",
                r#"UPDATE "b".t SET a = 1 FROM "b".u WHERE t.a = u.a"#,
            ),
        ] {
            assert_eq!(qualified(sql), expected);
        }
    }
}
