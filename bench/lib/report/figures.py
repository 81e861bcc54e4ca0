"""The few figures in README.md, taken from the committed results: wins and losses, each beside the peer of the same run."""

import dataclasses
import pathlib

from . import lines

BEGIN, END = "<!-- figures: made by `cargo xtask bench --figures`, do not edit -->", "<!-- end of figures -->"

COMMIT_DIGITS = 7


@dataclasses.dataclass(frozen=True)
class Row:
    """`metric` is in seconds, or `gb_per_second`, of which more is better."""

    work: str
    scenario: str
    case: str
    ours: str
    peers: tuple
    metric: str = "seconds"


ROWS = [
    Row("20 integer columns × 5 M rows, fetched", "starrocks", "20 integers, 5,000,000 rows, fetched",
        "bowshot (pyarrow)", ("MariaDB (mysql --quick)",)),
    Row("the same into pandas", "starrocks", "20 integers, 5,000,000 rows, into pandas",
        "bowshot (pyarrow)", ("MariaDB (PyMySQL)",)),
    Row("5 columns × 2.5 M rows into Python", "employees", "employees, 2,500,000 rows, into Python",
        "bowshot (pyarrow)", ("PostgreSQL (pyodbc)", "MariaDB (pyodbc)")),
    Row("105 columns × 1 M rows into pandas", "clickbench", "all 105 columns, 1,000,000 rows",
        "bowshot (pyarrow)", ("DuckDB in process", "DuckDB behind Arrow Flight")),
    Row("TPC-H's lineitem, 6 M rows, into Arrow", "lineitem", "6,000,000 rows",
        "bowshot (pyarrow)", ("DuckDB in process", "DuckDB behind Arrow Flight", "DuckDB Quack")),
    Row("the same at scale 10, 60 M rows, batch by batch", "lineitem", "59,986,052 rows, batch by batch",
        "bowshot (pyarrow)", ("DuckDB in process", "DuckDB behind Arrow Flight", "DuckDB Quack")),
    Row("TPC-H at scale 1, 22 queries", "tpch", "scale 1",
        "bowshot (pyarrow)", ("DuckDB in process", "PostgreSQL (ADBC)"), "total_s"),
    Row("TPC-H at scale 10", "tpch", "scale 10", "bowshot (pyarrow)", ("DuckDB in process",), "total_s"),
    Row("TPC-DS at scale 1, 99 queries", "tpcds", "scale 1", "bowshot (pyarrow)", ("DuckDB in process",), "total_s"),
    Row("4 streams of 32-byte records, DoGet", "streams", "DoGet, 4 stream(s)",
        "bowshot", ("Arrow C++ Flight",), "gb_per_second"),
    Row("4 streams of 32-byte records, DoPut", "streams", "DoPut, 4 stream(s)",
        "bowshot", ("Arrow C++ Flight",), "gb_per_second"),
]


def block(results: pathlib.Path) -> str:
    """The table between its two marks."""
    found = {(line.scenario.name, line.case): line for line in lines.read(results)}
    table = ["| work | Bowshot | beside it | commit, processor |", "|---|---|---|---|"]
    for row in ROWS:
        ours = figure(found, row, row.ours)
        peers = (beside(row, ours, peer, figure(found, row, peer)) for peer in row.peers)
        origin = found[row.scenario, row.case]
        commit = f"`{origin.raw['commit'][:COMMIT_DIGITS]}`" + (" with changes" if origin.raw.get("modified") else "")
        table.append(f"| {row.work} | {quantity(row, ours)} | {'; '.join(peers)} | {commit}, {origin.processor()} |")
    return "\n".join([BEGIN, *table, "", machines([found[row.scenario, row.case] for row in ROWS]), END])


def machines(origins: list) -> str:
    """What the processors of the last column are, in a line below the table."""
    found = dict.fromkeys(
        f"{origin.machine()}, {origin.raw['machine']['memory_gb']} GB of memory" for origin in origins
    )
    return f"Machines: {'; '.join(found)}."


def figure(found: dict, row: Row, label: str) -> float:
    try:
        return found[row.scenario, row.case].contenders[label][row.metric]
    except KeyError:
        raise RuntimeError(f"no committed result of {row.scenario}, {row.case}: {label}") from None


def beside(row: Row, ours: float, label: str, theirs: float) -> str:
    """A peer's figure, and how many times as fast we are."""
    factor = ours / theirs if row.metric == "gb_per_second" else theirs / ours
    return f"{label} {quantity(row, theirs)} ({factor:.3g}×)"


def quantity(row: Row, value: float) -> str:
    return f"{value:.3g} GB/s" if row.metric == "gb_per_second" else f"{value:.3g} s"


def written(text: str, results: pathlib.Path) -> str:
    """README's text with the figures of the results."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise RuntimeError(f"the text has not one `{BEGIN}` and one `{END}`")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + block(results) + after
