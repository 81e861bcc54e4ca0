"""Hostile inputs by kind. Each is a name and what a client sends: a text, or a function of a server."""

import socket

import pyarrow as pa
import pyarrow.flight as flight

import hostile_lengths
import hostile_texts
from durable import Database


def doubled(times, step):
    ctes = ["c0 AS (SELECT 1 AS x)"] + [f"c{i} AS ({step.format(before=f'c{i - 1}')})" for i in range(1, times + 1)]
    return f"WITH {', '.join(ctes)} SELECT count(*) FROM c{times}"


def joins(count, step):
    return "SELECT count(*) FROM numbers n0 " + " ".join(step.format(i=i, before=i - 1) for i in range(1, count))


def planning():
    yield "cte cross joined 60", doubled(60, "SELECT a.x FROM {before} a, {before} b")
    yield "cte united 60", doubled(60, "SELECT x FROM {before} UNION ALL SELECT x FROM {before}")
    yield "cte in subqueries 60", doubled(60, "SELECT (SELECT max(x) FROM {before}) + (SELECT min(x) FROM {before}) AS x")
    yield "cte in IN 40", doubled(40, "SELECT x FROM {before} WHERE x IN (SELECT x FROM {before})")
    yield "cte doubles an expression 60", doubled(60, "SELECT x + x AS x FROM {before}")
    yield "cte doubles a text 40", doubled(40, "SELECT concat(x::VARCHAR, x::VARCHAR) AS x FROM {before}")
    for size in (13, 20, 40, 60):
        columns = ", ".join(["a"] * size)
        yield f"cube {size}", f"SELECT count(*) FROM numbers GROUP BY CUBE ({columns})"
    yield "rollups multiplied", "SELECT count(*) FROM numbers GROUP BY " + ", ".join(["ROLLUP (a, b, a, b)"] * 8)
    yield "grouping sets 5000", "SELECT count(*) FROM numbers GROUP BY GROUPING SETS (" + ", ".join(["(a)"] * 5000) + ")"
    for count in (400, 2000):
        yield f"windows {count}", "SELECT " + ", ".join(f"sum(a) OVER (ORDER BY b + {i})" for i in range(count)) + " FROM numbers"
    yield "chain join 100", joins(100, "JOIN numbers n{i} ON n{i}.a = n{before}.a")
    yield "chain join 290", joins(290, "JOIN numbers n{i} ON n{i}.a = n{before}.a")
    yield "star join 100", joins(100, "JOIN numbers n{i} ON n{i}.a = n0.b")
    yield "cross join 60", joins(60, "CROSS JOIN numbers n{i}")
    yield "left join 100", joins(100, "LEFT JOIN numbers n{i} ON n{i}.a = n{before}.b")
    yield "full join 60", joins(60, "FULL JOIN numbers n{i} ON n{i}.a = n{before}.b")
    yield "join on sums 40", joins(40, "JOIN numbers n{i} ON n{i}.a + n{before}.b = n0.a")
    yield "natural join 60", joins(60, "NATURAL JOIN numbers n{i}")
    for count in (5_000, 20_000):
        yield f"columns {count}", "SELECT " + ", ".join(f"a + {i} AS c{i}" for i in range(count)) + " FROM numbers"
    yield "sort columns 3000", "SELECT a FROM numbers ORDER BY " + ", ".join(f"a + {i}" for i in range(3000))
    yield "group columns 3000", "SELECT count(*) FROM numbers GROUP BY " + ", ".join(f"a + {i}" for i in range(3000))
    yield "aggregates 3000", "SELECT " + ", ".join(f"sum(a + {i})" for i in range(3000)) + " FROM numbers"
    for word in ("INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"):
        yield f"{word} 300", f" {word} ".join(["SELECT a FROM numbers"] * 300)
    yield "union 450", " UNION ALL ".join(["SELECT a FROM numbers"] * 450)
    yield "union distinct 450", " UNION ".join(["SELECT a FROM numbers"] * 450)
    yield "or 900", "SELECT count(*) FROM numbers WHERE " + " OR ".join(f"a + {i} = b" for i in range(450))
    yield "or of ands", "SELECT count(*) FROM numbers WHERE " + " OR ".join(f"(a = {i} AND b = {i + 1})" for i in range(300))
    yield "case 5000", "SELECT CASE " + " ".join(f"WHEN a = {i} THEN {i}" for i in range(5000)) + " END FROM numbers"
    yield "in 200000", "SELECT count(*) FROM numbers WHERE a IN (" + ", ".join(map(str, range(200_000))) + ")"
    yield "not in of sums", "SELECT count(*) FROM numbers WHERE a NOT IN (" + ", ".join(f"b + {i}" for i in range(5_000)) + ")"
    yield "parentheses", "SELECT " + "(" * 5000 + "1" + ")" * 5000
    yield "casts", "SELECT " + "CAST(" * 300 + "1" + " AS INT)" * 300
    yield "minuses", "SELECT " + "- " * 5000 + "1"
    yield "nots", "SELECT " + "NOT " * 5000 + "true"
    yield "subqueries nested", "SELECT * FROM " + "(SELECT * FROM " * 200 + "numbers" + ") t" * 200
    yield "exists nested", "SELECT 1 WHERE " + "EXISTS (SELECT 1 WHERE " * 60 + "true" + ")" * 60
    yield "functions nested", "SELECT " + "abs(" * 800 + "1" + ")" * 800
    yield "lists nested", "SELECT " + "[" * 400 + "1" + "]" * 400
    yield "text 3 MB", "SELECT '" + "x" * (3 << 20) + "'"
    yield "text 5 MB", "SELECT '" + "x" * (5 << 20) + "'"
    yield "comments", "/*" * 100_000 + "SELECT 1"
    yield "quotes", "SELECT '" * 1000
    yield "values 100000", "SELECT count(*) FROM (VALUES " + ", ".join(f"({i}, {i + 1})" for i in range(100_000)) + ")"
    yield "correlated 20", "SELECT count(*) FROM numbers n0 WHERE " + " AND ".join(
        f"EXISTS (SELECT 1 FROM numbers m{i} WHERE m{i}.a = n0.a + {i})" for i in range(20)
    )
    yield "recursive", "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r"
    yield "recursive doubled", "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT a.x FROM r a, r b) SELECT count(*) FROM r"
    yield "explain of a long join", "EXPLAIN " + joins(250, "JOIN numbers n{i} ON n{i}.a = n{before}.a")
    yield "null bytes", "SELECT '\0' || a FROM numbers\0"


def memory():
    for n in ("100000000000000", "9223372036854775807", "2000000000"):
        yield f"repeat large {n}", f"SELECT repeat(arrow_cast('x', 'LargeUtf8'), {n})"
        yield f"repeat {n}", f"SELECT repeat('x', {n})"
        yield f"lpad {n}", f"SELECT lpad('x', {n})"
        yield f"rpad {n}", f"SELECT rpad('x', {n}, 'yz')"
        yield f"array_repeat {n}", f"SELECT array_repeat(1, {n})"
        yield f"array_resize {n}", f"SELECT array_resize([1], {n}, 0)"
        yield f"range {n}", f"SELECT range({n})"
        yield f"list series {n}", f"SELECT array_length(generate_series(1, {n}))"
    yield "repeat of columns", "SELECT sum(length(repeat('x', (a + 1) * 1000000))) FROM numbers"
    yield "repeat twice", "SELECT length(repeat(repeat('x', 10000), 100000))"
    yield "repeat digest", "SELECT md5(repeat('x', 1000000000))"
    yield "array_repeat nested", "SELECT array_repeat(array_repeat(array_repeat('x', 1000), 1000), 1000)"
    yield "replace grows", "SELECT length(replace(repeat('a', 1000000), 'a', repeat('b', 100000)))"
    yield "translate long", "SELECT length(translate(repeat('abc', 100000000), 'abc', 'xyz'))"
    yield "concat doubled", doubled(30, "SELECT concat(x::VARCHAR, x::VARCHAR, repeat('y', 100)) AS x FROM {before}")
    yield "array_agg of numbers", "SELECT array_length(array_agg(a.value)) FROM generate_series(1, 2000000000) a(value)"
    yield "window rows", "SELECT max(x) FROM (SELECT row_number() OVER (ORDER BY value DESC) AS x FROM generate_series(1, 2000000000) AS s(value))"
    yield "sort all", "SELECT value FROM generate_series(1, 2000000000) AS s(value) ORDER BY value % 1000, value LIMIT 10 OFFSET 1000000000"
    yield "distinct all", "SELECT count(DISTINCT value) FROM generate_series(1, 2000000000) AS s(value)"
    yield "group all", "SELECT count(*) FROM (SELECT value, count(*) FROM generate_series(1, 2000000000) AS s(value) GROUP BY value)"
    yield "join all", "SELECT count(*) FROM generate_series(1, 1000000000) a(value) JOIN generate_series(1, 1000000000) b(value) ON a.value = b.value"
    yield "unnest", "SELECT count(*) FROM (SELECT unnest(array_repeat(a, 100000)) FROM many)"
    yield "type as deep", "SELECT arrow_cast(NULL, '" + "List(" * 200 + "Int8" + ")" * 200 + "')"
    yield "type deeper", "SELECT arrow_cast(NULL, '" + "List(" * 20_000 + "Int8" + ")" * 20_000 + "')"
    yield "struct wide", "SELECT struct(" + ", ".join(map(str, range(20_000))) + ")"
    yield "list wide", "SELECT [" + ", ".join(map(str, range(100_000))) + "]"
    yield "decimal", "SELECT power(10::DECIMAL(38,0), 1000000000)"
    yield "factorial", "SELECT factorial(2000000000)"
    yield "create as", "CREATE TABLE bomb AS SELECT repeat('x', 1000000) AS x FROM generate_series(1, 100000000) AS s(value)"
    yield "temporary", "CREATE TEMPORARY TABLE bomb AS SELECT repeat('x', 1000000) AS x FROM generate_series(1, 100000000) AS s(value)"
    yield "array_repeat of rows", "SELECT array_repeat(a, 100000) FROM many"
    yield "range of rows", "SELECT range(1000000) FROM many"
    yield "regexp_replace grows", "SELECT length(regexp_replace(repeat('a', 1000000), 'a', repeat('b', 10000), 'g'))"
    yield "percentile", "SELECT approx_percentile_cont(value, 0.5, 1000000000) FROM generate_series(1, 1000) AS s(value)"
    yield "percentile of windows", "SELECT approx_percentile_cont(value, 0.5, 500000000 + 500000000) OVER () FROM generate_series(1, 1000) AS s(value)"
    yield "median all", "SELECT median(value) FROM generate_series(1, 2000000000) AS s(value)"
    yield "strpos", "SELECT sum(strpos(repeat('a', 1000000) || a, 'b')) FROM many"
    yield "long constant", "SELECT repeat('a', 1000000) || a FROM many"
    yield "long constant sorted", "SELECT repeat('a', 1000000) || a FROM many ORDER BY 1"
    yield "long constant joined", "SELECT count(*) FROM many m JOIN many n ON repeat('a', 1000000) || m.a = repeat('a', 1000000) || n.a"
    yield "long constant kept", "CREATE TABLE bomb AS SELECT repeat('a', 1000000) || a AS x FROM many"
    yield "long constant chosen", "SELECT sum(length(CASE WHEN a > 4 THEN repeat('a', 1000000) ELSE 'x' END)) FROM many"
    yield "long list", "SELECT sum(array_length(array_append(range(100000), a))) FROM many"
    yield "insert", "INSERT INTO sink SELECT value FROM generate_series(1, 100000000000) AS s(value)"


def loops():
    yield "levenshtein", "SELECT levenshtein(repeat('a', 100000), repeat('b', 100000))"
    yield "levenshtein of rows", "SELECT sum(levenshtein(repeat('a', 3000), repeat('b', 3000 + (a % 10)::INT))) FROM many"
    yield "nested loop", "SELECT count(*) FROM many a JOIN many b ON a.a * 7 + b.a < -1 - a.a JOIN many c ON c.a * b.a < -1"
    yield "nested loop left", "SELECT count(*) FROM many a LEFT JOIN generate_series(1, 10000000) b(value) ON a.a > b.value + 100000000"
    yield "cross join counted", "SELECT count(*) FROM many a, many b, many c, many d"
    yield "cross join filtered", "SELECT count(*) FROM many a, many b, many c WHERE a.a + b.a + c.a = -1"
    yield "skewed join", "SELECT count(*) FROM many a JOIN many b ON a.a % 1 = b.a % 1 JOIN many c ON a.a % 1 = c.a % 1 WHERE a.a + b.a + c.a < 0"
    yield "regexp", "SELECT count(*) FROM many WHERE regexp_like(repeat('a', 30000), '(a*)*b')"
    yield "regexp large", "SELECT regexp_like('a', 'a{1000}{1000}{1000}')"
    yield "like", "SELECT count(*) FROM many WHERE repeat('a', 100000) LIKE '" + "%a" * 500 + "b'"
    yield "endless count", "SELECT count(*) FROM generate_series(1, 1000000000000) AS s(value) WHERE value % 7 = 9"
    yield "endless sum", "SELECT sum(sqrt(value)) FROM generate_series(1, 1000000000000) AS s(value)"
    yield "endless limit", "SELECT * FROM generate_series(1, 1000000000000) AS s(value) LIMIT 1 OFFSET 999999999999"
    yield "endless scalar", "SELECT (SELECT max(value) FROM generate_series(1, 1000000000000) AS s(value))"
    yield "digest loop", "SELECT count(*) FROM generate_series(1, 100000000) AS s(value) WHERE md5(value::VARCHAR) = 'x'"
    yield "self join exists", "SELECT count(*) FROM many a WHERE NOT EXISTS (SELECT 1 FROM many b WHERE b.a > a.a * a.a + 5)"
    yield "array loop", "SELECT sum(array_length(array_distinct(range(100000)))) FROM many"


def statements():
    yield "deep type", "CREATE TABLE deep (x " + "STRUCT<f " * 100 + "INT" + ">" * 100 + ")"
    yield "deep list", "CREATE TABLE deep (x INT" + "[]" * 126 + ")"
    yield "long name", f'CREATE TABLE "{"x" * 100_000}" (a INT)'
    yield "no name", 'CREATE TABLE "" (a INT)'
    yield "many columns", "CREATE TABLE wide (" + ", ".join(f"c{i} INT" for i in range(30_000)) + ")"
    yield "copy out", "COPY (SELECT 1) TO '/etc/passwd'"
    yield "copy up", "COPY (SELECT 1) TO '../../x.csv'"
    yield "external table", "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'"
    yield "engine option", "SET datafusion.runtime.memory_limit = '1000G'"
    yield "unknown option", "SET datafusion.execution.target_partitions = 100000"
    yield "view on itself", "CREATE OR REPLACE VIEW own AS SELECT * FROM own"
    yield "batch size", "SET datafusion.execution.batch_size = 1000000000"
    yield "drop system", "DROP SCHEMA system CASCADE"
    yield "two statements", "SELECT 1; DROP TABLE sink"
    yield "many checks", "CREATE TABLE checks (a INT, " + ", ".join(f"CHECK (a > {i})" for i in range(3000)) + ")"


def put(name, batches, schema):
    def send(server):
        with flight.connect(server.grpc_tcp) as client:
            writer, reader = client.do_put(flight.FlightDescriptor.for_path(name), schema)
            with writer:
                for batch in batches:
                    writer.write_batch(batch)
                writer.done_writing()
                reader.read()

    return send


def uploads():
    def dictionary(length, rows):
        values = pa.array(["x" * length])
        column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), values)
        batch = pa.record_batch([column], ["a"])
        return put("bomb_dictionary", [batch], batch.schema)

    def runs(end):
        column = pa.RunEndEncodedArray.from_arrays(pa.array([end], pa.int32()), pa.array(["x" * 1000]))
        batch = pa.record_batch([column], ["a"])
        return put("bomb_runs", [batch], batch.schema)

    def deep(depth):
        kind = pa.int32()
        for _ in range(depth):
            kind = pa.list_(kind)
        batch = pa.record_batch([pa.array([None], kind)], ["a"])
        return put("bomb_deep", [batch], batch.schema)

    def wide(count):
        schema = pa.schema([(f"c{i}", pa.int8()) for i in range(count)])
        batch = pa.record_batch([pa.array([1], pa.int8())] * count, schema=schema)
        return put("bomb_wide", [batch], schema)

    for length, rows in ((1 << 20, 5_000), (5 << 20, 100_000), (1 << 10, 4_000_000)):
        yield f"dictionary {length} {rows}", dictionary(length, rows)
    for end in (2_000_000, 2_000_000_000):
        yield f"run {end}", runs(end)
    for depth in (40, 60, 100):
        yield f"upload {depth} deep", deep(depth)
    for count in (12_000, 40_000):
        yield f"upload {count} wide", wide(count)
    yield "no rows", put("bomb_nothing", [], pa.schema([]))
    yield "name of nothing", put("", [], pa.schema([("a", pa.int8())]))
    yield "name too long", put("x" * 10_000, [], pa.schema([("a", pa.int8())]))


def raw(payload, half=True):
    def send(server):
        with socket.create_connection((server.host, server.port), timeout=3) as connection:
            connection.sendall(payload)
            if not half:
                connection.shutdown(socket.SHUT_WR)
            connection.settimeout(1)
            try:
                while connection.recv(1 << 16):
                    pass
            except OSError:
                pass

    return send


GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def wire():
    settings = frame(4, 0, 0, b"")
    yield "nothing", raw(b"")
    yield "half a greeting", raw(GREETING[:10])
    yield "greeting alone", raw(GREETING)
    yield "http 1", raw(b"GET / HTTP/1.1\r\n\r\n")
    yield "rubbish", raw(bytes(range(256)) * 1000, half=False)
    yield "zeros", raw(bytes(1 << 20), half=False)
    yield "tls", raw(bytes([22, 3, 1, 2, 0, 1]) + bytes(500))
    yield "pings", raw(GREETING + settings + frame(6, 0, 0, bytes(8)) * 20_000, half=False)
    yield "settings", raw(GREETING + settings * 20_000, half=False)
    yield "resets", raw(GREETING + settings + b"".join(frame(3, 0, 2 * i + 1, bytes(4)) for i in range(10_000)), half=False)
    yield "large frame", raw(GREETING + settings + frame(0, 0, 1, bytes(100_000)), half=False)
    yield "windows", raw(GREETING + settings + frame(8, 0, 0, b"\x7f\xff\xff\xff") * 100, half=False)
    yield "continuations", raw(GREETING + settings + frame(1, 0, 1, b"") + frame(9, 0, 1, b"x" * 1000) * 1000, half=False)


def everything():
    """Pairs of a name and what to do with a server and a connection to it."""

    def session(*texts):
        def send(server):
            with Database(server) as db:
                for text in texts:
                    db.rows(text)

        return send

    for group in (planning, memory, loops, statements, *hostile_texts.GROUPS, *hostile_lengths.GROUPS):
        for name, sql in group():
            yield f"{group.__name__}: {name}", session(sql) if isinstance(sql, str) else session(*sql)
    for group in (uploads, wire):
        for name, send in group():
            yield f"{group.__name__}: {name}", send
