//! What is refused, and what no answer shows. What statements are rewritten into, `tests/sql` asks by their answers.

use super::{MARK, Source, statement};
use crate::{Dialect, DialectName, parse};

fn rewritten(sql: &str) -> String {
    rewritten_in(sql, DialectName::Ansi)
}

/// The statement of a text, which is one alone.
pub(super) fn read_sql(sql: &str, dialect: DialectName) -> Box<sqlparser::ast::Statement> {
    let mut parsed = parse(sql, Dialect::new(dialect), 50).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let Some(crate::Statement::Sql(parsed)) = parsed.pop() else { unreachable!("it is one statement") };
    parsed
}

pub(super) fn rewritten_in(sql: &str, dialect: DialectName) -> String {
    let mut parsed = read_sql(sql, dialect);
    match statement(&mut parsed, Source { text: sql, dialect }) {
        Ok(()) => parsed.to_string().replace(MARK, "#").replace('\u{2}', "@"),
        Err(error) => format!("{error}"),
    }
}

#[test]
fn states_have_numbers_times_and_names() {
    for (version, carried) in [
        ("VERSION AS OF 3", "3"),
        ("FOR VERSION AS OF '3'", "3"),
        ("FOR VERSION AS OF 'v1'", "#v1"),
        ("version as of 'it''s' AS t", "#it's"),
        ("FOR TIMESTAMP AS OF '2026-01-31'", "@2026-01-31"),
    ] {
        let rewritten = rewritten(&format!("SELECT a FROM t {version}"));
        assert!(rewritten.contains(&format!("\"@{carried}@t\"")), "{version}: {rewritten}");
    }
}

#[test]
fn refusals_say_why() {
    for (sql, says) in [
        ("SELECT * FROM t FOR VERSION AS OF ?", "cannot be a parameter"),
        ("SELECT * FROM t FOR TIMESTAMP AS OF $1", "cannot be a parameter"),
        ("SELECT * FROM t FOR TIMESTAMP AS OF now()", "is not a literal timestamp"),
        ("SELECT * FROM t FOR TIMESTAMP AS OF '\u{2}x'", "is not a literal timestamp"),
        ("DELETE FROM s.t FOR VERSION AS OF 1", "an earlier version of `s.t` cannot be changed"),
        ("UPDATE t VERSION AS OF 1 SET a = 1", "an earlier version of `t` cannot be changed"),
        (
            "MERGE INTO t VERSION AS OF 1 USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
            "an earlier version of `t` cannot be changed",
        ),
        ("SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM m, arch.m ORDER BY m.a)", "is ambiguous"),
        ("SELECT a FROM t WHERE a LIKE 'b' ESCAPE 'xy'", "`'xy'` is no escape character; name one character"),
        ("SELECT a FROM t WHERE a LIKE 'b!' ESCAPE '!'", "the pattern `b!` ends with its escape character"),
        ("SELECT INTERVAL 'x' AS a", "invalid input syntax for type interval: \"x\"; write it as"),
        ("UPDATE t SET a = 1 ORDER BY b LIMIT 2", "UPDATE has ORDER BY and LIMIT in dialect `mysql` alone"),
        ("SELECT (SELECT min((SELECT max(b.y) FROM c)) FROM a CROSS JOIN b) FROM d", "within another one"),
    ] {
        let error = rewritten(sql);
        assert!(error.contains(says), "{sql}: {error}");
    }
    for number in ["0b12", "0o8", "0x", "0b1__0", "0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"] {
        let refused = parse(&format!("SELECT {number}"), Dialect::new(DialectName::Ansi), 50);
        let expected = format!("syntax error: `{number}` is not a number");
        assert_eq!(refused.expect_err(number).to_string(), expected);
    }
}

#[test]
fn copies_of_subqueries_and_windows_are_few() {
    let sql = "SELECT a FROM t WHERE (a, b) IN (SELECT c, d FROM u WHERE (c, d) NOT IN (SELECT e, f FROM v))";
    let text = rewritten(sql);
    assert_eq!((text.matches("FROM u").count(), text.matches("FROM v").count()), (2, 4), "{text}");
    for (frame, windows) in [
        ("ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW", 4),
        ("RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP", 4),
        ("GROUPS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE TIES", 10),
        ("ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE TIES", 1),
    ] {
        // `coalesce(l + r, l, r)` of each two.
        let text = rewritten(&format!("SELECT sum(v) OVER (ORDER BY k {frame}) AS s FROM t"));
        assert_eq!(text.matches("OVER").count(), windows, "{text}");
    }
}

#[test]
fn a_field_is_one_after_all() {
    let sql = "SELECT a FROM c WHERE EXISTS (SELECT * FROM o WHERE c.f = c.id)";
    let mut parsed = read_sql(sql, DialectName::Ansi);
    super::outer_columns::qualify(parsed.as_mut());
    assert!(super::inside(parsed.as_mut(), "c", "f"));
    assert!(!super::inside(parsed.as_mut(), "c", "f"));
    assert_eq!(
        parsed.to_string().replace(MARK, "#"),
        "SELECT a FROM c WHERE EXISTS (SELECT * FROM o WHERE c.f = \"#\".c.id)"
    );
}
