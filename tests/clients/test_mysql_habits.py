"""What programs of MySQL count on beyond rows: numbers that the server gives, counts of changed rows, variables, what mariadb-dump
and administration tools ask first. Right values are those of MariaDB 10.11."""

import shutil
import subprocess
import time

import pymysql
import pytest
from pymysql.constants import CLIENT

from server import repeated
from test_mysql import pymysql_to


@pytest.fixture
def cursor(served):
    with pymysql_to(served) as connection, connection.cursor() as cursor:
        yield cursor


def rows(cursor, sql, *values):
    cursor.execute(sql, *values)
    return list(cursor.fetchall())


def test_numbers_that_the_server_gives(cursor):
    cursor.execute("CREATE TABLE numbered (id INT PRIMARY KEY AUTO_INCREMENT, a INT UNIQUE)")
    assert (cursor.execute("INSERT INTO numbered (a) VALUES (10), (20)"), cursor.lastrowid) == (2, 1)
    assert rows(cursor, "SELECT LAST_INSERT_ID(), @@last_insert_id, @@identity") == [(1, 1, 1)]
    # An explicit number is told, and is none that the server has given.
    assert (cursor.execute("INSERT INTO numbered VALUES (7, 70)"), cursor.lastrowid) == (1, 7)
    assert rows(cursor, "SELECT LAST_INSERT_ID()") == [(1,)]
    assert (cursor.execute("INSERT INTO numbered (a) VALUES (%s)", (80,)), cursor.lastrowid) == (1, 8)
    assert (cursor.execute("INSERT INTO numbered SET a = 90"), cursor.lastrowid) == (1, 9)
    assert (cursor.execute("REPLACE INTO numbered (a) VALUES (100)"), cursor.lastrowid) == (1, 10)
    assert (cursor.execute("UPDATE numbered SET a = 11 WHERE a = 10"), cursor.lastrowid) == (1, 0)
    assert (cursor.execute("UPDATE numbered SET a = LAST_INSERT_ID(a + 1) WHERE a = 11"), cursor.lastrowid) == (1, 12)
    assert rows(cursor, "SELECT LAST_INSERT_ID(77)") == [(77,)]
    assert rows(cursor, "SELECT LAST_INSERT_ID(), @@last_insert_id") == [(77, 77)]
    assert (cursor.execute("UPDATE numbered SET a = 11 WHERE a = 12"), cursor.lastrowid) == (1, 0)
    cursor.execute("DROP TABLE numbered")


def test_rows_that_become_others_count(served, cursor):
    cursor.execute("CREATE TABLE counted (id INT, a INT, b VARCHAR(5), c DECIMAL(8, 2))")
    cursor.execute("INSERT INTO counted VALUES (1, 1, 'x', 1.5), (2, 2, NULL, NULL), (3, 1, 'x', 2)")
    with pymysql_to(served, client_flag=CLIENT.FOUND_ROWS) as other, other.cursor() as found:
        for sql, changed, matched in [
            ("UPDATE counted SET a = 1", 1, 3),
            ("UPDATE counted SET a = 1", 0, 3),
            ("UPDATE counted SET b = 'x', c = c WHERE id < 3", 1, 2),
            ("UPDATE counted SET b = NULL WHERE id = 9", 0, 0),
            ("UPDATE counted SET c = '1.500' WHERE id = 1", 0, 1),
        ]:
            assert (cursor.execute(sql), found.execute(sql)) == (changed, matched), sql
    assert cursor.execute("DELETE FROM counted") == 3
    cursor.execute("DROP TABLE counted")


def test_rows_that_are_there_count_twice_where_they_become_others(cursor):
    cursor.execute("CREATE TABLE upserted (id INT PRIMARY KEY, a INT, b VARCHAR(5))")
    for sql, count in [
        ("INSERT INTO upserted VALUES (1, 1, 'x'), (2, 2, NULL) ON DUPLICATE KEY UPDATE a = VALUES(a)", 2),
        ("INSERT INTO upserted VALUES (1, 5, 'x') ON DUPLICATE KEY UPDATE a = VALUES(a)", 2),
        ("INSERT INTO upserted VALUES (1, 5, 'y') ON DUPLICATE KEY UPDATE a = VALUES(a)", 0),
        ("INSERT INTO upserted VALUES (1, 6, 'x'), (2, 2, 'x'), (3, 3, 'x') ON DUPLICATE KEY UPDATE a = VALUES(a)", 3),
        ("INSERT IGNORE INTO upserted VALUES (1, 9, 'x'), (4, 4, 'x')", 1),
        ("REPLACE INTO upserted VALUES (1, 6, 'z')", 2),
        ("REPLACE INTO upserted VALUES (1, 6, 'z')", 1),
        ("REPLACE INTO upserted VALUES (2, 2, 'x'), (5, 5, 'x')", 3),
    ]:
        assert cursor.execute(sql) == count, sql
    assert cursor.execute("INSERT INTO upserted VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE b = %s", (5, 0, "", "w")) == 2
    assert rows(cursor, "SELECT * FROM upserted ORDER BY id") == [(1, 6, "z"), (2, 2, "x"), (3, 3, "x"), (4, 4, "x"), (5, 5, "w")]
    cursor.execute("DROP TABLE upserted")


def test_variables_of_the_client(served, cursor):
    cursor.execute("SET @x = 5, @Name := 'it''s', @old = @@sql_notes, @nothing = NULL")
    assert rows(cursor, "SELECT @x + 1, @name, @old, @nothing, @unset") == [(6, "it's", 1, None, None)]
    assert rows(cursor, "SELECT @y := 3 AS a, @y * 2 AS b") == [(3, 6)]
    cursor.execute("SET @y = @x")
    assert rows(cursor, "SELECT @y") == [(5,)]
    with pymysql_to(served) as other, other.cursor() as fresh:
        assert rows(fresh, "SELECT @x") == [(None,)]


def test_changes_of_all_rows_can_be_refused(cursor):
    cursor.execute("CREATE TABLE safe (a INT PRIMARY KEY, b INT)")
    cursor.execute("SET SQL_SAFE_UPDATES = 1")
    assert rows(cursor, "SELECT @@sql_safe_updates") == [(1,)]
    for sql in ["UPDATE safe SET b = 1", "DELETE FROM safe", "UPDATE safe SET b = (SELECT a FROM safe WHERE a = 1)"]:
        with pytest.raises(pymysql.err.Error) as refused:
            cursor.execute(sql)
        assert refused.value.args[0] == 1175
    cursor.execute("DELETE FROM safe WHERE a = 1")
    cursor.execute("DELETE FROM safe LIMIT 1")
    cursor.execute("SET SQL_SAFE_UPDATES = 0")
    cursor.execute("DELETE FROM safe")
    cursor.execute("DROP TABLE safe")


def test_what_tools_ask_first(served, cursor):
    for name in ["default_tmp_storage_engine", "event_scheduler", "have_ssl", "hostname", "group_concat_max_len", "in_transaction", "sql_log_bin"]:
        assert len(rows(cursor, f"SELECT @@{name}")) == 1, name
    assert rows(cursor, "SELECT @@port") == [(served.mysql_port,)]
    cursor.execute("CREATE TABLE known (a INT PRIMARY KEY, b DECIMAL(9, 2))")
    cursor.execute("INSERT INTO known VALUES (1, 2)")
    told = rows(cursor, "SELECT ENGINE, TABLE_ROWS, TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_NAME = 'known'")
    assert told == [("Bowshot", 1, "utf8mb4_bin")]
    cursor.execute("SELECT NUMERIC_PRECISION, CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS WHERE TABLE_NAME = 'known' ORDER BY ORDINAL_POSITION")
    assert [(column[1], bool(field.flags & 32)) for column, field in zip(cursor.description, cursor._result.fields)] == [(8, True), (8, True)]
    assert list(cursor.fetchall()) == [(10, None), (9, None)]
    for table in ["EVENTS", "ENGINES", "PLUGINS", "PROCESSLIST", "USER_PRIVILEGES", "KEYWORDS", "COLLATION_CHARACTER_SET_APPLICABILITY"]:
        cursor.execute(f"SELECT * FROM information_schema.{table}")
    for sql in ["SHOW PLUGINS", "SET sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')", "SET @@session.autocommit = ON"]:
        cursor.execute(sql)
    for sql in ["SHOW COUNT(*) WARNINGS", "SHOW MASTER STATUS", "DO 1, 2", "LOCK TABLES known READ, known AS k WRITE", "UNLOCK TABLES", "FLUSH TABLES"]:
        cursor.execute(sql)
    cursor.execute("DROP TABLE known")


def test_notes_and_errors_of_the_last_statement(served, cursor):
    """MariaDB 10.11's numbers of notes."""
    for sql, code in [
        ("DROP TABLE IF EXISTS not_there", 1051),
        ("DROP DATABASE IF EXISTS not_there", 1008),
        ("CREATE DATABASE IF NOT EXISTS main", 1007),
        ("CREATE TABLE noted (a INT PRIMARY KEY)", None),
        ("CREATE TABLE IF NOT EXISTS noted (a INT)", 1050),
        ("CREATE INDEX i ON noted (a)", 1235),
        ("CREATE TABLE noting (a INT REFERENCES noted (a))", 1235),
    ]:
        cursor.execute(sql)
        assert cursor._result.warning_count == (code is not None), sql
        assert [(level, number) for level, number, _ in rows(cursor, "SHOW WARNINGS")] == [("Note", code)] * (code is not None), sql
        assert rows(cursor, "SELECT @@warning_count, @@error_count") == [(int(code is not None), 0)], sql
        assert rows(cursor, "SHOW COUNT(*) WARNINGS") == [(int(code is not None),)], sql
    cursor.execute("DROP TABLE IF EXISTS noting, gone, noted, gone_too")
    assert [message.split("`")[1] for _, _, message in rows(cursor, "SHOW WARNINGS LIMIT 1, 5")] == ["gone_too"]
    with pytest.raises(pymysql.err.ProgrammingError):
        cursor.execute("SELECT * FROM noted")
    assert [(level, number) for level, number, _ in rows(cursor, "SHOW ERRORS")] == [("Error", 1146)]
    assert rows(cursor, "SELECT 1") == [(1,)]
    assert rows(cursor, "SHOW WARNINGS") == []


def test_a_statement_sleeps_until_it_is_killed_or_late(served, cursor):
    assert rows(cursor, "SELECT SLEEP(0.1)") == [(0,)]
    started = time.monotonic()
    with pymysql_to(served) as other:
        killing, kill = other.cursor(), f"KILL QUERY {cursor.connection.thread_id()}"
        with repeated(lambda: killing.execute(kill)), pytest.raises(pymysql.err.OperationalError) as killed:
            cursor.execute("SELECT SLEEP(60)")
        assert killed.value.args[0] == 1317
    with pytest.raises(pymysql.err.OperationalError):
        cursor.execute("SET STATEMENT max_statement_time = 0.3 FOR SELECT SLEEP(60)")
    assert time.monotonic() - started < 60, "one of them slept to its end"


def test_a_temporary_table_is_written_with_its_keys(cursor):
    cursor.execute("CREATE TEMPORARY TABLE passing (a INT PRIMARY KEY, b INT, g INT GENERATED ALWAYS AS (b + 1) STORED, UNIQUE KEY b_key (b))")
    assert rows(cursor, "SHOW CREATE TABLE passing")[0][1].startswith(
        "CREATE TABLE `passing` (\n  `a` int NOT NULL,\n  `b` int,\n  `g` int GENERATED ALWAYS AS (`b` + 1) STORED,\n"
        "  PRIMARY KEY (`a`),\n  UNIQUE KEY `b_key` (`b`)\n)"
    )
    cursor.execute("ALTER TABLE passing COMMENT 'it is said'")
    assert rows(cursor, "SHOW CREATE TABLE passing")[0][1].endswith(" COMMENT='it is said'")
    cursor.execute("ALTER TABLE passing COMMENT = ''")
    assert "COMMENT" not in rows(cursor, "SHOW CREATE TABLE passing")[0][1]
    cursor.execute("DROP TABLE passing")


@pytest.mark.skipif(shutil.which("mariadb-dump") is None, reason="mariadb-dump is not installed")
def test_a_dump_makes_the_same_tables(served, cursor):
    cursor.execute("CREATE DATABASE dumped")
    cursor.execute(
        "CREATE TABLE dumped.t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(20) DEFAULT 'x' COMMENT 'two\\nlines', b DECIMAL(9, 2),"
        " UNIQUE KEY a_key (a), CONSTRAINT b_check CHECK (b > 0))"
    )
    made = (
        "CREATE TABLE `t` (\n  `id` int NOT NULL AUTO_INCREMENT,\n  `a` varchar(20) DEFAULT 'x' COMMENT 'two\\nlines',\n"
        "  `b` decimal(9,2),\n  PRIMARY KEY (`id`),\n  UNIQUE KEY `a_key` (`a`),\n  CONSTRAINT `b_check` CHECK (`b` > 0)\n"
        ") ENGINE=Bowshot DEFAULT CHARSET=utf8mb4"
    )
    assert rows(cursor, "SHOW CREATE TABLE dumped.t") == [("t", made)]
    cursor.execute("INSERT INTO dumped.t (a, b) VALUES ('it''s', 1.5), (NULL, NULL)")
    cursor.execute("USE dumped")
    cursor.execute("CREATE VIEW v (named) AS SELECT a FROM t WHERE b > 1")
    assert rows(cursor, "SHOW CREATE TABLE v")[0][:2] == ("v", "CREATE VIEW `v` (`named`) AS SELECT a FROM t WHERE b > 1")
    place = ["-h", "127.0.0.1", "-P", str(served.mysql_port), "-u", "ada", "--protocol=tcp"]
    dump = subprocess.run(["mariadb-dump", *place, "dumped"], capture_output=True, text=True, timeout=60)
    assert dump.returncode == 0, dump.stderr
    before = rows(cursor, "SELECT * FROM dumped.t ORDER BY id")
    cursor.execute("DROP VIEW v")
    cursor.execute("DROP TABLE dumped.t")
    back = subprocess.run(["mariadb", *place, "dumped"], input=dump.stdout, capture_output=True, text=True, timeout=60)
    assert back.returncode == 0, back.stderr
    assert rows(cursor, "SELECT * FROM dumped.t ORDER BY id") == before
    assert rows(cursor, "SHOW CREATE TABLE dumped.t") == [("t", made)]
    assert rows(cursor, "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'dumped' ORDER BY 1") == [
        ("t", "BASE TABLE"), ("v", "VIEW")
    ]
    assert rows(cursor, "SELECT named FROM dumped.v") == [("it's",)]
    cursor.execute("DROP VIEW v")
    cursor.execute("USE main")
    cursor.execute("DROP DATABASE dumped")
