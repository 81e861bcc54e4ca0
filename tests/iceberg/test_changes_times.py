"""Ranges of changes by times, and when each commit was made."""

import datetime
import json
import os

from deltalake import DeltaTable, write_deltalake

import changes
from changes import commit, entry, history, lines, make
from conftest import refused
from durable import Database
from server import Server


def test_times(tmp_path):
    place = tmp_path / "t"
    history(place)
    base = 1_700_000_000
    last = DeltaTable(place).version()
    for number in range(last + 1):
        os.utime(entry(place, number), (base + number * 100, base + number * 100))

    def at(second):
        return datetime.datetime.fromtimestamp(base + second, datetime.timezone.utc).isoformat(sep=" ")

    with Server(f"t={place}") as server, Database(server) as database:
        def versions(*ends):
            return [row for (row,) in database.rows(
                f"SELECT DISTINCT _commit_version FROM table_changes('t', {', '.join(ends)}) ORDER BY 1")]

        every = versions("0")
        for first, end in [(0, 100), (1, 100), (100, 299), (50, 9_999), (-100, 0), (101, 199)]:
            expected = [number for number in every if first <= number * 100 <= end]
            assert versions(f"'{at(first)}'", f"'{at(end)}'") == expected, (first, end)
            assert versions(f"TIMESTAMP '{at(first)}'", f"CAST('{at(end)}' AS TIMESTAMP)") == expected, (first, end)
        assert versions("1", f"'{at(200)}'") == [number for number in every if 1 <= number <= 2]
        assert versions(f"'{at(200)}'", "3") == [number for number in every if 2 <= number <= 3]
        stamps = database.rows("SELECT DISTINCT _commit_version, _commit_timestamp FROM table_changes('t', 0)")
        assert {version: stamp.timestamp() for version, stamp in stamps} == {number: base + number * 100 for number in every}
        refused(database, f"SELECT * FROM table_changes('t', '{at(last * 100 + 1)}')", "no version from", f"0 to {last}")
        refused(database, f"SELECT * FROM table_changes('t', 0, '{at(-1)}')", "has no version of")
        refused(database, f"SELECT * FROM table_changes('t', '{at(300)}', '{at(100)}')", "earlier version or time first")
        refused(database, "SELECT * FROM table_changes('t', 'soon')", "not a valid timestamp")


def test_times_that_commits_keep_themselves(tmp_path):
    place, stamp = tmp_path / "t", 1_700_000_000_123
    make(place, changes.rows(0, 3))
    (file,) = [line["add"] for line in lines(place, 0) if "add" in line]
    info = {"timestamp": 1, "inCommitTimestamp": stamp, "operation": "WRITE", "operationParameters": {}}
    (place / "again.parquet").write_bytes((place / file["path"]).read_bytes())
    commit(place, [{"commitInfo": info}, {"add": {**file, "path": "again.parquet"}}])
    with Server(f"t={place}") as server, Database(server) as database:
        found = database.one("SELECT max(_commit_timestamp) FROM table_changes('t', 1)")
        assert found == datetime.datetime.fromtimestamp(stamp / 1000, datetime.timezone.utc)


def test_times_are_in_the_order_of_versions(tmp_path):
    """A log that was copied without the times of its files: each version is later than the one before."""
    place = tmp_path / "t"
    make(place, changes.rows(0, 1))
    for number in range(1, 5):
        write_deltalake(place, changes.rows(number, 1), mode="append")
    for number, second in enumerate([100, 50, 60, 200, 10]):
        os.utime(entry(place, number), (second, second))
    stamp = datetime.datetime.fromtimestamp
    with Server(f"t={place}") as server, Database(server) as database:

        def versions(first, last):
            first, last = (stamp(second, datetime.timezone.utc).isoformat() for second in (first, last))
            rows = database.rows(f"SELECT _commit_version, _commit_timestamp FROM table_changes('t', '{first}', '{last}') ORDER BY 1")
            return {version: round(time.timestamp() * 1000) for version, time in rows}

        assert versions(100, 101) == {0: 100_000, 1: 100_001, 2: 100_002}
        assert versions(150, 300) == {3: 200_000, 4: 200_001}


def test_a_commit_with_a_long_first_line_keeps_its_time(tmp_path):
    place = tmp_path / "t"
    make(place, changes.rows(0, 1))
    for number in range(1, 4):
        write_deltalake(place, changes.rows(number, 1), mode="append")
        found = lines(place, number)
        info = next(line["commitInfo"] for line in found if "commitInfo" in line)
        rest = [line for line in found if "commitInfo" not in line]
        info |= {"operationParameters": {"predicate": "x" * 90_000}, "inCommitTimestamp": number * 100_000}
        entry(place, number).write_text("\n".join(map(json.dumps, [{"commitInfo": info}, *rest])))
    os.utime(entry(place, 0), (1, 1))
    with Server(f"t={place}") as server, Database(server) as database:
        for first, last, wanted_versions in [(50, 250, [1, 2]), (150, 350, [2, 3]), (200, 200, [2])]:
            ends = ", ".join(f"'1970-01-01 00:0{second // 60}:{second % 60:02}'" for second in (first, last))
            rows = database.rows(f"SELECT DISTINCT _commit_version FROM table_changes('t', {ends}) ORDER BY 1")
            assert [row[0] for row in rows] == wanted_versions
