"""Types that Delta Lake has no place for, lengths, keys and counters over a restart; what SHOW CREATE TABLE says runs again."""

import datetime
import random

import adbc_driver_flightsql.dbapi as dbapi
import pytest

from durable import Database, restarts
from server import Server

TYPES = {
    "t": ("TIME", "'10:11:12.5'"),
    "t0": ("TIME(0)", "'10:11:12.5'"),
    "u1": ("TINYINT UNSIGNED", "255"),
    "u2": ("SMALLINT UNSIGNED", "65535"),
    "u4": ("INTEGER UNSIGNED", "4294967295"),
    "u8": ("BIGINT UNSIGNED", "18446744073709551615"),
    "tens": ("DECIMAL(5, -2)", "12300"),
    "money": ("DECIMAL(10, 2)", "1.25"),
    "word": ("VARCHAR(5)", "'größe'"),
    "code": ("CHAR(2)", "'ab'"),
    "bytes": ("VARBINARY(3)", "'abc'"),
    "doc": ("JSON", "'{\"a\": 1}'"),
    "id": ("UUID", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"),
    "kind": ("ENUM('a', 'it''s')", "'it''s'"),
    "at": ("TIMESTAMP", "'9999-12-31 23:59:59.999999'"),
    "at0": ("TIMESTAMP(0)", "'2024-01-01 00:00:00.6'"),
    "instant": ("TIMESTAMP WITH TIME ZONE", "'0001-01-01 00:00:00+00:00'"),
    "list": ("INTEGER[]", "[1, 2]"),
    "flag": ("BOOLEAN", "true"),
    "day": ("DATE", "'9999-12-31'"),
    "real": ("REAL", "0.5"),
    "double": ("DOUBLE", "0.1"),
}


@pytest.fixture
def restart(data):
    yield from restarts(data, "killed")


def test_types_come_back_as_they_were(restart):
    db = restart()
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    db.run(f"CREATE TABLE all_types ({columns})")
    db.run(f"INSERT INTO all_types VALUES ({', '.join(value for _, value in TYPES.values())})")
    shown = db.rows("SHOW CREATE TABLE all_types")
    for kind, _ in TYPES.values():
        assert kind.replace(", ", ",") in shown[0][1].replace(", ", ","), shown
    before = db.arrow("SELECT * FROM all_types")
    memory = f"CREATE TABLE in_memory ({columns}) WITH (storage = 'memory')"
    db.run(memory)
    assert db.arrow("SELECT * FROM in_memory").schema.types[:8] == before.schema.types[:8]
    db.run("OPTIMIZE all_types")
    for _ in range(2):
        db = restart()
        after = db.arrow("SELECT * FROM all_types")
        assert after.schema.equals(before.schema) and after.equals(before)
        assert db.rows("SHOW CREATE TABLE all_types") == shown
        assert db.rows("SELECT t, t0, u8, tens FROM all_types WHERE t > TIME '10:00:00' AND u8 > 5") == [
            (datetime.time(10, 11, 12, 500000), datetime.time(10, 11, 13), 2**64 - 1, 12300)
        ]
        with pytest.raises(dbapi.Error, match="too long"):
            db.run("INSERT INTO all_types (word) VALUES ('größer')")
        db.run("UPDATE all_types SET t = TIME '11:00:00' WHERE u1 = 255", "UPDATE all_types SET t = '10:11:12.5'")


def test_enumerated_types_come_back(restart):
    db = restart()
    db.run("CREATE TYPE mood AS ENUM ('sad', 'happy')", "CREATE TABLE people (m mood, o ENUM('z', 'a'))")
    db.run("INSERT INTO people VALUES ('happy', 'a'), ('sad', 'z')", "ALTER TYPE mood ADD VALUE 'ok' BEFORE 'happy'")
    shown = db.rows("SHOW CREATE TABLE people")
    assert "m mood" in shown[0][1] and "ENUM('z', 'a')" in shown[0][1]
    for _ in range(2):
        db = restart()
        db.run("INSERT INTO people VALUES ('ok', 'a')")
        assert [m for (m,) in db.rows("SELECT DISTINCT m FROM people ORDER BY m")] == ["sad", "ok", "happy"]
        assert db.rows("SELECT o FROM people ORDER BY o")[0] == ("z",)
        assert db.rows("SELECT max(m), 'ok'::mood FROM people") == [("happy", "ok")]
        with pytest.raises(dbapi.Error, match='invalid input value for enum mood: "angry"'):
            db.run("INSERT INTO people (m) VALUES ('angry')")
        with pytest.raises(dbapi.Error, match="other objects depend on it"):
            db.run("DROP TYPE mood")
        assert db.rows("SHOW CREATE TABLE people") == shown
    db.run("DROP TABLE people", "DROP TYPE mood")
    db = restart()
    with pytest.raises(dbapi.Error, match="mood"):
        db.rows("SELECT 'ok'::mood")


def test_counters_go_on(restart):
    db = restart()
    db.run("CREATE TABLE counted (id BIGSERIAL PRIMARY KEY, x INT, twice INT GENERATED ALWAYS AS (x * 2) STORED)")
    last = 0
    for _ in range(3):
        db.run("INSERT INTO counted (x) VALUES (1), (2)", "DELETE FROM counted WHERE id > 1")
        db.run("INSERT INTO counted (x) VALUES (3)")
        newest = db.one("SELECT max(id) FROM counted")
        assert newest > last
        last = newest
        db = restart()
    assert db.rows("SELECT DISTINCT twice FROM counted WHERE x = 3") == [(6,)]


def test_keys_are_kept(restart):
    db = restart()
    db.run("CREATE TABLE keyed (a INT, b INT UNIQUE, CONSTRAINT ab UNIQUE (a, b))", "INSERT INTO keyed VALUES (1, 1)")
    db.run("CREATE MATERIALIZED VIEW total AS SELECT sum(b) AS b FROM keyed")
    db = restart()
    with pytest.raises(dbapi.Error, match="twice"):
        db.run("INSERT INTO keyed VALUES (2, 1)")
    db.run("INSERT INTO keyed VALUES (2, 2)", "REFRESH MATERIALIZED VIEW total")
    assert db.one("SELECT b FROM total") == 3


def test_what_is_shown_runs_again(data):
    """Random definitions: made, shown, dropped, made of what was shown, shown again."""
    chance = random.Random(7)
    with Server(data=data) as server:
        db = Database(server)
        for number in range(60):
            names = chance.sample(list(TYPES), chance.randint(1, 6))
            parts = []
            for name in names:
                kind, value = TYPES[name]
                part = f'"{name} {number}" {kind}' if chance.random() < 0.2 else f"{name} {kind}"
                if chance.random() < 0.3:
                    part += f" DEFAULT {value}"
                if chance.random() < 0.3:
                    part += " NOT NULL"
                if chance.random() < 0.3:
                    part += " COMMENT 'it''s'"
                parts.append(part)
            column = parts[0].split(" NOT")[0].split(" DEFAULT")[0]
            key = column[: column.index('"', 1) + 1] if column.startswith('"') else column.split(" ")[0]
            parts.append(f"counter {chance.choice(['BIGSERIAL', 'INT GENERATED ALWAYS AS IDENTITY (START WITH 5)'])}")
            if chance.random() < 0.5:
                parts.append(f"UNIQUE ({key})")
            if chance.random() < 0.3:
                parts.append("CONSTRAINT small CHECK (counter < 1000)")
            if chance.random() < 0.3:
                parts.append("FOREIGN KEY (counter) REFERENCES elsewhere (a) NOT ENFORCED")
            if chance.random() < 0.3:
                parts.append("next INT GENERATED ALWAYS AS (counter + 1) STORED")
            storage = " WITH (storage = 'memory')" if chance.random() < 0.3 else ""
            comment = " COMMENT 'about'" if not storage and chance.random() < 0.5 else ""
            db.run(f"CREATE TABLE shown ({', '.join(parts)}){storage}{comment}")
            if storage:
                db.run("COMMENT ON TABLE shown IS 'it''s'")
            ((_, text),) = db.rows("SHOW CREATE TABLE shown")
            schema = db.arrow("SELECT * FROM shown").schema
            db.run("DROP TABLE shown", text)
            assert db.rows("SHOW CREATE TABLE shown") == [("shown", text)]
            assert db.arrow("SELECT * FROM shown").schema.equals(schema)
            db.run("DROP TABLE shown")
        db.close()


def test_functions_come_back_and_earlier_rows_are_cloned(restart):
    db = restart()
    db.run("CREATE TABLE t (a INT, b INT DEFAULT 7)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    ((version,),) = db.rows("SELECT max(version) FROM system.table_history WHERE table_name = 't'")
    db.run("CREATE FUNCTION doubled(x INT, y INT DEFAULT 1) RETURNS BIGINT RETURN x * 2 * y", "CREATE MACRO above(x) AS TABLE SELECT a FROM t WHERE a > x")
    db.run("DELETE FROM t WHERE a = 1", f"CREATE TABLE before CLONE t FOR VERSION AS OF {version}", "INSERT INTO before (a) VALUES (3)")
    for _ in range(2):
        db = restart()
        assert db.rows("SELECT doubled(a), doubled(a, y => 10) FROM above(0)") == [(4, 40)]
        assert db.rows("SELECT a, b FROM before ORDER BY a") == [(1, 1), (2, 2), (3, 7)]
    db.run("CREATE OR REPLACE FUNCTION doubled(x INT) RETURNS BIGINT RETURN x + x")
    assert db.rows("SELECT doubled(21)") == [(42,)]
