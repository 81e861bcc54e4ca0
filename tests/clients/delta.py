"""How others read a Delta table: each reader gives the rows of a folder as one Arrow table, in types that can be compared."""

import deltalake
import duckdb
import polars as pl
import pyarrow as pa

import duckdb_extensions


def by_deltalake(folder, version=None):
    return deltalake.DeltaTable(str(folder), version=version).to_pyarrow_table()


def by_duckdb(folder):
    with duckdb.connect() as connection:
        duckdb_extensions.load(connection, "delta")
        return connection.execute("SELECT * FROM delta_scan(?)", [str(folder)]).to_arrow_table()


def by_polars(folder):
    return pl.scan_delta(str(folder)).collect().to_arrow()


READERS = {"deltalake": by_deltalake, "duckdb": by_duckdb, "polars": by_polars}


def plain(kind):
    """A type without what readers choose for themselves: width of offsets, views, names of list items, name of UTC."""
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(pa.field("item", plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    return kind


def types(table):
    return {field.name: plain(field.type) for field in table.schema}


def rows(table):
    """Rows as texts, in an order that every reader has."""
    named = pa.table({name: table[name].cast(plain(table[name].type)) for name in table.column_names})
    return sorted(map(repr, named.to_pylist()))


def assert_same(ours, theirs):
    assert ours.column_names == theirs.column_names
    assert types(ours) == types(theirs)
    assert rows(ours) == rows(theirs)
