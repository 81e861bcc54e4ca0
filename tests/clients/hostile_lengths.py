"""Hostile texts that are long rather than deep: what compares each part of a list with each other one, or looks for the end of each
from its beginning, holds a processor for minutes with four megabytes."""


def lists():
    yield "names compared", "SELECT (" + "a," * 1_000_000 + "a) FROM numbers"
    yield "arrows", "SELECT f(" + "a->1," * 500_000 + "a)"
    yield "rows in rows", "SELECT count(*) FROM numbers WHERE (a, b) IN (" + ",".join(["(1,2)"] * 300_000) + ")"
    yield "row in query", f"SELECT count(*) FROM numbers WHERE ({','.join(['a'] * 200_000)}) IN (SELECT 1)"
    yield "rows equal", f"SELECT ({','.join(['1'] * 300_000)}) = ({','.join(['1'] * 300_000)})"
    yield "like any", "SELECT count(*) FROM numbers WHERE a::VARCHAR LIKE ANY (" + ",".join(["'x'"] * 300_000) + ")"
    yield "concat", "SELECT concat(" + "a," * 1_000_000 + "a) FROM numbers"
    yield "concat in MySQL", ("SET dialect = 'mysql'", "SELECT concat(" + "a," * 10_000 + "a) FROM numbers")
    yield "least in MySQL", ("SET dialect = 'mysql'", "SELECT least(" + "a," * 300_000 + "a) FROM numbers")
    yield "unpivot", "SELECT count(*) FROM numbers UNPIVOT (v FOR k IN (" + ",".join(f"c{i}" for i in range(20_000)) + "))"
    yield "pivot", "SELECT * FROM numbers PIVOT (" + ",".join(f"sum(a) AS s{i}" for i in range(2_000)) + " FOR b IN (" + ",".join(
        map(str, range(50_000))
    ) + "))"
    yield "windows named", "SELECT 1 WINDOW " + ",".join(f"w{i} AS ()" for i in range(200_000))
    yield "exclusions", "SELECT " + "rows exclude ties) " * 150_000
    yield "renamed", "SELECT * RENAME (" + ",".join(f"x{i} AS y{i}" for i in range(100_000)) + ") FROM numbers"


def definitions():
    yield "creations", "create " * 500_000
    yield "creations and comments", "create/*" * 400_000
    yield "defaults", "CREATE TABLE t (a INT) " + "DEFAULT " * 450_000
    yield "properties", "CREATE TABLE t (a INT) " + "PROPERTIES(" * 350_000
    yield "types open", "CREATE TABLE t (" + "a ARRAY(" * 450_000
    yield "types closed elsewhere", "CREATE TABLE t (" + "a ARRAY(" * 450_000 + "]"
    yield "serials", "CREATE TABLE t (" + ",".join(f"a{i} SERIAL" for i in range(200_000)) + ")"
    yield "long key", "CREATE TABLE t (a INT, PRIMARY KEY (" + ",".join(f"c{i}" for i in range(200_000)) + "))"
    yield "wide key", "CREATE TABLE t ({0}, PRIMARY KEY ({1}))".format(
        ",".join(f"c{i} INT" for i in range(100_000)), ",".join(f"c{i}" for i in range(100_000))
    )
    columns = ",".join(f"c{i} INT" for i in range(9_000))
    yield "checks of columns", f"CREATE TABLE t ({columns}, " + ",".join(["CHECK (c1>0)"] * 100_000) + ")"
    yield "unique keys", "CREATE TABLE t (a INT, " + ",".join(["UNIQUE (a)"] * 100_000) + ")"
    yield "references", "CREATE TABLE t (a INT, " + ",".join(["FOREIGN KEY (a) REFERENCES u (b) NOT ENFORCED"] * 50_000) + ")"
    yield "changes", "ALTER TABLE many " + ",".join(["ALTER a DROP DEFAULT"] * 150_000)
    yield "merge", "MERGE INTO sink USING numbers ON sink.a = numbers.a " + "WHEN MATCHED THEN DELETE " * 150_000
    yield "external", "CREATE EXTERNAL TABLE t ({0}) STORED AS CSV PARTITIONED BY ({1}) LOCATION 'x.csv'".format(
        ",".join(f"c{i} INT" for i in range(150_000)), ",".join(f"c{i}" for i in reversed(range(150_000)))
    )


GROUPS = [lists, definitions]
