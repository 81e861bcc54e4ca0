"""Hostile inputs of another kind: texts within texts, which are read again by a parser of their own, and go deep there. Each is a
name and a text, or several that one session sends."""


def around(opening, core, closing, times):
    return opening * times + core + closing * times


TYPES = {
    "lists": around("List(", "Int8", ")", 20_000),
    "lists that do not end": "List(" * 20_000,
    "dictionaries": around("Dictionary(Int8, ", "Utf8", ")", 5_000),
    "structs": around('Struct("a": ', "Utf8", ")", 5_000),
    "sized lists": around("FixedSizeList(1 x ", "Utf8", ")", 5_000),
}


def types():
    for name, kind in TYPES.items():
        yield f"arrow_cast to {name}", f"SELECT arrow_cast(NULL, '{kind}')"
    yield "arrow_try_cast", f"SELECT arrow_try_cast(NULL, '{TYPES['lists']}')"
    yield "cast to lists", "SELECT CAST(NULL AS INT" + "[]" * 5_000 + ")"
    yield "cast to structs", f"SELECT CAST(NULL AS {around('STRUCT<a ', 'INT', '>', 5_000)})"
    yield "cast to maps", f"SELECT NULL::{around('MAP(INT, ', 'INT', ')', 5_000)}"
    yield "list in a text", f"SELECT '{around('[', '1', ']', 5_000)}'::INT" + "[]" * 30
    yield "array in a text", "SELECT '" + "{" * 100_000 + "'::INT[]"
    yield "interval in a text", "SELECT INTERVAL '" + "1 day " * 100_000 + "'"
    yield "intervals", "SELECT " + "INTERVAL " * 3_000 + "'1 day'"
    yield "a long number", "SELECT '" + "9" * 100_000 + "'::DECIMAL(38,0)"


def definitions():
    deep, long = around("(", "1", ")", 5_000), "1 + " * 20_000 + "1"
    for name, value in (("deep", deep), ("long", long)):
        yield f"default, {name}", f"CREATE TABLE hostile_{name}_1 (a INT DEFAULT {value})"
        yield f"check, {name}", f"CREATE TABLE hostile_{name}_2 (a INT CHECK (a > {value}))"
        yield f"generated, {name}", f"CREATE TABLE hostile_{name}_3 (a INT, b INT GENERATED ALWAYS AS (a + {value}) STORED)"
        yield f"default afterwards, {name}", f"ALTER TABLE sink ADD COLUMN z INT DEFAULT {value}"
        yield f"check afterwards, {name}", f"ALTER TABLE sink ADD CONSTRAINT {name} CHECK (a > {value})"
    yield "type afterwards", f"ALTER TABLE sink ALTER COLUMN a TYPE {around('STRUCT<a ', 'INT', '>', 3_000)}"


def documents():
    for name, text in (("arrays", around("[", "1", "]", 100_000)), ("objects", around('{"a":', "1", "}", 50_000))):
        for function in ("json_valid({})", "{}::JSON", "{}::JSON -> 'a'", "json_pretty({})", "{}::JSON @> '[1]'", "json_merge_patch({0}, {0})"):
            yield f"{name} in {function}", "SELECT " + function.format(f"'{text}'")
    paths = ("$" + ".a" * 100_000, "$" + "[0]" * 100_000, "$" + "..a" * 50_000, f"$[?({around('(', '@.a', ')', 20_000)})]", "$" + "[?(@" * 5_000)
    for number, path in enumerate(paths):
        for function in ("json_extract", "json_value", "jsonb_path_query_first"):
            yield f"path {number} of {function}", f"SELECT {function}('{{\"a\": 1}}', '{path}')"
    yield "path of names", "SELECT '{}'::JSON #> '{" + "a," * 50_000 + "a}'"


def patterns():
    for number, pattern in enumerate(
        (
            around("(", "a", ")", 20_000),
            around("(?:", "a", ")*", 10_000),
            "[[" * 20_000,
            "(" + "a|" * 50_000 + "b)*",
            "(a{1,1000}){1,1000}",
            "(?i)" * 20_000 + "a",
        )
    ):
        for text in ("regexp_like('a', '{}')", "'a' ~ '{}'", "regexp_replace('a', '{}', 'b')", "'a' SIMILAR TO '{}'"):
            yield f"pattern {number} in {text}", "SELECT " + text.format(pattern)
    yield "pattern of a date", "SELECT to_timestamp('2020', '" + "YYYY" * 50_000 + "')"
    yield "pattern to write", "SELECT strftime(now(), '" + "%Y" * 100_000 + "')"
    yield "pattern of names", "SHOW TABLES LIKE '" + "%_" * 50_000 + "'"


def conditions():
    wheres = {
        "deep": around("(", "true", ")", 5_000),
        "nots": "NOT " * 5_000 + "true",
        "ands": "true AND " * 20_000 + "true",
        "sums": "1 + " * 5_000 + "1 = 2",
        "texts": "name = '" + "'' " * 20_000 + "'",
        "exists": around("EXISTS (SELECT 1 WHERE ", "true", ")", 100),
    }
    for shown in ("TABLES", "VARIABLES", "COLUMNS FROM numbers", "FUNCTIONS", "DATABASES"):
        for name, condition in wheres.items():
            yield f"SHOW {shown}, {name}", f"SHOW {shown} WHERE {condition}"


def around_statements():
    for form in ("indent", "tree", "json", "graphviz", "x" * 100_000):
        yield f"EXPLAIN {form[:9]}", f"EXPLAIN (FORMAT {form}) SELECT {'1 + ' * 900}1"
        yield f"EXPLAIN {form[:9]} of queries", f"EXPLAIN FORMAT {form} SELECT * FROM {around('(SELECT * FROM ', 'numbers', ') t', 40)}"
    yield "EXPLAIN of a format that is deep", f"EXPLAIN (FORMAT {around('(', 'tree', ')', 20_000)}) SELECT 1"
    for words, times in (("EXPLAIN ", 20_000), ("EXPLAIN ANALYZE ", 2_000), ("SUMMARIZE ", 3_000), ("DESCRIBE ", 3_000)):
        yield f"{words}many times", words * times + "SELECT 1"
    yield "PREPARE many times", "PREPARE p AS " * 5_000 + "SELECT 1"
    yield "PREPARE deep", f"PREPARE p AS SELECT {around('(', '$1', ')', 5_000)}"
    yield "PREPARE long", "PREPARE p AS SELECT $1" + " + $1" * 20_000
    yield "PREPARE with types", "PREPARE p (INT" + "[]" * 5_000 + ") AS SELECT $1"
    yield "EXECUTE deep", ["PREPARE p AS SELECT $1", f"EXECUTE p({around('(', '1', ')', 5_000)})"]
    yield "EXECUTE long", ["PREPARE p AS SELECT $1", f"EXECUTE p({'1 + ' * 20_000}1)"]
    yield "EXECUTE of itself", ["PREPARE p AS EXECUTE p", "EXECUTE p"]
    yield "SET deep", f"SET application_name = {around('(', '1', ')', 5_000)}"
    yield "KILL deep", f"KILL {around('(', '1', ')', 5_000)}"
    yield "statements", "SELECT 1;" * 20_000
    yield "semicolons", ";" * 100_000


def views():
    def over(prefix, count, query):
        below = ["numbers", *(f"hostile_{prefix}{number}" for number in range(count))]
        made = [f"CREATE VIEW {view} AS {query.format(before)}" for before, view in zip(below, below[1:], strict=False)]
        return [*made, f"SELECT count(*) FROM {below[-1]}"]

    yield "views over views", over("v", 36, "SELECT a + 1 AS a FROM {}")
    yield "views doubled", over("w", 36, "SELECT x.a FROM {0} x, {0} y")
    yield "views in their columns", over("x", 36, "SELECT a + a AS a FROM {}")


GROUPS = (types, definitions, documents, patterns, conditions, around_statements, views)
