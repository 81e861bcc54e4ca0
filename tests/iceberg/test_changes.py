"""The change data feed of Delta tables: the rows that their writer reads of it."""

import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import changes
from changes import FEED, asked, commit, entry, history, lines, make, normal, set_times, wanted
from conftest import refused, serving
from durable import Database
from server import Server, wait_until
from test_delta import options
from test_iceberg import ROWS
from test_stores import works

ALL = "SELECT * FROM table_changes('t', 0)"


def same(database, place, first, last=None, **more):
    got, expected = asked(database, first, last), wanted(place, first, last, **more)
    # It has columns of partitions behind the others.
    assert sorted(got.schema.names) == sorted(expected.schema.names)
    assert got.schema.names[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]
    assert normal(got) == normal(expected), (first, last)


def mapped_by(mode):
    return {**FEED, "delta.columnMapping.mode": mode}


@pytest.mark.parametrize("partitioned", [[], ["part"], ["part", "day"]])
def test_every_range_of_a_history(tmp_path, partitioned):
    place = tmp_path / "t"
    history(place, partition_by=partitioned)
    last = DeltaTable(place).version()
    with Server(f"t={place}") as server, Database(server) as database:
        for first in range(last + 1):
            for end in [*range(first, last + 1), None]:
                same(database, place, first, end)
        kinds = database.rows("SELECT DISTINCT _change_type FROM table_changes('t', 0) ORDER BY 1")
        assert kinds == [("delete",), ("insert",), ("update_postimage",), ("update_preimage",)]
        types = database.arrow(ALL).schema
        assert types.field("_commit_version").type == pa.int64()
        assert types.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
        # The state of now is none the worse for it.
        assert database.one("SELECT count(*) FROM t") == DeltaTable(place).to_pyarrow_table().num_rows


@pytest.mark.parametrize("seed", range(4))
def test_random_histories(tmp_path, seed):
    chance, place = random.Random(f"changes {seed}"), tmp_path / "t"
    make(place, changes.rows(0, 40), partition_by=chance.choice([[], ["part"]]))
    next_id = 40
    for _ in range(12):
        table, number = DeltaTable(place), chance.randrange(next_id)
        what = chance.choice(["append", "delete", "update", "merge", "optimize", "checkpoint"])
        if what == "append":
            count = chance.randint(1, 20)
            write_deltalake(place, changes.rows(next_id, count), mode="append")
            next_id += count
        elif what == "delete":
            table.delete(f"id % 7 = {number % 7}")
        elif what == "update":
            table.update(updates={"word": f"'v{number}'"}, predicate=f"id > {number}")
        elif what == "merge":
            count = chance.randint(1, 10)
            changes.merge(table, changes.rows(next_id - 3, count))
            next_id += max(0, count - 3)
        elif what == "optimize":
            table.optimize.compact()
        else:
            table.create_checkpoint()
    set_times(place)
    last = DeltaTable(place).version()
    with Server(f"t={place}") as server, Database(server) as database:
        for _ in range(20):
            first = chance.randint(0, last)
            same(database, place, first, chance.choice([None, chance.randint(first, last)]))


def test_conditions_columns_and_sums(tmp_path):
    place = tmp_path / "t"
    history(place, partition_by=["part"])
    with Server(f"t={place}") as server, Database(server) as database:
        every = database.arrow(ALL).to_pylist()
        for where, is_meant in [
            ("_change_type = 'delete'", lambda row: row["_change_type"] == "delete"),
            ("_commit_version BETWEEN 1 AND 2", lambda row: 1 <= row["_commit_version"] <= 2),
            ("part = 'a' AND _change_type <> 'insert'", lambda row: row["part"] == "a" and row["_change_type"] != "insert"),
            ("id < 5 OR word = 'new'", lambda row: row["id"] < 5 or row["word"] == "new"),
            ("_commit_timestamp < '1999-01-01'", lambda row: False),
        ]:
            found = [row for row in every if is_meant(row)]
            assert database.one(f"SELECT count(*) FROM table_changes('t', 0) WHERE {where}") == len(found), where
            got = database.rows(f"SELECT _commit_version, id FROM table_changes('t', 0) WHERE {where} ORDER BY 1, 2")
            assert got == sorted((row["_commit_version"], row["id"]) for row in found), where
        numbers = database.rows("SELECT count(*), min(_commit_version), max(_commit_version), max(id) FROM table_changes('t', 0)")
        versions = [row["_commit_version"] for row in every]
        assert numbers == [(len(every), min(versions), max(versions), max(row["id"] for row in every))]
        joined = "SELECT count(*) FROM table_changes('t', 0) c JOIN t ON t.id = c.id WHERE c._change_type = 'insert'"
        kept = set(DeltaTable(place).to_pyarrow_table().column("id").to_pylist())
        assert database.one(joined) == sum(row["_change_type"] == "insert" and row["id"] in kept for row in every)
        database.run("CREATE VIEW v AS SELECT id, _change_type FROM table_changes('t', 1, 1)")
        assert database.one("SELECT count(*) FROM v") == sum(version == 1 for version in versions)
        assert database.one("SELECT count(*) FROM (SELECT * FROM table_changes('main.t', 0) LIMIT 3)") == 3
        assert database.one("SELECT count(*) FROM Table_Changes('bowshot.main.T', 0) AS x WHERE x.id >= 0") == len(every)


@pytest.mark.parametrize("partitioned", [[], ["part"]])
@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns(tmp_path, mode, partitioned):
    """Their writer does not read this feed; that of the same history without mapped columns it does."""
    plain, mapped = tmp_path / "plain", tmp_path / "t"
    history(plain, partition_by=partitioned, nested=True, optimize=False)
    history(mapped, partition_by=partitioned, nested=True, configuration=mapped_by(mode), optimize=False)
    with Server(f"t={mapped}") as server, Database(server) as database:
        for first in range(DeltaTable(plain).version() + 1):
            got, expected = asked(database, first), wanted(plain, first)
            assert sorted(got.schema.names) == sorted(expected.schema.names)
            assert normal(got, times=False) == normal(expected, times=False), first
        for column in ("nested.x", "nested"):
            count = f"SELECT count({column}) FROM table_changes('t', 0)"
            assert database.one(count) == sum(row["nested"] is not None for row in asked(database, 0).to_pylist())


def test_columns_that_were_renamed(tmp_path):
    place = tmp_path / "t"
    history(place, nested=True, configuration=mapped_by("name"), optimize=False)
    with Server(f"t={place}") as server, Database(server) as database:
        before = asked(database, 0).to_pylist()

        def renamed(schema):
            for field in schema["fields"]:
                if field["name"] == "word":
                    field["name"] = "text"
                elif field["name"] == "nested":
                    field["type"]["fields"][0]["name"] = "renamed"

        commit(place, [changes.metadata(place, renamed)])
        wait_until(lambda: "text" in database.arrow("SELECT * FROM t LIMIT 0").schema.names, "the new names")
        for row in before:
            row["text"] = row.pop("word")
            if row["nested"] is not None:
                row["nested"] = {"renamed": row["nested"]["x"], "y": row["nested"]["y"]}
        after = asked(database, 0)
        assert after.schema.names[:2] == ["id", "text"]
        sorted_rows = [sorted(sorted(map(repr, row.items())) for row in some) for some in (before, after.to_pylist())]
        assert sorted_rows[0] == sorted_rows[1]


def test_columns_that_were_added(tmp_path):
    place = tmp_path / "t"
    history(place)
    more = changes.rows(900, 5).append_column("new", pa.array(range(5), pa.int64()))
    write_deltalake(place, more, mode="append", schema_mode="merge")
    DeltaTable(place).update(updates={"new": "7"}, predicate="id < 10")
    set_times(place)
    with Server(f"t={place}") as server, Database(server) as database:
        for first in range(DeltaTable(place).version() + 1):
            same(database, place, first)
        assert database.one("SELECT count(new) FROM table_changes('t', 0, 2)") == 0


def test_columns_that_cannot_be_read_as_those_of_now(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10))
    write_deltalake(place, changes.rows(0, 10).drop_columns(["word"]), mode="overwrite", schema_mode="overwrite")
    retyped = changes.rows(0, 10).drop_columns(["word"]).set_column(0, "id", pa.array(map(str, range(10))))
    write_deltalake(place, retyped, mode="overwrite", schema_mode="overwrite")
    write_deltalake(place, retyped, mode="append")
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, ALL, "version 0", "column `id` of another type", "query an old version")
        # What was removed was written with the other type.
        refused(database, "SELECT * FROM table_changes('t', 2)", "column `id` of another type", "query an old version")
        assert database.one("SELECT count(*) FROM table_changes('t', 3)") == 10


def test_other_partitions_than_those_of_now(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10), partition_by=["part"])
    write_deltalake(place, changes.rows(0, 10), mode="overwrite", schema_mode="overwrite", partition_by=["day"])
    write_deltalake(place, changes.rows(0, 3), mode="append")
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, ALL, "partitioned by `part`", "query an old version")
        assert database.one("SELECT count(*) FROM table_changes('t', 2)") == 3


def test_changes_that_were_not_kept(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10), configuration={})
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, ALL, "change data feed was off when version 0", "delta.enableChangeDataFeed")
        DeltaTable(place).alter.set_table_properties(FEED)
        DeltaTable(place).delete("id < 3")
        set_times(place)
        wait_until(lambda: database.one("SELECT count(*) FROM t") == 7, "the rows that are gone")
        refused(database, ALL, "change data feed was off when version 0", "from version 1 on")
        same(database, place, 1)
        same(database, place, 2)
        DeltaTable(place).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
        refused(database, "SELECT * FROM table_changes('t', 1)", "when version 3")
        assert database.one("SELECT count(*) FROM table_changes('t', 1, 2)") == 3


def test_versions_that_are_not_there(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10))
    for number in range(1, 6):
        write_deltalake(place, changes.rows(number * 10, 10), mode="append")
        if number == 3:
            DeltaTable(place).create_checkpoint()
    set_times(place)
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, "SELECT * FROM table_changes('t', 6)", "no version 6", "0 to 5")
        refused(database, "SELECT * FROM table_changes('t', 0, 6)", "no version 6", "0 to 5")
        refused(database, "SELECT * FROM table_changes('t', 3, 1)", "ends with 1", "earlier version or time first")
        for number in range(3):
            os.remove(entry(place, number))
        refused(database, ALL, "no version 0", "3 to 5")
        refused(database, "SELECT * FROM table_changes('t', '1999-01-01')", "no longer has all versions", "3 to 5")
        for first in (3, 4, 5):
            assert database.one(f"SELECT count(*) FROM table_changes('t', {first})") == (6 - first) * 10


def test_files_that_are_gone(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10))
    DeltaTable(place).update(updates={"word": "'x'"}, predicate="id = 1")
    write_deltalake(place, changes.rows(10, 10), mode="append")
    with Server(f"t={place}") as server, Database(server) as database:
        assert database.one("SELECT count(*) FROM table_changes('t', 0)") == 22
        DeltaTable(place).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
        for path in (place / "_change_data").rglob("*.parquet"):
            path.unlink()
        refused(database, ALL, "was removed", "VACUUM")
        assert database.one("SELECT count(*) FROM table_changes('t', 2, 2)") == 10


@pytest.mark.parametrize("path", ["../secret.parquet", "/etc/passwd", "file:///etc/passwd", "%2e%2e/secret.parquet", "s3://bucket/x"])
@pytest.mark.parametrize("kind", ["cdc", "add", "remove"])
def test_files_that_are_elsewhere(tmp_path, kind, path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10))
    pq.write_table(changes.rows(0, 3), tmp_path / "secret.parquet")
    file = {"path": path, "partitionValues": {}, "size": 1, "dataChange": kind != "cdc", "modificationTime": 1, "deletionTimestamp": 1}
    commit(place, [{kind: file}])
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, ALL, "not in the folder")
        assert database.one("SELECT count(*) FROM table_changes('t', 0, 0)" if kind != "add" else "SELECT 10") == 10


def test_logs_and_files_that_are_damaged(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10))
    DeltaTable(place).update(updates={"word": "'x'"}, predicate="id = 1")
    write_deltalake(place, changes.rows(10, 1), mode="append")
    DeltaTable(place).create_checkpoint()
    whole = entry(place, 1).read_bytes()
    (recorded,) = (place / "_change_data").rglob("*.parquet")
    content = recorded.read_bytes()
    with Server(f"t={place}") as server, Database(server) as database:
        for cut in (b"", whole[: len(whole) // 2], b"\0" * 100, b'{"add": {"path": 3}}', b"[1]"):
            entry(place, 1).write_bytes(cut)
            refused(database, ALL, "00000000000000000001.json")
        entry(place, 1).write_bytes(whole)
        pq.write_table(changes.rows(0, 3), recorded)
        refused(database, ALL, "_change_type")
        for cut in (b"", content[:100], content[:-9]):
            recorded.write_bytes(cut)
            refused(database, ALL, recorded.name)
        recorded.write_bytes(content)
        assert database.one("SELECT count(*) FROM table_changes('t', 0)") == 13


def test_features_that_are_not_known(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10))
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["newest"], "writerFeatures": ["newest"]}
    commit(place, [{"protocol": protocol}])
    commit(place, [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}])
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, ALL, "feature `newest`")
        assert database.one("SELECT count(*) FROM table_changes('t', 0, 0)") == 10


def test_a_merge_that_has_changed_nothing(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 10))
    (file,) = [line["add"] for line in lines(place, 0) if "add" in line]
    again = {**file, "path": "again.parquet"}
    (place / "again.parquet").write_bytes((place / file["path"]).read_bytes())
    gone = {"path": file["path"], "dataChange": True, "deletionTimestamp": 1, "extendedFileMetadata": True, "partitionValues": {}, "size": 1}
    metrics = {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"}
    info = {"timestamp": 1, "operation": "MERGE", "operationParameters": {}, "operationMetrics": metrics}
    commit(place, [{"commitInfo": info}, {"add": again}, {"remove": gone}])
    with Server(f"t={place}") as server, Database(server) as database:
        assert database.one("SELECT count(*) FROM table_changes('t', 0)") == 10
        assert database.rows("SELECT * FROM table_changes('t', 1)") == []


def test_what_keeps_no_changes(tmp_path):
    pq.write_table(ROWS, tmp_path / "plain.parquet")
    with Server(tmp_path / "plain.parquet") as server, Database(server) as database:
        refused(database, "SELECT * FROM table_changes('plain', 0)", "does not record changes", "enableChangeDataFeed")
        refused(database, "SELECT * FROM table_changes('nobody', 0)", "nobody")
        database.run("CREATE TABLE own (a INT)", "CREATE VIEW v AS SELECT 1 AS a")
        for name in ("own", "v"):
            refused(database, f"SELECT * FROM table_changes('{name}', 0)", "does not record changes")
        for arguments in ("", "'plain'", "plain, 0", "'plain', 0, 1, 2", "'plain', x => 0"):
            refused(database, f"SELECT * FROM table_changes({arguments})", "takes the name of a table")
        for arguments in ("'plain', -1", "'plain', 0.5", "'plain', 1 + 1"):
            refused(database, f"SELECT * FROM table_changes({arguments})", "neither a table version")


@pytest.mark.parametrize("partitioned", [[], ["part"]])
def test_in_an_object_store(s3, tmp_path, partitioned):
    address = f"s3://lake/changes/{tmp_path.name}/t"
    more = {"storage_options": options(s3)}
    history(address, partition_by=partitioned, **more)
    last = DeltaTable(address, **more).version()
    with serving(f"t={address}", s3=s3) as database:
        for first in range(last + 1):
            got, expected = asked(database, first), wanted(address, first, **more)
            assert normal(got, times=False) == normal(expected, times=False), first
        write_deltalake(address, changes.rows(900, 3), mode="append", **more)
        wait_until(lambda: database.one("SELECT max(_commit_version) FROM table_changes('t', 0)") == last + 1, "the commit that came")
        refused(database, f"SELECT * FROM table_changes('t', {last + 9})", f"no version {last + 9}")
        name = address.removeprefix("s3://")
        victim = next(path for path in s3.names(f"{name}/_change_data") if path.endswith(".parquet"))
        s3.delete(victim)
        wait_until(lambda: not works(database, ALL), "the file that is gone", 30)
        refused(database, ALL, "was removed", "VACUUM")


def test_an_empty_text_is_null_in_a_partition(tmp_path):
    """As the protocol has it, in the rows and in their changes."""
    place = tmp_path / "t"
    make(place, pa.table({"id": [1, 2, 3], "part": ["", "pub", None]}), partition_by=["part"])
    with Server(f"t={place}") as server, Database(server) as database:
        for source in ("t", "table_changes('t', 0)"):
            assert database.rows(f"SELECT id, part FROM {source} ORDER BY id") == [(1, None), (2, "pub"), (3, None)]
            assert database.rows(f"SELECT id FROM {source} WHERE part = ''") == []
            assert database.rows(f"SELECT id FROM {source} WHERE part IS NULL ORDER BY id") == [(1,), (3,)]


def test_rows_that_go_are_those_of_the_version_before(tmp_path):
    """A column that becomes a narrower one takes the rows with it that had the wider one."""
    place = tmp_path / "t"
    make(place, pa.table({"id": [1], "n": pa.array([777_123], pa.int64())}))
    narrow = pa.table({"id": [2], "n": pa.array([7], pa.int16())})
    write_deltalake(place, narrow, mode="overwrite", schema_mode="overwrite")
    write_deltalake(place, narrow, mode="append")
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, "SELECT * FROM table_changes('t', 1)", "version 0 has the column `n` of another type")
        assert database.rows("SELECT id, n FROM table_changes('t', 2)") == [(2, 7)]


def test_what_cannot_be_done_with_changes(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 3))
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, "DELETE FROM table_changes('t', 0)", "is read-only")
        refused(database, "SELECT * FROM table_changes('t', 0) WITH ORDINALITY", "WITH ORDINALITY")
        plan = " ".join(str(value) for row in database.rows("EXPLAIN SELECT id FROM table_changes('t', 0)") for value in row)
        assert "TableScan: t " in plan and not any(ord(letter) < 32 and letter != "\n" for letter in plan), plan
        refused(database, "SELECT * FROM table_changes('s.t', 0)", "s.t")


def test_a_file_that_comes_twice(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 3))
    (file,) = [line["add"] for line in lines(place, 0) if "add" in line]
    number = commit(place, [{"add": {**file, "path": "twice.parquet"}}] * 2)
    commit(place, [{"remove": {"path": "twice.parquet", "dataChange": True, "deletionTimestamp": 1}}])
    with Server(f"t={place}") as server, Database(server) as database:
        refused(database, f"SELECT * FROM table_changes('t', {number}, {number})", "twice")
        assert database.one("SELECT count(*) FROM table_changes('t', 0, 0)") == 3
