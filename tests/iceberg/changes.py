"""Delta tables whose writer keeps their changes: histories of them, and what it reads of the changes itself."""

import datetime
import json
import os
import pathlib
import time

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

FEED = {"delta.enableChangeDataFeed": "true"}
DAY = datetime.date(2024, 2, 29)
NESTED = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.struct([("z", pa.string())])))])


def rows(first, count, nested=False):
    ids = range(first, first + count)
    table = pa.table({
        "id": pa.array(ids, pa.int64()),
        "word": pa.array([None if n % 6 == 0 else f"größe {n % 7}" for n in ids], pa.string()),
        "number": pa.array([None if n % 9 == 0 else n % 4 for n in ids], pa.int32()),
        "part": pa.array([None if n % 11 == 0 else "ab"[n % 2] for n in ids], pa.string()),
        "day": pa.array([DAY + datetime.timedelta(n % 3) for n in ids]),
    })
    if nested:
        values = [None if n % 5 == 0 else {"x": n, "y": [{"z": f"z{n}"}, None, {"z": None}][: n % 4]} for n in ids]
        table = table.append_column("nested", pa.array(values, NESTED)).append_column(
            "labels", pa.array([[(f"k{n % 3}", n)] for n in ids], pa.map_(pa.string(), pa.int64())))
    return table


def make(place, first, configuration=FEED, partition_by=(), **more):
    write_deltalake(place, first, configuration=configuration, partition_by=list(partition_by) or None, **more)


def merge(table, source):
    merging = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merging.when_matched_update({"word": "s.word", "number": "42"}).when_not_matched_insert_all().execute()


def history(place, partition_by=(), nested=False, configuration=FEED, optimize=True, storage_options=None):
    """A table with changes of every kind, one for each version."""
    more = {"storage_options": storage_options} if storage_options else {}

    def table():
        return DeltaTable(place, **more)

    make(place, rows(0, 20, nested), configuration=configuration, partition_by=partition_by, **more)
    table().update(updates={"word": "'new'"}, predicate="id < 5")
    table().delete("id % 4 = 1")
    write_deltalake(place, rows(20, 10, nested), mode="append", **more)
    if optimize:
        table().optimize.compact()
    merge(table(), rows(15, 20, nested))
    table().delete("part = 'a'")
    table().update(updates={"number": "7"}, predicate="id > 25")
    write_deltalake(place, rows(100, 5, nested), mode="overwrite", **more)
    if not storage_options:
        set_times(place)


def entry(place, number):
    return pathlib.Path(place) / "_delta_log" / f"{number:020}.json"


def lines(place, number):
    return [json.loads(line) for line in entry(place, number).read_text().splitlines()]


def set_times(place):
    """The times of entries are those that are in them: their writer believes these, and the protocol those."""
    for path in (pathlib.Path(place) / "_delta_log").glob("*.json"):
        for line in path.read_text().splitlines():
            if "commitInfo" in line:
                stamp = json.loads(line)["commitInfo"]["timestamp"] * 1_000_000
                os.utime(path, ns=(stamp, stamp))


def commit(place, actions):
    """Adds an entry to the log, as it is."""
    numbers = [int(path.stem) for path in (pathlib.Path(place) / "_delta_log").glob("*.json")]
    number = max(numbers) + 1
    if not any("commitInfo" in action for action in actions):
        # Later than the one before, whenever that was.
        stamp = time.time_ns() // 1_000_000 + number
        actions = [{"commitInfo": {"timestamp": stamp, "operation": "WRITE", "operationParameters": {}}}, *actions]
    entry(place, number).write_text("\n".join(map(json.dumps, actions)))
    return number


def metadata(place, change):
    """The last metadata of a table with another schema."""
    numbers = sorted(int(path.stem) for path in (pathlib.Path(place) / "_delta_log").glob("*.json"))
    found = [line for number in numbers for line in lines(place, number) if "metaData" in line][-1]
    schema = json.loads(found["metaData"]["schemaString"])
    change(schema)
    found["metaData"]["schemaString"] = json.dumps(schema)
    return found


def asked(database, first, last=None):
    last = "" if last is None else f", {last}"
    return database.arrow(f"SELECT * FROM table_changes('t', {first}{last})")


def wanted(place, first, last=None, **more):
    return pa.table(DeltaTable(place, **more).load_cdf(starting_version=first, ending_version=last).read_all())


def normal(table, times=True):
    """Rows in an order, with times without their zone, or without times."""
    found = []
    for row in table.to_pylist():
        stamp = row.pop("_commit_timestamp")
        if times:
            row["_commit_timestamp"] = stamp.replace(tzinfo=None)
        found.append(repr(sorted(row.items())))
    return sorted(found)
