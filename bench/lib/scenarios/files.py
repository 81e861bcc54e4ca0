"""Files as they come: an aggregate over one large file of separated values, over one of JSON lines, and over many small files,
read whole by every query; and what a folder of very many files costs a server before anybody has asked it anything.

Three figures of each contender: the time of the query asked again, the time from the start of the first process to the first
answer, and the peak of the memory of the process that reads the files, which is our server or the client itself.
"""

import dataclasses
import statistics
import time

import pyarrow.flight as flight

from .. import asking, contest, file_data, measure, processes, results
from ..arena import FILES, Arena, Contender
from ..contest import Case
from ..options import Options

OURS, DUCKDB, POLARS = "bowshot (pyarrow)", "DuckDB in process", "polars in process"
CONTENDERS = [
    Contender(OURS, "bowshot", "flight-ticket", "arrow"),
    Contender(DUCKDB, "duckdb", "duckdb", "arrow"),
    Contender(POLARS, "polars", "polars", "arrow"),
]
QUERY = """
    SELECT country, status, count(*) AS orders, sum(quantity) AS pieces, sum(price) AS revenue, avg(discount) AS discount,
        max(weight) AS heaviest, count(rating) AS rated
    FROM orders WHERE paid GROUP BY country, status ORDER BY country, status
"""
REPEATS = 3
BUDGET_S = 20.0
MANY, FOLDER = "many small CSV files", "a folder of very many files"


def run(options: Options) -> None:
    size = options.size(2_000_000, 200_000_000, 1_000_000_000)
    sources = {
        "one CSV file": lambda: file_data.csv(size),
        "one file of JSON lines": lambda: file_data.json_lines(size),
        MANY: lambda: file_data.small_files(options.size(50, 1_000, 10_000), 100),
    }
    for what, source in sources.items():
        if options.has_case(what):
            compared(what, source(), options)
    if options.has_case(FOLDER):
        very_many(file_data.small_files(options.size(500, 10_000, 100_000), 10), options)


def compared(what: str, path, options: Options) -> None:
    """One line: all contenders over the same files."""
    tables = {"orders": str(path)}
    digests, peaks = {}, {}
    with Arena(options, tables, starts=FILES) as arena:
        chosen = arena.choose(CONTENDERS)

        def once(server, contender):
            label = contender.label
            sampler = processes.MemorySampler(server) if server.pid else None
            answer = measure.client(
                server, contender.reader, action="fetch", query=QUERY, into="arrow", repeats=REPEATS, budget_s=BUDGET_S,
                check=label not in digests,
            )
            digests.setdefault(label, answer["digest"])
            peak = sampler.close()["peak_rss"] if sampler else answer["client_peak_rss"]
            peaks[label] = max(peaks.get(label, 0), peak)
            return answer

        answers = measure.in_turn(chosen, options, once)
    contest.equal(Case("files", what, QUERY, {}), digests)
    figures = {label: {**kept(measure.transfer(found)), "peak_rss": peaks[label]} for label, found in answers.items()}
    for label, _, contender in chosen:
        seconds = [first_answer(contender, tables, options) for _ in range(options.rounds)]
        figures[label]["first_answer_seconds"] = statistics.median(seconds)
    arena.record("files", what, figures, axes={"what": what}, query=QUERY, answers="equal", **file_data.facts(path))


def kept(figures: dict) -> dict:
    """Without what is told for each byte of an answer, of which there are few here."""
    return {name: value for name, value in figures.items() if not name.endswith(("_per_gb", "_per_second"))}


def first_answer(contender: Contender, tables: dict, options: Options) -> float:
    """Seconds from nothing to an answer: the server is started, if there is one, and then the client."""
    started = time.perf_counter()
    with Arena(dataclasses.replace(options, peers=None), tables, starts=FILES) as arena:
        server = arena.server(contender.peer)
        measure.client(server, contender.reader, action="fetch", query=QUERY, into="arrow", repeats=1)
        return time.perf_counter() - started


def very_many(path, options: Options) -> None:
    """Until the server is ready, until it has counted the rows for the first time and again, and until it has told which
    tables there are and of how many files."""
    turns = []
    for _ in range(options.rounds):
        begun = time.perf_counter()
        with processes.bowshot({"orders": str(path)}) as server, flight.FlightClient(server.uri) as client:
            ready = time.perf_counter() - begun
            listing = asking.timed(client, "SELECT table_name FROM information_schema.tables")["seconds"]
            first = asking.timed(client, "SELECT count(*) FROM orders")["seconds"]
            again = asking.timed(client, "SELECT count(*) FROM orders")["seconds"]
            (files,) = asking.answer(client, "SELECT files FROM system.files WHERE table_name = 'orders'")["files"].to_pylist()
            if files != file_data.facts(path)["files"]:
                raise RuntimeError(f"the table has {files} files")
            turns.append({
                "seconds": first, "ready_seconds": ready, "again_seconds": again, "listing_seconds": listing,
                "peak_rss": server.memory()["VmRSS"],
            })
    figures = {OURS: measure.medians(turns)}
    results.record("files", FOLDER, figures, options, axes={"what": FOLDER}, **file_data.facts(path))
