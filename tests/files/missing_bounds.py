"""Files whose statistics are missing, cut off or of some row groups alone: random conditions and aggregates over them give what
DuckDB gives over the rows, and what the same rows give as an Arrow file, which has no statistics. Prints `N passed, N failed`.

missing_bounds.py [--checks N] [--seed N]"""

import argparse
import contextlib
import datetime
import decimal
import math
import pathlib
import random
import sys
import tempfile

import duckdb
import pyarrow as pa
import pyarrow.flight as flight

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

from bounds_cases import FORMATS, LONG, rows  # noqa: E402
from server import computing  # noqa: E402

# Checks of one table, and tables of one server.
CHECKS, TABLES = 15, 50


def literal(kind, value):
    """A value in SQL; both sides read it alike but for bytes."""
    if value is None:
        return "NULL"
    if kind in ("i64", "i32", "id"):
        return str(value)
    if kind == "text":
        return "'" + value.replace("'", "''") + "'"
    if kind == "bytes":
        return "{" + value.hex() + "}"
    if kind in ("f64", "f32"):
        return f"CAST('{value!r}' AS DOUBLE)"
    names = {"dec": "DECIMAL(12, 3)", "wide": "DECIMAL(33, 5)", "ts": "TIMESTAMP", "day": "DATE", "flag": "BOOLEAN"}
    return f"CAST('{value}' AS {names[kind]})"


def for_engine(sql, engine):
    """Bytes as an engine writes them."""
    out = []
    for number, part in enumerate(sql.split("{")):
        digits, closed, rest = part.partition("}")
        if number == 0:
            out.append(part)
        elif engine == "duckdb":
            out.append("unhex('" + digits + "')" + rest)
        else:
            assert closed
            out.append("X'" + digits + "'" + rest)
    return "".join(out)


class Statements:
    """Random statements over a table, which they call `{t}`."""

    def __init__(self, rng, table):
        self.rng, self.table = rng, table
        self.kinds = [name for name in table.column_names if name != "id"]

    def value(self, kind):
        """One of the column's, or one beside it."""
        there = self.table[kind]
        value = there[self.rng.randrange(len(there))].as_py()
        if value is None or self.rng.random() < 0.6:
            return value
        if kind in ("i64", "i32", "id"):
            return value + self.rng.choice([-1, 1])
        if kind in ("text", "bytes"):
            return self.rng.choice([value[: self.rng.randint(0, 3)], value[:40], value + value[:1], value[:LONG]])
        if kind in ("dec", "wide"):
            return value + decimal.Decimal(self.rng.choice(["0.005", "-0.01", "1"]))
        if kind in ("f64", "f32"):
            return self.rng.choice([value + 0.25, math.nan, 0.0, -0.0, math.inf])
        if kind == "ts":
            return value + datetime.timedelta(microseconds=self.rng.choice([-1, 1, 999, 1000, -value.microsecond % 1000]))
        if kind == "day":
            return value + datetime.timedelta(days=1)
        return not value

    def known(self, kind):
        value = None
        while value is None:
            value = self.value(kind)
            if value is None and self.table[kind].null_count == len(self.table):
                return {"text": "m", "bytes": b"m", "flag": True, "day": datetime.date(2024, 1, 1),
                        "ts": datetime.datetime(2024, 1, 1), "f64": 1.0, "f32": 1.0}.get(kind, 1)  # fmt: skip
        return value

    def condition(self, depth=0):
        draw = self.rng.random()
        if depth < 2 and draw < 0.25:
            return f"({self.condition(depth + 1)} {self.rng.choice(['AND', 'OR'])} {self.condition(depth + 1)})"
        if depth < 2 and draw < 0.32:
            return f"NOT ({self.condition(depth + 1)})"
        kind = self.rng.choice(self.kinds)
        one = literal(kind, self.known(kind))
        form = self.rng.randrange(12)
        if form == 0:
            return f"{kind} IS {self.rng.choice(['NULL', 'NOT NULL'])}"
        if form == 1:
            return f"{kind} IN ({', '.join(literal(kind, self.known(kind)) for _ in range(self.rng.randint(1, 4)))})"
        if form == 2:
            return f"{kind} NOT IN ({one}, {literal(kind, self.known(kind))})"
        if form == 3:
            return f"{kind} BETWEEN {one} AND {literal(kind, self.known(kind))}"
        if form == 4:
            return f"{kind} IS {self.rng.choice(['', 'NOT '])}DISTINCT FROM {one}"
        if form == 5 and kind == "text":
            prefix = literal(kind, self.known(kind)[: self.rng.randint(0, 5)] + "%")
            return f"{kind} {self.rng.choice(['', 'NOT '])}LIKE {prefix}"
        return f"{kind} {self.rng.choice(['=', '<>', '<', '<=', '>', '>=', '='])} {one}"

    def where(self, share=1.0):
        return f" WHERE {self.condition()}" if self.rng.random() < share else ""

    def statement(self):
        kind, other = self.rng.choice(self.kinds), self.rng.choice(self.kinds)
        form = self.rng.randrange(9)
        values = ", ".join(f"({literal(kind, self.known(kind))})" for _ in range(self.rng.randint(1, 3)))
        if form == 0:
            extremes = "".join(f", min({name}), max({name})" for name in (kind, other) if name not in ("flag", "bytes"))
            return f"SELECT count(*), count({kind}), count({other}){extremes} FROM {{t}}{self.where(0.4)}"
        if form == 1:
            direction = self.rng.choice(["ASC NULLS LAST", "DESC NULLS LAST", "DESC NULLS FIRST"])
            return f"SELECT {kind} FROM {{t}}{self.where(0.3)} ORDER BY {kind} {direction} LIMIT {self.rng.randint(1, 6)}"
        if form == 2:
            return f"SELECT t.id FROM {{t}} t JOIN (VALUES {values}) v(x) ON t.{kind} = v.x{self.where(0.3)} ORDER BY 1"
        if form == 3:
            return f"SELECT id FROM {{t}} WHERE {kind} IN (SELECT x FROM (VALUES {values}) v(x)) ORDER BY 1"
        if form == 4 and kind not in ("flag", "bytes"):
            extreme = self.rng.choice(["min", "max"])
            return f"SELECT id FROM {{t}} WHERE {kind} = (SELECT {extreme}({kind}) FROM {{t}}{self.where(0.5)}) ORDER BY 1"
        if form == 5:
            return f"SELECT count(DISTINCT {kind}), count(DISTINCT id) FROM {{t}} WHERE {kind} = {literal(kind, self.known(kind))} AND id = 3"
        if form == 6 and kind in ("i64", "i32", "day"):
            return f"SELECT min(x), max(x) FROM (SELECT CAST({kind} AS VARCHAR) AS x FROM {{t}}) v"
        return f"SELECT id FROM {{t}}{self.where()} ORDER BY 1"


def plain(value):
    """A value as all sides have it."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def rows_of(table):
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us"))
        columns.append([plain(value) for value in column.to_pylist()])
    return list(zip(*columns)) if columns else []


class World:
    """Tables in each format, a server over them, and DuckDB with their rows."""

    def __init__(self, folder, seeds, large_every):
        self.folder, self.data = folder / "files", folder / "data"
        self.folder.mkdir()
        self.duckdb, self.cases = duckdb.connect(), []
        for seed in seeds:
            rng = random.Random(seed)
            large = seed % large_every == large_every - 1
            table, name = rows(rng, large), f"t{seed}"
            kind = rng.choice(["files"] * 5 + ["delta"] * 3 + ["iceberg", "own", "own"])
            FORMATS.get(kind, FORMATS["files"])(rng, table, self.folder, name)
            with pa.OSFile(str(self.folder / f"plain{seed}.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
                out.write_table(table)
            self.duckdb.register("given", table)
            self.duckdb.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            self.cases.append((seed, rng, kind, table, large))

    @contextlib.contextmanager
    def served(self):
        with computing(self.folder, data=self.data) as server:
            client = flight.connect(server.grpc_tcp)
            yield lambda sql: client.do_get(flight.Ticket(for_engine(sql, "bowshot").encode())).read_all()
            client.close()


def check(world, read, seed, table, sql):
    """An error's text, or none. `table` is the name to ask the server for."""
    wanted = rows_of(world.duckdb.sql(for_engine(sql.replace("{t}", f"t{seed}"), "duckdb")).to_arrow_table())
    for name in (table, f"plain{seed}"):
        try:
            got = rows_of(read(sql.replace("{t}", name)))
        except (flight.FlightError, pa.ArrowException) as error:
            return f"{name}: {str(error)[:300]}"
        if got != wanted:
            return f"{name}: {str(got)[:200]} instead of {str(wanted)[:200]}"
    return None


def checked(world, count):
    """Runs so many statements, and says how many were right and wrong."""
    passed = failed = 0
    with world.served() as read:
        for seed, rng, kind, table, large in world.cases:
            name, statements = f"t{seed}", Statements(rng, table)
            if kind == "own":
                name = f"own{seed}"
                read(f"CREATE TABLE {name} AS SELECT * FROM t{seed} WHERE id >= 0")
            for _ in range(min(CHECKS, count - passed - failed)):
                sql = statements.statement()
                # Columns of large files are decoded once, and found then.
                faults = [check(world, read, seed, name, sql) for _ in range(3 if large else 1)]
                fault = next((fault for fault in faults if fault), None)
                passed, failed = passed + (fault is None), failed + (fault is not None)
                if fault:
                    print(f"FAILED seed {seed} ({kind}): {sql[:400]}\n  {fault}", flush=True)
    return passed, failed


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--checks", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--large-every", type=int, default=25)
    given = options.parse_args()
    passed = failed = 0
    seed, open_checks = given.seed, given.checks
    while open_checks > 0:
        count = min(TABLES * CHECKS, open_checks)
        seeds = range(seed, seed + -(-count // CHECKS))
        with tempfile.TemporaryDirectory(prefix="bowshot-bounds-") as name:
            right, wrong = checked(World(pathlib.Path(name), seeds, given.large_every), count)
        passed, failed = passed + right, failed + wrong
        seed, open_checks = seeds.stop, open_checks - count
    print(f"seeds {given.seed} to {seed - 1}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
