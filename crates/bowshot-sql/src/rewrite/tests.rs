//! What statements are rewritten into.

mod around;
mod catalog;
mod windows;

use super::{MARK, Source, statement};
use crate::{Dialect, DialectName, Parsed, parse};

fn rewritten(sql: &str) -> String {
    rewritten_in(sql, DialectName::Ansi)
}

pub(super) fn rewritten_in(sql: &str, dialect: DialectName) -> String {
    let mut parsed = parse(sql, Dialect::new(dialect), 50).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let Some(Parsed::Statement(mut parsed)) = parsed.pop() else { unreachable!("it is one statement") };
    match statement(&mut parsed, Source { text: sql, dialect }) {
        Ok(()) => parsed.to_string().replace(MARK, "#").replace('\u{2}', "@"),
        Err(error) => format!("{error}"),
    }
}

fn statement_of(sql: &str) -> sqlparser::ast::Statement {
    let mut parsed =
        parse(sql, Dialect::new(DialectName::Ansi), 50).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let Some(Parsed::Statement(parsed)) = parsed.pop() else { unreachable!("it is one statement") };
    *parsed
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
        (
            "SELECT a FROM t WHERE a NOT LIKE ALL (ARRAY['a%', 'b%'])",
            "SELECT a FROM t WHERE (a NOT LIKE 'a%' AND a NOT LIKE 'b%')",
        ),
        (
            "SELECT a FROM t WHERE a NOT LIKE ANY (ARRAY['a%', 'b%'])",
            "SELECT a FROM t WHERE (a NOT LIKE 'a%' OR a NOT LIKE 'b%')",
        ),
        ("SELECT a FROM t WHERE a LIKE 'x!%' ESCAPE '!'", "SELECT a FROM t WHERE a LIKE 'x\\%'"),
        ("SELECT a FROM t WHERE a ISNULL AND b", "SELECT a FROM t WHERE a IS NULL AND b"),
        ("SELECT a FROM t WHERE a GLOB 'x?' OR b", "SELECT a FROM t WHERE ((a) ~ ('^(?s:x.)$')) OR b"),
        ("SELECT a glob FROM t", "SELECT a AS glob FROM t"),
        (
            "SELECT [x + 1 FOR x IN l IF x > 1] AS m FROM t",
            "SELECT list_transform(list_filter(l, (x) -> x > 1), (x) -> x + 1) AS m FROM t",
        ),
        (
            "SELECT (s).f AS f, l[1].g AS g, t.s.f AS h FROM t",
            "SELECT (s).'f' AS f, l[1].'g' AS g, t.s.f AS h FROM t",
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
            "SELECT * FROM t FOR TIMESTAMP AS OF TIMESTAMP '2026-01-31 12:00:00'",
            "SELECT * FROM \"@@2026-01-31 12:00:00@t\" AS \"t\"",
        ),
        ("SELECT * FROM t TIMESTAMP AS OF DATE '2026-01-31'", "SELECT * FROM \"@@2026-01-31@t\" AS \"t\""),
        (
            "SELECT * FROM table_changes('s.T', 3, '2026-01-31') WHERE a",
            "SELECT * FROM s.\"@changes@3\u{1e}@2026-01-31\u{1e}t\" AS \"table_changes\" WHERE a",
        ),
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
            "SELECT * FROM d, LATERAL (SELECT unnest((\"#\".d.b)) AS \"unnest\") AS u (u)",
        ),
        (
            "SELECT * FROM a ASOF JOIN b ON a.k = b.k AND a.t >= b.t",
            "SELECT * FROM a CROSS JOIN LATERAL (SELECT * FROM b WHERE (\"#\".a.k = b.k AND \"#\".a.t >= b.t) ORDER BY (b.t) DESC LIMIT 1) AS b",
        ),
        (
            "SELECT k FROM a ASOF JOIN b USING (k, t)",
            "SELECT k FROM a CROSS JOIN LATERAL (SELECT * EXCLUDE (k, t) FROM b WHERE \"#\".a.k = b.k AND \"#\".a.t >= b.t ORDER BY b.t DESC LIMIT 1) AS b",
        ),
        ("FROM t WHERE a > 1", "FROM t SELECT * WHERE a > 1"),
        ("SELECT a FROM (FROM t WHERE a = 1) q", "SELECT a FROM (FROM t SELECT * WHERE a = 1) q"),
        ("WITH x AS (FROM t) FROM x WHERE a", "WITH x AS (SELECT * FROM t) FROM x SELECT * WHERE a"),
        ("SELECT a FROM t EXCEPT FROM u WHERE a", "SELECT a FROM t EXCEPT FROM u SELECT * WHERE a"),
        ("DELETE FROM t WHERE a = 1", "DELETE FROM t WHERE a = 1"),
        ("TABLE s.t ORDER BY a LIMIT 1", "SELECT * FROM s.t ORDER BY a LIMIT 1"),
        ("CREATE TABLE u AS TABLE t", "CREATE TABLE u AS SELECT * FROM t"),
        ("SELECT a AS table FROM t", "SELECT a AS table FROM t"),
        ("SELECT a FROM t LIMIT NULL", "SELECT a FROM t"),
        (
            "SELECT a AS b FROM t ORDER BY b, 1 OFFSET 1 FETCH FIRST 2 ROWS WITH TIES",
            "SELECT a AS b FROM t QUALIFY CAST((rank() OVER (ORDER BY a, a)) AS BIGINT) <= ((1) + (2)) ORDER BY b, 1 OFFSET 1",
        ),
        (
            "SELECT a FROM t USING SAMPLE 5 ROWS",
            "SELECT a FROM (SELECT * FROM t ORDER BY random() LIMIT (5)) AS t",
        ),
        (
            "SELECT x FROM d CROSS JOIN LATERAL unnest(d.b) AS q(x)",
            "SELECT x FROM d CROSS JOIN LATERAL (SELECT unnest((\"#\".d.b)) AS \"unnest\") AS q (x)",
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
            "SELECT a FROM arch.m AS \"arch__m\" WHERE EXISTS (SELECT 1 AS \"1\" FROM m WHERE m.a = \"#\".\"arch__m\".a)",
        ),
        (
            "SELECT a FROM m WHERE EXISTS (SELECT 1 FROM arch.m WHERE m.a = 1)",
            "SELECT a FROM m WHERE EXISTS (SELECT 1 AS \"1\" FROM arch.m AS \"arch__m\" WHERE \"arch__m\".a = 1)",
        ),
        ("SELECT s.m.a FROM s.m", "SELECT s.m.a FROM s.m"),
        ("SELECT s.m.l[1] AS l FROM m, s.m", "SELECT \"s__m\".l[1] AS l FROM m, s.m AS \"s__m\""),
    ] {
        assert_eq!(rewritten(sql), expected);
    }
}

#[test]
fn tables_of_one_name_are_ambiguous_without_their_schema() {
    for sql in [
        "SELECT tbl.i FROM tbl, s1.tbl",
        "SELECT tbl.* FROM tbl, s1.tbl",
        "SELECT m.a FROM m JOIN arch.m ON m.a = arch.m.a",
        "SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM m, arch.m ORDER BY m.a)",
    ] {
        assert!(rewritten(sql).contains("is ambiguous"), "{sql}");
    }
}

#[test]
fn columns_of_tables_around_are_no_fields() {
    for (sql, expected) in [
        ("SELECT c.id FROM c", "SELECT c.id FROM c"),
        (
            "SELECT a FROM c WHERE c.id IN (SELECT o.c FROM o)",
            "SELECT a FROM c WHERE c.id IN (SELECT o.c FROM o)",
        ),
        (
            "SELECT a FROM c WHERE EXISTS (SELECT * FROM o WHERE o.c = c.id)",
            "SELECT a FROM c WHERE EXISTS (SELECT * FROM o WHERE o.c = #.c.id)",
        ),
        (
            "SELECT a FROM c WHERE EXISTS (SELECT * FROM o WHERE EXISTS (SELECT * FROM p WHERE p.o = o.id AND c.id = 1))",
            "SELECT a FROM c WHERE EXISTS (SELECT * FROM o WHERE EXISTS (SELECT * FROM p WHERE p.o = #.o.id AND #.c.id = 1))",
        ),
        (
            "SELECT a FROM s.c WHERE EXISTS (SELECT * FROM o WHERE c.id = s.c.d AND c.f.g = c.l[1])",
            "SELECT a FROM s.c WHERE EXISTS (SELECT * FROM o WHERE #.s.c.id = #.s.c.d AND #.s.c.f.'g' = #.s.c.l[1])",
        ),
        // A query in FROM sees what stands before it with LATERAL alone, and one of WITH no table of its query.
        ("SELECT * FROM c, (SELECT c.x FROM o) q", "SELECT * FROM c, (SELECT c.x FROM o) q"),
        (
            "SELECT * FROM c, LATERAL (SELECT c.x FROM o) q",
            "SELECT * FROM c, LATERAL (SELECT #.c.x FROM o) q",
        ),
        (
            "WITH w AS (SELECT c.x FROM o) SELECT a FROM w, c",
            "WITH w AS (SELECT c.x FROM o) SELECT a FROM w, c",
        ),
        (
            "SELECT a FROM c ORDER BY (SELECT o.x FROM o WHERE o.c = c.id)",
            "SELECT a FROM c ORDER BY (SELECT o.x FROM o WHERE o.c = #.c.id)",
        ),
        (
            "UPDATE c SET a = (SELECT o.x FROM o WHERE o.c = c.id) WHERE c.id > 1",
            "UPDATE c SET a = (SELECT o.x FROM o WHERE o.c = #.c.id) WHERE c.id > 1",
        ),
        (
            "DELETE FROM c USING d WHERE EXISTS (SELECT * FROM o WHERE o.c = c.id AND o.d = d.id)",
            "DELETE FROM c USING d WHERE EXISTS (SELECT * FROM o WHERE o.c = #.c.id AND o.d = #.d.id)",
        ),
        (
            "INSERT INTO c SELECT c.x FROM o ON CONFLICT (id) DO UPDATE SET a = (SELECT o.x FROM o WHERE o.c = c.id)",
            "INSERT INTO c SELECT c.x FROM o ON CONFLICT(id) DO UPDATE SET a = (SELECT o.x FROM o WHERE o.c = #.c.id)",
        ),
    ] {
        assert_eq!(rewritten(sql).replace('"', ""), expected);
    }
}

#[test]
fn a_field_is_one_after_all() {
    let sql = "SELECT a FROM c WHERE EXISTS (SELECT * FROM o WHERE c.f = c.id)";
    let mut parsed = statement_of(sql);
    super::around::qualify(&mut parsed);
    assert!(super::inside(&mut parsed, "c", "f"));
    assert!(!super::inside(&mut parsed, "c", "f"));
    assert_eq!(
        parsed.to_string().replace(MARK, "#"),
        "SELECT a FROM c WHERE EXISTS (SELECT * FROM o WHERE c.f = \"#\".c.id)"
    );
}

#[test]
fn tables_of_other_schemas_are_strangers() {
    let defaults = super::Defaults { catalog: "bowshot", schema: "main" };
    for (sql, expected) in [
        ("SELECT main.m.a, bowshot.main.m.b FROM m", "SELECT main.m.a, bowshot.main.m.b FROM m"),
        ("SELECT arch.m.a, bowshot.arch.m.b FROM arch.m", "SELECT arch.m.a, bowshot.arch.m.b FROM arch.m"),
        ("SELECT pg_catalog.pg_class.oid FROM pg_class", "SELECT pg_catalog.pg_class.oid FROM pg_class"),
        ("SELECT x.m.f FROM m, x", "SELECT x.m.f FROM m, x"),
        ("SELECT arch.m.a FROM m", "SELECT arch.'m'.'a' FROM m"),
        ("SELECT arch.m.a FROM arch.n AS m", "SELECT arch.'m'.'a' FROM arch.n AS m"),
        ("SELECT other.main.m.a FROM m", "SELECT other.'main'.'m'.'a' FROM m"),
        (
            "SELECT a FROM arch.m WHERE EXISTS (SELECT 1 FROM m WHERE m.a = arch.m.a)",
            "SELECT a FROM arch.m WHERE EXISTS (SELECT 1 FROM m WHERE m.a = arch.m.a)",
        ),
    ] {
        let mut parsed = statement_of(sql);
        super::keep_strangers_out(&mut parsed, defaults);
        assert_eq!(parsed.to_string(), expected);
    }
    let mut parsed = statement_of("SELECT arch.m.a FROM m");
    super::keep_strangers_out(&mut parsed, defaults);
    assert_eq!(super::stranger(&parsed, "arch"), Some(("arch.m".to_owned(), (1, 8))));
    assert_eq!(super::stranger(&parsed, "m"), None);
}

#[test]
fn lists_of_columns_are_made_of_what_is_there() {
    let columns = [(Some("t".to_owned()), "v".to_owned()), (Some("t".to_owned()), "Ab".to_owned())];
    for (sql, expected) in [
        ("SELECT COLUMNS(*) FROM t", "SELECT \"t\".\"v\" AS \"v\", \"t\".\"Ab\" AS \"Ab\" FROM t"),
        ("SELECT max(COLUMNS('^A')) FROM t", "SELECT max(\"t\".\"Ab\") AS \"max(Ab)\" FROM t"),
        ("SELECT * LIKE 'A%' FROM t", "SELECT \"t\".\"Ab\" AS \"Ab\" FROM t"),
        ("SELECT COLUMNS(* EXCLUDE (v)) FROM t", "SELECT \"t\".\"Ab\" AS \"Ab\" FROM t"),
        ("SELECT COLUMNS('^v') + 1 AS x FROM t", "SELECT \"t\".\"v\" + 1 AS x FROM t"),
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

#[test]
fn numbers_and_signs_are_those_of_postgres() {
    for (sql, expected) in [
        (
            "SELECT 0xFF AS a, 0b1_01 AS b, 0o17 AS c, 0XA AS d, x'FF' AS e",
            "SELECT 255 AS a, 5 AS b, 15 AS c, 10 AS d, X'FF' AS e",
        ),
        ("SELECT 0 b, 0x_FF_FF AS c, -0x10 AS d", "SELECT 0 AS b, 65535 AS c, -16 AS d"),
        ("SELECT -2^2 AS a", "SELECT (power((-2), (2))) AS a"),
        ("SELECT -a::int AS a, - 5 % 3 AS b", "SELECT -a::INT AS a, -5 % 3 AS b"),
        ("SELECT ~5 # 3 AS a, ~5 + 1 AS b", "SELECT (-1 - (5)) # 3 AS a, (-1 - (5 + 1)) AS b"),
        ("SELECT U&'\\0041b' AS a, N'c' AS b", "SELECT 'Ab' AS a, 'c' AS b"),
        ("SELECT 'a'\n  'b' AS a", "SELECT 'ab' AS a"),
    ] {
        assert_eq!(rewritten(sql), expected, "{sql}");
    }
    for number in ["0b12", "0o8", "0x", "0b1__0", "0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"] {
        let refused = parse(&format!("SELECT {number}"), Dialect::new(DialectName::Ansi), 50);
        let expected = format!("syntax error: `{number}` is no number");
        assert_eq!(refused.expect_err(number).to_string(), expected);
    }
}

#[test]
fn escapes_of_like_are_backslashes() {
    for (sql, expected) in [
        ("SELECT a FROM t WHERE a LIKE 'a!%' ESCAPE '!'", "SELECT a FROM t WHERE a LIKE 'a\\%'"),
        (
            "SELECT a FROM t WHERE a NOT ILIKE b ESCAPE '!'",
            "SELECT a FROM t WHERE (NOT ilike_escape((a), (b), ('!')))",
        ),
        ("SELECT a FROM t WHERE a LIKE b ESCAPE '\\'", "SELECT a FROM t WHERE a LIKE b"),
        ("SELECT a FROM t WHERE a LIKE 'b' ESCAPE 'xy'", "`'xy'` is no escape character; name one character"),
        ("SELECT a FROM t WHERE a LIKE 'b!' ESCAPE '!'", "the pattern `b!` ends with its escape character"),
    ] {
        assert_eq!(rewritten(sql), expected, "{sql}");
    }
}

#[test]
fn operators_of_mysql_have_its_meaning() {
    for (sql, expected) in [
        (
            "SELECT 7 / a AS b FROM t",
            "SELECT (CAST((7) AS DOUBLE) / nullif(CAST((a) AS DOUBLE), 0)) AS b FROM t",
        ),
        ("SELECT 7 DIV a AS b FROM t", "SELECT (div((7), nullif((a), 0))) AS b FROM t"),
        ("SELECT a + 1 AS b FROM t", "SELECT a + CAST((1) AS BIGINT) AS b FROM t"),
        (
            "SELECT a + INTERVAL 1 MONTH AS b FROM t",
            "SELECT (date_plus((a), (INTERVAL '1 months'))) AS b FROM t",
        ),
        (
            "SELECT a + INTERVAL 1 HOUR AS b FROM t",
            "SELECT a + INTERVAL '3600000000000 nanoseconds' AS b FROM t",
        ),
        (
            "SELECT DATE_SUB(a, INTERVAL b DAY) AS b FROM t",
            "SELECT date_plus((a), -(((b) * INTERVAL '1 days'))) AS b FROM t",
        ),
        (
            "SELECT LEAST(a, c) AS b FROM t",
            "SELECT CASE WHEN (a) IS NULL OR (c) IS NULL THEN NULL ELSE least((a), (c)) END AS b FROM t",
        ),
        ("SELECT LENGTH(a) AS b FROM t", "SELECT octet_length((a)) AS b FROM t"),
        (
            "SELECT LEFT(a, -1) AS b FROM t",
            "SELECT left((a), CASE WHEN (-1) < 0 THEN 0 ELSE (-1) END) AS b FROM t",
        ),
        ("SELECT LEFT(a, 2) AS b FROM t", "SELECT LEFT(a, 2) AS b FROM t"),
        ("SELECT 1 + '1x' AS b", "SELECT CAST((1) AS BIGINT) + CAST((1) AS BIGINT) AS b"),
        (
            "SELECT '2024-01-31' + INTERVAL 1 DAY AS b",
            "SELECT (date_plus(CAST(('2024-01-31') AS DATE), (INTERVAL '1 days'))) AS b",
        ),
        (
            "SELECT a + INTERVAL '1:30' MINUTE_SECOND AS b FROM t",
            "SELECT a + INTERVAL '90000000000 nanoseconds' AS b FROM t",
        ),
        ("SELECT @x := a AS b, @x + 1 AS c FROM t", "SELECT (a) AS b, (a) + CAST((1) AS BIGINT) AS c FROM t"),
        (
            "SELECT a FROM t ORDER BY a, b DESC, c NULLS LAST",
            "SELECT a FROM t ORDER BY a NULLS FIRST, b DESC NULLS LAST, c NULLS LAST",
        ),
        (
            "SELECT sum(a) OVER (PARTITION BY b ORDER BY c) AS b FROM t",
            "SELECT sum(a) OVER (PARTITION BY b ORDER BY c NULLS FIRST) AS b FROM t",
        ),
        ("INSERT INTO t VALUE (1)", "INSERT INTO t VALUES (1)"),
        ("SELECT a FROM t LOCK IN SHARE MODE", "SELECT a FROM t FOR SHARE"),
        ("SELECT a FROM t USE INDEX (k)", "SELECT a FROM t USE INDEX (k)"),
    ] {
        assert_eq!(rewritten_in(sql, DialectName::MySql), expected, "{sql}");
    }
}

#[test]
fn some_rows_are_updated_in_mysql_alone() {
    let sql = "UPDATE t SET a = 1 ORDER BY b LIMIT 2";
    let expected = "UPDATE t SET a = 1 ORDER BY b NULLS FIRST LIMIT 2";
    assert_eq!(rewritten_in(sql, DialectName::MySql), expected);
    assert!(rewritten(sql).starts_with("UPDATE has ORDER BY and LIMIT in dialect `mysql` alone"));
}

#[test]
fn states_are_written_out_and_read_only() {
    for (sql, says) in [
        ("SELECT * FROM t FOR VERSION AS OF ?", "cannot be a parameter"),
        ("SELECT * FROM t FOR TIMESTAMP AS OF $1", "cannot be a parameter"),
        ("SELECT * FROM t FOR TIMESTAMP AS OF now()", "is no point in time that is written out"),
        ("SELECT * FROM t FOR TIMESTAMP AS OF '\u{2}x'", "is no point in time that is written out"),
        ("DELETE FROM s.t FOR VERSION AS OF 1", "an earlier state of `s.t` cannot be changed"),
        ("UPDATE t VERSION AS OF 1 SET a = 1", "an earlier state of `t` cannot be changed"),
        (
            "MERGE INTO t VERSION AS OF 1 USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
            "an earlier state of `t` cannot be changed",
        ),
    ] {
        let error = rewritten(sql);
        assert!(error.contains(says), "{sql}: {error}");
    }
}

/// Windows are printed over several lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(").replace(" )", ")")
}
