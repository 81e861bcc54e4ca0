"""What tests of statements that change tables do with a connection."""

import adbc_driver_flightsql.dbapi as dbapi
import adbc_driver_manager
import pytest

Status = adbc_driver_manager.AdbcStatusCode


class Connection:
    """A connection with the two things that the tests do."""

    def __init__(self, store):
        self.connection = dbapi.connect(store.grpc_tcp, autocommit=True)

    def run(self, sql):
        """Runs a statement; gives the number of rows that it says it changed."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return None if cursor.rowcount == -1 else cursor.rowcount

    def rows(self, sql):
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def fails(self, sql, words, status=None):
        with pytest.raises(Exception) as caught:
            self.run(sql)
        assert words in str(caught.value), str(caught.value)
        if status is not None:
            assert caught.value.status_code == status, caught.value

    def close(self):
        self.connection.close()
