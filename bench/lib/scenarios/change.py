"""UPDATE and DELETE of 1 % of the rows of a durable table of 10 M rows, chosen by random ids from a second table.

The tables are loaded once. Every turn changes and deletes ids that no other turn touches, so that the table is that of
earlier turns and not a fresh one. No side has a key or an index.
"""

import contextlib
import statistics

from .. import data, measure, places, results
from ..arena import DURABLE, Arena
from ..options import Options

ROWS = 10_000_000
SHARE = 100
LABELS = {"bowshot": "bowshot-adbc", "DuckDB": "duckdb", "PostgreSQL": "postgres"}
PEERS = {"bowshot": "bowshot", "DuckDB": "duckdb", "PostgreSQL": "postgres"}


def run(options: Options) -> None:
    rows = options.size(100_000, 1_000_000, ROWS)
    slices = 2 * (options.rounds + 1)
    if slices > SHARE:
        raise SystemExit(f"`change` has at most {SHARE // 2 - 1} rounds: each takes 2 % of the rows")
    sources = {
        "accounts": str(data.arrow_accounts(rows)),
        "chosen": str(data.arrow_chosen_ids(rows, slices, rows // SHARE)),
    }
    with contextlib.ExitStack() as stack:
        arena = Arena(stack, options, {}, needed_gb=options.size(1, 4, 15), starts=DURABLE)
        disk, servers = places.disk(arena.folder()), arena.servers(PEERS)
        for label, server in servers.items():
            for table, source in sources.items():
                measure.writer(
                    server, LABELS[label], [server], action="ingest", table=table, source=source, keep=True
                )
        answers = changes(servers, rows // SHARE, options)
    figures = {label: median_times(answers[label]) for label in answers}
    ratios = {
        f"{statement}, bowshot against {peer}": results.plain(
            figures[peer][f"{statement}_seconds"] / figures["bowshot"][f"{statement}_seconds"]
        )
        for statement in ("update", "delete")
        for peer in ("DuckDB", "PostgreSQL")
        if peer in figures and "bowshot" in figures
    }
    results.record(
        "change", "1 % by random ids", figures, ratios, options, rows=rows, changed=rows // SHARE, disk=disk,
        missing=arena.missing, peer_versions=arena.versions(),
        axes={"what": "UPDATE and DELETE"},
    )


def changes(servers: dict, changed: int, options: Options) -> dict:
    turns = dict.fromkeys(servers, 0)

    def once(label):
        turn, turns[label] = turns[label], turns[label] + 1
        return measure.writer(
            servers[label], LABELS[label], options.at_rest(list(servers.values())), action="change", rows=changed,
            update_slice=2 * turn, delete_slice=2 * turn + 1,
        )

    return measure.in_turn([(label, label) for label in servers], options, once)


def median_times(answers: list) -> dict:
    figures = {}
    for name in ("update_seconds", "delete_seconds"):
        figures[name] = statistics.median(answer[name] for answer in answers)
        figures[f"all_{name}"] = [round(answer[name], 4) for answer in answers]
    return {**figures, "server_cpu_s": statistics.median(answer["server_cpu_s"] for answer in answers)}
