"""lineitem into Spark: by our data source, by Spark's JDBC source with the driver of Flight SQL on the same server, and by Spark's
JDBC source on PostgreSQL; one reader, and four parts. `bench/spark_readers.py` reads, in an environment of its own.

Our data source takes rows through shared memory, since all are on one machine; a second server of ours gives them through a socket.
"""

import math
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

from .. import apart, data, java, measure
from ..arena import Arena
from ..environments import Unavailable, python
from ..options import Options

OURS, SOCKET, RANGES = "bowshot", "bowshot, through a socket", "bowshot, by ranges"
DRIVER, POSTGRES = "JDBC on the same server", "PostgreSQL (JDBC)"
PARTS = 4
KEY = "l_orderkey"
RELATIVE_TOLERANCE = 1e-12
PEERS = {OURS: "bowshot", SOCKET: "bowshot-socket", RANGES: "bowshot", DRIVER: "bowshot", POSTGRES: "postgres"}


def run(options: Options) -> None:
    python("spark")  # without it nothing can be compared
    scale, rows = options.size((0.01, 50_000), (1, 2_000_000), (2, 10_000_000))
    path = data.parquet_lineitem(scale, rows)
    with Arena(options, {"lineitem": str(path)}, needed_gb=options.size(1, 2, 6), keys={"lineitem": [KEY]}) as arena:
        # At the small scale nobody looks at the times, and each contender costs the start of a Spark.
        for way, parts in (("one reader", 1), (f"{PARTS} parts", PARTS))[1 if options.small else 0 :]:
            if options.has_case(way):
                compared(arena, way, parts, rows, path)


def compared(arena: Arena, way: str, parts: int, rows: int, path: pathlib.Path) -> None:
    left_out = {RANGES} if parts == 1 else {SOCKET} if arena.options.small else set()
    labels = {label: peer for label, peer in PEERS.items() if label not in left_out}
    contenders = [(label, label, server) for label, server in arena.servers(labels).items()]
    try:
        jars = drivers()
    except Unavailable as reason:
        arena.leave_out("JDBC", str(reason))
        contenders = [one for one in contenders if one[0] not in (DRIVER, POSTGRES)]
    checks, cut = {}, {}

    def once(label, server):
        words = ["--partitions", parts, "--warm-rows", rows // 10, "--server", server.pid]
        if label in (DRIVER, POSTGRES):
            kind = "jdbc-postgres" if label == POSTGRES else "jdbc-flight"
            words = ["jdbc", java.address({"kind": kind, "uri": server.uri}), "--jars", jars, *words]
            words += ["--column", KEY, "--bounds", bounds(path)]
            # The driver of Flight SQL does not say that numbers have a sign, nor what decimals have behind their point.
            words += ["--schema", spark_types(path)] if label == DRIVER else []
        else:
            words = ["source", server.uri.replace("grpc+tcp", "grpc"), *words, *(("--column", KEY) if label == RANGES else ())]
        answer = apart.client("spark", "spark_readers.py", *words, *(() if label in checks else ("--check",)))
        checks.setdefault(label, answer["answer"] + (answer["checked"] or []))
        cut[label] = answer["partitions"]
        return answer

    answers = measure.in_turn(contenders, arena.options, once)
    first = next(iter(checks.values()))
    for label, found in checks.items():
        if not same(first, found):
            raise RuntimeError(f"{way}: {label} has read other rows: {first} {found}")
    figures = {label: measure.transfer_without_bytes(answers[label]) for label in answers}
    arena.record(
        "spark_readers", way, figures, axes={"way": way, "rows": rows}, partitions=cut,
        client_versions={**apart.versions("spark"), **java.versions()},
        answers="equal" if len(checks) > 1 else "not compared",
    )


def drivers() -> str:
    folder = java.build() / "jars"
    found = [path for start in ("flight-sql-jdbc-driver", "postgresql") for path in folder.glob(f"{start}-*.jar")]
    if len(found) != 2:
        raise Unavailable(f"{folder} has not the drivers of JDBC, but {found}")
    return ",".join(map(str, found))


def bounds(path: pathlib.Path) -> str:
    """Least and greatest key, which users of JDBC have to know."""
    file = pq.ParquetFile(path)
    at = file.schema_arrow.get_field_index(KEY)
    groups = [file.metadata.row_group(number).column(at).statistics for number in range(file.metadata.num_row_groups)]
    return f"{min(group.min for group in groups)},{max(group.max for group in groups)}"


def spark_types(path: pathlib.Path) -> str:
    """The columns of the file with their types, as Spark writes them."""
    plain = {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "date32[day]": "DATE"}

    def of(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})" if pa.types.is_decimal(kind) else plain.get(str(kind), "STRING")

    return ", ".join(f"`{field.name}` {of(field.type)}" for field in pq.read_schema(path))


def same(one: list, other: list) -> bool:
    """Floating-point numbers within a tolerance, everything else to the last digit."""
    return len(one) == len(other) and all(
        math.isclose(left, right, rel_tol=RELATIVE_TOLERANCE) if isinstance(left, float) else left == right
        for left, right in zip(one, other)
    )
