"""Rows that deletion vectors delete (format version 3): what their writer's reader leaves."""

import json

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

import tables
from conftest import refused, serving
from durable import Database
from server import Server
from test_iceberg import folder, made, sorted_rows  # noqa: F401

COUNT = 100_000
ROWS = pa.table({"id": pa.array(range(COUNT), pa.int64()), "word": [f"w{n % 7}" for n in range(COUNT)]})
PLAIN = Schema(NestedField(1, "id", LongType()), NestedField(2, "word", StringType()))


def third(place):
    """The table of format version 3: its newest metadata file says so."""
    newest = tables.newest(place)
    text = json.loads(newest.read_text())
    text |= {"format-version": 3, "next-row-id": COUNT}
    for state in text["snapshots"]:
        state |= {"first-row-id": 0, "added-rows": COUNT}
    newest.write_text(json.dumps(text))


def with_vectors(folder, places_of_files, **more):  # noqa: F811
    """A table of two files, from which these places are deleted."""
    place = tables.place(made(folder, PLAIN, rows=(ROWS.slice(0, 90_000), ROWS.slice(90_000))))
    files = sorted(tables.data_files(place), key=lambda path: -(place / path.removeprefix(f"file://{place}/")).stat().st_size)
    vectors = [(path, tables.vector(places, **more), len(places)) for path, places in zip(files, places_of_files) if places]
    tables.delete_by_vectors(place, vectors)
    return place


@pytest.mark.parametrize("places", [
    [[0, 1, 5, 89_999], [3]], [[], [9_999]], [range(10_000, 80_000), []], [range(0, 90_000, 2), range(0, 10_000, 3)],
    [range(90_000), range(10_000)], [[65_535, 65_536, 65_537], []],
])
@pytest.mark.parametrize("optimize", [False, True])
def test_rows_that_are_left(folder, places, optimize):  # noqa: F811
    place = with_vectors(folder, [list(of_one) for of_one in places], optimize=optimize)
    gone = {*places[0], *(90_000 + n for n in places[1])}
    kept = [n for n in range(COUNT) if n not in gone]
    third(place)
    with Server(f"t={place}") as server, Database(server) as database:
        assert database.rows("SELECT count(*), count(id), sum(id) FROM t") == [(len(kept), len(kept), sum(kept) if kept else None)]
        assert sorted_rows(database.arrow("SELECT * FROM t")) == sorted_rows(ROWS.take(kept))
        assert database.one("SELECT count(*) FROM t WHERE id < 1000") == sum(n < 1000 for n in kept)


def test_what_another_reader_leaves(folder):  # noqa: F811
    place = with_vectors(folder, [list(range(0, 90_000, 7)), [5]])
    wanted = tables.static(place).scan().to_arrow()
    third(place)
    with Server(f"t={place}") as server, Database(server) as database:
        assert sorted_rows(database.arrow("SELECT * FROM t")) == sorted_rows(wanted)


def test_in_an_object_store(folder, s3):  # noqa: F811
    place = with_vectors(folder, [list(range(0, 90_000, 7)), [5]])
    third(place)
    s3.copy(place, "lake/vectors/t")
    with serving("s3://lake/vectors", s3=s3) as database:
        assert database.one("SELECT count(*) FROM t") == COUNT - len(range(0, 90_000, 7)) - 1


@pytest.mark.parametrize("damage", [
    lambda vector: vector[:-1], lambda vector: vector[:10], lambda vector: bytes(len(vector)), lambda vector: vector[:20] + b"\xff" + vector[21:],
    lambda vector: vector[:4] + b"XXXX" + vector[8:],
])
def test_vectors_that_are_damaged(folder, damage):  # noqa: F811
    place = tables.place(made(folder, PLAIN, rows=(ROWS.slice(0, 100),)))
    (file,) = tables.data_files(place)
    tables.delete_by_vectors(place, [(file, damage(tables.vector([1, 2, 3])), 3)])
    third(place)
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, "SELECT * FROM t", "deletion vector is damaged")
        assert database.one("SELECT 1") == 1


def test_more_deleted_rows_than_memory_is_given_to(folder):  # noqa: F811
    place = tables.place(made(folder, PLAIN, rows=(ROWS.slice(0, 100),)))
    (file,) = tables.data_files(place)
    count = 10_000_001
    tables.delete_by_vectors(place, [(file, tables.vector(range(count), optimize=True), count)])
    third(place)
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, "SELECT * FROM t", "more than")
