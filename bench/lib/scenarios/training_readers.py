"""Epochs of a `DataLoader` of PyTorch and of `tf.data` over a server's rows, against the same loop over the same rows in a local
Parquet file; nothing is trained. `bench/training_readers.py` reads, in environments of its own.

The server runs on the reader's machine, as everything here, and the package takes rows from it through shared memory; a second
server of ours gives them through a socket, as from another machine, but without a network between. After the first epoch, which
is not counted, the servers have the file's columns in memory, and the other side has the file in the page cache. A third one keeps
no columns, so that it reads the file in each epoch, too.
"""

import dataclasses
import sys

from .. import apart, data, measure
from ..arena import Arena
from ..environments import Unavailable, python
from ..options import Options

FILES = "Parquet files"
# Labels of ours and names of their servers.
OURS = {"bowshot": "bowshot", "bowshot, through a socket": "bowshot-socket", "bowshot, no columns kept": "bowshot-streaming"}
# Rows of a batch. Each tensor of a worker costs the `DataLoader` a descriptor, whoever reads: so workers have larger batches.
BATCH, BATCH_OF_WORKERS, SHUFFLED = 1024, 16_384, 65_536
EPOCHS = 3
FEATURES = 20


@dataclasses.dataclass(frozen=True)
class Way:
    """How an epoch is read; `words` are for the program."""

    name: str
    framework: str
    words: tuple = ()
    batch: int = BATCH


SHARED = ("--column", "id")
WAYS = [
    Way("PyTorch", "torch"),
    Way("PyTorch, two workers", "torch", (*SHARED, "--workers", "2"), BATCH_OF_WORKERS),
    Way("PyTorch, shuffled", "torch", (*SHARED, "--shuffle", SHUFFLED)),
    Way("tf.data", "tensorflow"),
]


def run(options: Options) -> None:
    rows = options.size(20_000, 1_000_000, 5_000_000)
    path = data.parquet("samples", rows)
    with Arena(options, {"samples": path}) as arena:
        for way in WAYS:
            if not options.has_case(way.name):
                print(f"left out by --case: {way.name}", file=sys.stderr)
                continue
            try:
                python(way.framework)
            except Unavailable as reason:
                arena.leave_out(way.framework, str(reason))
                continue
            compared(arena, way, rows, path)


def compared(arena: Arena, way: Way, rows: int, path) -> None:
    # At the small scale nobody looks at the times, and each contender costs the start of a framework.
    ours = {"bowshot": OURS["bowshot"]} if arena.options.small else OURS
    contenders = [(label, label, server) for label, server in arena.servers(ours).items()]
    if arena.options.chosen(FILES):
        contenders.append((FILES, FILES, None))
    sums = {}

    def once(label, server):
        source = server.uri.replace("grpc+tcp", "grpc") if server else path
        words = [way.framework, source, "--batch", way.batch, "--epochs", arena.options.size(1, EPOCHS, EPOCHS), *way.words]
        words += ["--server", server.pid] if server else []
        answer = apart.client(way.framework, "training_readers.py", *words, *(() if label in sums else ("--check",)))
        sums.setdefault(label, answer["checked"])
        return answer

    answers = measure.in_turn(contenders, arena.options, once)
    for label in sums:
        if sums[label] != next(iter(sums.values())):
            raise RuntimeError(f"{way.name}: {label} has read other rows: {sums}")
    figures = {label: measure.transfer_without_bytes(answers[label]) for label in answers}
    arena.record(
        "training_readers", way.name, figures, axes={"way": way.name, "rows": rows}, batch_rows=way.batch,
        client_versions=apart.versions(way.framework), columns=FEATURES + 1 + ("id" in way.words),
        answers="equal" if len(sums) > 1 else "not compared",
    )
