//! Names of the columns of a result, as the text has them.

use crate::rewrite::{self, Source};
use crate::{Dialect, DialectName, Parsed, parse};

fn names(sql: &str, dialect: DialectName) -> String {
    let mut parsed = parse(sql, Dialect::new(dialect), 50).expect("parses");
    let Some(Parsed::Statement(mut statement)) = parsed.pop() else { unreachable!("it is a query") };
    super::name(&mut statement, Source { text: sql, dialect }).expect("is named");
    statement.to_string().replace(rewrite::MARK, "#")
}

#[test]
fn expressions_are_called_by_their_text() {
    for (sql, expected) in [
        ("SELECT 1", "SELECT 1 AS \"1\""),
        ("SELECT a, t.b FROM t", "SELECT a, t.b FROM t"),
        ("select max(x)  +\n1 from t", "SELECT max(x) + 1 AS \"max(x) + 1\" FROM t"),
        (
            "SELECT a IS DISTINCT FROM b FROM t",
            "SELECT a IS DISTINCT FROM b AS \"a IS DISTINCT FROM b\" FROM t",
        ),
        (
            "SELECT DISTINCT ON (a) a+1, 'x, y' FROM t",
            "SELECT DISTINCT ON (a) a + 1 AS \"a+1\", 'x, y' AS \"'x, y'\" FROM t",
        ),
        (
            "SELECT v::bigint, t.v::int::text FROM t",
            "SELECT v::BIGINT AS \"v\", t.v::INT::TEXT AS \"v#1\" FROM t",
        ),
        (
            "SELECT CAST(v AS INT), 1::int FROM t",
            "SELECT CAST(v AS INT) AS \"CAST(v AS INT)\", 1::INT AS \"1::int\" FROM t",
        ),
        (
            "SELECT rank(2) WITHIN GROUP (ORDER BY v) FROM t",
            "SELECT rank(2) WITHIN GROUP (ORDER BY v) AS \"rank(2) WITHIN GROUP (ORDER BY v)\" FROM t",
        ),
        ("SELECT (SELECT 2)", "SELECT (SELECT 2 AS \"2\") AS \"(SELECT 2)\""),
    ] {
        assert_eq!(names(sql, DialectName::Ansi), expected);
    }
}

#[test]
fn names_that_are_there_get_a_number() {
    for (sql, expected) in [
        ("SELECT 1, 1", "SELECT 1 AS \"1\", 1 AS \"1#1\""),
        ("SELECT v, V FROM t", "SELECT v, V AS \"v#1\" FROM t"),
        ("SELECT *, v FROM t", "SELECT *, v AS \"v#1\" FROM t"),
        ("SELECT *, v AS w FROM t", "SELECT *, v AS w FROM t"),
        ("SELECT *, v::int FROM t", "SELECT *, v::INT AS \"v#1\" FROM t"),
        ("SELECT v::text FROM t ORDER BY v", "SELECT v::TEXT AS \"v\" FROM t ORDER BY v"),
        ("SELECT v::text FROM t ORDER BY -v", "SELECT v::TEXT AS \"v#0\" FROM t ORDER BY -v"),
        (
            "SELECT v::text FROM t GROUP BY v HAVING v > 1",
            "SELECT v::TEXT AS \"v#0\" FROM t GROUP BY v HAVING v > 1",
        ),
    ] {
        assert_eq!(names(sql, DialectName::Ansi), expected);
    }
}

#[test]
fn postgres_has_names_of_its_own() {
    for (sql, expected) in [
        ("SELECT 1", "SELECT 1 AS \"?column?\""),
        (
            "SELECT count(*), sum(x)::int FROM t",
            "SELECT count(*) AS \"count\", sum(x)::INT AS \"sum\" FROM t",
        ),
        ("SELECT 1, 2", "SELECT 1 AS \"?column?\", 2 AS \"?column?#1\""),
        ("SELECT CASE WHEN a THEN 1 END FROM t", "SELECT CASE WHEN a THEN 1 END AS \"case\" FROM t"),
    ] {
        assert_eq!(names(sql, DialectName::Postgres), expected);
    }
}
