"""What the report says of suites of queries (TPC-H, TPC-DS): ratios query by query, the worst, failures, differences."""

from . import plots, words
from .lines import Line, is_ours
from .verdicts import by_query

WORST = 5


def has_queries(line: Line) -> bool:
    return any("queries" in figures for figures in line.contenders.values())


def ratios(line: Line) -> dict:
    """By peer: query to how many times as fast ours was, slowest first."""
    times = {label: figures["queries"] for label, figures in line.contenders.items()}
    ours = next((label for label in times if is_ours(label)), None)
    if ours is None:
        return {}
    found = {peer: by_query(times[ours], queries) for peer, queries in times.items() if not is_ours(peer)}
    return {peer: dict(sorted(queries.items(), key=lambda item: item[1])) for peer, queries in found.items() if queries}


def plot(line: Line, colours: dict):
    """The ratios of each peer, sorted: where a curve crosses 1 it tells in how many queries ours was slower."""
    points = [
        (peer, rank, ratio, query)
        for peer, queries in ratios(line).items() for rank, (query, ratio) in enumerate(queries.items(), 1)
    ]
    caption = (
        "Each curve has its own order, from the query where Bowshot does worst to that where it does best. "
        "Above 1 it is faster."
    )
    return plots.ranked(f"Query by query: {line.case}", caption, points, colours) if points else None


def tables(line: Line) -> str:
    """The worst queries against each peer, and who failed where."""
    worst = [
        [words.escape(peer), ", ".join(f"{query} {words.ratio(ratio)}" for query, ratio in list(queries.items())[:WORST])]
        for peer, queries in ratios(line).items()
    ]
    troubles = [
        [words.escape(label), words.escape(query), words.escape(kind), words.escape(text)]
        for label, figures in line.contenders.items()
        for kind, found in (("failed", figures["failures"]), ("another answer", figures["different"]))
        for query, text in found.items()
    ]
    content = f"<h3>{words.escape(line.case)}: where Bowshot does worst</h3>"
    content += words.table(["against", "queries and ratios"], worst, 2)
    if troubles:
        table = words.table(["contender", "query", "what", "text"], troubles, 4)
        content += words.details(f"Failed queries and answers that differ: {len(troubles)}", table)
    return content
