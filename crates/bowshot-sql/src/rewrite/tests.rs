use super::{MARK, Source, statement};
use crate::{Dialect, DialectName, Parsed, parse};

fn rewritten(sql: &str) -> String {
    rewritten_in(sql, DialectName::Ansi)
}

fn rewritten_in(sql: &str, dialect: DialectName) -> String {
    let mut parsed = parse(sql, Dialect::new(dialect), 50).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let Some(Parsed::Statement(mut parsed)) = parsed.pop() else { unreachable!("it is one statement") };
    match statement(&mut parsed, Source { text: sql, dialect }) {
        Ok(()) => parsed.to_string().replace(MARK, "#").replace('\u{2}', "@"),
        Err(error) => format!("{error}"),
    }
}

#[test]
fn operators_bind_as_in_postgres() {
    for (sql, expected) in [
        (
            "SELECT a FROM t WHERE a IS NOT DISTINCT FROM b AND c",
            "SELECT a FROM t WHERE a IS NOT DISTINCT FROM b AND c",
        ),
        ("SELECT a FROM t WHERE j -> 'x' = 'y'", "SELECT a FROM t WHERE j -> 'x' = 'y'"),
        ("SELECT a FROM t WHERE a = 2^3 * 2", "SELECT a FROM t WHERE a = (power((2), (3))) * 2"),
        (
            "SELECT a FROM t WHERE a BETWEEN SYMMETRIC 2 AND 1 AND b",
            "SELECT a FROM t WHERE (a BETWEEN 2 AND 1 OR a BETWEEN 1 AND 2) AND b",
        ),
        ("SELECT a FROM t WHERE 'abc' SIMILAR TO 'a%'", "SELECT a FROM t WHERE (('abc') ~ ('^(?s:a.*)$'))"),
        (
            "SELECT a FROM t WHERE a LIKE ANY ('a%', 'b%')",
            "SELECT a FROM t WHERE (a LIKE 'a%' OR a LIKE 'b%')",
        ),
        ("SELECT a FROM t WHERE (a, b) = (1, 2)", "SELECT a FROM t WHERE (a = 1 AND b = 2)"),
        ("SELECT a FROM t WHERE (a, b) <= (1, 2)", "SELECT a FROM t WHERE (a < 1 OR a = 1 AND (b <= 2))"),
        (
            "SELECT a FROM t WHERE 4 = ANY ([1, NULL])",
            "SELECT a FROM t WHERE (quantified_any(('='), (4), ([1, NULL])))",
        ),
        ("SELECT a FROM t WHERE a = ANY (SELECT 1)", "SELECT a FROM t WHERE a = ANY(SELECT 1 AS \"1\")"),
        (
            "SELECT list_transform(l, x -> x + 1) AS m, j -> 'a' AS b FROM t",
            "SELECT list_transform(l, (x) -> x + 1) AS m, j -> 'a' AS b FROM t",
        ),
        ("SELECT current_user AS u, current_user() AS v", "SELECT current_user AS u, current_user AS v"),
    ] {
        assert_eq!(rewritten(sql), expected);
    }
}

#[test]
fn intervals_become_texts_of_whole_parts() {
    for (sql, expected) in [
        ("SELECT INTERVAL '1-2' YEAR TO MONTH AS a", "SELECT INTERVAL '14 months' AS a"),
        (
            "SELECT INTERVAL '3 days 04:05:06' AS a",
            "SELECT INTERVAL '3 days 14706000000000 nanoseconds' AS a",
        ),
        ("SELECT INTERVAL 3 DAY AS a", "SELECT INTERVAL '3 days' AS a"),
        ("SELECT -INTERVAL '1 year 2 days' AS a", "SELECT INTERVAL '-12 months -2 days' AS a"),
        ("SELECT '1 day ago'::interval AS a", "SELECT INTERVAL '-1 days' AS a"),
        ("SELECT CAST('P1Y' AS INTERVAL) AS a", "SELECT INTERVAL '12 months' AS a"),
        ("SELECT INTERVAL (n) DAY AS a FROM t", "SELECT (((n)) * INTERVAL '1 days') AS a FROM t"),
        ("SELECT make_interval(days => 3) AS a", "SELECT make_interval(0, 0, 0, 3) AS a"),
        (
            "SELECT INTERVAL 'x' AS a",
            "invalid input syntax for type interval: \"x\"; write it as in '1 year 2 months 3 days 04:05:06'",
        ),
    ] {
        assert_eq!(rewritten(sql), expected, "{sql}");
    }
}

#[test]
fn clauses_have_forms_that_are_planned() {
    for (sql, expected) in [
        ("TABLE t", "SELECT * FROM t"),
        ("FROM t", "SELECT * FROM t"),
        ("FROM t SELECT a", "FROM t SELECT a"),
        ("SELECT a FROM t FETCH FIRST 3 ROWS ONLY", "SELECT a FROM t LIMIT 3"),
        ("SELECT a FROM t GROUP BY a WITH ROLLUP", "SELECT a FROM t GROUP BY ROLLUP (a)"),
        ("SELECT a, b FROM t ORDER BY ALL", "SELECT a, b FROM t ORDER BY 1, 2"),
        (
            "WITH x AS MATERIALIZED (SELECT 1 AS a) SELECT * FROM x",
            "WITH x AS (SELECT 1 AS a) SELECT * FROM x",
        ),
        ("SELECT a FROM t SEMI JOIN u ON t.a = u.a", "SELECT a FROM t LEFT SEMI JOIN u ON t.a = u.a"),
        ("SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = $1 AND c = $2"),
        ("SELECT * FROM t FOR VERSION AS OF 3 WHERE a", "SELECT * FROM \"@3@t\" AS \"t\" WHERE a"),
        ("SELECT * FROM s.T VERSION AS OF 3 x", "SELECT * FROM s.\"@3@t\" x"),
        (
            "PIVOT t ON y IN (1, 2) USING sum(n) GROUP BY c",
            "SELECT * FROM (SELECT * EXCLUDE (y, n), sum(n) FILTER (WHERE (y) = (1)) AS \"1\", sum(n) FILTER (WHERE (y) = (2)) AS \"2\" FROM (SELECT c, y, n FROM t) GROUP BY ALL)",
        ),
        (
            "UNPIVOT t ON a, b INTO NAME n VALUE v",
            "SELECT * FROM (SELECT * EXCLUDE (a, b), 'a' AS n, a AS v FROM t WHERE a IS NOT NULL UNION ALL SELECT * EXCLUDE (a, b), 'b' AS n, b AS v FROM t WHERE b IS NOT NULL)",
        ),
        ("SELECT DISTINCT version AS of FROM f", "SELECT DISTINCT version AS of FROM f"),
        (
            "SELECT * FROM d, unnest(d.b) AS u",
            "SELECT * FROM d, LATERAL (SELECT unnest((d.b)) AS \"unnest\") AS u (u)",
        ),
        (
            "SELECT * FROM a ASOF JOIN b ON a.k = b.k AND a.t >= b.t",
            "SELECT * FROM a CROSS JOIN LATERAL (SELECT * FROM b WHERE (a.k = b.k AND a.t >= b.t) ORDER BY (b.t) DESC LIMIT 1) AS b",
        ),
    ] {
        assert_eq!(rewritten(sql), expected);
    }
}

#[test]
fn inner_queries_of_with_hide_outer_ones() {
    for (sql, expected) in [
        (
            "WITH x AS (SELECT a FROM t) SELECT * FROM (WITH x AS (SELECT * FROM x) SELECT x.a FROM x) q, x",
            "WITH x AS (SELECT a FROM t) SELECT * FROM (WITH \"x__1\" AS (SELECT * FROM x) SELECT x.a FROM \"x__1\" AS x) q, x",
        ),
        (
            "WITH x AS (SELECT a FROM t), y AS (SELECT a FROM x) SELECT * FROM y",
            "WITH x AS (SELECT a FROM t), y AS (SELECT a FROM x) SELECT * FROM y",
        ),
    ] {
        assert_eq!(rewritten(sql), expected);
    }
}

#[test]
fn tables_of_one_name_are_told_apart() {
    for (sql, expected) in [
        ("SELECT * FROM tbl, s1.tbl", "SELECT * FROM tbl, s1.tbl AS \"s1__tbl\""),
        (
            "DELETE FROM m USING arch.m WHERE m.a = arch.m.a",
            "DELETE FROM m USING arch.m AS \"arch__m\" WHERE m.a = \"arch__m\".a",
        ),
        (
            "SELECT a FROM arch.m WHERE EXISTS (SELECT 1 FROM m WHERE m.a = arch.m.a)",
            "SELECT a FROM arch.m AS \"arch__m\" WHERE EXISTS (SELECT 1 AS \"1\" FROM m WHERE m.a = \"arch__m\".a)",
        ),
        (
            "SELECT a FROM m WHERE EXISTS (SELECT 1 FROM arch.m WHERE m.a = 1)",
            "SELECT a FROM m WHERE EXISTS (SELECT 1 AS \"1\" FROM arch.m AS \"arch__m\" WHERE \"arch__m\".a = 1)",
        ),
        ("SELECT s.m.a FROM s.m", "SELECT s.m.a FROM s.m"),
    ] {
        assert_eq!(rewritten(sql), expected);
    }
}

#[test]
fn lists_of_columns_are_made_of_what_is_there() {
    let columns = [(Some("t".to_owned()), "v".to_owned()), (Some("t".to_owned()), "Ab".to_owned())];
    for (sql, expected) in [
        ("SELECT COLUMNS(*) FROM t", "SELECT \"t\".\"v\" AS \"v\", \"t\".\"Ab\" AS \"Ab\" FROM t"),
        ("SELECT max(COLUMNS('^A')) FROM t", "SELECT max(\"t\".\"Ab\") AS \"max(Ab)\" FROM t"),
        ("SELECT * RENAME (v AS w) FROM t", "SELECT \"t\".\"v\" AS \"w\", \"t\".\"Ab\" AS \"Ab\" FROM t"),
    ] {
        let mut parsed = parse(sql, Dialect::new(DialectName::Ansi), 50).expect("parses");
        let Some(Parsed::Statement(mut statement)) = parsed.pop() else {
            unreachable!("it is one statement")
        };
        let probe = super::probe(statement.as_mut()).expect("has a list");
        assert_eq!(probe.to_string(), "SELECT * FROM t");
        super::expand(statement.as_mut(), &columns).expect("fits");
        assert_eq!(statement.to_string(), expected);
        assert!(super::probe(statement.as_mut()).is_none());
    }
}

#[test]
fn calls_have_forms_that_are_planned() {
    for (sql, expected) in [
        ("SELECT struct_insert(s, b := 2) AS s FROM t", "SELECT struct_insert(s, 'b', 2) AS s FROM t"),
        ("SELECT json_object_keys(j) AS k FROM t", "SELECT unnest(json_keys(j)) AS k FROM t"),
        ("SELECT explode(l) AS k FROM t", "SELECT unnest(l) AS k FROM t"),
        (
            "SELECT rank(2) WITHIN GROUP (ORDER BY a) AS r FROM t",
            "SELECT hypothetical_rank(2) WITHIN GROUP (ORDER BY a) AS r FROM t",
        ),
        (
            "SELECT all_match(l, x -> x > 1) AS m FROM t",
            "SELECT (NOT (any_match(l, (x) -> NOT (x > 1)))) AS m FROM t",
        ),
        ("SELECT i FROM generate_series(1, 3) AS i", "SELECT i FROM generate_series(1, 3) AS i (i)"),
        ("SELECT generate_series(1, 3) AS i", "SELECT generate_series(1, 3) AS i"),
    ] {
        assert_eq!(rewritten(sql), expected);
    }
}
