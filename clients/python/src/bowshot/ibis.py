"""The backend of Ibis: `ibis.bowshot.connect("grpc://127.0.0.1:50051")`, or `ibis.connect("bowshot://127.0.0.1:50051")`.

Expressions become SQL, results come as Arrow. Ibis calls a schema a database.
"""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

import ibis
import ibis.common.exceptions as com
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import pyarrow as pa
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends import (
    CanCreateCatalog,
    CanCreateDatabase,
    DirectPyArrowExampleLoader,
    HasCurrentCatalog,
    HasCurrentDatabase,
    SupportsTempTables,
)
from ibis.backends.sql import SQLBackend
from ibis.formats.pyarrow import PyArrowSchema

from bowshot import Connection, NotFoundError, Result, _catalog, _sql, connect
from bowshot._ibis_compiler import compiler


class Backend(
    SupportsTempTables,  # type: ignore[misc]
    SQLBackend,  # type: ignore[misc]
    CanCreateCatalog,  # type: ignore[misc]
    CanCreateDatabase,  # type: ignore[misc]
    HasCurrentCatalog,  # type: ignore[misc]
    HasCurrentDatabase,  # type: ignore[misc]
    DirectPyArrowExampleLoader,  # type: ignore[misc]
):
    name = "bowshot"
    compiler = compiler
    supports_create_or_replace = True
    supports_temporary_tables = True
    con: Connection

    # --- connections

    def do_connect(self, uri: str = "grpc://127.0.0.1:50051", **arguments: Any) -> None:
        """Arguments are those of `bowshot.connect`."""
        self.con = connect(uri, **{"autocommit": True, "progress": False, **arguments})

    @classmethod
    def from_connection(cls, con: Connection, /) -> Backend:
        """A backend over a connection that is there, with its transactions."""
        backend = cls()
        backend._can_reconnect = False
        backend.con = con
        return backend

    def _from_url(self, url: urllib.parse.ParseResult, **arguments: Any) -> Any:
        # Ibis has read what is behind the question mark.
        return self.connect(url._replace(query="").geturl(), **arguments)

    def disconnect(self) -> None:
        self.con.close()

    @property
    def version(self) -> str:
        return str(self._value("SELECT version()"))

    # --- statements

    def raw_sql(self, query: str | sge.Expression, **_: Any) -> Result:
        with contextlib.suppress(AttributeError):
            query = query.sql(dialect=self.dialect)  # type: ignore[union-attr]
        self._log(query)
        return self.con.sql(str(query))

    @contextlib.contextmanager
    def _safe_raw_sql(self, query: str | sge.Expression, **arguments: Any) -> Iterator[Result]:
        with self.raw_sql(query, **arguments) as result:
            yield result

    def _value(self, sql: str) -> Any:
        return self.con.sql(sql).arrow().column(0)[0].as_py()

    def to_pyarrow_batches(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        chunk_size: int = 1_000_000,
        **_: Any,
    ) -> pa.RecordBatchReader:
        self._run_pre_execute_hooks(expr)
        table = expr.as_table()
        result = self.raw_sql(self.compile(table, params=params, limit=limit))
        schema = table.schema().to_pyarrow()
        batches = (piece for batch in result.batches() for piece in _sized(_fitted(batch, schema), chunk_size))
        return pa.RecordBatchReader.from_batches(schema, batches)

    def execute(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        **arguments: Any,
    ) -> Any:
        table = self.to_pyarrow_batches(expr, params=params, limit=limit, **arguments).read_all()
        return expr.__pandas_result__(table.to_pandas(timestamp_as_object=True))

    # --- what there is

    @property
    def current_catalog(self) -> str:
        return str(self.con.options["catalog"])

    @property
    def current_database(self) -> str:
        return str(self.con.options["schema"])

    def list_catalogs(self, *, like: str | None = None) -> list[str]:
        return list(self._filter_with_like(self.con.catalogs(), like))

    def list_databases(self, *, like: str | None = None, catalog: str | None = None) -> list[str]:
        return list(self._filter_with_like(self.con.schemas(catalog or self.current_catalog), like))

    def list_tables(self, *, like: str | None = None, database: tuple[str, str] | str | None = None) -> list[str]:
        catalog, schema = self._place(database)
        found = [table.name for table in self.con.tables(schema, catalog=catalog)]
        if database is None:
            found += [table.name for table in self.con.tables("main", catalog="temp")]
        return list(self._filter_with_like(sorted(set(found)), like))

    def _place(self, database: tuple[str, str] | str | None) -> tuple[str, str]:
        catalog, schema = self._to_catalog_db_tuple(self._to_sqlglot_table(database))
        return catalog or self.current_catalog, schema or self.current_database

    def get_schema(self, table_name: str, *, catalog: str | None = None, database: str | None = None) -> sch.Schema:
        if catalog is not None and database is None:
            database = self.current_database
        name = _catalog.path(_sql.quote(table_name) if database is None else table_name, database, catalog)
        try:
            return self._get_schema_using_query(f"SELECT * FROM {name}")
        except NotFoundError as error:
            raise com.TableNotFound(table_name) from error

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        return PyArrowSchema.to_ibis(self.con._describe(query))

    # --- catalogs and databases

    def create_catalog(self, name: str, /, *, force: bool = False) -> None:
        self.con.sql(f"CREATE DATABASE {'IF NOT EXISTS ' if force else ''}{_sql.quote(name)}")

    def drop_catalog(self, name: str, /, *, force: bool = False) -> None:
        self.con.sql(f"DROP DATABASE {'IF EXISTS ' if force else ''}{_sql.quote(name)}")

    def create_database(self, name: str, /, *, catalog: str | None = None, force: bool = False) -> None:
        path = ".".join(map(_sql.quote, filter(None, (catalog, name))))
        self.con.sql(f"CREATE SCHEMA {'IF NOT EXISTS ' if force else ''}{path}")

    def drop_database(self, name: str, /, *, catalog: str | None = None, force: bool = False, cascade: bool = False) -> None:
        path = ".".join(map(_sql.quote, filter(None, (catalog, name))))
        self.con.sql(f"DROP SCHEMA {'IF EXISTS ' if force else ''}{path}{' CASCADE' if cascade else ''}")

    # --- tables

    def create_table(
        self,
        name: str,
        /,
        obj: Any = None,
        *,
        schema: sch.IntoSchema | None = None,
        database: tuple[str, str] | str | None = None,
        temp: bool = False,
        overwrite: bool = False,
    ) -> ir.Table:
        if obj is None and schema is None:
            raise ValueError("Either `obj` or `schema` must be specified")
        if temp and database is not None:
            raise com.UnsupportedOperationError("temporary tables have no database of their own")
        catalog, place = self._to_catalog_db_tuple(self._to_sqlglot_table(database))
        target = sg.table(name, db=place, catalog=catalog, quoted=self.compiler.quoted)
        query = None
        if obj is not None:
            table = obj if isinstance(obj, ir.Expr) else ibis.memtable(obj)
            self._run_pre_execute_hooks(table)
            query = self.compiler.to_sqlglot(table)
            wanted = ibis.schema(schema) if schema is not None else table.schema()
            query = self._cast_to(query, wanted)
        else:
            columns = ibis.schema(schema).to_sqlglot_column_defs(self.dialect)
            target = sge.Schema(this=target, expressions=columns)
        properties = sge.Properties(expressions=[sge.TemporaryProperty()]) if temp else None
        self.raw_sql(sge.Create(kind="TABLE", this=target, properties=properties, expression=query, replace=overwrite))
        return self.table(name, database=database)

    def _cast_to(self, query: sge.Expression, schema: sch.Schema) -> sge.Expression:
        quoted = self.compiler.quoted
        columns = [
            self.compiler.cast(sg.column(name, table="_", quoted=quoted), kind).as_(name, quoted=quoted)
            for name, kind in schema.items()
        ]
        return sg.select(*columns).from_(query.subquery(sg.to_identifier("_", quoted=quoted)))

    def insert(
        self,
        name: str,
        /,
        obj: Any,
        *,
        database: tuple[str, str] | str | None = None,
        overwrite: bool = False,
    ) -> None:
        """As one change, also where rows are replaced."""
        if not isinstance(obj, ir.Expr):
            obj = ibis.memtable(obj, schema=None)
        self._run_pre_execute_hooks(obj)
        with self._transaction():
            if overwrite:
                self.truncate_table(name, database=database)
            super().insert(name, obj, database=database)

    def truncate_table(self, name: str, /, *, database: tuple[str, str] | str | None = None) -> None:
        catalog, place = self._to_catalog_db_tuple(self._to_sqlglot_table(database))
        table = sg.table(name, db=place, catalog=catalog, quoted=self.compiler.quoted)
        self.raw_sql(f"DELETE FROM {table.sql(self.dialect)}")

    def drop_table(self, name: str, /, *, database: tuple[str, str] | str | None = None, force: bool = False) -> None:
        self._drop("TABLE", name, database, force)

    def drop_view(self, name: str, /, *, database: tuple[str, str] | str | None = None, force: bool = False) -> None:
        self._drop("VIEW", name, database, force)

    def _drop(self, kind: str, name: str, database: tuple[str, str] | str | None, force: bool) -> None:
        catalog, place = self._to_catalog_db_tuple(self._to_sqlglot_table(database))
        table = ".".join(_sql.quote(part) for part in (catalog, place, name) if part)
        self.con.sql(f"DROP {kind} {'IF EXISTS ' if force else ''}{table}")

    def rename_table(self, old_name: str, new_name: str) -> None:
        self.con.sql(f"ALTER TABLE {_sql.quote(old_name)} RENAME TO {_sql.quote(new_name)}")

    def _transaction(self) -> Any:
        return contextlib.nullcontext() if self.con.in_transaction else self.con.transaction()

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        table = op.data.to_pyarrow(op.schema)
        self.con.ingest(op.name, table, mode="create", temporary=True)

    def _create_cached_table(self, name: str, expr: ir.Table) -> ir.Table:
        return self.create_table(name, expr, schema=expr.schema(), temp=True)

    # --- files

    def read_parquet(self, path: Any, /, *, table_name: str | None = None) -> ir.Table:
        """Uploads a Parquet file, or a folder of them, into a temporary table."""
        return self._read(path, table_name, "parquet")

    def read_csv(self, path: Any, /, *, table_name: str | None = None) -> ir.Table:
        """Uploads a CSV file into a temporary table."""
        return self._read(path, table_name, "csv")

    def _read(self, path: Any, table_name: str | None, kind: str) -> ir.Table:
        name = table_name or ibis.util.gen_name(f"read_{kind}")
        self.con.ingest(name, path, mode="replace", temporary=True)
        return self.table(name)


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Ibis knows types by its own rules, which may be wider or narrower than those of the server."""
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        columns.append(column if column.type.equals(field.type) else _cast(column, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not (pa.types.is_interval(column.type) and pa.types.is_duration(kind)):
        return column.cast(kind, safe=False)
    if any(value.months for value in column.to_pylist() if value is not None):
        raise com.UnsupportedOperationError("an interval of months has no length", "write it in days")
    lengths = [None if value is None else value.days * 86_400_000_000_000 + value.nanoseconds for value in column.to_pylist()]
    return pa.array(lengths, pa.duration("ns")).cast(kind, safe=False)


def _sized(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for begin in range(0, max(batch.num_rows, 1), rows):
        yield batch.slice(begin, rows)
