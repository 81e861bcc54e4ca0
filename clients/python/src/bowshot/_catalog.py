"""What there is: catalogs, schemas, tables and their columns, as `information_schema` tells it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bowshot import _sql
from bowshot._errors import NotFoundError

if TYPE_CHECKING:
    from bowshot._result import Result

Query = Callable[[str, list[Any]], "list[tuple[Any, ...]]"]


@dataclass(frozen=True)
class TableName:
    """A table that `Connection.tables` lists. Its text is the name as SQL takes it."""

    catalog: str
    schema: str
    name: str
    kind: str

    def __str__(self) -> str:
        return ".".join(map(_sql.quote, (self.catalog, self.schema, self.name)))


class Table:
    """A table or view by its name. Nothing is asked before it is needed."""

    def __init__(self, name: str, run: Callable[[str], Result], describe: Callable[[str], pa.Schema], query: Query) -> None:
        self.name = name
        self._run = run
        self._describe = describe
        self._query = query

    @property
    def schema(self) -> pa.Schema:
        """The columns with their Arrow types."""
        return self._describe(f"SELECT * FROM {self.name}")

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    def count(self) -> int:
        """How many rows there are."""
        return int(self._query(f"SELECT count(*) FROM {self.name}", [])[0][0])

    def scan(self, columns: list[str] | None = None, limit: int | None = None) -> Result:
        """All rows, or the first ones, of all columns or those that are named."""
        wanted = "*" if columns is None else ", ".join(map(_sql.quote, columns))
        end = "" if limit is None else f" LIMIT {int(limit)}"
        return self._run(f"SELECT {wanted} FROM {self.name}{end}")

    def arrow(self) -> pa.Table:
        return self.scan().arrow()

    def df(self) -> Any:
        return self.scan().df()

    def pl(self) -> Any:
        return self.scan().pl()

    def __repr__(self) -> str:
        return f"<bowshot.Table {self.name}>"


def path(name: str, schema: str | None, catalog: str | None) -> str:
    """A name for SQL. `name` may be `schema.name` or `catalog.schema.name` where these are not said, each part quoted where
    it has other characters."""
    if schema is None and catalog is None:
        return ".".join(map(_sql.quote, _sql.parts(name)))
    if catalog is not None and schema is None:
        raise NotFoundError(f"table `{name}` is looked for in a catalog without a schema", hint="say which schema")
    return ".".join(_sql.quote(part) for part in (catalog, schema, name) if part is not None)


def catalogs(query: Query) -> list[str]:
    return [row[0] for row in query("SELECT DISTINCT catalog_name FROM information_schema.schemata ORDER BY 1", [])]


def schemas(query: Query, catalog: str | None) -> list[str]:
    condition, values = _conditions([("catalog_name", catalog)])
    sql = f"SELECT DISTINCT schema_name FROM information_schema.schemata{condition} ORDER BY 1"
    return [row[0] for row in query(sql, values)]


_SYSTEM = "('information_schema', 'pg_catalog', 'system')"


def tables(query: Query, catalog: str | None, schema: str | None, pattern: str | None) -> list[TableName]:
    """Those of the server's own schemas only where one of them is asked for."""
    condition, values = _conditions([("table_catalog", catalog), ("table_schema", schema)])
    if pattern is not None:
        condition += f"{' AND' if condition else ' WHERE'} table_name LIKE ${len(values) + 1}"
        values.append(pattern)
    if schema is None:
        condition += f"{' AND' if condition else ' WHERE'} table_schema NOT IN {_SYSTEM}"
    sql = (
        f"SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables{condition} ORDER BY 1, 2, 3"
    )
    return [TableName(*row) for row in query(sql, values)]


def _conditions(pairs: list[tuple[str, str | None]]) -> tuple[str, list[Any]]:
    given = [(column, value) for column, value in pairs if value is not None]
    text = " AND ".join(f"{column} = ${at + 1}" for at, (column, _) in enumerate(given))
    return (f" WHERE {text}" if text else ""), [value for _, value in given]
