//! What stands in a subquery and belongs to the query around it, and operators that are read as others.

use super::{DialectName, rewritten, rewritten_in};

#[test]
fn aggregates_of_a_query_around_are_columns_of_its_groups() {
    for (sql, expected) in [
        (
            "SELECT g FROM a GROUP BY g HAVING NOT EXISTS (SELECT 1 FROM b WHERE b.y = max(a.x))",
            "SELECT \"__groups_1\".\"g\" AS \"g\" FROM (SELECT g AS \"g\", max(a.x) AS \"__aggregate_0\" FROM a \
             GROUP BY g) AS \"__groups_1\" WHERE NOT EXISTS (SELECT 1 AS \"1\" FROM b WHERE b.y = \
             \"\u{1}\".\"__groups_1\".\"__aggregate_0\")",
        ),
        // One of columns inside is not one around.
        (
            "SELECT g FROM a GROUP BY g HAVING g IN (SELECT max(b.g) FROM b WHERE b.g = a.g)",
            "SELECT g FROM a GROUP BY g HAVING g IN (SELECT max(b.g) AS \"max(b.g)\" FROM b WHERE b.g = \
             \"\u{1}\".a.g)",
        ),
    ] {
        assert_eq!(rewritten(sql), expected.replace('\u{1}', "#"), "{sql}");
    }
}

#[test]
fn operators_are_told_from_what_looks_like_them() {
    for (sql, expected) in [
        (
            "SELECT a FROM t WHERE a ? 'x' OR a ?| b AND c = ?",
            "SELECT a FROM t WHERE a ? 'x' OR a ?| b AND c = $1",
        ),
        (
            "SELECT a FROM t WHERE a NOT IN ((SELECT b FROM u), 1)",
            "SELECT a FROM t WHERE a NOT IN ((SELECT b FROM u), 1)",
        ),
        ("SELECT a FROM t WHERE a IN ((SELECT b FROM u))", "SELECT a FROM t WHERE a IN ((SELECT b FROM u))"),
        ("SELECT a FROM t WHERE a && b", "SELECT a FROM t WHERE (array_has_any((a), (b)))"),
    ] {
        assert_eq!(rewritten(sql), expected, "{sql}");
    }
    let mysql = "SELECT a FROM t WHERE a DIV 2 + 1 = a MOD 3 AND a NOT REGEXP 'x' GROUP BY a WITH ROLLUP";
    let expected = "SELECT a FROM t WHERE (div((a), nullif((2), 0))) + CAST((1) AS BIGINT) = ((a) % nullif((3), 0)) \
                    AND ((a) !~ ('x')) GROUP BY ROLLUP (a)";
    assert_eq!(rewritten_in(mysql, DialectName::MySql), expected);
}

#[test]
fn forms_become_those_that_the_planner_knows() {
    for (sql, expected) in [
        (
            "SELECT a FROM t WHERE (a, b) = (SELECT c, d FROM u)",
            "SELECT a FROM t WHERE ((SELECT (a = __row.__field_0 AND b = __row.__field_1) FROM (SELECT c, d FROM u) \
             AS __row (__field_0, __field_1)))",
        ),
        ("SELECT a FROM t WHERE ARRAY[1, a] = [1, 2]", "SELECT a FROM t WHERE make_array(1, a) = [1, 2]"),
        (
            "SELECT a FROM t GROUP BY ROLLUP ((a, b), c)",
            "SELECT a FROM t GROUP BY GROUPING SETS ((a, b, c), (a, b), ())",
        ),
        (
            "SELECT a FROM t GROUP BY GROUPING SETS (ROLLUP (a, b), (c), CUBE (a))",
            "SELECT a FROM t GROUP BY GROUPING SETS ((a, b), (a), (), (c), (a), ())",
        ),
        ("INSERT INTO t (a) VALUES (1)", "INSERT INTO t (a) VALUES (1)"),
    ] {
        assert_eq!(rewritten(sql), expected, "{sql}");
    }
    let set = rewritten_in("INSERT INTO t SET k = 3, b = \"three\"", DialectName::MySql);
    assert_eq!(set, "INSERT INTO t (k, b) VALUES (3, 'three')");
    let cast = rewritten_in("SELECT 1::bigint, '1'::timestamp(3) with time zone", DialectName::Postgres);
    assert_eq!(cast, "SELECT 1::BIGINT AS \"int8\", '1'::TIMESTAMP(3) WITH TIME ZONE AS \"timestamptz\"");
}

#[test]
fn rows_are_looked_for_in_rows_that_are_looked_for() {
    let sql = "SELECT a FROM t WHERE (a, b) IN (SELECT c, d FROM u WHERE (c, d) NOT IN (SELECT e, f FROM v))";
    let text = rewritten(sql);
    assert_eq!(text.matches("FROM u").count(), 2, "{text}");
    assert_eq!(text.matches("FROM v").count(), 4, "{text}");
}

#[test]
fn not_belongs_to_what_is_behind_exists_as_well() {
    for (sql, expected) in [
        (
            "SELECT a FROM t WHERE NOT EXISTS (SELECT b FROM t) IS NULL AND c",
            "SELECT a FROM t WHERE NOT (EXISTS (SELECT b FROM t) IS NULL) AND c",
        ),
        ("SELECT a FROM t WHERE a NOT RLIKE 'x'", "SELECT a FROM t WHERE ((a) !~ ('x'))"),
        (
            "SELECT a FROM t WHERE a IS NOT TRUE OR b",
            "SELECT a FROM t WHERE ((a) IS DISTINCT FROM true) OR b",
        ),
        ("SELECT a FROM t WHERE CONVERT(a, CHAR) = b", "SELECT a FROM t WHERE CAST(a AS TEXT) = b"),
    ] {
        assert_eq!(rewritten(sql), expected, "{sql}");
    }
}

#[test]
fn an_aggregate_in_an_aggregate_of_its_query_is_refused() {
    let sql = "SELECT (SELECT min((SELECT max(b.y) FROM c)) FROM a CROSS JOIN b) FROM d";
    assert!(rewritten(sql).contains("within another one"), "{}", rewritten(sql));
}
