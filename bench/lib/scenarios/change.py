"""UPDATE and DELETE of 1 % of the rows of a durable table of 10 M rows, chosen by random ids from a second table.

The tables are loaded once. Every turn changes and deletes ids that no other turn touches, so that the table is that of
earlier turns and not a fresh one. No side has a key or an index.
"""

import collections
import statistics

from .. import data, measure, places
from ..arena import DURABLE, Arena, Contender
from ..options import Options

ROWS = 10_000_000
SHARE = 100
CONTENDERS = [
    Contender("bowshot", "bowshot", "bowshot-adbc"), Contender("DuckDB", "duckdb", "duckdb"),
    Contender("PostgreSQL", "postgres", "postgres"),
]


def run(options: Options) -> None:
    rows = options.size(100_000, 1_000_000, ROWS)
    slices = 2 * (options.rounds + 1)
    if slices > SHARE:
        raise SystemExit(f"`change` has at most {SHARE // 2 - 1} rounds: each takes 2 % of the rows")
    sources = {"accounts": data.arrow("accounts", rows), "chosen": data.arrow_chosen_ids(rows, slices, rows // SHARE)}
    with Arena(options, {}, needed_gb=options.size(1, 4, 15), starts=DURABLE) as arena:
        disk, chosen = places.disk(arena.folder()), arena.choose(CONTENDERS)
        for _, server, contender in chosen:
            for table, source in sources.items():
                measure.writer(
                    server, contender.reader, [server], action="ingest", table=table, source=str(source), keep=True
                )
        turns = collections.Counter()

        def order(label: str) -> dict:
            turn, turns[label] = turns[label], turns[label] + 1
            return {"action": "change", "rows": rows // SHARE, "update_slice": 2 * turn, "delete_slice": 2 * turn + 1}

        answers = arena.write(chosen, order)
    figures = {label: median_times(answers[label]) for label in answers}
    arena.record(
        "change", "1 % by random ids", figures, rows=rows, changed=rows // SHARE, disk=disk,
        axes={"what": "UPDATE and DELETE"},
    )


def median_times(answers: list) -> dict:
    names = ("update_seconds", "delete_seconds")
    times = {f"all_{name}": [round(answer[name], 4) for answer in answers] for name in names}
    return {name: statistics.median(answer[name] for answer in answers) for name in (*names, "server_cpu_s")} | times
