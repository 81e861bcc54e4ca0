"""What drivers of PostgreSQL do by themselves: cursors with names, pools that reset their connections, types that are asked about,
zones of time."""

import asyncio
import datetime
import zoneinfo

import asyncpg
import psycopg
import pytest
from psycopg.types import TypeInfo

from server import wait_until


def test_cursors_with_names(address):
    with psycopg.connect(**address) as connection:
        with connection.cursor("c") as cursor:
            cursor.execute("SELECT n, %s::text AS t FROM generate_series(1, 250) AS g(n)", ("x",))
            assert [column.name for column in cursor.description] == ["n", "t"]
            assert cursor.fetchmany(2) == [(1, "x"), (2, "x")]
            assert len(cursor.fetchall()) == 248
        with connection.cursor("held", withhold=True) as cursor:
            cursor.execute("SELECT 1")
            connection.commit()
            assert cursor.fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.InvalidCursorName):
            connection.execute("FETCH nowhere")


def test_a_prepared_statement_shows_what_the_session_has_now(address):
    with psycopg.connect(**address, autocommit=True) as connection:

        def shown(sql):
            return connection.execute(sql, prepare=True).fetchone()

        connection.execute("PREPARE p AS SELECT 1")
        for zone in ("Europe/Berlin", "America/New_York", "Europe/Berlin"):
            connection.execute(f"SET TIME ZONE '{zone}'")
            assert shown("SHOW TimeZone") == (zone,)
        assert shown("SHOW transaction_read_only") == ("off",)
        connection.execute("BEGIN READ ONLY")
        assert shown("SHOW transaction_read_only") == ("on",)
        connection.execute("COMMIT")
        assert shown("EXECUTE p") == (1,)
        connection.execute("DEALLOCATE p")
        connection.execute("PREPARE p AS SELECT 2")
        assert shown("EXECUTE p") == (2,)


def test_a_session_ends_another_one_of_its_user(address):
    with psycopg.connect(**address, autocommit=True) as one, psycopg.connect(**address, autocommit=True) as other:
        number = other.info.backend_pid
        assert other.execute("SELECT pg_backend_pid()").fetchone() == (number,)
        assert one.execute("SELECT pg_cancel_backend(%s), pg_terminate_backend(NULL)", [number]).fetchone() == (True, None)
        assert other.execute("SELECT 1").fetchone() == (1,)
        assert one.execute("SELECT pg_terminate_backend(%s)", [number]).fetchone() == (True,)
        with pytest.raises(psycopg.errors.AdminShutdown):
            other.execute("SELECT 1")
        assert other.broken
        assert one.execute("SELECT pg_terminate_backend(%s)", [number]).fetchone() == (False,)


def test_advisory_locks_exclude_other_sessions(address):
    def take(connection, call):
        return connection.execute(f"SELECT {call}").fetchone()[0]

    with psycopg.connect(**address, autocommit=True) as one, psycopg.connect(**address, autocommit=True) as other:
        assert take(one, "pg_try_advisory_lock(7)") is True
        assert take(other, "pg_try_advisory_lock(7)") is False
        assert take(other, "pg_try_advisory_lock_shared(7)") is False
        other.execute("SET statement_timeout = 100")
        with pytest.raises(psycopg.errors.QueryCanceled):
            other.execute("SELECT pg_advisory_lock(7)")
        assert take(one, "pg_advisory_unlock(7)") is True
        with one.transaction():
            assert take(one, "pg_try_advisory_xact_lock(7)") is True
            assert take(other, "pg_try_advisory_lock(7)") is False
        assert take(other, "pg_try_advisory_lock_shared(7)") is True
        assert take(one, "pg_try_advisory_lock_shared(7)") is True
        assert take(one, "pg_try_advisory_lock(7)") is False
        other.close()
        wait_until(lambda: take(one, "pg_try_advisory_lock(7)"), "the lock ends with its session", 10)


NO_INDEX = ("00000", "the index has no effect: there are no indexes")
NO_KEY = ("00000", "foreign keys are stored and shown, but not enforced")
# Statements, and the SQLSTATE and message of the notice that each brings.
NOTICES = [
    ("DROP TABLE IF EXISTS not_there", ("00000", "table `not_there` does not exist, skipping")),
    ("CREATE SCHEMA IF NOT EXISTS main", ("42P06", "schema `main` already exists, skipping")),
    ("SELECT 1", None),
    ("CREATE TABLE noticed (a INT PRIMARY KEY, \"references\" TEXT DEFAULT 'references')", None),
    ("CREATE INDEX i ON noticed (a)", NO_INDEX),
    ("CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON noticed (a)", NO_INDEX),
    ("CREATE TABLE noticing (a INT REFERENCES noticed (a), b INT)", NO_KEY),
    ("ALTER TABLE noticing ADD FOREIGN KEY (b) REFERENCES noticed (a)", NO_KEY),
    ("SET client_min_messages = warning", None),
    ("CREATE INDEX i ON noticed (a)", None),
    ("CREATE TEMP TABLE other (a INT REFERENCES noticed (a))", None),
]


@pytest.mark.parametrize("prepare", [False, True])
def test_notices(address, prepare):
    with psycopg.connect(**address, autocommit=True) as connection:
        heard = []
        connection.add_notice_handler(lambda notice: heard.append((notice.severity, notice.sqlstate, notice.message_primary)))
        for sql, notice in NOTICES:
            heard.clear()
            connection.execute(sql, prepare=prepare)
            assert heard == ([("NOTICE", *notice)] if notice else []), sql
        for table in ("other", "noticing", "noticed"):
            connection.execute(f"DROP TABLE {table}")


def test_types_are_asked_about(address):
    with psycopg.connect(**address) as connection:
        info = TypeInfo.fetch(connection, "int4")
        assert (info.oid, info.array_oid) == (23, 1007)
        assert TypeInfo.fetch(connection, "hstore") is None


def test_times_are_those_of_the_zone(address):
    noon = "SELECT TIMESTAMPTZ '2024-07-01 12:00:00+00'"
    with psycopg.connect(**address, options="-c TimeZone=Europe/Berlin", autocommit=True) as connection:
        assert connection.info.timezone == zoneinfo.ZoneInfo("Europe/Berlin")
        assert connection.pgconn.exec_(noon.encode()).get_value(0, 0) == b"2024-07-01 14:00:00+02"
        connection.execute("SET TimeZone = 'Asia/Kolkata'")
        assert connection.info.timezone == zoneinfo.ZoneInfo("Asia/Kolkata")
        assert connection.pgconn.exec_(noon.encode()).get_value(0, 0) == b"2024-07-01 17:30:00+05:30"
        assert connection.execute(noon).fetchone()[0] == datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.timezone.utc)
        connection.execute("RESET ALL")
        assert connection.info.timezone == zoneinfo.ZoneInfo("Europe/Berlin")


def test_pools_reset_their_connections(address):
    async def talk():
        pool = await asyncpg.create_pool(host=address["host"], port=address["port"], user="ada", database="bowshot", min_size=1, max_size=1)
        for _ in range(3):
            async with pool.acquire() as connection:
                # The dialect stays that of PostgreSQL.
                assert await connection.fetchval("SELECT 'int4'::regtype::text") == "integer"
                assert await connection.fetchval("SELECT $1::int[]", [1, None]) == [1, None]
                assert await connection.fetchval("SELECT 2 = ANY($1)", [1, 2])
                await connection.set_type_codec("jsonb", encoder=str, decoder=str, schema="pg_catalog")
                async with connection.transaction():
                    rows = [row async for row in connection.cursor("SELECT * FROM generate_series(1, 120)")]
                assert len(rows) == 120
        await pool.close()

    asyncio.run(asyncio.wait_for(talk(), 60))
