"""The few figures of docs/how-to/benchmarks.md and their picture in README.md, taken from the committed results: wins and losses, each beside
the peer of the same run."""

import dataclasses
import html
import math
import pathlib

from . import lines

BEGIN, END = "<!-- figures: made by `cargo xtask bench --figures`, do not edit -->", "<!-- end of figures -->"

COMMIT_DIGITS = 7
DAY = len("2026-01-31")


@dataclasses.dataclass(frozen=True)
class Row:
    """`metric` is in seconds, in milliseconds (`…_ms`), or `gb_per_second`, of which more is better."""

    work: str
    scenario: str
    case: str
    peers: tuple
    metric: str = "seconds"
    ours: str = "bowshot (pyarrow)"


DUCKDB, FLIGHT, QUACK = "DuckDB in process", "DuckDB behind Arrow Flight", "DuckDB Quack"
QUICK, PYMYSQL, PYODBC = "MariaDB (mysql --quick)", "MariaDB (PyMySQL)", ("PostgreSQL (pyodbc)", "MariaDB (pyodbc)")
ROWS = [
    Row("20 integer columns × 5 M rows, fetched", "starrocks", "20 integers, 5,000,000 rows, fetched", (QUICK,)),
    Row("the same into pandas", "starrocks", "20 integers, 5,000,000 rows, into pandas", (PYMYSQL,)),
    Row("5 columns × 2.5 M rows into Python", "employees", "employees, 2,500,000 rows, into Python", PYODBC),
    Row("105 columns × 1 M rows into pandas", "clickbench", "all 105 columns, 1,000,000 rows", (DUCKDB, FLIGHT)),
    Row("TPC-H's lineitem, 6 M rows, into Arrow", "lineitem", "6,000,000 rows", (DUCKDB, FLIGHT, QUACK)),
    Row("the same at scale 10, 60 M rows, batch by batch", "lineitem", "59,986,052 rows, batch by batch", (DUCKDB, FLIGHT, QUACK)),
    Row("TPC-H at scale 1, 22 queries", "tpch", "scale 1", (DUCKDB, "PostgreSQL (ADBC)"), "total_s"),
    Row("TPC-H at scale 10", "tpch", "scale 10", (DUCKDB,), "total_s"),
    Row("TPC-DS at scale 1, 99 queries", "tpcds", "scale 1", (DUCKDB,), "total_s"),
    Row("UPDATE of 1 % of 10 M rows", "change", "1 % by random ids", (DUCKDB, "PostgreSQL"), "update_seconds", "bowshot"),
    Row("`SELECT 1`, one client", "latency", "one client", (QUACK, "PostgreSQL (psycopg)"), "p50_ms", "bowshot, SQL ticket"),
    *(
        Row(f"4 streams of 32-byte records, {way}", "streams", f"{way}, 4 stream(s)", ("Arrow C++ Flight",), "gb_per_second", "bowshot")
        for way in ("DoGet", "DoPut")
    ),
]


def block(results: pathlib.Path) -> str:
    """The table between its two marks."""
    everything = lines.every(results)
    origins = [newest(row, everything) for row in ROWS]
    table = ["| work | Bowshot | beside it | date, commit, processor |", "|---|---|---|---|"]
    for row, origin in zip(ROWS, origins, strict=True):
        ours = figure(origin, row, row.ours)
        peers = "; ".join(beside(row, ours, peer, figure(origin, row, peer)) for peer in row.peers)
        commit = f"`{origin.raw['commit'][:COMMIT_DIGITS]}`" + (" with changes" if origin.raw.get("modified") else "")
        table.append(f"| {row.work} | {quantity(row, ours)} | {peers} | {origin.time[:DAY]}, {commit}, {origin.processor()} |")
    machines = dict.fromkeys(f"{origin.machine()}, {origin.raw['machine']['memory_gb']} GB of memory" for origin in origins)
    return "\n".join([BEGIN, *table, "", f"Machines: {'; '.join(machines)}.", END])


def newest(row: Row, found: list) -> lines.Line:
    """The last comparison with all that the row names: a run of some of them alone is none."""
    wanted = {row.ours, *row.peers}
    for line in reversed(found):
        if (line.scenario.name, line.case) == (row.scenario, row.case) and wanted <= line.contenders.keys():
            return line
    raise RuntimeError(f"no committed result of {row.scenario}, {row.case} has {', '.join(sorted(wanted))}")


def figure(line: lines.Line, row: Row, label: str) -> float:
    try:
        return line.contenders[label][row.metric]
    except KeyError:
        raise RuntimeError(f"no {row.metric} in the committed result of {row.scenario}, {row.case}: {label}") from None


def beside(row: Row, ours: float, label: str, theirs: float) -> str:
    """A peer's figure, and how many times as fast we are."""
    return f"{label} {quantity(row, theirs)} ({factor(row, ours, theirs):.3g}×)"


def factor(row: Row, ours: float, theirs: float) -> float:
    return ours / theirs if row.metric == "gb_per_second" else theirs / ours


def quantity(row: Row, value: float) -> str:
    if row.metric == "gb_per_second":
        return f"{value:.3g} GB/s"
    return f"{value:.3g} ms" if row.metric.endswith("_ms") else f"{value:.3g} s"


def written(text: str, results: pathlib.Path) -> str:
    """The text of a page with the figures of the results."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise RuntimeError(f"the text has not one `{BEGIN}` and one `{END}`")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + block(results) + after


# The picture: a bar for each comparison, from 1× to the right where we were faster, to the left where the peer was.
LINE, TEXT, WIDTH, TOP = 20, 565, 1100, 56
LEAST, MOST = 0.1, 300.0
COLOURS = {True: "#15803d", False: "#b91c1c"}


def place(value: float) -> float:
    """Where a factor stands, on a scale of powers."""
    return TEXT + (WIDTH - TEXT - 60) * math.log(value / LEAST) / math.log(MOST / LEAST)


def picture(results: pathlib.Path) -> str:
    everything = lines.every(results)
    bars, work = [], ""
    for row in ROWS:
        # No bar stands below the one that it means by "the same".
        work = row.work.replace("the same", work.partition(",")[0])
        origin = newest(row, everything)
        ours = figure(origin, row, row.ours)
        bars += [(f"{work}: {peer}", factor(row, ours, figure(origin, row, peer))) for peer in row.peers]
    height = TOP + LINE * len(bars) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui,sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        '<text x="10" y="20" font-size="15" font-weight="600">How many times as fast Bowshot was; to the left of 1× it lost</text>',
    ]
    for mark in (0.1, 1, 10, 100):
        weight = 'stroke="#444"' if mark == 1 else 'stroke="#ddd"'
        parts.append(f'<path d="M{place(mark):.0f} {TOP - 8}V{height - 8}" {weight}/>')
        parts.append(f'<text x="{place(mark):.0f}" y="{TOP - 14}" text-anchor="middle" fill="#555">{mark:g}×</text>')
    for number, (label, value) in enumerate(bars):
        y, begin, end = TOP + LINE * number, *sorted((place(1), place(value)))
        parts.append(f'<text x="{TEXT - 10}" y="{y + 12}" text-anchor="end">{html.escape(label.replace("`", ""))}</text>')
        parts.append(f'<rect x="{begin:.1f}" y="{y}" width="{max(end - begin, 1):.1f}" height="14" fill="{COLOURS[value >= 1]}"/>')
        parts.append(f'<text x="{max(end, place(1)) + 5:.1f}" y="{y + 12}" fill="#333">{value:.3g}×</text>')
    return "\n".join([*parts, "</svg>", ""])
