"""SQL of Ibis expressions. The server is DataFusion with functions of PostgreSQL and DuckDB, so Ibis's compiler for DataFusion
does most of it; what that leaves out, or does by Python functions of its own, is said in SQL here."""

from __future__ import annotations

from functools import partial
from typing import Any

import ibis.common.exceptions as com
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.base import NULL
from ibis.backends.sql.compilers.datafusion import DataFusionCompiler
from ibis.backends.sql.datatypes import _TYPE_MAPPERS, DataFusionType
from ibis.backends.sql.dialects import DataFusion

_MOMENT_PARTS = {
    ops.ExtractMicrosecond: "microsecond",
    ops.ExtractMillisecond: "millisecond",
    ops.ExtractSecond: "second",
    ops.ExtractMinute: "minute",
    ops.ExtractHour: "hour",
    ops.ExtractEpochSeconds: "epoch",
    ops.ExtractIsoYear: "isoyear",
}
_URL_PARTS = {
    ops.ExtractProtocol: "PROTOCOL",
    ops.ExtractAuthority: "AUTHORITY",
    ops.ExtractUserInfo: "USERINFO",
    ops.ExtractHost: "HOST",
    ops.ExtractPath: "PATH",
    ops.ExtractFile: "FILE",
    ops.ExtractFragment: "REF",
}


class Bowshot(DataFusion):  # type: ignore[misc]
    """Registers itself with sqlglot by its name."""

    class Generator(DataFusion.Generator):  # type: ignore[misc]
        TRANSFORMS = {  # noqa: RUF012 - as sqlglot has it
            **DataFusion.Generator.TRANSFORMS,
            sge.TryCast: lambda self, node: f"TRY_CAST({self.sql(node, 'this')} AS {self.sql(node, 'to')})",
        }


class BowshotType(DataFusionType):  # type: ignore[misc]
    dialect = "bowshot"


# Ibis looks for the types of a dialect by its name.
_TYPE_MAPPERS["bowshot"] = BowshotType


class BowshotCompiler(DataFusionCompiler):  # type: ignore[misc]
    __slots__ = ()

    dialect = Bowshot
    type_mapper = BowshotType

    UNSUPPORTED_OPS = (ops.RowID, ops.TimestampRange, ops.ApproxMultiQuantile, ops.MultiQuantile)
    SIMPLE_OPS = {  # noqa: RUF012 - as Ibis has it
        **DataFusionCompiler.SIMPLE_OPS,
        ops.RegexSplit: "regexp_split_to_array",
        ops.Mode: "mode",
        ops.ArraySum: "list_sum",
        ops.ArrayMin: "list_min",
        ops.ArrayMax: "list_max",
        ops.ArrayMean: "list_avg",
        ops.ArrayMode: "list_mode",
        ops.ArraySort: "array_sort",
        ops.TypeOf: "typeof",
        ops.TimeFromHMS: "make_time",
        ops.Levenshtein: "levenshtein",
    }
    # What is here would win over the methods below.
    for _op in (ops.ExtractMicrosecond, ops.Median):
        SIMPLE_OPS.pop(_op)

    # --- moments

    def _part(self, op: Any, *, arg: Any) -> Any:
        """A field of a moment, as a whole number."""
        return self.cast(self.f.floor(self.f.date_part(_MOMENT_PARTS[type(op)], arg)), dt.int64)

    visit_ExtractSecond = visit_ExtractMinute = visit_ExtractHour = visit_ExtractEpochSeconds = visit_ExtractIsoYear = _part

    def visit_ExtractMicrosecond(self, op: Any, *, arg: Any) -> Any:
        return self._part(op, arg=arg) % 1_000_000

    def visit_ExtractMillisecond(self, op: Any, *, arg: Any) -> Any:
        return self._part(op, arg=arg) % 1000

    def visit_DateDelta(self, op: Any, *, left: Any, right: Any, part: Any) -> Any:
        return self.f.anon.datediff(part, right, left)

    visit_TimestampDelta = visit_TimeDelta = visit_DateDelta

    def visit_TimestampBucket(self, op: Any, *, arg: Any, interval: Any, offset: Any) -> Any:
        if offset is None:
            return self.f.anon.date_bin(interval, arg)
        return self.f.anon.date_bin(interval, arg - offset) + offset

    def visit_StringToTimestamp(self, op: Any, *, arg: Any, format_str: Any) -> Any:
        return self.f.anon.strptime(arg, format_str)

    def visit_StringToDate(self, op: Any, *, arg: Any, format_str: Any) -> Any:
        return self.cast(self.f.anon.strptime(arg, format_str), dt.date)

    def visit_StringToTime(self, op: Any, *, arg: Any, format_str: Any) -> Any:
        return self.cast(self.f.anon.strptime(arg, format_str), dt.time)

    # --- aggregates

    def visit_Kurtosis(self, op: Any, *, arg: Any, where: Any, how: str) -> Any:
        return self.agg["kurtosis_pop" if how == "pop" else "kurtosis"](arg, where=where)

    def visit_Quantile(self, op: Any, *, arg: Any, quantile: Any, where: Any) -> Any:
        kind = "cont" if op.arg.dtype.is_numeric() else "disc"
        found = sge.WithinGroup(
            this=self.f[f"percentile_{kind}"](quantile),
            expression=sge.Order(expressions=[sge.Ordered(this=arg)]),
        )
        return found if where is None else sge.Filter(this=found, expression=sge.Where(this=where))

    def visit_Median(self, op: Any, *, arg: Any, where: Any) -> Any:
        if op.arg.dtype.is_numeric():
            return self.agg.median(arg, where=where)
        return self.visit_Quantile(op, arg=arg, quantile=sge.convert(0.5), where=where)

    def visit_CountDistinctStar(self, op: Any, *, where: Any, arg: Any) -> Any:
        row = sge.Tuple(expressions=list(map(partial(sg.column, quoted=self.quoted), op.arg.schema.keys())))
        return self.agg.count(sge.Distinct(expressions=[row]), where=where)

    def visit_ArrayCollect(self, op: Any, *, arg: Any, where: Any, order_by: Any, include_null: bool, distinct: bool) -> Any:
        if not include_null:
            present = arg.is_(sg.not_(NULL, copy=False))
            where = present if where is None else sge.And(this=present, expression=where)
        return self.agg.array_agg(sge.Distinct(expressions=[arg]) if distinct else arg, where=where, order_by=order_by)

    def visit_GroupConcat(self, op: Any, *, arg: Any, sep: Any, where: Any, order_by: Any) -> Any:
        return self.agg.string_agg(arg, sep, where=where, order_by=order_by)

    # --- lists and maps

    def visit_ArraySlice(self, op: Any, *, arg: Any, start: Any, stop: Any) -> Any:
        """Ibis counts from 0 and leaves the end out; SQL counts from 1 and has it in."""
        first = sge.convert(1) if start is None else self.if_(start < 0, start, start + 1)
        last = self.cast(self.f.array_length(arg), dt.int64) if stop is None else self.if_(stop < 0, stop - 1, stop)
        return self.if_(arg.is_(NULL), NULL, self.f.coalesce(self.f.array_slice(arg, first, last), self.f.make_array()))

    def _lambda(self, body: Any, param: str, index: str | None) -> Any:
        if index is not None:
            raise com.UnsupportedOperationError("functions over lists get no index here")
        return sge.Lambda(this=body, expressions=[sg.to_identifier(param)])

    def visit_ArrayMap(self, op: Any, *, arg: Any, body: Any, param: str, index: str | None) -> Any:
        return self.f.list_transform(arg, self._lambda(body, param, index))

    def visit_ArrayFilter(self, op: Any, *, arg: Any, body: Any, param: str, index: str | None) -> Any:
        return self.f.list_filter(arg, self._lambda(body, param, index))

    def visit_IntegerRange(self, op: Any, *, start: Any, stop: Any, step: Any) -> Any:
        """A step of 0 gives no numbers, of no number gives none."""
        empty = self.cast(self.f.make_array(), op.dtype)
        return self.if_(step.neq(0), self.f.anon.range(start, stop, self.f.nullif(step, 0)), empty)

    def visit_ArrayZip(self, op: Any, *, arg: Any) -> Any:
        any_null = sg.or_(*(item.is_(NULL) for item in arg))
        return self.if_(any_null, NULL, self.cast(self.f.arrays_zip(*arg), op.dtype))

    def visit_TableUnnest(
        self, op: Any, *, parent: Any, column: Any, column_name: str, offset: str | None, keep_empty: bool
    ) -> Any:
        if offset is not None or keep_empty:
            raise com.UnsupportedOperationError("`unnest` has neither `offset` nor `keep_empty` here")
        table = sg.to_identifier(parent.alias_or_name, quoted=self.quoted)
        names = [name for name in op.parent.schema if name != column_name]
        columns = [sg.column(name, table=table, quoted=self.quoted) for name in names]
        found = self.f.unnest(column).as_(column_name, quoted=self.quoted)
        place = list(op.schema).index(column_name)
        return sg.select(*columns[:place], found, *columns[place:]).from_(parent)

    def visit_Map(self, op: Any, *, keys: Any, values: Any) -> Any:
        """Of a part that is null nothing is asked: the function would make an empty map of it."""
        empty = self.cast(self.f.make_array(), op.keys.dtype), self.cast(self.f.make_array(), op.values.dtype)
        null = sg.or_(keys.is_(NULL), values.is_(NULL))
        found = self.f.map(self.if_(null, empty[0], keys), self.if_(null, empty[1], values))
        return self.if_(null, NULL, found)

    def visit_MapGet(self, op: Any, *, arg: Any, key: Any, default: Any) -> Any:
        if op.dtype.is_null():
            return NULL
        found = self.f.coalesce(self.f.array_element(self.f.map_extract(arg, key), sge.convert(1)), default)
        return self.if_(sg.or_(arg.is_(NULL), key.is_(NULL)), default if op.arg.dtype.is_null() else NULL, found)

    def visit_MapMerge(self, op: Any, *, left: Any, right: Any) -> Any:
        return self.if_(sg.or_(left.is_(NULL), right.is_(NULL)), NULL, self.f.map_concat(left, right))

    # --- texts

    def visit_HexDigest(self, op: Any, *, arg: Any, how: str) -> Any:
        if how not in ("md5", "sha256", "sha512"):
            raise com.UnsupportedOperationError(f"there is no function `{how}`")
        return self.f.md5(arg) if how == "md5" else self.f.anon.sha2(arg, int(how[3:]))

    def visit_ExtractQuery(self, op: Any, *, arg: Any, key: Any) -> Any:
        return self.f.parse_url(arg, "QUERY") if key is None else self.f.parse_url(arg, "QUERY", key)

    def _url(self, op: Any, *, arg: Any) -> Any:
        return self.f.parse_url(arg, _URL_PARTS[type(op)])

    visit_ExtractProtocol = visit_ExtractAuthority = visit_ExtractUserInfo = visit_ExtractHost = _url
    visit_ExtractPath = visit_ExtractFile = visit_ExtractFragment = _url

    # --- JSON

    def _unwrapped(self, arg: Any, kind: str, dtype: dt.DataType) -> Any:
        text = self.f.json_extract_string(arg, "$")
        return self.if_(self.f.json_typeof(arg).eq(sge.convert(kind)), self.cast(text, dtype), NULL)

    def visit_UnwrapJSONString(self, op: Any, *, arg: Any) -> Any:
        return self._unwrapped(arg, "string", dt.string)

    def visit_UnwrapJSONInt64(self, op: Any, *, arg: Any) -> Any:
        return sge.TryCast(this=self._unwrapped(arg, "number", dt.string), to=self.type_mapper.from_ibis(dt.int64))

    def visit_UnwrapJSONFloat64(self, op: Any, *, arg: Any) -> Any:
        return self._unwrapped(arg, "number", dt.float64)

    def visit_UnwrapJSONBoolean(self, op: Any, *, arg: Any) -> Any:
        return self._unwrapped(arg, "boolean", dt.boolean)

    # --- the rest

    def visit_TryCast(self, op: Any, *, arg: Any, to: dt.DataType) -> Any:
        return sge.TryCast(this=arg, to=self.type_mapper.from_ibis(to))


compiler = BowshotCompiler()
