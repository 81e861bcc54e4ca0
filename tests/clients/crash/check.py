"""Looks at a server that was started on what a killed one has left, and compares it with the ledger."""

import contextlib
import pathlib
import urllib.parse

import adbc_driver_flightsql.dbapi as dbapi
import deltalake

from durable import cursor_of

from . import disk, load, threads
from .ledger import ABSENT

LOCATIONS = "SELECT table_name, location FROM bowshot.system.tables WHERE location IS NOT NULL"
LISTED = "SELECT table_name FROM information_schema.tables WHERE table_catalog = 'bowshot' AND table_schema = 'main'"
# Rows of versions that nobody asks for any more may take this much beside the rows that are there.
SPARE_BYTES = 64 << 20


class Check:
    def __init__(self, server, folder, ledger):
        self.server, self.folder, self.ledger = server, pathlib.Path(folder), ledger
        self.complaints = []
        self.connection = dbapi.connect(server.grpc_tcp, autocommit=True)

    def rows(self, sql):
        with cursor_of(self.connection) as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def locations(self):
        return {name: location for name, location in self.rows(LOCATIONS)}

    def run(self):
        with contextlib.closing(self.connection):
            for part in (self.batches, self.singles, self.counters, self.transfers, self.tables, self.history, self.files):
                try:
                    part()
                except Exception as error:
                    self.complaints.append(f"{part.__name__}: {type(error).__name__}: {error}")
        return self.complaints

    def settle(self, kind, found):
        self.complaints.extend(self.ledger.settle(kind, found))

    def batches(self):
        for row in self.rows(threads.PARTIAL):
            self.complaints.append(f"batch {row[0]}: {row[1]} rows, {row[2]} positions, the last is {row[3]}")
        found = self.rows("SELECT batch, count(*) FROM ingested GROUP BY batch")
        self.settle("batch", {("batch", batch): count for batch, count in found})

    def singles(self):
        found = self.rows("SELECT id, count(*), CAST(sum(amount) * 100 AS BIGINT) FROM singles GROUP BY id")
        self.settle("single", {("single", key): (count, cents) for key, count, cents in found})

    def counters(self):
        self.settle("counter", {("counter", number): n for number, n in self.rows("SELECT id, n FROM counters")})

    def transfers(self):
        found = self.rows("SELECT id, count(*), sum(amount) FROM transfers GROUP BY id")
        self.complaints.extend(f"transfer {key} is there {count} times" for key, count, _ in found if count != 1)
        self.settle("transfer", {("transfer", key): int(amount) for key, _, amount in found})
        (row,) = self.rows(threads.SUMS)
        if complaint := threads.sums_complaint(row):
            self.complaints.append(f"a transfer is there by half: {complaint}")

    def tables(self):
        """The tables that threads made: a name alone, with its rows; a name and the same with `_b`; or `_old`."""
        listed = {name for (name,) in self.rows(LISTED)}
        self.complaints.extend(f"table {name} is lost" for name in load.TABLES.keys() - listed)
        counts = {name: self.rows(f"SELECT count(*) FROM {name}")[0][0] for name in listed - load.TABLES.keys()}
        found = {}
        for name in {name.removesuffix("_b").removesuffix("_old") for name in counts}:
            parts = [counts.get(name), counts.get(f"{name}_b"), counts.get(f"{name}_old")]
            state = tuple(parts)
            if parts[1:] == [ABSENT, ABSENT]:
                state = parts[0]
            elif parts[:2] == [ABSENT, ABSENT]:
                state = ("old", parts[2])
            elif parts[2] is ABSENT:
                state = (parts[0], parts[1])
            found["table", name] = state
        self.settle("table", found)

    def history(self):
        twice = "SELECT table_name, version, count(*) FROM bowshot.system.table_history GROUP BY 1, 2 HAVING count(*) > 1"
        for name, version, count in self.rows(twice):
            self.complaints.append(f"version {version} of {name} is {count} times in the history")

    def files(self):
        missing = {name for (name,) in self.rows(LISTED)} - self.locations().keys()
        self.complaints.extend(f"table {name} has no location" for name in missing)
        strays = disk.orphans_that_stay(self.folder, lambda: self.locations().values())
        self.complaints.extend(f"nobody refers to {path}" for path in strays)


class Stranger(Check):
    """What another reader of the files finds after OPTIMIZE, and what the disk holds after VACUUM."""

    def run(self):
        with contextlib.closing(self.connection):
            for name in load.TABLES:
                self.same_for_others(name)
            self.files()
            held, live = disk.data_bytes(self.folder), self.live_bytes()
            if held > SPARE_BYTES + 2 * live:
                self.complaints.append(f"{held} bytes of rows on disk after VACUUM, of which {live} are in use")
        return self.complaints

    def same_for_others(self, name):
        for sql in (f"OPTIMIZE {name}", f"VACUUM {name} RETAIN 0 HOURS"):
            self.rows(sql)
        location = self.locations()[name]
        theirs = deltalake.DeltaTable(location).count()
        ((ours,),) = self.rows(f"SELECT count(*) FROM {name}")
        if ours != theirs:
            self.complaints.append(f"{name} has {ours} rows for us, {theirs} for a reader of {location}")

    def live_bytes(self):
        total = 0
        for location in self.locations().values():
            for uri in deltalake.DeltaTable(location).file_uris():
                total += pathlib.Path(urllib.parse.unquote(uri.removeprefix("file://"))).stat().st_size
        return total
