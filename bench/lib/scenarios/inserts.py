"""Rows one by one into a durable table, each committed before the next: 1 to 8 clients in processes of their own.

Every client sends the SQL text of an INSERT with its own values. Afterwards the table must have exactly the rows that
were acknowledged.
"""

from .. import measure, places
from ..arena import DURABLE, Arena, Contender
from ..options import Options

SECONDS = 10
CLIENTS = (1, 2, 4, 8)
CONTENDERS = [
    Contender("bowshot (ADBC)", "bowshot", "bowshot-adbc"),
    Contender("bowshot (ADBC, one call)", "bowshot", "bowshot-adbc-update"),
    Contender("bowshot (package)", "bowshot", "bowshot-package"),
    Contender("PostgreSQL", "postgres", "postgres"),
    Contender("DuckDB Quack", "quack", "quack"),
]


def run(options: Options) -> None:
    seconds = options.size(0.5, 5, SECONDS)
    with Arena(options, {}, needed_gb=2, starts=DURABLE) as arena:
        disk, chosen = places.disk(arena.folder()), arena.choose(CONTENDERS)
        for clients in options.size((2,), CLIENTS, CLIENTS):
            order = {"action": "inserts", "clients": clients, "seconds": seconds}
            answers = arena.write(chosen, lambda _, order=order: order)
            figures = {label: measure.medians(answers[label]) for label in answers}
            axes = {"what": "rows one by one", "clients": clients}
            arena.record("inserts", f"{clients} client(s)", figures, seconds=seconds, disk=disk, axes=axes)
