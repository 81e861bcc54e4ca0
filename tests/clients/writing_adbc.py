"""Connections of the ADBC driver that write, and what others see of it."""

import adbc_driver_flightsql.dbapi as dbapi
import adbc_driver_manager
import pyarrow as pa

Status = adbc_driver_manager.AdbcStatusCode
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["one", None, "größe 🏹"]})


def connect(store, autocommit=True):
    return dbapi.connect(store.grpc_tcp, autocommit=autocommit)


def select(cursor, sql):
    cursor.execute(sql)
    return cursor.fetchall()


def ids(store, table):
    """What a connection of its own sees."""
    with connect(store) as connection, connection.cursor() as cursor:
        return [row[0] for row in select(cursor, f"SELECT id FROM {table} ORDER BY id")]
