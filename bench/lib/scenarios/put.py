"""DoPut of 10 M × 20 int64 into a table in memory, against an Arrow C++ Flight server that keeps what it reads."""

from .. import data, measure
from ..arena import TRANSPORT, Arena, Contender
from ..options import Options

ROWS = 10_000_000
CONTENDERS = [
    Contender("bowshot", "bowshot", "bowshot-put"), Contender("arrow-cpp-flight", "arrow-cpp-flight", "flight-put"),
]


def run(options: Options) -> None:
    rows = options.size(100_000, 1_000_000, ROWS)
    order = {"action": "ingest", "table": "integers", "source": str(data.arrow("integers", rows))}
    with Arena(options, {}, starts=TRANSPORT) as arena:
        answers = arena.write(arena.choose(CONTENDERS), lambda _: order)
    figures = {label: measure.written(answers[label]) for label in answers}
    arena.record("put", "memory", figures, rows=rows, columns=data.COLUMNS, axes={"what": "DoPut into memory"})
