"""Tables and namespaces that are made and dropped in a catalog, and who may do that."""

import contextlib

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform, YearTransform
from pyiceberg.types import (
    BooleanType, DateType, DecimalType, DoubleType, IntegerType, ListType, LongType, StringType, TimestampType, TimestamptzType,
)

import tables
from catalogs import Catalog
from conftest import refused, serving_real
from durable import Database
from server import Server, hash_password
from test_catalog import asking
from test_iceberg import ROWS, sorted_rows


@pytest.fixture
def lake(tmp_path, s3):
    """A catalog without tables, and a server that may write it."""
    (tmp_path / "warehouse").mkdir()
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    with contextlib.ExitStack() as stack:
        def make(**more):
            catalog = stack.enter_context(Catalog())
            catalog.warehouse = tmp_path / "warehouse"
            entry = catalog.entry(**{"places": [str(tmp_path / "warehouse")], "read_only": False, **more})
            return catalog, stack.enter_context(asking(s3, tmp_path, entry, sources=(f"rows={tmp_path / 'rows.parquet'}",)))

        yield make


def made(catalog, namespace, name):
    return StaticTable.from_metadata(str(tables.newest(catalog.warehouse / namespace / name)))


def test_columns_and_partitions(lake):
    catalog, database = lake()
    database.run("CREATE SCHEMA lake.db", """
        CREATE TABLE lake.db.t (
            id BIGINT NOT NULL, small SMALLINT, word VARCHAR, flag BOOLEAN, price DECIMAL(9, 2), ratio DOUBLE,
            day DATE, at TIMESTAMP, seen TIMESTAMP WITH TIME ZONE, tags VARCHAR[]
        ) PARTITIONED BY (flag)""")
    table = made(catalog, "db", "t")
    kinds = {field.name: (type(field.field_type), field.required) for field in table.schema().fields}
    assert kinds == {
        "id": (LongType, True), "small": (IntegerType, False), "word": (StringType, False), "flag": (BooleanType, False),
        "price": (DecimalType, False), "ratio": (DoubleType, False), "day": (DateType, False), "at": (TimestampType, False),
        "seen": (TimestamptzType, False), "tags": (ListType, False),
    }
    assert [(field.name, field.transform) for field in table.spec().fields] == [("flag", IdentityTransform())]
    parts = "day(at), bucket(16, id), truncate(2, word), year(day), flag"
    database.run(f"CREATE TABLE lake.db.u PARTITION BY ({parts}) AS SELECT * FROM lake.db.t")
    assert [(field.name, field.transform) for field in made(catalog, "db", "u").spec().fields] == [
        ("at_day", DayTransform()), ("id_bucket", BucketTransform(16)), ("word_trunc", TruncateTransform(2)),
        ("day_year", YearTransform()), ("flag", IdentityTransform()),
    ]
    assert table.metadata.format_version == 2
    database.run("INSERT INTO lake.db.t (id, word, at) VALUES (1, 'abc', TIMESTAMP '2024-02-29 12:00:00')")
    assert database.rows("SELECT id, word, tags FROM lake.db.t") == [(1, "abc", None)]
    assert made(catalog, "db", "t").scan().to_arrow()["word"].to_pylist() == ["abc"]
    assert ("db", "t") in database.rows("SELECT table_schema, table_name FROM lake.information_schema.tables")


@pytest.mark.parametrize("clause", ["PARTITION BY", "PARTITIONED BY"])
def test_partitions_of_columns_that_are_listed(lake, clause):
    catalog, database = lake()
    parts = "bucket(16, id), days(at), truncate(2, word)"
    database.run("CREATE SCHEMA lake.db", f"CREATE TABLE lake.db.t (id BIGINT, word VARCHAR, at TIMESTAMP) {clause} ({parts})",
                 f"CREATE TABLE lake.db.u {clause} ({parts}) AS SELECT * FROM lake.db.t")
    for name in "tu":
        assert [(field.name, field.transform) for field in made(catalog, "db", name).spec().fields] == [
            ("id_bucket", BucketTransform(16)), ("at_day", DayTransform()), ("word_trunc", TruncateTransform(2))]
    # Of tables here, it says nothing about what they are.
    database.run(f"CREATE TABLE own (id BIGINT) {clause} (bucket(16, id))", "INSERT INTO own VALUES (1)")
    refused(database, "CREATE TABLE lake.db.v (id BIGINT) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (10))", "another database")
    assert database.one("SELECT count(*) FROM own") == 1


def test_nested_values_that_are_written_out(lake):
    catalog, database = lake()
    database.run("CREATE SCHEMA lake.db", """
        CREATE TABLE lake.db.t (id BIGINT, tags VARCHAR[], spot STRUCT(x BIGINT, y VARCHAR), counts MAP(VARCHAR, BIGINT), deep BIGINT[][])""")
    database.run(
        "INSERT INTO lake.db.t VALUES (1, ARRAY['a', NULL], {'x': 1, 'y': 'b'}, MAP {'k': 3}, [[1], [2, 3]])",
        "INSERT INTO lake.db.t (tags, id) VALUES (ARRAY['c'], 2), (NULL, 3)")
    database.run(
        "UPDATE lake.db.t SET tags = ARRAY['d'], spot = {'x': 7, 'y': NULL}, counts = MAP {'n': 4} WHERE id = 3",
        """MERGE INTO lake.db.t AS t USING (VALUES (3, 8), (4, 9)) AS s (id, x) ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET spot = {'x': s.x, 'y': 'm'}, deep = [[s.x]]
            WHEN NOT MATCHED THEN INSERT (id, spot, tags) VALUES (s.id, {'x': s.x, 'y': 'n'}, ARRAY['e'])""")
    rows = {row["id"]: row for row in made(catalog, "db", "t").scan().to_arrow().to_pylist()}
    assert rows[1] == {"id": 1, "tags": ["a", None], "spot": {"x": 1, "y": "b"}, "counts": [("k", 3)], "deep": [[1], [2, 3]]}
    assert rows[2]["tags"] == ["c"] and rows[2]["spot"] is None
    assert rows[3] == {"id": 3, "tags": ["d"], "spot": {"x": 8, "y": "m"}, "counts": [("n", 4)], "deep": [[8]]}
    assert rows[4] == {"id": 4, "tags": ["e"], "spot": {"x": 9, "y": "n"}, "counts": None, "deep": None}
    assert database.one("SELECT id FROM lake.db.t WHERE tags[1] = 'a' AND counts['k'] = 3") == 1


def test_tables_of_rows(lake):
    catalog, database = lake()
    database.run("CREATE SCHEMA lake.db", "CREATE TABLE lake.db.t PARTITIONED BY (day) AS SELECT * FROM rows")
    got = made(catalog, "db", "t").scan().to_arrow()
    assert sorted_rows(got) == sorted_rows(ROWS.cast(got.schema))
    assert [field.name for field in made(catalog, "db", "t").spec().fields] == ["day"]
    database.run("CREATE TABLE IF NOT EXISTS lake.db.t AS SELECT * FROM rows")
    assert database.one("SELECT count(*) FROM lake.db.t") == 1000
    refused(database, "CREATE TABLE lake.db.other AS SELECT 1 / (id - 500) AS x FROM rows")
    assert (("db",), "other") not in catalog.tables, "a table without its rows is dropped"


ALTERED = """CREATE TABLE lake.db.t (id INTEGER NOT NULL, word VARCHAR, price DECIMAL(9, 2), day DATE) PARTITIONED BY (day)"""


def test_changed_columns(lake):
    catalog, database = lake()
    database.run(
        "CREATE SCHEMA lake.db", ALTERED, "INSERT INTO lake.db.t VALUES (1, 'one', 1.50, DATE '2024-02-29')",
        "ALTER TABLE lake.db.t ADD COLUMN more BIGINT, ADD COLUMN tags VARCHAR[]", "ALTER TABLE lake.db.t RENAME COLUMN word TO label",
        "ALTER TABLE lake.db.t ALTER COLUMN id TYPE BIGINT, ALTER COLUMN price TYPE DECIMAL(12, 2), ALTER COLUMN id DROP NOT NULL",
        "INSERT INTO lake.db.t VALUES (5000000000, 'two', 2.25, NULL, 7, ['x'])", "UPDATE lake.db.t SET more = 3 WHERE id = 1")
    rows = sorted(made(catalog, "db", "t").scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [list(row.values())[:2] + list(row.values())[4:] for row in rows] == [[1, "one", 3, None], [5_000_000_000, "two", 7, ["x"]]]
    kinds = {field.name: str(field.field_type) for field in made(catalog, "db", "t").schema().fields}
    assert kinds == {"id": "long", "label": "string", "price": "decimal(12, 2)", "day": "date", "more": "long", "tags": "list<string>"}
    schemas = len(made(catalog, "db", "t").metadata.schemas)
    database.run("ALTER TABLE lake.db.t ADD COLUMN IF NOT EXISTS more BIGINT", "ALTER TABLE lake.db.t DROP COLUMN IF EXISTS nothing",
                 "ALTER TABLE IF EXISTS lake.db.nothing DROP COLUMN id")
    assert len(made(catalog, "db", "t").metadata.schemas) == schemas, "what is so already is not committed"
    database.run("ALTER TABLE lake.db.t DROP COLUMN label", "ALTER TABLE lake.db.t ADD COLUMN label VARCHAR")
    assert database.rows("SELECT id, label FROM lake.db.t ORDER BY id") == [(1, None), (5_000_000_000, None)], "another column of that name"


@pytest.mark.parametrize("change", [
    "ADD COLUMN word VARCHAR", "ADD COLUMN x INT NOT NULL DEFAULT 1", "ADD COLUMN x UBIGINT", "ADD COLUMN x INT DEFAULT 7", "DROP COLUMN day",
    "DROP COLUMN nothing", "RENAME COLUMN word TO id", "RENAME COLUMN nothing TO x", "ALTER COLUMN word TYPE INT",
    "ALTER COLUMN price TYPE DECIMAL(12, 3)", "ALTER COLUMN word SET NOT NULL", "RENAME TO lake.db.u", "ADD CHECK (id > 0)",
    "DROP COLUMN word, DROP COLUMN nothing",
])
def test_what_no_column_becomes(lake, change):
    catalog, database = lake()
    database.run("CREATE SCHEMA lake.db", ALTERED)
    refused(database, f"ALTER TABLE lake.db.t {change}")
    assert len(made(catalog, "db", "t").metadata.schemas) == 1


@pytest.mark.parametrize("status, is_made", [(409, False), (503, True), (503, False)])
def test_columns_are_changed_once(lake, status, is_made):
    """Somebody was faster; or the answer of the catalog was lost, whether it has made the change or not."""
    catalog, database = lake(timeout="2s")
    database.run("CREATE SCHEMA lake.db", ALTERED)

    def fault(handler, commit):
        catalog.commit_fault = None
        assert not is_made or commit() == 200
        return status

    catalog.commit_fault = fault
    database.run("ALTER TABLE lake.db.t ADD COLUMN more BIGINT")
    assert database.arrow("SELECT * FROM lake.db.t").schema.names == ["id", "word", "price", "day", "more"]
    assert len(made(catalog, "db", "t").metadata.schemas) == 2


def test_an_equal_change_of_somebody_else_is_a_conflict(lake):
    catalog, database = lake()
    database.run("CREATE SCHEMA lake.db", ALTERED)

    def fault(handler, commit):
        """The other one, which asks for the same, has come first."""
        catalog.commit_fault = None
        assert commit() == 200
        return 409

    catalog.commit_fault = fault
    refused(database, "ALTER TABLE lake.db.t ADD COLUMN more BIGINT", "already has a column")
    catalog.commit_fault = fault
    database.run("ALTER TABLE lake.db.t ADD COLUMN IF NOT EXISTS other BIGINT")
    assert database.arrow("SELECT * FROM lake.db.t").schema.names == ["id", "word", "price", "day", "more", "other"]


def test_what_is_there_and_what_is_not(lake):
    catalog, database = lake()
    refused(database, "CREATE TABLE lake.db.t (id BIGINT)", "db", "not found")
    database.run("CREATE SCHEMA lake.db", "CREATE SCHEMA IF NOT EXISTS lake.db", "CREATE TABLE lake.db.t (id BIGINT)")
    refused(database, "CREATE SCHEMA lake.db", "already exists")
    refused(database, "CREATE TABLE lake.db.t (id BIGINT)", "already exists")
    database.run("CREATE TABLE IF NOT EXISTS lake.db.t (other BIGINT)")
    assert database.arrow("SELECT * FROM lake.db.t").schema.names == ["id"]
    refused(database, "DROP SCHEMA lake.db", "not empty")
    refused(database, "DROP SCHEMA lake.db CASCADE", "CASCADE")
    refused(database, "DROP TABLE lake.db.nothing", "not found")
    database.run("DROP TABLE IF EXISTS lake.db.nothing", "DROP TABLE lake.db.t")
    refused(database, "SELECT * FROM lake.db.t", "not found")
    database.run("DROP SCHEMA lake.db", "DROP SCHEMA IF EXISTS lake.db")
    refused(database, "DROP SCHEMA lake.db", "not found")
    assert not catalog.tables and not catalog.namespaces


def test_what_is_dropped_has_exactly_the_name(lake):
    """A catalog that folds cases would drop another table than the one that somebody has rights to."""
    catalog, database = lake()
    catalog.folds = True
    database.run("CREATE SCHEMA lake.db", "CREATE TABLE lake.db.t (id BIGINT)")
    refused(database, 'DROP TABLE lake.db."T"', "not found")
    refused(database, 'DROP SCHEMA lake."DB"', "not found")
    assert (("db",), "t") in catalog.tables


@pytest.mark.parametrize("definition", [
    "(id BIGINT PRIMARY KEY)", "(id BIGINT DEFAULT 7)", "(id BIGINT, CHECK (id > 0))", "(big UBIGINT)", "(id BIGINT) PARTITION BY (id + 1)",
    "(id BIGINT) PARTITION BY (day(id))", "(id BIGINT) PARTITION BY (none)", "(LIKE rows)",
    "(id BIGINT) PARTITION BY (bucket(0, id))", "(id BIGINT) PARTITION BY (bucket(2, id), bucket(4, id))",
    "(id BIGINT) PARTITION BY ('id')", "(id BIGINT) WITH (format_version = 1)",
    "(id BIGINT) WITH (format_version = 4)", "(id BIGINT) WITH (format_version = 'x')", "(id BIGINT) WITH (other = 3)",
])
def test_what_a_table_there_does_not_have(lake, definition):
    catalog, database = lake()
    database.run("CREATE SCHEMA lake.db")
    refused(database, f"CREATE TABLE lake.db.t {definition}")
    assert not catalog.tables


def test_nobody_defines_unless_the_operator_says_so(lake):
    catalog, database = lake(read_only=True)
    for sql in ("CREATE SCHEMA lake.db", "CREATE TABLE lake.db.t (id BIGINT)", "DROP TABLE lake.db.t", "DROP SCHEMA lake.db"):
        refused(database, sql, "read-only")
    assert not [path for method, path, _ in catalog.requests if method != "GET"]


def test_places_hold_for_new_tables(lake, tmp_path):
    catalog, database = lake()
    (tmp_path / "outside").mkdir()
    catalog.warehouse = tmp_path / "outside"
    database.run("CREATE SCHEMA lake.db")
    refused(database, "CREATE TABLE lake.db.t (id BIGINT)", "is not allowed")
    assert not catalog.tables, "a table that nobody could read from here does not stay"


def test_a_statement_is_for_itself(tmp_path):
    (tmp_path / "warehouse").mkdir()
    config = tmp_path / "bowshot.toml"
    with Catalog() as catalog:
        catalog.warehouse = tmp_path / "warehouse"
        config.write_text(catalog.entry(places=[str(tmp_path / "warehouse")], read_only=False))
        with Server(arguments=["--config", config]) as server, Database(server) as database:
            database.run("CREATE SCHEMA lake.db", "CREATE TABLE lake.db.t (id BIGINT)")
            with Database(server, autocommit=False) as transaction:
                for sql in ("CREATE TABLE lake.db.other (id BIGINT)", "INSERT INTO lake.db.t VALUES (1)", "DROP TABLE lake.db.t"):
                    refused(transaction, sql, "cannot run in a transaction")
            assert database.one("SELECT count(*) FROM lake.db.t") == 0


def login(server, user):
    return Database(server, options={"username": user, "password": f"{user} comes in"})


MERGE = "MERGE INTO lake.db.t AS t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"


def test_rights(tmp_path):
    """Those that tables here need, by the names of what is made, filled and dropped."""
    (tmp_path / "warehouse").mkdir()
    config = tmp_path / "bowshot.toml"
    with Catalog() as catalog:
        catalog.warehouse = tmp_path / "warehouse"
        user = f'[[access.users]]\nname = "root"\npassword_hash = "{hash_password("root comes in")}"\nadmin = true\n'
        config.write_text(catalog.entry(places=[str(tmp_path / "warehouse")], read_only=False) + user)
        with Server(arguments=["--config", config], data=tmp_path / "data") as server, login(server, "root") as root:
            root.run("CREATE USER ada PASSWORD 'ada comes in'", "CREATE SCHEMA lake.db", "CREATE TABLE lake.db.t (id BIGINT, word VARCHAR)")
            with login(server, "ada") as ada:
                for sql in (
                    "CREATE SCHEMA lake.more", "DROP SCHEMA lake.db", "DROP SCHEMA IF EXISTS lake.db", "CREATE TABLE lake.db.own (id BIGINT)",
                    "CREATE TABLE lake.db.own AS SELECT 1 AS id", "INSERT INTO lake.db.t VALUES (1, 'x')", "DROP TABLE lake.db.t",
                    "DROP TABLE IF EXISTS lake.db.t", MERGE, "ALTER TABLE lake.db.t ADD COLUMN x INT",
                    "OPTIMIZE lake.db.t", "VACUUM lake.db.t RETAIN 0 HOURS",
                ):
                    refused(ada, sql)
                assert list(catalog.tables) == [(("db",), "t")] and catalog.namespaces == {("db",)}
                root.run("GRANT INSERT (id) ON lake.db.t TO ada", "GRANT CREATE ON SCHEMA lake.db TO ada")
                refused(ada, "INSERT INTO lake.db.t (id, word) VALUES (1, 'x')")
                refused(ada, MERGE)
                ada.run("INSERT INTO lake.db.t (id) VALUES (1)", "CREATE TABLE lake.db.own (id BIGINT)")
                refused(ada, "DROP TABLE lake.db.own")
                root.run("GRANT SELECT, INSERT, OWN ON lake.db.own TO ada", "CREATE ROW POLICY p ON lake.db.t FOR ada USING (id > 1)")
                refused(ada, "INSERT INTO lake.db.t (id) VALUES (2)", "row policies")
                refused(root, "ALTER TABLE lake.db.t RENAME COLUMN word TO x", "cannot rename a column")
                ada.run("ALTER TABLE lake.db.own ADD COLUMN word VARCHAR", "ALTER TABLE lake.db.own DROP COLUMN word")
                ada.run("INSERT INTO lake.db.own VALUES (1)")
                assert ada.one("SELECT count(*) FROM lake.db.own") == 1
                ada.run("DROP TABLE lake.db.own")
                assert list(catalog.tables) == [(("db",), "t")]
            assert root.one("SELECT count(*) FROM lake.db.t") == 1


def test_a_real_catalog(s3_tables, tmp_path):
    writer, *_ = s3_tables
    with serving_real(s3_tables, tmp_path) as database:
        database.run("CREATE SCHEMA lake.defined", "CREATE TABLE lake.defined.t (id BIGINT, word VARCHAR)",
                     "INSERT INTO lake.defined.t VALUES (1, 'one'), (2, NULL)")
        assert writer.load_table("defined.t").scan().to_arrow().to_pylist() == [{"id": 1, "word": "one"}, {"id": 2, "word": None}]
        database.run("DROP TABLE lake.defined.t", "DROP SCHEMA lake.defined")
        assert ("defined",) not in writer.list_namespaces()
