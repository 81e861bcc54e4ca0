"""Delta folders that others wrote, served by path as read-only tables: what we answer is what their writer reads."""

import datetime
import decimal
import json
import shutil

import adbc_driver_flightsql.dbapi as dbapi
import deltalake
import pyarrow as pa
import pytest

from delta import assert_same, by_deltalake
from durable import Database, contents
from server import Server, wait_until
from test_delta import TYPES

DAY = datetime.date(2024, 2, 29)
ROWS = pa.table({
    "id": pa.array(range(1000), pa.int64()),
    "word": pa.array([None if n % 10 == 0 else f"größe {n % 7}" for n in range(1000)]),
    "number": pa.array([n % 4 for n in range(1000)], pa.int32()),
    "day": pa.array([DAY + datetime.timedelta(n % 3) for n in range(1000)]),
})


def plain(folder):
    deltalake.write_deltalake(folder, ROWS)


def every_type(folder):
    deltalake.write_deltalake(folder, pa.table(TYPES))


def no_rows(folder):
    deltalake.write_deltalake(folder, ROWS.slice(0, 0))


def partitioned_by_text(folder):
    # Without the empty text, which the protocol reads as null and delta-rs as it is.
    text = pa.array(["a", "b c/ü%20", "=", None, "?"] * 200)
    deltalake.write_deltalake(folder, ROWS.append_column("part", text), partition_by=["part"])


def partitioned_by_two(folder):
    deltalake.write_deltalake(folder, ROWS, partition_by=["day", "number"])


def deleted(folder):
    plain(folder)
    table = deltalake.DeltaTable(folder)
    table.delete("id % 3 = 0")
    table.update({"word": "'changed'"}, predicate="id < 50")


def deleted_from_partitions(folder):
    partitioned_by_two(folder)
    deltalake.DeltaTable(folder).delete("number = 2")
    deltalake.DeltaTable(folder).delete("day = '2024-03-01' AND id < 500")


def merged(folder):
    plain(folder)
    source = pa.table({"id": pa.array([5, 2000], pa.int64()), "word": ["five", "new"]})
    merge = deltalake.DeltaTable(folder).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update({"word": "s.word"}).when_not_matched_insert({"id": "s.id", "word": "s.word"}).execute()


def optimised(folder):
    for start in range(0, 1000, 100):
        deltalake.write_deltalake(folder, ROWS.slice(start, 100), mode="append", partition_by=["number"])
    deltalake.DeltaTable(folder).optimize.compact()


def checkpointed(folder):
    for start in range(0, 1000, 50):
        deltalake.write_deltalake(folder, ROWS.slice(start, 50), mode="append")
    table = deltalake.DeltaTable(folder)
    table.create_checkpoint()
    table.delete("id < 100")


def checkpoint_alone(folder):
    """The commits before a checkpoint are gone, as after the retention of a log."""
    checkpointed(folder)
    for number in range(15):
        (folder / "_delta_log" / f"{number:020}.json").unlink()


def vacuumed(folder):
    deleted(folder)
    deltalake.DeltaTable(folder).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def with_new_column(folder):
    plain(folder)
    more = ROWS.slice(0, 10).append_column("more", pa.array([1.5] * 10))
    deltalake.write_deltalake(folder, more, mode="append", schema_mode="merge")


def overwritten(folder):
    plain(folder)
    deltalake.write_deltalake(folder, pa.table({"other": [1, 2]}), mode="overwrite", schema_mode="overwrite")


MADE = [
    plain, every_type, no_rows, partitioned_by_text, partitioned_by_two, deleted, deleted_from_partitions, merged, optimised,
    checkpointed, checkpoint_alone, vacuumed, with_new_column, overwritten,
]  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("delta")
    for make in MADE:
        make(root / make.__name__)
    return root


@pytest.fixture(scope="module")
def shared(folders):
    with Server(*(f"{make.__name__}={folders / make.__name__}" for make in MADE)) as server:
        yield server


@pytest.mark.parametrize("name", [make.__name__ for make in MADE])
def test_rows_and_types(db, folders, name):
    assert_same(db.arrow(f"SELECT * FROM {name}"), by_deltalake(folders / name))


def test_partitions_and_statistics_leave_out_no_row(db, folders):
    theirs = by_deltalake(folders / "deleted_from_partitions").to_pylist()
    for words, keep in {
        "number = 3": lambda row: row["number"] == 3,
        "number > 1 AND id < 300": lambda row: row["number"] > 1 and row["id"] < 300,
        "day = DATE '2024-03-01'": lambda row: row["day"] == datetime.date(2024, 3, 1),
        "day <> DATE '2024-03-01' OR number IS NULL": lambda row: row["day"] != datetime.date(2024, 3, 1),
        "word IS NULL": lambda row: row["word"] is None,
    }.items():
        ours = db.rows(f"SELECT id FROM deleted_from_partitions WHERE {words} ORDER BY id")
        assert ours == sorted((row["id"],) for row in theirs if keep(row)), words
    assert db.rows("SELECT id FROM partitioned_by_text WHERE part IS NULL ORDER BY id LIMIT 2") == [(3,), (8,)]
    assert db.one("SELECT count(*) FROM partitioned_by_text WHERE part = 'b c/ü%20'") == 200


def test_tables_of_others_are_read_only(db, folders):
    before = contents(folders / "plain")
    for sql in (
        "INSERT INTO plain SELECT * FROM plain",
        "UPDATE plain SET id = 0",
        "DELETE FROM plain",
        "DROP TABLE plain",
        "ALTER TABLE plain ADD COLUMN x INT",
        "OPTIMIZE plain",
        "VACUUM plain RETAIN 0 HOURS",
    ):
        with pytest.raises(dbapi.Error, match=r"read-only|table of files|served"):
            db.run(sql)
    assert contents(folders / "plain") == before


@pytest.fixture
def folder(tmp_path):
    plain(tmp_path / "t")
    return tmp_path / "t"


def test_what_others_write_is_seen(folder):
    with Server(f"t={folder}") as server, Database(server) as db:
        assert db.one("SELECT count(*) FROM t") == 1000
        deltalake.write_deltalake(folder, ROWS, mode="append")
        wait_until(lambda: db.one("SELECT count(*) FROM t") == 2000, "the new rows", 10)
        deltalake.DeltaTable(folder).delete("id < 900")
        wait_until(lambda: db.one("SELECT count(*) FROM t") == 200, "the deleted rows are gone", 10)
        deltalake.write_deltalake(folder, pa.table({"more": [1]}), mode="append", schema_mode="merge")
        wait_until(lambda: db.arrow("SELECT * FROM t").column_names[-1] == "more", "the new column", 10)
        assert db.one("SELECT count(*) FROM t WHERE more = 1") == 1


def test_files_that_the_log_does_not_name_are_no_rows(folder):
    (file,) = folder.glob("*.parquet")
    shutil.copy(file, folder / "part-00001-of-a-writer-that-was-killed.parquet")
    with Server(f"t={folder}") as server, Database(server) as db:
        assert db.one("SELECT count(*) FROM t") == 1000


def test_a_folder_of_ours_can_be_served_by_another_server(tmp_path):
    with Server(data=tmp_path / "data") as server, Database(server) as db:
        db.ingest("t", ROWS)
        db.run("DELETE FROM t WHERE id < 10", "OPTIMIZE t")
        location = db.location("t")
        with Server(f"copy={location}") as other, Database(other) as reader:
            assert_same(db.arrow("SELECT * FROM t"), reader.arrow("SELECT * FROM copy"))


def test_columns_that_have_other_names_in_the_files(tmp_path):
    """By the names of the table, never by those that stand in the files."""
    folder = tmp_path / "t"
    deltalake.write_deltalake(folder, ROWS, configuration={"delta.columnMapping.mode": "name"})
    with Server(f"t={folder}") as server, Database(server) as db:
        assert_same(db.arrow("SELECT * FROM t"), ROWS)


def add_commit(folder, *actions):
    number = len(list((folder / "_delta_log").glob("*.json")))
    (folder / "_delta_log" / f"{number:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_a_table_that_asks_for_more_than_we_know_is_refused(folder):
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["telepathy"], "writerFeatures": ["telepathy"]}
    add_commit(folder, {"protocol": protocol})
    assert_fails_alone(folder, "(?i)telepathy")


@pytest.mark.parametrize("damage", ["log", "file"])
def test_a_folder_that_is_damaged_fails_alone_and_by_name(folder, damage):
    (file,) = folder.glob("*.parquet")
    if damage == "log":
        (folder / "_delta_log" / f"{0:020}.json").write_text("{")
        assert_fails_alone(folder, f"{folder.name}|00000.json")
    else:
        file.unlink()
        assert_fails_alone(folder, file.name)


def assert_fails_alone(folder, words):
    """Like any broken file: the server starts and serves the others."""
    plain(folder.with_name("good"))
    with Server(f"broken={folder}", f"good={folder.with_name('good')}") as server, Database(server) as db:
        with pytest.raises(dbapi.Error, match=words):
            db.rows("SELECT * FROM broken")
        assert db.one("SELECT count(*) FROM good") == 1000


def test_empty_texts_of_partitions_are_null(tmp_path):
    """Whatever their type is, as the protocol has it ("Partition Value Serialization"); in commits and in checkpoints."""
    folder = tmp_path / "t"
    part = pa.array([["", "a", None][n % 3] for n in range(1000)])
    deltalake.write_deltalake(folder, ROWS.append_column("part", part), partition_by=["part"])
    nulls = sorted(n for n in range(1000) if n % 3 != 1)
    for checkpoint in (False, True):
        if checkpoint:
            deltalake.DeltaTable(folder).create_checkpoint()
        with Server(f"t={folder}") as server, Database(server) as db:
            assert db.rows("SELECT DISTINCT part FROM t ORDER BY part") == [("a",), (None,)]
            assert db.rows("SELECT id FROM t WHERE part IS NULL ORDER BY id") == [(n,) for n in nulls]
            assert db.one("SELECT count(*) FROM t WHERE part = ''") == 0
            assert db.one("SELECT count(*) FROM t WHERE part <> 'b'") == 333
            assert db.one("SELECT count(part) FROM t") == 333
            assert db.one("SELECT count(*) FROM t WHERE id < 30 AND part IS NOT NULL") == 10


@pytest.mark.parametrize("spelling", ["1.5", "+1.5", "15e-1", "1.500"])
def test_decimals_of_partitions_as_others_write_them(tmp_path, spelling):
    folder = tmp_path / "t"
    part = pa.array([decimal.Decimal("1.50"), decimal.Decimal("-3.00"), decimal.Decimal("100.00")], pa.decimal128(10, 2))
    deltalake.write_deltalake(folder, pa.table({"id": [1, 2, 3], "part": part}), partition_by=["part"])
    entry = folder / "_delta_log" / f"{0:020}.json"
    written = entry.read_text()
    for full, short in [("1.50", spelling), ("-3.00", "-3"), ("100.00", "1E+2")]:
        assert f'"part":"{full}"' in written
        written = written.replace(f'"part":"{full}"', f'"part":"{short}"')
    entry.write_text(written)
    with Server(f"t={folder}") as server, Database(server) as db:
        assert db.rows("SELECT id, part FROM t ORDER BY id") == list(enumerate(part.to_pylist(), 1))
        assert db.one("SELECT id FROM t WHERE part = 1.5") == 1
        assert db.one("SELECT sum(id) FROM t WHERE part > 1") == 4


@pytest.mark.parametrize("hint", ["missing", "later", "empty", "noise"])
def test_a_hint_to_a_checkpoint_that_misleads(tmp_path, hint):
    """All commits are there, so the log can be read without it."""
    folder, more = tmp_path / "t", tmp_path / "more"
    checkpointed(folder)
    # The writer itself refuses such a log, so the next commit is made in a copy that is whole.
    shutil.copytree(folder, more)
    deltalake.write_deltalake(more, ROWS.slice(0, 5), mode="append")
    log = folder / "_delta_log"
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    said = json.loads((log / "_last_checkpoint").read_text())
    if hint == "missing":
        checkpoint.unlink()
    elif hint == "later":
        (log / "_last_checkpoint").write_text(json.dumps(said | {"version": said["version"] + 1000}))
    elif hint == "empty":
        checkpoint.write_bytes(b"")
    else:
        (log / "_last_checkpoint").write_bytes(b"{")
    with Server(f"t={folder}") as server, Database(server) as db:
        assert db.one("SELECT count(*) FROM t") == 900
        assert db.one(f"SELECT count(*) FROM t FOR VERSION AS OF {said['version']}") == 1000
        for place in sorted(more.rglob("*"), reverse=True):  # the commit after its file
            if place.is_file() and not (copy := folder / place.relative_to(more)).exists() and "checkpoint" not in place.name:
                shutil.copy(place, copy)
        wait_until(lambda: db.one("SELECT count(*) FROM t") == 905, "the new rows", 10)
