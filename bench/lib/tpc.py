"""The queries of TPC-H or TPC-DS, one after the other, by every contender: the whole time at the client of each query.

A query that fails is counted and named, and so is one whose answer differs from that of the reference; neither ends the
run. The query texts are those of DuckDB's extensions, taken from their packages at run time.
"""

import dataclasses
import math
import pathlib
import statistics
import sys
import tempfile

import duckdb
import pyarrow as pa

from . import digest, duckdb_extensions, measure, places
from .arena import Arena, Contender
from .options import Options

sys.path.insert(0, str(places.REPOSITORY / "tests" / "tpch"))
import answers as answer_rules

REFERENCE = "DuckDB in process"
CONTENDERS = [
    Contender("bowshot (pyarrow)", "bowshot", "flight-info", "arrow"),
    Contender(REFERENCE, "duckdb", "duckdb", "arrow"),
    Contender("DuckDB behind Arrow Flight", "duckdb-flight", "flight-ticket", "arrow"),
    Contender("chDB in process", "chdb", "chdb", "arrow"),
    Contender("PostgreSQL (ADBC)", "postgres", "postgres-adbc", "arrow"),
]
# PostgreSQL gives up on a query after so long, which counts as a failure.
POSTGRES_LIMIT_S = 60


def run(scenario: str, tables: dict, keys: dict, scale: float, options: Options) -> None:
    """Measures all queries of the extension `scenario` over `tables` (name to Parquet path)."""
    queries = texts(scenario)
    with Arena(options, tables, needed_gb=2 + 5 * scale, keys=keys) as arena, tempfile.TemporaryDirectory() as folder:
        found = measured(arena.choose(CONTENDERS), queries, pathlib.Path(folder), options)
        verdicts = compared(list(found), queries, pathlib.Path(folder))
        figures = {label: figure(found[label], verdicts[label]) for label in found}
        common = add_means(figures)
        title = f"{scenario[:3]}-{scenario[3:]}".upper()
        arena.record(
            scenario, f"scale {scale:g}", figures, axes={"what": f"{title}, scale {scale:g}"}, queries=len(queries),
            queries_in_means=len(common),
        )


def texts(scenario: str) -> dict:
    connection = duckdb.connect()
    duckdb_extensions.load(connection, scenario)
    rows = connection.execute(f"SELECT query_nr, query FROM {scenario}_queries() ORDER BY query_nr").fetchall()
    return {f"q{number:02}": text.strip().rstrip(";") for number, text in rows}


def measured(chosen: list, queries: dict, folder: pathlib.Path, options: Options) -> dict:
    """In turn; answers of the first turn are kept in a folder for each contender."""

    def once(server, contender):
        if contender.peer == "postgres":
            limit = f"?options=-c%20statement_timeout%3D{POSTGRES_LIMIT_S}s"
            server = dataclasses.replace(server, uri=server.uri + limit)
        save = folder / contender.label
        first = not save.exists()
        save.mkdir(exist_ok=True)
        return measure.client(server, contender.reader, action="queries", queries=queries, save=str(save) if first else None)

    return measure.in_turn(chosen, options, once)


def compared(labels: list, queries: dict, folder: pathlib.Path) -> dict:
    """By contender: the queries whose answer differs from that of the reference, and how."""
    if REFERENCE not in labels:
        return {label: None for label in labels}
    found = {label: {} for label in labels}
    for query in queries:
        reference = folder / REFERENCE / query
        for label in labels:
            mine = folder / label / query
            if label != REFERENCE and mine.exists() and reference.exists():
                wrong = difference(saved(mine), saved(reference))
                if wrong:
                    found[label][query] = wrong[: measure.MESSAGE_CHARACTERS]
    return found


def difference(ours: pa.Table, theirs: pa.Table) -> str | None:
    try:
        return answer_rules.difference([], ours, theirs)
    except (TypeError, ValueError, ArithmeticError) as error:
        return f"not comparable: {error}"


def expect_equal(what: str, ours: pa.Table, theirs: pa.Table) -> None:
    if wrong := difference(ours, theirs):
        raise RuntimeError(f"{what}: different answers: {wrong}")


def saved(path: pathlib.Path) -> pa.Table:
    table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    return pa.table([digest.unwrapped(column) for column in table.columns], table.schema.names)


def figure(turns: list, different: dict | None) -> dict:
    """Medians by query over the turns."""
    failures = {query: text for turn in turns for query, text in turn["failures"].items()}
    times = {query: statistics.median(turn["seconds"][query] for turn in turns) for query in turns[0]["seconds"] if query not in failures}
    return {
        "total_s": sum(times.values()), "completed": len(times), "failed": len(failures),
        "different_answers": len(different) if different is not None else -1,
        "server_cpu_s": statistics.median(turn["server_cpu_s"] for turn in turns),
        "client_peak_rss": max(turn["client_peak_rss"] for turn in turns),
        "queries": {query: round(seconds, 5) for query, seconds in times.items()},
        "failures": failures, "different": different or {},
    }


def add_means(figures: dict) -> set:
    """The geometric mean of each contender over the queries that all of them have completed."""
    common = set.intersection(*(set(figure["queries"]) for figure in figures.values())) if figures else set()
    for figure in figures.values() if common else []:
        logarithms = [math.log(figure["queries"][query]) for query in common]
        figure["geometric_mean_s"] = math.exp(statistics.fmean(logarithms))
    return common
