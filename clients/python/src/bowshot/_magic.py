"""`%sql` and `%%sql` of IPython and Jupyter: `%load_ext bowshot`.

    %sql grpc://127.0.0.1:50051          connects; also profile:NAME, or the name of a variable with a connection
    %sql SELECT count(*) FROM orders     runs one line
    %%sql [variable <<]                  runs the cell; with a name the result is kept there instead of shown

`:name` in a statement stands for the variable of that name.
"""

from __future__ import annotations

from typing import Any

from bowshot import _sql
from bowshot._errors import InterfaceError

_ADDRESSES = ("grpc://", "grpc+tcp://", "grpc+tls://", "grpcs://", "bowshot://", "bowshot+tls://", "bowshots://", "profile:")


class _Magic:
    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._connection: Any = None

    def line(self, line: str) -> Any:
        line = line.strip()
        known = self._shell.user_ns.get(line)
        if line.startswith(_ADDRESSES):
            from bowshot import connect

            self._connection = connect(line, autocommit=True)
            return None
        if hasattr(known, "sql") and hasattr(known, "cursor"):
            self._connection = known
            return None
        return self._run(line)

    def cell(self, line: str, cell: str | None = None) -> Any:
        if cell is None:
            return self.line(line)
        name, arrow, rest = line.partition("<<")
        if not arrow and line.strip():
            self.line(line)
            return self._run(cell)
        result = self._run(cell if not rest.strip() else f"{rest}\n{cell}")
        if not arrow:
            return result
        if not name.strip().isidentifier():
            raise InterfaceError(f"`{name.strip()}` is no name of a variable")
        self._shell.user_ns[name.strip()] = result
        return None

    def _run(self, sql: str) -> Any:
        if self._connection is None:
            raise InterfaceError("there is no connection yet", hint="%sql grpc://HOST:PORT")
        bound = _sql.bind(sql, named=True)
        values = {str(key): self._variable(str(key)) for key in bound.keys}
        result = self._connection.sql(sql, values or None)
        return result if result.columns else result.rowcount

    def _variable(self, name: str) -> Any:
        if name not in self._shell.user_ns:
            raise InterfaceError(f"there is no variable `{name}`")
        return self._shell.user_ns[name]


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext bowshot` calls."""
    magic = _Magic(shell)
    shell.register_magic_function(magic.line, "line", "sql")
    shell.register_magic_function(magic.cell, "cell", "sql")
