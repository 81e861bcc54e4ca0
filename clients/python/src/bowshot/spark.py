"""A data source of Spark 4: `spark.read.format("bowshot")` and `frame.write.format("bowshot")`.

    import bowshot.spark

    bowshot.spark.register(spark)
    frame = spark.read.format("bowshot").options(uri="grpc://127.0.0.1:50051", source="orders").load()

Rows move as Arrow batches between the server and Spark's Python workers, one Spark partition for each endpoint of the result
or for each range of a column. Filters run at the server where both agree on what they mean; Spark checks them again otherwise.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from bowshot import _partitions, _sql
from bowshot._config import Config, configure
from bowshot._errors import InterfaceError, NotFoundError
from bowshot._partitions import Partition
from bowshot._upload import Upload

# The source's own options; those of the session begin with `session.`.
_OPTIONS = frozenset(
    {"uri", "source", "path", "partitions", "column", "columns", "user", "password", "token", "timeout"}
    | {"tls_ca", "tls_cert", "tls_key", "tls_server_name", "staging"}
)
_STRINGS = ("user", "password", "token", "tls_ca", "tls_cert", "tls_key", "tls_server_name")
_SESSION = "session."


def register(spark: Any) -> None:
    """Makes the source known to a session of Spark, and lets Spark hand filters to it."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(BowshotDataSource)


class BowshotDataSource(datasource.DataSource):  # type: ignore[misc]
    """Options: `uri`, `source` (a table's name or a query; of a write the table), `partitions` (the number of endpoints or
    ranges), `column` (cuts by its ranges instead of endpoints), `columns` (names with commas between), `user`, `password`,
    `token`, `timeout`, `tls_*`, `session.NAME` for options of the session; of a write `staging` (`session` or `tables`)."""

    @classmethod
    def name(cls) -> str:
        return "bowshot"

    def schema(self) -> Any:
        settings = _Settings.of(self.options)
        arrow = _partitions.describe(settings.config, settings.query())
        return from_arrow_schema(pa.schema([field.with_type(_spark_type(field.type)) for field in arrow]))

    def reader(self, schema: Any) -> datasource.DataSourceReader:
        return BowshotReader(_Settings.of(self.options), schema)

    def writer(self, schema: Any, overwrite: bool) -> datasource.DataSourceArrowWriter:
        return BowshotWriter(_Settings.of(self.options), schema, overwrite)


@dataclass(frozen=True)
class _Settings:
    config: Config
    source: str
    partitions: int | None
    column: str | None
    columns: tuple[str, ...]
    staging: str

    @staticmethod
    def of(options: Mapping[str, str]) -> _Settings:
        given = {name.lower(): value for name, value in options.items()}
        unknown = sorted(name for name in given if name not in _OPTIONS and not name.startswith(_SESSION))
        if unknown:
            raise InterfaceError(f"`{unknown[0]}` is no option of this source", hint=f"there are {', '.join(sorted(_OPTIONS))}")
        source = given.get("source") or given.get("path")
        if not source:
            raise InterfaceError("nothing says what to read or write", hint='option("source", TABLE or QUERY)')
        if given.get("staging", "session") not in ("session", "tables"):
            raise InterfaceError("option `staging` is `session` or `tables`")
        arguments: dict[str, Any] = {name: given[name] for name in _STRINGS if name in given}
        if "timeout" in given:
            arguments["timeout"] = float(given["timeout"])
        session = {name[len(_SESSION) :]: value for name, value in given.items() if name.startswith(_SESSION)}
        config = configure(
            given.get("uri", "grpc://127.0.0.1:50051"), autocommit=True, progress=False, options=session, **arguments
        )
        columns = tuple(name.strip() for name in given.get("columns", "").split(",") if name.strip())
        partitions = int(given["partitions"]) if "partitions" in given else None
        return _Settings(config, source, partitions, given.get("column"), columns, given.get("staging", "session"))

    def query(self) -> str:
        query = _partitions.as_query(self.source)
        if not self.columns:
            return query
        return _partitions.wrapped(query, ", ".join(map(_sql.quote, self.columns)))


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """The next type that Spark has: it knows no unsigned numbers, its times of day are off by default, and its intervals
    have either months or days."""
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}
    if kind in wider:
        return wider[kind]
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if str(kind) in ("string_view", "binary_view"):
        return pa.string() if str(kind) == "string_view" else pa.binary()
    if pa.types.is_interval(kind) or pa.types.is_time(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_spark_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_spark_type(field.type)) for field in kind])
    return kind


@dataclass
class _Input(datasource.InputPartition):  # type: ignore[misc]
    part: Partition


class BowshotReader(datasource.DataSourceReader):  # type: ignore[misc]
    def __init__(self, settings: _Settings, schema: Any) -> None:
        self._settings = settings
        self._schema = schema
        self._arrow = _partitions.describe(settings.config, settings.query())
        self._conditions: list[str] = []

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - the name is Spark's
        """Gives those that Spark has to do itself."""
        for item in filters:
            condition = to_sql(item, self._schema, self._arrow)
            if condition is None:
                yield item
            else:
                self._conditions.append(condition)

    def partitions(self) -> Sequence[datasource.InputPartition]:
        settings = self._settings
        parts = _partitions.plan(settings.config, self._query(), count=settings.partitions, column=settings.column)
        return [_Input(part) for part in parts]

    def _query(self) -> str:
        """Only the columns that Spark's schema has, which the user may have given."""
        arrow = self._arrow
        names = list(self._schema.fieldNames())
        missing = sorted(set(names) - set(arrow.names))
        if missing:
            raise NotFoundError(f"there is no column `{missing[0]}`", hint=f"there are {', '.join(arrow.names)}")
        columns = ", ".join(
            f"CAST({_sql.quote(name)} AS VARCHAR) AS {_sql.quote(name)}"
            if pa.types.is_interval(arrow.field(name).type) or pa.types.is_time(arrow.field(name).type)
            else _sql.quote(name)
            for name in dict.fromkeys([*names, *([self._settings.column] if self._settings.column else [])])
        )
        where = f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""
        return _partitions.wrapped(self._settings.query(), columns or "1 AS none", where)

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Input)  # noqa: S101 - what `partitions` gave
        schema = to_arrow_schema(self._schema, timezone="UTC")
        for batch in partition.part.batches():
            if batch.num_rows:
                columns = [_cast(batch.column(item.name), item.type) for item in schema]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type.equals(kind):
        return column
    # Spark has microseconds; finer ones are cut off.
    return column.cast(kind, safe=not pa.types.is_timestamp(kind))


def to_sql(item: Any, schema: Any, arrow: pa.Schema) -> str | None:
    """A filter as SQL, if it means the same there."""
    if isinstance(item, datasource.Not):
        inner = to_sql(item.child, schema, arrow)
        return None if inner is None else f"NOT ({inner})"
    if len(item.attribute) != 1 or item.attribute[0] not in schema.fieldNames():
        return None
    name = _sql.quote(item.attribute[0])
    if isinstance(item, datasource.IsNull):
        return f"{name} IS NULL"
    if isinstance(item, datasource.IsNotNull):
        return f"{name} IS NOT NULL"
    kind = schema[item.attribute[0]].dataType.typeName()
    values = item.value if isinstance(item, datasource.In) else (item.value,)
    found = arrow.field(item.attribute[0]).type
    # Spark has cut nanoseconds off, and knows a time of day as text.
    if (pa.types.is_timestamp(found) and found.unit == "ns") or pa.types.is_time(found) or pa.types.is_interval(found):
        return None
    if not all(_same_meaning(value, kind) for value in values):
        return None
    return _comparison(item, name, [_partitions.literal(value) for value in values])


def _same_meaning(value: Any, kind: str) -> bool:
    """Floating-point numbers are compared by Spark alone: both order NaN and the two zeros in ways of their own."""
    if value is None:
        return kind not in ("float", "double")
    expected: dict[str, tuple[type, ...]] = {
        **dict.fromkeys(("byte", "short", "integer", "long"), (int,)),
        "boolean": (bool,),
        "string": (str,),
        "date": (datetime.date,),
        "timestamp": (datetime.datetime,),
        "timestamp_ntz": (datetime.datetime,),
        "decimal": (decimal.Decimal, int),
    }
    if type(value) not in expected.get(kind, ()):
        return False
    return kind != "timestamp" or value.tzinfo is not None


_OPERATORS = {
    datasource.EqualTo: "=",
    datasource.EqualNullSafe: "IS NOT DISTINCT FROM",
    datasource.GreaterThan: ">",
    datasource.GreaterThanOrEqual: ">=",
    datasource.LessThan: "<",
    datasource.LessThanOrEqual: "<=",
}
_TEXTS = {
    datasource.StringStartsWith: "starts_with",
    datasource.StringEndsWith: "ends_with",
    datasource.StringContains: "contains",
}


def _comparison(item: Any, name: str, values: list[str]) -> str | None:
    if type(item) in _OPERATORS:
        return f"{name} {_OPERATORS[type(item)]} {values[0]}"
    if type(item) in _TEXTS:
        return f"{_TEXTS[type(item)]}({name}, {values[0]})"
    if isinstance(item, datasource.In) and values:
        return f"{name} IN ({', '.join(values)})"
    return None


@dataclass
class _Message(datasource.WriterCommitMessage):  # type: ignore[misc]
    part: str


class BowshotWriter(datasource.DataSourceArrowWriter):  # type: ignore[misc]
    """Each task uploads one part, and the commit moves all of them into the table at once."""

    def __init__(self, settings: _Settings, schema: Any, overwrite: bool) -> None:
        self._schema = schema
        self._upload = Upload.begin(
            settings.config,
            settings.source,
            "replace" if overwrite else "create_append",
            temporary=settings.staging == "session",
        )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> datasource.WriterCommitMessage:
        schema = to_arrow_schema(self._schema, timezone="UTC")
        reader = pa.RecordBatchReader.from_batches(schema, (_fitted(batch, schema) for batch in iterator))
        return _Message(self._upload.put(reader))

    def commit(self, messages: list[datasource.WriterCommitMessage | None]) -> None:
        parts = [message.part for message in messages if isinstance(message, _Message)]
        self._upload.commit(parts, to_arrow_schema(self._schema, timezone="UTC"))

    def abort(self, messages: list[datasource.WriterCommitMessage | None]) -> None:
        self._upload.abort(message.part for message in messages if isinstance(message, _Message))


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [_cast(batch.column(number), item.type) for number, item in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
