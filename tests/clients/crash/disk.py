"""The data folder as a stranger sees it: which files are there, and who refers to them."""

import json
import pathlib
import re
import shutil
import sqlite3
import tempfile
import time
import urllib.parse

import pyarrow.parquet as pq

from server import BUSY_FACTOR

IN_THE_LOG = re.compile(r"\d{20}\.json|\d{20}\.checkpoint(\..*)?\.parquet|\d{20}\.crc|\d{20}\.\d{20}\.compacted\.json|_last_checkpoint")
# The last one says which opening of the catalog the kept results are of.
ALWAYS_THERE = {"catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "bowshot.lock", "result_cache/opening"}


def sizes(folder):
    """Path below the folder and bytes of every file; one that goes away meanwhile is left out."""
    found = {}
    for path in pathlib.Path(folder).rglob("*"):
        try:
            if path.is_file():
                found[path.relative_to(folder)] = path.stat().st_size
        except FileNotFoundError:
            continue
    return found


def data_bytes(folder):
    """Bytes of rows: files of tables without their logs."""
    return sum(size for path, size in sizes(folder).items() if path.parts[0] == "tables" and "_delta_log" not in path.parts)


def in_log(table):
    """Names of the data files that a table's Delta log speaks of, live or removed."""
    names = set()
    for path in sorted((table / "_delta_log").glob("*")):
        try:
            if path.suffix == ".json":
                actions = [json.loads(line) for line in path.read_text().splitlines() if line]
            elif path.suffix == ".parquet":
                columns = [name for name in ("add", "remove") if name in pq.read_schema(path).names]
                actions = pq.read_table(path, columns=columns).to_pylist()
            else:
                continue
        except FileNotFoundError:
            continue
        for action in actions:
            for kind in ("add", "remove"):
                if action.get(kind):
                    names.add(urllib.parse.unquote(action[kind]["path"]))
    return names


def catalog_text(folder):
    """Everything that the catalog holds, as one text, read from a copy: the server has the original open."""
    with tempfile.TemporaryDirectory() as copy:
        for name in ("catalog.sqlite", "catalog.sqlite-wal"):
            if (path := pathlib.Path(folder, name)).exists():
                shutil.copy(path, copy)
        connection = sqlite3.connect(pathlib.Path(copy, "catalog.sqlite"))
        connection.text_factory = lambda value: value.decode(errors="replace")
        parts = []
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            for row in connection.execute(f'SELECT * FROM "{name}"'):
                parts.extend(value if isinstance(value, str) else value.decode(errors="replace")
                             for value in row if isinstance(value, (str, bytes)))  # fmt: skip
        connection.close()
    return "\n".join(parts)


def orphans(folder, locations):
    """Files that nobody refers to: not the Delta log of a table that is there, not the catalog."""
    folder = pathlib.Path(folder).resolve()
    tables = {pathlib.Path(urllib.parse.unquote(location.removeprefix("file://"))).resolve() for location in locations}
    known = {table: in_log(table) for table in tables}
    strays = []
    for path in sizes(folder):
        table = next((table for table in tables if table in (folder / path).parents), None)
        if table is None:
            if str(path) not in ALWAYS_THERE:
                strays.append(path)
        elif "_delta_log" in path.parts:
            if not IN_THE_LOG.fullmatch(path.name):
                strays.append(path)
        elif str((folder / path).relative_to(table)) not in known[table]:
            strays.append(path)
    # The server that lives holds one; those of servers that were killed went when it started.
    locks = [path for path in strays if path.match("spill/bowshot-spill-*.lock")]
    if len(locks) == 1:
        strays.remove(locks[0])
    # Results that are kept refer to one another: rows, and what they are the answer to.
    pairs = {".arrow": ".json", ".json": ".arrow"}
    kept = {path for path in strays if path.parent.name == "result_cache" and path.suffix in pairs}
    strays = [path for path in strays if path not in kept or path.with_suffix(pairs[path.suffix]) not in kept]
    if strays:
        catalog = catalog_text(folder)
        strays = [path for path in strays if path.name not in catalog]
    return strays


def orphans_that_stay(folder, locations, seconds=10.0 * BUSY_FACTOR):
    """Orphans that are still there after a while: what a server writes right now is not referred to yet, and it may take
    files away behind the back of the first statements. `locations` is asked again each time."""
    deadline = time.monotonic() + seconds
    while True:
        found = orphans(folder, locations())
        if not found or time.monotonic() > deadline:
            return sorted(map(str, found))
        time.sleep(0.1)
