"""Changes that deletion vectors make: the rows that one vector of a file deletes, and the one before it does not."""

import json
import uuid

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import changes
import tables
from changes import FEED, asked, commit, lines, make, metadata, normal, set_times, wanted
from conftest import refused, serving
from durable import Database
from server import Server

PROTOCOL = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
                         "writerFeatures": ["deletionVectors", "changeDataFeed"]}}
COUNT = 100_000


def in_log(_place, places):
    content = tables.vector(places)[4:-4]
    return {"storageType": "i", "pathOrInlineDv": tables.base85(content), "sizeInBytes": len(content), "cardinality": len(places)}


def in_file(place, places, before=b""):
    """Behind other vectors, in a folder of its own."""
    number, vector = uuid.uuid4(), tables.vector(places, optimize=True)
    folder = place / "ab"
    folder.mkdir(exist_ok=True)
    (folder / f"deletion_vector_{number}.bin").write_bytes(b"\x01" + before + vector)
    return {"storageType": "u", "pathOrInlineDv": "ab" + tables.base85(number.bytes), "offset": 1 + len(before), "sizeInBytes": len(vector) - 8,
            "cardinality": len(places)}


def added(file, vector=None):
    return {"add": {**file, "deletionVector": vector} if vector else file}


def removed(file, vector=None):
    gone = {"path": file["path"], "dataChange": True, "deletionTimestamp": 1, "extendedFileMetadata": True,
            "partitionValues": file["partitionValues"], "size": file["size"]}
    return {"remove": {**gone, "deletionVector": vector} if vector else gone}


def written(place, stored, count=100):
    """A file of so many rows, and sets of places that are deleted one after the other; then all of it goes, and comes again."""
    make(place, changes.rows(0, count))
    (file,) = [line["add"] for line in lines(place, 0) if "add" in line]
    sets = [set(range(1, count, 7)), set(range(1, count, 5)), set(range(0, count, 5)) | {1}, {2}]
    vectors = [stored(place, sorted(places)) for places in sets]
    commit(place, [PROTOCOL, removed(file), added(file, vectors[0])])
    for before, after in zip(vectors, vectors[1:]):
        commit(place, [removed(file, before), added(file, after)])
    commit(place, [removed(file, vectors[-1])])
    commit(place, [added(file, vectors[0])])
    states = [set(), *sets, set(range(count)), sets[0]]
    expected = [(0, "insert", n) for n in range(count)]
    for version, (before, after) in enumerate(zip(states, states[1:]), 1):
        expected += [(version, "delete", n) for n in after - before] + [(version, "insert", n) for n in before - after]
    return sorted(expected)


@pytest.mark.parametrize("stored", [in_log, in_file])
def test_rows_that_vectors_tell_apart(tmp_path, stored):
    place = tmp_path / "t"
    expected = written(place, stored)
    set_times(place)
    with Server(f"t={place}") as server, Database(server) as database:
        got = database.rows("SELECT _commit_version, _change_type, id FROM table_changes('t', 0) ORDER BY 1, 2, 3")
        assert got == expected
        for first in range(7):
            assert database.one(f"SELECT count(*) FROM table_changes('t', {first}, {first})") == sum(row[0] == first for row in expected)
        # Of a file that comes or goes as a whole, their writer reads the rows that its vector deletes.
        for first in range(5):
            assert normal(asked(database, first, 4)) == normal(wanted(place, first, 4)), first
        where = "id BETWEEN 20 AND 40 AND _change_type = 'delete'"
        assert database.one(f"SELECT count(*) FROM table_changes('t', 0) WHERE {where}") == sum(
            kind == "delete" and 20 <= n <= 40 for _, kind, n in expected)


def test_many_rows_and_row_groups(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, COUNT))
    (file,) = [line["add"] for line in lines(place, 0) if "add" in line]
    pq.write_table(changes.rows(0, COUNT), place / file["path"], row_group_size=10_000)
    first, second = list(range(0, COUNT, 3)), [*range(30_000, 70_000)]
    vectors = [in_file(place, first), in_file(place, second, before=tables.vector([1]))]
    commit(place, [PROTOCOL, removed(file), added(file, vectors[0])])
    commit(place, [removed(file, vectors[0]), added(file, vectors[1])])
    with Server(f"t={place}") as server, Database(server) as database:
        totals = "SELECT _change_type, count(*), sum(id) FROM table_changes('t', {}, {}) GROUP BY 1 ORDER BY 1"
        assert database.rows(totals.format(1, 1)) == [("delete", len(first), sum(first))]
        gone, back = set(second) - set(first), set(first) - set(second)
        assert database.rows(totals.format(2, 2)) == [("delete", len(gone), sum(gone)), ("insert", len(back), sum(back))]


def test_in_an_object_store(s3, tmp_path):
    place = tmp_path / "t"
    expected = written(place, in_file)
    s3.copy(place, f"lake/changed-vectors/{tmp_path.name}/t")
    with serving(f"t=s3://lake/changed-vectors/{tmp_path.name}/t", s3=s3) as database:
        got = database.rows("SELECT _commit_version, _change_type, id FROM table_changes('t', 0) ORDER BY 1, 2, 3")
        assert got == expected


@pytest.mark.parametrize("change", [
    {"cardinality": 3}, {"sizeInBytes": 7}, {"offset": 9}, {"offset": -1}, {"pathOrInlineDv": "short"}, {"pathOrInlineDv": "~" * 20},
    {"storageType": "p", "pathOrInlineDv": "/etc/passwd"}, {"storageType": "p", "pathOrInlineDv": "file:///etc/passwd"},
    {"pathOrInlineDv": "../../" + "0" * 20}, {"storageType": "i"},
])
def test_vectors_that_are_damaged_or_elsewhere(tmp_path, change):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10))
    (file,) = [line["add"] for line in lines(place, 0) if "add" in line]
    damaged = {**in_file(place, [1, 2]), **change}
    commit(place, [PROTOCOL, removed(file), added(file, damaged)])
    # The state of now has nothing to do with it.
    commit(place, [removed(file, damaged), added(file)])
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, "SELECT * FROM table_changes('t', 1, 1)")
        assert database.one("SELECT count(*) FROM table_changes('t', 0, 0)") == 10


def test_rows_that_a_file_does_not_have(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10))
    (file,) = [line["add"] for line in lines(place, 0) if "add" in line]
    beyond = in_log(place, [1, 10])
    commit(place, [PROTOCOL, removed(file), added(file, beyond)])
    commit(place, [removed(file, beyond), added(file)])
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, "SELECT * FROM table_changes('t', 1, 1)", "deletes row 10 of a file that has 10 rows")


def test_mapped_columns_and_a_vector(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10, nested=True), configuration={**FEED, "delta.columnMapping.mode": "name"})
    (file,) = [line["add"] for line in lines(place, 0) if "add" in line]
    protocol = json.loads(json.dumps(PROTOCOL))
    for features in ("readerFeatures", "writerFeatures"):
        protocol["protocol"][features].append("columnMapping")
    commit(place, [protocol, metadata(place, lambda schema: None), removed(file), added(file, in_log(place, [3, 7]))])
    with Server(f"t={place}") as server, Database(server) as database:
        rows = database.arrow("SELECT * FROM table_changes('t', 1) ORDER BY id").to_pylist()
        source = changes.rows(0, 10, nested=True).take([3, 7]).to_pylist()
        assert [{name: row[name] for name in source[0]} for row in rows] == source
        assert DeltaTable(place).version() == 1


def test_each_use_of_a_vector_counts(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, COUNT))
    (file,) = [line["add"] for line in lines(place, 0) if "add" in line]
    vector = in_file(place, list(range(0, COUNT, 2)))
    commit(place, [PROTOCOL, removed(file), added(file, vector)])
    for _ in range(120):
        commit(place, [removed(file, vector)])
        commit(place, [added(file, vector)])
    commit(place, [removed(file, vector), added(file)])
    with Server(f"t={place}") as server, Database(server) as database:
        assert database.one("SELECT count(*) FROM table_changes('t', 2, 3)") == COUNT
        refused(database, "SELECT count(*) FROM table_changes('t', 1)", "more than 10000000 deleted rows")
