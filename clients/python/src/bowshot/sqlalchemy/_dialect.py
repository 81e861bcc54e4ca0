"""How SQLAlchemy speaks to the server: the DB-API of this package, the SQL of the server, reflection from
`information_schema`."""

from __future__ import annotations

import warnings
from typing import Any

from sqlalchemy import exc, types
from sqlalchemy.engine import URL, default, reflection
from sqlalchemy.engine.interfaces import BindTyping, ReflectedColumn
from sqlalchemy.sql import compiler, sqltypes
from sqlalchemy.sql.compiler import InsertmanyvaluesSentinelOpts

import bowshot
from bowshot.sqlalchemy import _types

_COLUMNS = """
SELECT column_name, column_type, is_nullable, column_default, column_comment, extra, generation_expression
FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2 ORDER BY ordinal_position"""
_CONSTRAINTS = """
SELECT c.constraint_name, k.column_name FROM information_schema.table_constraints c
JOIN information_schema.key_column_usage k
  ON k.constraint_name = c.constraint_name AND k.table_schema = c.table_schema AND k.table_name = c.table_name
WHERE c.constraint_type = $3 AND c.table_schema = $1 AND c.table_name = $2 ORDER BY c.constraint_name, k.ordinal_position"""
_CHECKS = """
SELECT c.constraint_name, k.check_clause FROM information_schema.table_constraints c
JOIN information_schema.check_constraints k
  ON k.constraint_name = c.constraint_name AND k.constraint_schema = c.constraint_schema
WHERE c.constraint_type = 'CHECK' AND c.table_schema = $1 AND c.table_name = $2 ORDER BY c.constraint_name"""


class Compiler(compiler.SQLCompiler):
    """Where PostgreSQL's SQL is not the standard's."""

    def visit_now_func(self, _function: Any, **_: Any) -> str:
        return "now()"

    def limit_clause(self, select: Any, **arguments: Any) -> str:
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **arguments)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **arguments)
        return text

    def visit_is_distinct_from_binary(self, binary: Any, operator: Any, **arguments: Any) -> str:
        return f"{self.process(binary.left, **arguments)} IS DISTINCT FROM {self.process(binary.right, **arguments)}"

    def visit_is_not_distinct_from_binary(self, binary: Any, operator: Any, **arguments: Any) -> str:
        return f"{self.process(binary.left, **arguments)} IS NOT DISTINCT FROM {self.process(binary.right, **arguments)}"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **arguments: Any) -> str:
        return f"{self.process(binary.left, **arguments)} ~ {self.process(binary.right, **arguments)}"

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **arguments: Any) -> str:
        return f"{self.process(binary.left, **arguments)} !~ {self.process(binary.right, **arguments)}"

    def visit_truediv_binary(self, binary: Any, operator: Any, **arguments: Any) -> str:
        """Two whole numbers have a whole quotient in SQL."""
        left, right = self.process(binary.left, **arguments), self.process(binary.right, **arguments)
        whole = binary.left.type._type_affinity is binary.right.type._type_affinity is sqltypes.Integer
        return f"{left} / CAST({right} AS DOUBLE)" if whole else f"{left} / {right}"

    def render_bind_cast(self, type_: Any, dbapi_type: Any, sqltext: str) -> str:
        """The server takes the types of parameters from what is around them, and often there is nothing. A cast to a length
        would cut texts off."""
        if dbapi_type._type_affinity is sqltypes.String:
            return f"CAST({sqltext} AS VARCHAR)"
        return f"CAST({sqltext} AS {self.dialect.type_compiler_instance.process(dbapi_type)})"

    def update_from_clause(self, update_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any) -> str:
        return "FROM " + self._tables(extra_froms, from_hints, kw)

    def delete_extra_from_clause(self, delete_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any) -> str:
        return "USING " + self._tables(extra_froms, from_hints, kw)

    def _tables(self, tables: Any, hints: Any, arguments: Any) -> str:
        arguments["asfrom"] = True
        return ", ".join(table._compiler_dispatch(self, fromhints=hints, **arguments) for table in tables)

    def visit_empty_set_expr(self, element_types: Any, **_: Any) -> str:
        columns = ", ".join(f"CAST(NULL AS {self._kind(kind)})" for kind in element_types or [types.INTEGER()])
        return f"SELECT {columns} WHERE 1!=1"

    def _kind(self, kind: Any) -> str:
        if isinstance(kind, types.NullType):
            return "INTEGER"
        return str(self.dialect.type_compiler_instance.process(kind))


class DdlCompiler(compiler.DDLCompiler):
    def get_column_specification(self, column: Any, **_: Any) -> str:
        kind = self.dialect.type_compiler_instance.process(column.type, type_expression=column)
        text = f"{self.preparer.format_column(column)} {kind}"
        numbered = column is column.table._autoincrement_column and isinstance(column.type, types.Integer)
        if column.computed is not None:
            text += f" {self.process(column.computed)}"
        elif column.identity is not None:
            text += f" {self.process(column.identity)}"
        elif numbered and column.server_default is None:
            text += " GENERATED BY DEFAULT AS IDENTITY"
        default_ = self.get_column_default_string(column)
        if default_ is not None and column.identity is None and column.computed is None:
            text += f" DEFAULT {default_}"
        if not column.nullable:
            text += " NOT NULL"
        return text

    def visit_computed_column(self, generated: Any, **_: Any) -> str:
        text = self.sql_compiler.process(generated.sqltext, include_table=False, literal_binds=True)
        return f"GENERATED ALWAYS AS ({text}) STORED"

    def visit_foreign_key_constraint(self, constraint: Any, **arguments: Any) -> str:
        """The server keeps foreign keys as a note."""
        text = super().visit_foreign_key_constraint(constraint, **arguments)
        return f"{text} NOT ENFORCED" if text else text

    def visit_create_index(self, create: Any, *_: Any, **__: Any) -> str:
        """An index changes how fast an answer comes, and no answer: it is left out, aloud. One that is unique changes what a
        table may have."""
        if create.element.unique:
            raise exc.CompileError("the server has no indexes; make a unique one a UniqueConstraint")
        warnings.warn(f"the server has no indexes: `{create.element.name}` is left out", stacklevel=2)
        return "SELECT 1"

    def visit_drop_index(self, *_: Any, **__: Any) -> str:
        return "SELECT 1"


class Preparer(compiler.IdentifierPreparer):
    reserved_words = compiler.RESERVED_WORDS | {
        "offset",
        "limit",
        "window",
        "current_user",
        "session_user",
        "key",
        "index",
        "fulltext",
        "spatial",
        "period",
        "qualify",
        "exclude",
    }


class Execution(default.DefaultExecutionContext):
    def fire_sequence(self, seq: Any, type_: Any) -> int:
        raise exc.CompileError("the server has no sequences")


class BowshotDialect(default.DefaultDialect):
    name = "bowshot"
    driver = "flight"
    supports_statement_cache = True
    default_paramstyle = "qmark"
    positional = True

    statement_compiler = Compiler
    ddl_compiler = DdlCompiler
    type_compiler_cls = _types.TypeCompiler
    preparer = Preparer
    execution_ctx_cls = Execution

    supports_alter = True
    supports_comments = True
    inline_comments = False
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    supports_sequences = False
    supports_default_values = True
    supports_default_metavalue = True
    supports_multivalues_insert = True
    supports_empty_insert = True
    supports_identity_columns = True
    supports_is_distinct_from = True
    supports_schemas = True
    supports_views = True
    postfetch_lastrowid = False
    insert_returning = True
    update_returning = True
    delete_returning = True
    insert_executemany_returning = True
    insert_executemany_returning_sort_by_parameter_order = True
    use_insertmanyvalues = True
    insertmanyvalues_implicit_sentinel = InsertmanyvaluesSentinelOpts.ANY_AUTOINCREMENT
    insertmanyvalues_max_parameters = 10_000
    div_is_floordiv = True
    requires_name_normalize = False
    max_identifier_length = 255
    default_schema_name = "main"

    colspecs = {  # noqa: RUF012 - as SQLAlchemy declares it
        types.Uuid: _types.Uuid,
        types.UUID: _types.Uuid,
        types.Interval: _types.Interval,
        # An Enum is a String too, and stays what it is.
        types.Enum: types.Enum,
        types.String: _types.String,
        types.Integer: _types.Integer,
        types.BigInteger: _types.BigInteger,
        types.SmallInteger: _types.SmallInteger,
        types.Float: _types.Float,
    }
    bind_typing = BindTyping.RENDER_CASTS
    ischema_names: dict[str, Any] = {}  # noqa: RUF012
    construct_arguments: list[Any] = []  # noqa: RUF012

    def __init__(self, json_serializer: Any = None, json_deserializer: Any = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._json_serializer = json_serializer
        self._json_deserializer = json_deserializer

    @classmethod
    def import_dbapi(cls) -> Any:
        return bowshot

    def create_connect_args(self, url: URL) -> Any:
        """The same address as for `bowshot.connect`: `bowshot://USER:PASSWORD@HOST:PORT/CATALOG/SCHEMA?OPTION=VALUE`."""
        if not url.host:
            url = url.set(host="127.0.0.1")
        return [url.set(drivername="bowshot").render_as_string(hide_password=False)], {}

    # --- the connection

    def get_isolation_level_values(self, _connection: Any) -> list[Any]:
        return ["REPEATABLE READ", "AUTOCOMMIT"]

    def get_default_isolation_level(self, _connection: Any) -> Any:
        return "REPEATABLE READ"

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        return "AUTOCOMMIT" if dbapi_connection.autocommit else "REPEATABLE READ"

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        dbapi_connection.rollback()
        dbapi_connection.autocommit = level == "AUTOCOMMIT"

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        return bool(dbapi_conn.autocommit)

    def is_disconnect(self, e: Any, _connection: Any, _cursor: Any) -> bool:
        gone = isinstance(e, bowshot.NotFoundError) and str(e).startswith("session ")
        return gone or isinstance(e, bowshot.UnavailableError) or "connection is closed" in str(e)

    def do_ping(self, dbapi_connection: Any) -> bool:
        dbapi_connection.execute("SELECT 1").fetchall()
        return True

    def _get_server_version_info(self, connection: Any) -> Any:
        text = connection.exec_driver_sql("SELECT version()").scalar() or ""
        numbers = text.removeprefix("Bowshot ").split(" ")[0].split(".")
        return tuple(int(number) for number in numbers if number.isdigit())

    def _get_default_schema_name(self, connection: Any) -> Any:
        return connection.exec_driver_sql("SELECT current_schema()").scalar()

    # --- reflection

    def _rows(self, connection: Any, sql: str, *values: Any) -> Any:
        return connection.exec_driver_sql(sql, values).fetchall()

    def _schema(self, schema: str | None) -> str:
        return schema or self.default_schema_name or "main"

    @reflection.cache
    def get_schema_names(self, connection: Any, **_: Any) -> list[str]:
        sql = "SELECT DISTINCT schema_name FROM information_schema.schemata WHERE catalog_name = current_catalog ORDER BY 1"
        return [row[0] for row in self._rows(connection, sql)]

    def _names(self, connection: Any, schema: str | None, of: str, condition: str) -> list[str]:
        sql = f"SELECT table_name FROM information_schema.{of} WHERE table_schema = $1 AND {condition} ORDER BY table_name"
        return [row[0] for row in self._rows(connection, sql, self._schema(schema))]

    @reflection.cache
    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        return self._names(connection, schema, "tables", "table_type = 'BASE TABLE'")

    @reflection.cache
    def get_temp_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        return self._names(connection, schema, "tables", "table_type = 'LOCAL TEMPORARY'")

    @reflection.cache
    def get_view_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        return self._names(connection, schema, "views", "table_catalog <> 'temp'")

    @reflection.cache
    def get_temp_view_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        return self._names(connection, schema, "views", "table_catalog = 'temp'")

    @reflection.cache
    def get_view_definition(self, connection: Any, view_name: str, schema: str | None = None, **_: Any) -> Any:
        sql = "SELECT view_definition FROM information_schema.views WHERE table_schema = $1 AND table_name = $2"
        rows = self._rows(connection, sql, self._schema(schema), view_name)
        if not rows:
            raise exc.NoSuchTableError(view_name)
        return rows[0][0]

    @reflection.cache
    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> bool:
        sql = "SELECT 1 FROM information_schema.tables WHERE table_schema = $1 AND table_name = $2"
        return bool(self._rows(connection, sql, self._schema(schema), table_name))

    def has_sequence(self, *_: Any, **__: Any) -> bool:
        return False

    def get_sequence_names(self, *_: Any, **__: Any) -> list[str]:
        return []

    def _check(self, connection: Any, table_name: str, schema: str | None) -> None:
        if not self.has_table(connection, table_name, schema):
            raise exc.NoSuchTableError(f"{schema}.{table_name}" if schema else table_name)

    @reflection.cache
    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> list[ReflectedColumn]:
        rows = self._rows(connection, _COLUMNS, self._schema(schema), table_name)
        if not rows:
            self._check(connection, table_name, schema)
        return [self._column(*row) for row in rows]

    def _column(
        self, name: str, kind: str, nullable: str, default_: Any, comment: Any, extra: str, generated: Any
    ) -> ReflectedColumn:
        column: ReflectedColumn = {
            "name": name,
            "type": _types.from_server(kind),
            "nullable": nullable == "YES",
            "default": default_,
            "autoincrement": "auto_increment" in (extra or "").lower(),
            "comment": comment,
        }
        if generated:
            column["computed"] = {"sqltext": generated, "persisted": True}
            column["default"] = None
        return column

    def _keys(self, connection: Any, table_name: str, schema: str | None, kind: str) -> dict[str, list[str]]:
        keys: dict[str, list[str]] = {}
        for name, column in self._rows(connection, _CONSTRAINTS, self._schema(schema), table_name, kind):
            keys.setdefault(name, []).append(column)
        if not keys:
            self._check(connection, table_name, schema)
        return keys

    @reflection.cache
    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        keys = self._keys(connection, table_name, schema, "PRIMARY KEY")
        for name, columns in keys.items():
            return {"constrained_columns": columns, "name": name}
        return {"constrained_columns": [], "name": None}

    @reflection.cache
    def get_unique_constraints(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        keys = self._keys(connection, table_name, schema, "UNIQUE")
        return [{"name": name, "column_names": columns} for name, columns in keys.items()]

    @reflection.cache
    def get_check_constraints(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        rows = self._rows(connection, _CHECKS, self._schema(schema), table_name)
        if not rows:
            self._check(connection, table_name, schema)
        return [{"name": name, "sqltext": text} for name, text in rows]

    @reflection.cache
    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        """Foreign keys are notes here, and notes are not reflected."""
        self._check(connection, table_name, schema)
        return []

    @reflection.cache
    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        self._check(connection, table_name, schema)
        return []

    @reflection.cache
    def get_table_comment(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        sql = "SELECT table_comment FROM information_schema.tables WHERE table_schema = $1 AND table_name = $2"
        rows = self._rows(connection, sql, self._schema(schema), table_name)
        if not rows:
            self._check(connection, table_name, schema)
        return {"text": rows[0][0]}
