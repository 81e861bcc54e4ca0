"""The files that are served from disk and from object stores: every format, partitions, odd names, several blocks."""

import datetime
import decimal
import gzip
import json
import random

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as parquet


# Folders whose names mean something in addresses, in patterns, or to a store.
ODD_FOLDERS = ["a b", "50%", "%41", "x#y", "p+q", "größe", "[1]", "what?", "whats", "a&b"]
# Values of a key by the names of folders, and as they are meant.
ODD_KEYS = {"a b": "a b", "50%": "50%", "a%20c": "a c", "x#y": "x#y", "p+q": "p+q", "ä=1": "ä=1"}


def orders(count, seed):
    pick = random.Random(seed)
    day = datetime.date(2024, 1, 1)
    return pa.table({
        "id": pa.array(range(count), pa.int64()),
        "customer": pa.array([pick.randrange(500) for _ in range(count)], pa.int32()),
        "price": pa.array([decimal.Decimal(pick.randrange(1_000_000)).scaleb(-2) for _ in range(count)], pa.decimal128(12, 2)),
        "weight": pa.array([pick.choice([None, pick.random() * 100]) for _ in range(count)], pa.float64()),
        "day": pa.array([day + datetime.timedelta(days=pick.randrange(365)) for _ in range(count)], pa.date32()),
        "note": pa.array([pick.choice([None, "", f"note {pick.random()}", "ä€𝄞"]) for _ in range(count)], pa.string()),
        "open": pa.array([pick.choice([True, False, None]) for _ in range(count)], pa.bool_()),
    })


def write(folder):
    folder.mkdir()
    table = orders(60_000, 1)
    # Several blocks, and several row groups with bounds.
    parquet.write_table(table, folder / "orders.parquet", row_group_size=8_000, compression="none")
    pyarrow.csv.write_csv(table.slice(0, 5_000), folder / "lines.csv")
    (folder / "packed.csv.gz").write_bytes(gzip.compress((folder / "lines.csv").read_bytes()))
    rows = table.slice(0, 2_000).select(["id", "customer", "note", "open"]).to_pylist()
    (folder / "objects.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pyarrow.feather.write_feather(table.slice(0, 20_000), folder / "mapped.arrow", compression="uncompressed")
    with pa.OSFile(str(folder / "stream.arrows"), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table.slice(0, 3_000))
    pyarrow.orc.write_table(table.slice(0, 10_000).drop_columns(["price"]), folder / "columns.orc")
    for year in (2023, 2024):
        for part in range(3):
            below = folder / "events" / f"year={year}"
            below.mkdir(parents=True, exist_ok=True)
            parquet.write_table(orders(1_000, year + part), below / f"part-{part}.parquet")
    odd = folder / "odd names"
    odd.mkdir()
    for name in ("a+b.csv", "c d.csv", "e=f%20g.csv", "ümlaut.csv"):
        (odd / name).write_text(f"name,n\n{name},1\n")
    for number, name in enumerate(ODD_FOLDERS):
        below = folder / "odd folders" / name
        below.mkdir(parents=True)
        (below / "t.csv").write_text(f"name,n\n{name},{number}\n")
    for value in ODD_KEYS:
        below = folder / "odd keys" / f"k={value}"
        below.mkdir(parents=True)
        (below / "t.csv").write_text("n\n1\n")
    (folder / "_SUCCESS").write_text("")
    (folder / "notes.txt").write_text("no table")
    return folder


TABLES = {
    "orders": ["id", "customer", "price", "weight", "day", "note", "open"],
    "lines": ["id", "customer", "price", "weight", "day", "note"],
    "packed": ["id", "customer", "price", "day"],
    "objects": ["id", "customer", "note", "open"],
    "mapped": ["id", "customer", "price", "weight", "day", "note", "open"],
    "stream": ["id", "customer", "price", "day", "open"],
    "columns": ["id", "customer", "weight", "day", "note", "open"],
    "events": ["id", "customer", "price", "day", "year"],
    "odd_names": ["name", "n"],
    "odd_folders": ["name", "n"],
    "odd_keys": ["n", "k"],
}


def statements(count, seed):
    """Statements that have one answer, whatever order rows come in."""
    pick = random.Random(seed)
    for _ in range(count):
        table = pick.choice([name for name in TABLES if not name.startswith("odd")])
        columns = TABLES[table]
        chosen = sorted(pick.sample(columns, pick.randrange(1, len(columns) + 1)))
        low = pick.randrange(2_500)
        where = pick.choice([
            "", f"WHERE id = {low}", f"WHERE id BETWEEN {low} AND {low + pick.randrange(300)}",
            f"WHERE customer < {pick.randrange(100)}", f"WHERE id > {pick.randrange(70_000)}",
            f"WHERE customer IN ({low % 500}, {pick.randrange(500)}) AND id % 3 = 1",
        ])
        if table == "events" and pick.random() < 0.5:
            where = f"WHERE year = {pick.choice([2023, 2024, 2025])}"
        kind = pick.randrange(4)
        if kind == 0:
            yield f"SELECT count(*), min(id), max(customer), sum(id) FROM {table} {where}"
        elif kind == 1:
            listed = ", ".join(chosen)
            yield f"SELECT {listed} FROM {table} {where} ORDER BY {listed} LIMIT {pick.randrange(1, 400)}"
        elif kind == 2:
            yield f"SELECT customer, count(*), count({chosen[0]}) FROM {table} {where} GROUP BY customer ORDER BY customer"
        else:
            yield (f"SELECT t.customer, count(*) FROM {table} t JOIN orders o ON t.id = o.id "
                   f"{where.replace('id ', 't.id ').replace('customer ', 't.customer ').replace('year', 't.year')} "
                   f"GROUP BY t.customer ORDER BY t.customer LIMIT 50")
