"""Durable tables and tables in memory that clients write, a function for each scenario. DuckDB works in the client's process, on its own
file. No side has a key or an index.
"""

import collections
import dataclasses

import pyarrow as pa

from .. import data, measure, places, processes, results
from ..arena import DURABLE, TRANSPORT, Arena, Contender
from ..options import Options

ROWS = 10_000_000
OURS_ADBC, OURS_PUT = Contender("bowshot (ADBC)", "bowshot", "bowshot-adbc"), Contender("bowshot (DoPut)", "bowshot", "bowshot-put")
DUCKDB, POSTGRES = Contender("DuckDB", "duckdb", "duckdb"), Contender("PostgreSQL", "postgres", "postgres")
# PostgreSQL gets so many rows where all of them would take it longer than this; its time is scaled: `scaled_from_rows` says so.
FEWER_ROWS, LONGEST_S = 1_000_000, 60
# One row in so many is changed, and one deleted.
SHARE = 100
SECONDS, CLIENTS = 10, (1, 2, 4, 8)
GIGABYTES = 20


def put(options: Options) -> None:
    """DoPut of 20 × int64 into a table in memory, against an Arrow C++ Flight server that keeps what it reads."""
    rows = options.size(100_000, 1_000_000, ROWS)
    order = {"action": "ingest", "table": "integers", "source": str(data.arrow("integers", rows))}
    contenders = [Contender("bowshot", "bowshot", "bowshot-put"), Contender("arrow-cpp-flight", "arrow-cpp-flight", "flight-put")]
    with Arena(options, {}, starts=TRANSPORT) as arena:
        answers = arena.write(arena.choose(contenders), lambda _: order)
    figures = {label: measure.written(answers[label]) for label in answers}
    arena.record("put", "memory", figures, rows=rows, columns=data.COLUMNS, axes={"what": "DoPut into memory"})


def ingest(options: Options) -> None:
    """A mapped Arrow file into a new durable table: 20 × int64, and TPC-H lineitem at scale 1. Bowshot by ADBC bulk ingest and by DoPut;
    DuckDB with a checkpoint; PostgreSQL by COPY, binary or CSV, whichever a trial finds to be faster."""
    sources = {
        "integers": data.arrow("integers", options.size(100_000, 1_000_000, ROWS)),
        "lineitem": data.arrow_lineitem(options.size(0.01, 0.1, 1)),
    }
    with Arena(options, {}, needed_gb=options.size(1, 6, 30), starts=DURABLE) as arena:
        disk = places.disk(arena.folder())
        for table, path in sources.items():
            ingest_one(arena, table, str(path), disk)


def ingest_one(arena: Arena, table: str, source: str, disk: dict) -> None:
    with pa.ipc.open_file(pa.memory_map(source)) as file:
        rows = sum(file.get_batch(index).num_rows for index in range(file.num_record_batches))
    chosen, limits = arena.choose([OURS_ADBC, OURS_PUT, DUCKDB, POSTGRES]), {}
    for at, (label, server, contender) in enumerate(chosen):
        if label == POSTGRES.label:
            best, limits[label] = try_copies(server, source, rows)
            chosen[at] = label, server, dataclasses.replace(contender, reader=best)
    answers = arena.write(chosen, lambda label: {"action": "ingest", "table": table, "source": source, "rows": limits.get(label)})
    figures = {label: scale(measure.written(answers[label]), rows) for label in answers}
    kinds = {label: contender.reader for label, _, contender in chosen}
    arena.record("ingest", table, figures, rows=rows, disk=disk, postgres_by=kinds.get(POSTGRES.label), axes={"what": f"ingest of {table}"})


def try_copies(server: processes.Server, source: str, rows: int) -> tuple:
    """Which COPY is faster with few rows, and how many rows it can do in time (None for all)."""
    tried = {
        kind: measure.writer(server, kind, [server], action="ingest", table="trial", source=source, rows=FEWER_ROWS)
        for kind in ("postgres", "postgres-csv")
    }
    best = min(tried, key=lambda kind: tried[kind]["seconds"])
    whole = tried[best]["seconds"] * rows / tried[best]["rows"]
    return best, FEWER_ROWS if whole > LONGEST_S else None


def scale(figure: dict, rows: int) -> dict:
    """The figure for all rows, if fewer were measured; rates stay as they are."""
    if figure["rows"] == rows:
        return figure
    factor = rows / figure["rows"]
    for name in ("seconds", "bytes", "cpu_s", "server_cpu_s"):
        figure[name] *= factor
    return {**figure, "rows": rows, "scaled_from_rows": figure["rows"]}


def inserts(options: Options) -> None:
    """Rows one by one, each committed before the next: 1 to 8 clients in processes of their own. Every client sends the SQL text of an
    INSERT with its own values. Afterwards the table must have exactly the rows that were acknowledged."""
    seconds = options.size(0.5, 5, SECONDS)
    contenders = [
        OURS_ADBC, Contender("bowshot (ADBC, one call)", "bowshot", "bowshot-adbc-update"),
        Contender("bowshot (package)", "bowshot", "bowshot-package"), POSTGRES, Contender("DuckDB Quack", "quack", "quack"),
    ]
    with Arena(options, {}, needed_gb=2, starts=DURABLE) as arena:
        disk, chosen = places.disk(arena.folder()), arena.choose(contenders)
        for clients in options.size((2,), CLIENTS, CLIENTS):
            order = {"action": "inserts", "clients": clients, "seconds": seconds}
            answers = arena.write(chosen, lambda _, order=order: order)
            figures = {label: measure.medians(answers[label]) for label in answers}
            axes = {"what": "rows one by one", "clients": clients}
            arena.record("inserts", f"{clients} client(s)", figures, seconds=seconds, disk=disk, axes=axes)


def change(options: Options) -> None:
    """UPDATE and DELETE of 1 % of the rows, chosen by random ids from a second table. The tables are loaded once. Every turn changes and
    deletes ids that no other turn touches, so that the table is that of earlier turns and not a fresh one."""
    rows = options.size(100_000, 1_000_000, ROWS)
    slices = 2 * (options.rounds + 1)
    if slices > SHARE:
        raise SystemExit(f"`change` has at most {SHARE // 2 - 1} rounds: each takes 2 % of the rows")
    sources = {"accounts": data.arrow("accounts", rows), "chosen": data.arrow_chosen_ids(rows, slices, rows // SHARE)}
    with Arena(options, {}, needed_gb=options.size(1, 4, 15), starts=DURABLE) as arena:
        disk, chosen = places.disk(arena.folder()), arena.choose([Contender("bowshot", "bowshot", "bowshot-adbc"), DUCKDB, POSTGRES])
        for _, server, contender in chosen:
            for table, source in sources.items():
                measure.writer(server, contender.reader, [server], action="ingest", table=table, source=str(source), keep=True)
        turns = collections.Counter()

        def order(label: str) -> dict:
            turn, turns[label] = turns[label], turns[label] + 1
            return {"action": "change", "rows": rows // SHARE, "update_slice": 2 * turn, "delete_slice": 2 * turn + 1}

        answers = arena.write(chosen, order)
    figures = {label: measure.medians(answers[label], "update_seconds", "delete_seconds") for label in answers}
    arena.record("change", "1 % by random ids", figures, rows=rows, changed=rows // SHARE, disk=disk, axes={"what": "UPDATE and DELETE"})


def ingest_memory(options: Options) -> None:
    """The server's memory while one client ingests 20 GB of random integers. One run each: the figure is a peak, not a time. It should be
    flat: as high after the first half as after the second."""
    gigabytes = options.gigabytes or options.size(0.1, 4, GIGABYTES)
    for contender in (OURS_ADBC, OURS_PUT):
        if options.chosen(contender.label):
            peaks_of_ingest(contender.label, contender.reader, gigabytes, options)


def peaks_of_ingest(label: str, kind: str, gigabytes: float, options: Options) -> None:
    """Each has a server of its own, so that the idle memory is that of a fresh one."""
    with places.disk_folder(2 * gigabytes + 1) as folder, processes.bowshot({}, data=str(folder / "bowshot")) as server:
        disk = places.disk(folder)
        warm = measure.writer(server, kind, [server], action="flood", table="flood", bytes=1)
        assert warm["rows"]
        processes.settle([server])
        sampler = processes.MemorySampler(server)
        answer = measure.writer(server, kind, [server], action="flood", table="flood", bytes=int(gigabytes * 1e9))
        peaks, tenths = sampler.close(), sampler.tenths()
    halves = max(tenths[:5]), max(tenths[5:])
    figures = {label: {**peaks, **answer, "gb_per_second": answer["bytes"] / answer["seconds"] / 1e9, "tenths_rss": tenths}}
    ratios = {"peak of the second half against the first": {"ratio": halves[1] / halves[0]}}
    results.record(
        "ingest_memory", kind, figures, options, ratios=ratios, gigabytes=gigabytes, disk=disk,
        axes={"what": "memory during ingest"},
    )
