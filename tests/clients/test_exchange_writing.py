"""DoExchange that changes tables: all or nothing, within transactions. Rights are in tests/access/test_entry_points.py."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from exchanges import exchange, fails, one, open_exchange, rows
from server import wait_until


def test_inserts_are_atomic_and_counted(client, table):
    one(client, f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, name VARCHAR, value DOUBLE)")
    sent = pa.Table.from_batches([rows(*range(1000)), rows(*range(1000, 2000))])
    assert exchange(client, f"INSERT INTO {table} SELECT * FROM input", sent).to_pydict() == {"count": [2000]}
    # The last row is there already.
    again = pa.Table.from_batches([rows(*range(5000, 6000)), rows(0)])
    fails(client, f"INSERT INTO {table} SELECT * FROM input", "", again)
    fails(client, f"INSERT INTO {table} (id) SELECT CAST(name AS BIGINT) FROM input", "rows 1 to 1000 of `input`", sent)
    assert one(client, f"SELECT count(*) AS n, sum(id) AS s FROM {table}") == {"n": [2000], "s": [1999000]}
    got = exchange(client, f"INSERT INTO {table} SELECT id + 9000, name, value FROM input RETURNING id", sent)
    assert got.num_rows == 2000
    one(client, f"DROP TABLE {table}")
    made = exchange(client, f"CREATE TABLE {table} AS SELECT id, name FROM input WHERE id < 10", sent)
    assert made.to_pydict() == {"count": [10]}


def test_upserts_updates_and_deletes(client, table):
    one(client, f"CREATE TABLE {table} AS SELECT value AS id, 'old' AS name FROM generate_series(1, 1000) AS g(value)")
    merge = (
        f"MERGE INTO {table} t USING input i ON t.id = i.id WHEN MATCHED THEN UPDATE SET name = i.name "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (i.id, i.name)"
    )
    sent = pa.Table.from_batches([rows(*range(991, 1000)), rows(1000, 1001, 1002)])
    assert exchange(client, merge, sent).to_pydict() == {"count": [12]}
    assert one(client, f"SELECT count(*) AS n FROM {table} WHERE name = 'old'") == {"n": [990]}
    update = f"UPDATE {table} SET name = 'u' || input.name FROM input WHERE {table}.id = input.id"
    assert exchange(client, update, sent).to_pydict() == {"count": [12]}
    delete = f"DELETE FROM {table} USING input WHERE {table}.id = input.id"
    assert exchange(client, delete, sent).to_pydict() == {"count": [12]}
    delete = f"DELETE FROM {table} WHERE id NOT IN (SELECT id FROM input)"
    assert exchange(client, delete, pa.Table.from_batches([rows(1, 2)])).to_pydict() == {"count": [988]}
    assert sorted(one(client, f"SELECT id FROM {table}")["id"]) == [1, 2]


def test_a_transaction_of_the_session(store, client, table):
    one(client, f"CREATE TABLE {table} (id BIGINT)")
    sent = pa.Table.from_batches([rows(1, 2)])
    one(client, "BEGIN")
    exchange(client, f"INSERT INTO {table} SELECT id FROM input", sent)
    assert one(client, f"SELECT count(*) AS n FROM {table}") == {"n": [2]}
    with flight.connect(store.grpc_tcp) as other:
        assert one(other, f"SELECT count(*) AS n FROM {table}") == {"n": [0]}
    # The statement after it does not see its rows any more.
    with pytest.raises(Exception, match="not found"):
        one(client, "SELECT * FROM input")
    one(client, "ROLLBACK")
    assert one(client, f"SELECT count(*) AS n FROM {table}") == {"n": [0]}


def test_who_comes_second_is_told_to_come_again(store, client, table):
    one(client, f"CREATE TABLE {table} AS SELECT 1 AS id, 'old' AS name")
    sql = f"UPDATE {table} SET name = input.name FROM input WHERE {table}.id = input.id"
    with open_exchange(client, sql) as (writer, reader), flight.connect(store.grpc_tcp) as other:
        writer.write_batch(rows(1))
        find = "SELECT count(*) AS n FROM system.queries WHERE waits_for = 'its client to send rows'"
        wait_until(lambda: one(other, find)["n"] == [1], "it waits for rows")
        one(other, f"UPDATE {table} SET name = 'other'")
        writer.done_writing()
        with pytest.raises(Exception, match="run it again|send|again"):
            reader.read_chunk()
    assert one(client, f"SELECT name FROM {table}") == {"name": ["other"]}


def test_nothing_is_written_by_a_stream_that_breaks(store, client, table):
    one(client, f"CREATE TABLE {table} (id BIGINT)")
    dying = subprocess.Popen(
        [sys.executable, "-c", CUT, store.grpc_tcp, f"INSERT INTO {table} SELECT id FROM input"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert dying.stdout.readline() == "written\n"
    state = "SELECT waits_for, rows_in FROM system.queries WHERE statement LIKE 'INSERT%input' AND outcome = 'waiting'"
    with flight.connect(store.grpc_tcp) as other:
        wait_until(lambda: one(other, state)["rows_in"] == [2_000_000], "the rows have been read")
        assert one(other, state)["waits_for"] == ["its client to send rows"]
    dying.kill()
    dying.communicate()
    store.wait_idle(5.0)
    assert one(client, f"SELECT count(*) AS n FROM {table}") == {"n": [0]}


CUT = """
import sys, pyarrow as pa, pyarrow.flight as flight
client = flight.connect(sys.argv[1])
schema = pa.schema([("id", pa.int64())])
writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(sys.argv[2].encode()))
writer.begin(schema)
for number in range(20):
    writer.write_batch(pa.record_batch([pa.array(range(100_000), pa.int64())], schema=schema))
print("written", flush=True)
sys.stdin.read()
"""
