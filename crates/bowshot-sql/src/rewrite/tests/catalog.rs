//! What the clients of PostgreSQL say about its catalog.

use super::rewritten_in;
use crate::DialectName::{Ansi, MySql, Postgres};

#[test]
fn numbers_of_things_are_shown_as_names_where_they_are_shown() {
    for (sql, expected) in [
        ("SELECT 't'::regclass", "regclass('t')"),
        ("SELECT $1::pg_catalog.regclass", "regclass($1)"),
        ("SELECT oid::regclass FROM c", "regclass_name(oid)"),
        ("SELECT oid::regtype::text FROM c", "regtype_name(oid)::TEXT"),
        ("SELECT 't'::regclass::pg_catalog.text", "regclass_name('t')::TEXT"),
        ("SELECT CAST(CAST(f(a) AS REGCLASS) AS OID) FROM c", "CAST(regclass(f(a)) AS OID)"),
        ("SELECT oid::regclass = 't' FROM c", "regclass(oid) = regclass('t')"),
        ("SELECT oid::regclass IN ('t', 'u') FROM c", "regclass(oid) IN (regclass('t'), regclass('u'))"),
        ("SELECT oid::regclass::text = 't' FROM c", "regclass_name(oid)::TEXT = 't'"),
        ("SELECT types::regtype[]::text[] FROM c", "regtype_names(types)::TEXT[]"),
        (
            "SELECT typinput = 'pg_catalog.array_in'::regproc FROM c",
            "typinput = regproc_name('pg_catalog.array_in')",
        ),
        ("SELECT typreceive <> 0 FROM c", "typreceive <> '-'"),
        ("SELECT typname[0] = '_' FROM c", "substr(typname, 1, 1) = '_'"),
        ("SELECT p.oid = t.typreceive FROM c", "p.oid = regproc(t.typreceive)"),
    ] {
        for dialect in [Ansi, Postgres] {
            let found = rewritten_in(sql, dialect);
            assert!(found.contains(&format!("SELECT {expected} AS")), "{sql}: {found}");
        }
    }
    assert_eq!(rewritten_in("SELECT a::regclass FROM t", MySql), "SELECT a::REGCLASS AS \"a\" FROM t");
}

#[test]
fn names_have_their_schema() {
    for (sql, expected) in [
        (
            "SELECT pg_catalog.version() AS v, 1::pg_catalog.int2 AS i, 'r'::\"char\" AS c, '1 2'::int2vector AS o",
            "SELECT version() AS v, 1::INT2 AS i, 'r'::TEXT AS c, '1 2'::SMALLINT[] AS o",
        ),
        (
            "SELECT a OPERATOR(pg_catalog.~) '^t$' COLLATE pg_catalog.default AS a FROM t",
            "SELECT a ~ '^t$' AS a FROM t",
        ),
        (
            "SELECT n FROM pg_catalog.generate_series(1, 3) AS s(n)",
            "SELECT n FROM generate_series(1, 3) AS s (n)",
        ),
        (
            "SELECT (information_schema._pg_expandarray(k)).n AS n, information_schema._pg_expandarray(k) AS k FROM t",
            "SELECT unnest(list_subscripts(k, 1)) AS n, unnest(pg_expanded_array(k)) AS k FROM t",
        ),
        (
            "SELECT tableoid, c.tableoid AS o FROM pg_class AS c",
            "SELECT regclass('pg_catalog.pg_class') AS tableoid, regclass('pg_catalog.pg_class') AS o FROM pg_class AS c",
        ),
        ("SELECT v FROM version() AS v", "SELECT v FROM (SELECT (version())) AS v (v)"),
    ] {
        assert_eq!(rewritten_in(sql, Postgres), expected, "{sql}");
    }
}

#[test]
fn arrays_are_texts() {
    for (sql, expected) in [
        ("SELECT '{1,2}'::int[] AS a", "SELECT ARRAY['1', '2']::INT[] AS a"),
        ("SELECT '{}'::pg_catalog.oid[] AS a", "SELECT ARRAY[]::oid[] AS a"),
        ("SELECT polroles = '{0}' AS a FROM p", "SELECT polroles = ARRAY['0']::BIGINT[] AS a FROM p"),
        (
            "SELECT ARRAY(SELECT a FROM t WHERE b = c ORDER BY 1) AS a FROM u",
            "SELECT coalesce((SELECT array_agg(a ORDER BY a) AS \"array\" FROM t WHERE b = c), make_array()) AS a FROM u",
        ),
        (
            "SELECT ARRAY(SELECT DISTINCT a FROM t) AS a",
            "SELECT coalesce((SELECT array_agg(\"element\") AS \"array\" FROM (SELECT DISTINCT a FROM t) AS \"elements\" (\"element\")), make_array()) AS a",
        ),
    ] {
        assert_eq!(rewritten_in(sql, Postgres), expected, "{sql}");
    }
    let found = rewritten_in("SELECT w <> ALL ('{a,b}') AS w FROM t", Postgres);
    assert!(found.contains("ARRAY['a', 'b']"), "{found}");
}
