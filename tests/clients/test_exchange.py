"""DoExchange: statements over the rows that the client sends while they run. Each answer is held against that of the same
statement over a stored table."""

import contextlib
import random
import time

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import protobuf
from exchanges import SCHEMA, command, exchange, fails, one, open_exchange, rows, run, store_table
from server import Server, beside
from watch import resident


# Rows while rows come


def test_rows_come_back_one_by_one_while_rows_go_in(client, table):
    store_table(client, table, pa.table({"key": [f"n{i}" for i in range(5)], "label": [f"label {i}" for i in range(5)]}))
    for sql, expected in (
        ("SELECT id + 1 AS a FROM input", lambda i: {"a": i + 1}),
        ("SELECT id FROM input WHERE id >= 0 AND name LIKE 'n%'", lambda i: {"id": i}),
        (f"SELECT id, label FROM input JOIN {table} ON name = key WHERE value >= 0", lambda i: {"id": i, "label": f"label {i % 5}"}),
        (f"SELECT id FROM input LEFT JOIN {table} ON name = key", lambda i: {"id": i}),
        (f"SELECT id FROM input WHERE name IN (SELECT key FROM {table})", lambda i: {"id": i}),
    ):
        with open_exchange(client, sql, batch_rows=1) as (writer, reader):
            # The columns are there before any row is.
            assert reader.schema.names == list(expected(0))
            for i in range(20):
                writer.write_batch(rows(i))
                assert reader.read_chunk().data.to_pylist() == [expected(i)], sql
            writer.done_writing()
            with pytest.raises(StopIteration):
                reader.read_chunk()


def test_a_filter_gives_rows_at_once_without_options(client):
    with open_exchange(client, "SELECT id FROM input WHERE id % 2 = 0") as (writer, reader):
        for i in range(10):
            writer.write_batch(rows(2 * i, 2 * i + 1))
            assert reader.read_chunk().data.column(0).to_pylist() == [2 * i]
        writer.done_writing()


def test_rows_keep_their_order(client):
    sent = pa.Table.from_batches([rows(*range(n * 1000, n * 1000 + 1000)) for n in range(100)])
    got = exchange(client, "SELECT id FROM input WHERE value >= 0", sent)
    assert got["id"].to_pylist() == list(range(100_000))
    got = exchange(client, "SELECT id FROM input", sent, ordered=False)
    assert sorted(got["id"].to_pylist()) == list(range(100_000))


def test_who_must_see_all_answers_at_the_half_close(client):
    with open_exchange(client, "SELECT count(*) AS n, sum(id) AS s FROM input") as (writer, reader):
        for i in range(5):
            writer.write_batch(rows(i, i))
        writer.done_writing()
        assert reader.read_all().to_pylist() == [{"n": 10, "s": 20}]
    sent = pa.Table.from_batches([rows(3, 1, 2)])
    assert exchange(client, "SELECT id FROM input ORDER BY id DESC", sent)["id"].to_pylist() == [3, 2, 1]


def test_more_than_any_buffer_holds_goes_through(store, client):
    # 400 MB each way; a server that gathered them would show it.
    wide = pa.record_batch([pa.array(range(100_000), pa.int64())] * 5, names=list("abcde"))
    before = resident(store.process.pid)
    peak, count = 0, 0
    writer, reader = client.do_exchange(command("SELECT * FROM input WHERE a >= 0"))
    writer.begin(wide.schema)

    def send(_):
        for _ in range(100):
            writer.write_batch(wide)
        writer.done_writing()

    with beside(send):
        for chunk in reader:
            count += chunk.data.num_rows
            peak = max(peak, resident(store.process.pid))
    writer.close()
    assert count == 10_000_000
    assert peak - before < 300 << 20, (peak - before) >> 20


def test_a_client_that_does_not_read_must_wait_with_its_rows(client):
    wide = pa.record_batch([pa.array(range(100_000), pa.int64())] * 5, names=list("abcde"))
    with open_exchange(client, "SELECT * FROM input", wide.schema) as (writer, reader):
        sent = []

        def send(_):
            for number in range(200):
                writer.write_batch(wide)
                sent.append(number)
            writer.done_writing()

        with beside(send):
            seen = -1
            while seen != len(sent):
                seen = len(sent)
                time.sleep(0.5)
            assert len(sent) < 150, "800 MB were taken in although nobody read"
            assert sum(chunk.data.num_rows for chunk in reader) == 20_000_000


def test_an_answer_may_end_before_the_rows(store, client):
    with open_exchange(client, "SELECT id FROM input LIMIT 10") as (writer, reader):
        writer.write_batch(rows(*range(1000)))
        assert reader.read_all().num_rows == 10
        # pyarrow ends the call as soon as a row cannot be sent.
        with pytest.raises(Exception):
            for _ in range(10_000):
                writer.write_batch(rows(*range(1000)))
    with open_exchange(client, "EXPLAIN SELECT id FROM input WHERE id > 1") as (_, reader):
        assert "InputScan: table=input, columns=[id], condition=id@0 > 1" in str(reader.read_all().to_pylist())
    store.wait_idle(5.0)


# What the stream may be


def test_empty_streams_and_streams_without_rows(client):
    empty = SCHEMA.empty_table()
    assert exchange(client, "SELECT id FROM input", empty).num_rows == 0
    assert exchange(client, "SELECT id FROM input", empty).schema.names == ["id"]
    assert exchange(client, "SELECT count(*) AS n FROM input", empty).to_pylist() == [{"n": 0}]
    with open_exchange(client, "SELECT id FROM input") as (writer, reader):
        writer.write_batch(rows())
        writer.write_batch(rows(7))
        writer.write_batch(rows())
        writer.done_writing()
        assert reader.read_all()["id"].to_pylist() == [7]
    writer, reader = client.do_exchange(command("SELECT id FROM input"))
    writer.done_writing()
    with pytest.raises(pa.ArrowInvalid, match="the stream has no schema"):
        reader.read_all()
    with contextlib.suppress(Exception):
        writer.close()


def test_types_go_through_unchanged(client):
    decimals = pa.array([1, None, 3], pa.int32()).cast(pa.decimal128(12, 2))
    sent = pa.table({
        "small": pa.array([1, None, 3], pa.int8()),
        "words": pa.array(["a", "b", None]).dictionary_encode(),
        "list": pa.array([[1, 2], None, []], pa.list_(pa.int32())),
        "row": pa.array([{"x": 1}, None, {"x": 3}], pa.struct([("x", pa.int64())])),
        "when": pa.array([1, None, 3], pa.timestamp("us", "UTC")),
        "bytes": pa.array([b"\0", None, b"ab"]),
        "money": decimals,
        "nothing": pa.nulls(3),
    })
    got = exchange(client, "SELECT * FROM input", sent)
    assert got.to_pydict() == sent.to_pydict()
    assert exchange(client, "SELECT words, count(*) AS n FROM input GROUP BY words", sent).num_rows == 3
    # Dictionaries that change from batch to batch.
    batches = [pa.record_batch({"w": pa.array([f"w{n}", f"x{n}"]).dictionary_encode()}) for n in range(5)]
    with open_exchange(client, "SELECT w FROM input WHERE w LIKE 'w%'", batches[0].schema) as (writer, reader):
        for batch in batches:
            writer.write_batch(batch)
        writer.done_writing()
        assert reader.read_all()["w"].to_pylist() == [f"w{n}" for n in range(5)]


def test_names_of_the_rows(client, table):
    sent = pa.Table.from_batches([rows(1)])
    assert exchange(client, "SELECT id FROM events", sent, input="events").num_rows == 1
    # The rows hide a table of their name, and views do not mean them.
    store_table(client, table, pa.table({"id": [1, 2, 3]}))
    assert exchange(client, f"SELECT id FROM {table}", sent, input=table).num_rows == 1
    one(client, f"CREATE VIEW {table}_view AS SELECT id FROM {table}")
    got = exchange(client, f"SELECT (SELECT count(*) FROM {table}_view) AS n, id FROM {table}", sent, input=table)
    assert got.to_pylist() == [{"n": 3, "id": 1}]
    one(client, f"DROP VIEW {table}_view")
    # Whose rows are meant is not guessed.
    fails(client, f"INSERT INTO {table} SELECT id FROM {table}", "is the input stream of the statement", sent, input=table)
    got = exchange(client, f"INSERT INTO main.{table} SELECT id FROM {table}", sent, input=table)
    assert got.to_pydict() == {"count": [1]}


def test_commands_of_flight_sql(client, table):
    one(client, f"CREATE TABLE {table} (id BIGINT)")
    for name in ("CommandStatementQuery", "CommandStatementUpdate"):
        body = protobuf.field(1, f"INSERT INTO {table} SELECT id FROM input")
        descriptor = flight.FlightDescriptor.for_command(protobuf.any_of(name, body))
        writer, reader = client.do_exchange(descriptor)
        writer.begin(SCHEMA)
        writer.write_batch(rows(1, 2))
        writer.done_writing()
        assert reader.read_all().to_pydict() == {"count": [2]}
        writer.close()
    assert one(client, f"SELECT count(*) AS n FROM {table}") == {"n": [4]}


def test_rows_that_are_read_more_than_once_are_kept(client):
    sent = pa.Table.from_batches([rows(1, 2), rows(3)])
    got = exchange(client, "SELECT a.id, b.id AS other FROM input a JOIN input b ON a.id = b.id + 1", sent)
    assert sorted(got.to_pydict()["id"]) == [2, 3]
    got = exchange(client, "WITH w AS (SELECT id FROM input) SELECT * FROM w UNION ALL SELECT id * 10 FROM w", sent)
    assert sorted(got["id"].to_pylist()) == [1, 2, 3, 10, 20, 30]
    got = exchange(client, "SELECT id, (SELECT sum(id) FROM input) AS s FROM input ORDER BY id", sent)
    assert got.to_pydict() == {"id": [1, 2, 3], "s": [6, 6, 6]}


def test_what_is_kept_counts_as_memory_of_the_query(data_folder):
    sent = pa.table({"id": pa.array(range(4_000_000), pa.int64())})
    with Server(data_folder, arguments=["--set", "limits.query_memory_bytes=16MiB"]) as server:
        with flight.connect(server.grpc_tcp) as client:
            twice = "SELECT id FROM input UNION ALL SELECT -id FROM input"
            fails(client, twice, "limits.query_memory_bytes", sent, kind=pa.ArrowException, chunk=100_000)
            assert exchange(client, "SELECT id FROM input", sent, chunk=100_000).num_rows == 4_000_000
        server.wait_idle(5.0)


# The same statement over a stored table


def random_table(draw):
    count = draw.choice([0, 1, 2, 7, 50, 300])
    values = lambda make: [None if draw.random() < 0.15 else make() for _ in range(count)]
    columns = {
        "k": pa.array(values(lambda: draw.randint(0, 20)), pa.int64()),
        "s": pa.array(values(lambda: draw.choice(["a", "b", "ccc", "", "é"])), pa.string()),
        "f": pa.array(values(lambda: draw.choice([0.0, -1.5, 2.25, 1e9])), pa.float64()),
        "d": pa.array(values(lambda: draw.randint(0, 9)), pa.int32()),
    }
    if draw.random() < 0.3:
        columns["s"] = columns["s"].dictionary_encode()
    return pa.table(columns)


def random_statement(draw, stored, other):
    """A query with `{0}` in the place of the rows."""
    condition = draw.choice(
        ["k > 10", "s LIKE 'a%'", "f IS NULL", "k IN (1, 2, 3) OR d = 4", "NOT (k = d)", "k IS NOT NULL AND f < 1", "TRUE"]
    )
    return draw.choice([
        "SELECT * FROM {0} WHERE " + condition,
        "SELECT k + 1 AS a, upper(s) AS b FROM {0} WHERE " + condition,
        "SELECT s, count(*) AS n, sum(k) AS x, min(f) AS y FROM {0} WHERE " + condition + " GROUP BY s",
        "SELECT DISTINCT s, d FROM {0} WHERE " + condition,
        f"SELECT i.k, o.label FROM {{0}} i JOIN {other} o ON i.k = o.k WHERE i." + "d >= 0",
        f"SELECT i.k, o.label FROM {{0}} i LEFT JOIN {other} o ON i.k = o.k AND o.label <> 'l3'",
        f"SELECT i.k, o.label FROM {{0}} i FULL JOIN {other} o ON i.k = o.k",
        f"SELECT o.label, i.s FROM {other} o RIGHT JOIN {{0}} i ON i.k = o.k",
        f"SELECT k, s FROM {{0}} WHERE k IN (SELECT k FROM {other} WHERE label < 'l5')",
        f"SELECT k, s FROM {{0}} i WHERE NOT EXISTS (SELECT 1 FROM {other} o WHERE o.k = i.k)",
        f"SELECT k, (SELECT max(label) FROM {other} o WHERE o.k = i.k) AS m FROM {{0}} i",
        f"SELECT label FROM {other} WHERE k NOT IN (SELECT k FROM {{0}} WHERE k IS NOT NULL)",
        "SELECT k, row_number() OVER (PARTITION BY s ORDER BY k, d, f) AS r FROM {0}",
        "SELECT a.k, b.d FROM {0} a JOIN {0} b ON a.k = b.d",
        "SELECT k FROM {0} WHERE k > (SELECT avg(d) FROM {0})",
        "SELECT k FROM {0} UNION ALL SELECT d FROM {0} WHERE " + condition,
        "SELECT k, s FROM {0} WHERE " + condition + " EXCEPT SELECT k, s FROM {0} WHERE d = 1",
        "WITH w AS (SELECT s, max(k) AS m FROM {0} GROUP BY s) SELECT * FROM {0} t JOIN w ON t.s = w.s AND t.k = w.m",
    ])


def sorted_rows(table):
    return sorted(repr(sorted(row.items())) for row in table.to_pylist())


@pytest.mark.parametrize("seed", range(4))
def test_exchanges_answer_as_stored_tables_do(client, table, seed):
    draw = random.Random(seed)
    labels = pa.table({"k": list(range(0, 30, 2)), "label": [f"l{i}" for i in range(15)]})
    store_table(client, f"{table}_labels".replace("[", "_"), labels)
    for number in range(100):
        stored = f"{table}_{number}"
        sent = random_table(draw)
        store_table(client, stored, sent)
        statement = random_statement(draw, stored, f"{table}_labels")
        expected = run(client, statement.format(stored))
        options = {}
        if draw.random() < 0.5:
            options = {"ordered": draw.random() < 0.5, "batch_rows": draw.choice([1, 3, 100, 8192])}
        got = exchange(client, statement.format("input"), sent, chunk=draw.choice([None, 1, 7, 100]), **options)
        assert sorted_rows(got) == sorted_rows(expected), (seed, number, statement, options)
        assert got.schema.names == expected.schema.names, statement
        one(client, f"DROP TABLE {stored}")
    one(client, f"DROP TABLE {table}_labels")
