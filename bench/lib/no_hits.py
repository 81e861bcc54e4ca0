"""Queries that the join cache cannot help: TPC-H's 22, asked of one server with the cache by a session that uses it and by
one that does not (`SET join_cache = 'off'`), which is all that they differ in: two servers may differ in the state of their
memory by more than what is looked for.

- no hit: nothing is cached, since nothing is asked for often enough;
- no fit: joins of the same tables are cached, all of them with a condition that no query has.
"""

import math
import statistics

import pyarrow.flight as flight

from . import asking, data, processes, results, tpc
from .options import Options
from .scenarios.tpch import TABLES

ON, OFF = "bowshot, cache on", "bowshot, cache off"
SETTINGS = ("--set", "join_cache.enabled=true", "--set", "join_cache.fill_after=1000000000")
UNFIT = [
    "SELECT max(l_orderkey) FROM lineitem JOIN orders ON l_orderkey = o_orderkey AND l_extendedprice > o_totalprice",
    "SELECT max(o_orderkey) FROM orders JOIN customer ON o_custkey = c_custkey AND o_totalprice < c_acctbal",
    "SELECT max(l_orderkey) FROM lineitem JOIN part ON l_partkey = p_partkey AND l_extendedprice = p_retailprice",
    "SELECT max(l_orderkey) FROM lineitem JOIN supplier ON l_suppkey = s_suppkey AND l_extendedprice < s_acctbal",
    "SELECT max(s_suppkey) FROM supplier JOIN nation ON s_nationkey = n_nationkey AND s_suppkey > n_regionkey",
]
CASES = {"no hit": [], "no fit": UNFIT}
SETTLED_TIMEOUT_S, CACHED_TIMEOUT_S = 600, 900
LOOKUP, HITS = "bowshot_join_cache_lookup_seconds", "bowshot_join_cache_hits_total"


def scale_of(options: Options) -> float:
    return options.size(0.01, 1, 10)


def chosen(options: Options) -> list:
    return [what for what in CASES if options.has_case(name(what, options))]


def name(what: str, options: Options) -> str:
    return f"{what}, TPC-H, scale {scale_of(options):g}"


def run(options: Options) -> None:
    folder, queries = data.tpch(scale_of(options)), tpc.texts("tpch")
    tables = {table: str(folder / table) for table in TABLES}
    with processes.bowshot(tables, *SETTINGS, http="127.0.0.1:0") as server:
        sessions = {ON: flight.connect(server.uri), OFF: flight.connect(server.uri)}
        asking.answer(sessions[OFF], "SET join_cache = 'off'")
        wait_until_settled(sessions[ON], queries["q03"])
        for what in chosen(options):
            for sql in CASES[what]:
                cache(sessions[ON], sql)
            case(what, server, sessions, queries, options)


def wait_until_settled(client: flight.FlightClient, sql: str) -> None:
    """Until the files are old enough for their time stamps to tell one version from the next; no join is looked for before."""
    is_looked_for = lambda: any(word in asking.explained(client, sql) for word in ("JoinCache: miss", "JoinCache: hit"))
    asking.wait_until(is_looked_for, SETTLED_TIMEOUT_S, f"no join is looked for: {sql}")


def cache(client: flight.FlightClient, sql: str) -> None:
    """Has the join of a query cached."""
    asking.answer(client, f"CALL join_cache_warm('{sql}')")
    is_cached = lambda: "JoinCache: hit" in asking.explained(client, sql)
    asking.wait_until(is_cached, CACHED_TIMEOUT_S, f"the join was not cached: {sql}")


def case(what: str, server: processes.Server, sessions: dict, queries: dict, options: Options) -> None:
    warm_up(sessions, queries, options)
    turns = 1 if options.small else 2 * options.rounds
    before = server.metrics()
    times = in_turn(sessions, queries, turns)
    counted = {key: value - before.get(key, 0) for key, value in server.metrics().items()}
    check(sessions, queries, counted)
    figures = {label: figure(times[label]) for label in times}
    lookups = counted[f"{LOOKUP}_count"]
    lookup_ms = 1e3 * counted[f"{LOOKUP}_sum"] / lookups
    figures[ON].update(lookup_ms=lookup_ms, lookups_in_a_turn=lookups / turns)
    results.record(
        "joins", name(what, options), figures, options, axes={"what": what, "scale": scale_of(options)},
        turns=turns, off="a session of the same server, SET join_cache = 'off'", cached=CASES[what],
    )


def warm_up(sessions: dict, queries: dict, options: Options) -> None:
    """Each query once by each session, whose answers are equal, and once more: columns are kept from the second time on."""
    for query, sql in queries.items():
        tpc.expect_equal(query, asking.answer(sessions[ON], sql), asking.answer(sessions[OFF], sql))
    if not options.small:
        in_turn(sessions, queries, 1)


def in_turn(sessions: dict, queries: dict, turns: int) -> dict:
    """Each query by one session and then by the other, every other turn the other way round; seconds by label and query."""
    times = {label: {query: [] for query in queries} for label in sessions}
    for turn in range(turns):
        for query, sql in queries.items():
            for label in list(sessions)[:: -1 if turn % 2 else 1]:
                times[label][query].append(asking.timed(sessions[label], sql)["seconds"])
    return times


def check(sessions: dict, queries: dict, counted: dict) -> None:
    """That what was measured was looking in vain, by one of the sessions."""
    is_off = {label: "has set join_cache off" in asking.explained(sessions[label], queries["q03"]) for label in sessions}
    if is_off != {ON: False, OFF: True}:
        raise RuntimeError(f"who has the cache off: {is_off}")
    if counted.get(HITS) or not counted.get(f"{LOOKUP}_count"):
        raise RuntimeError(f"{counted.get(HITS)} hits, {counted.get(f'{LOOKUP}_count')} looks")


def figure(times: dict) -> dict:
    """The sum of the medians of all queries, and their geometric mean."""
    medians = {query: statistics.median(seconds) for query, seconds in times.items()}
    return {
        "seconds": sum(medians.values()),
        "geometric_mean_s": math.exp(statistics.fmean(math.log(seconds) for seconds in medians.values())),
        "query_seconds": {query: round(seconds, 6) for query, seconds in medians.items()},
        "all_totals": [round(sum(turn), 4) for turn in zip(*times.values(), strict=True)],
    }
