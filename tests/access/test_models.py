"""Models obey the rules: one that may not be asked is not there, whatever way it is asked for."""

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from test_entry_points import FlightCalls
from server import ROOT
from world import DOORS, refused, world

LIGHTGBM = (ROOT / "tests" / "data" / "lightgbm.txt").read_text().replace("leaf_value=10", "leaf_value={low}")

MODELS = [
    "CREATE ROLE exchange",
    "CREATE MODEL open FROM 'open.txt'",
    "CREATE MODEL closed FROM 'open.txt'",
    "CREATE MODEL hidden.within FROM 'open.txt'",
    "CREATE TABLE plain (id INTEGER)",
    "INSERT INTO plain VALUES (1), (5)",
    "CREATE VIEW v_closed_model AS SELECT id, predict('closed', id) AS p FROM plain",
    "CREATE VIEW v_open_model AS SELECT id, predict('open', id) AS p FROM plain",
    "GRANT SELECT ON plain TO clerk",
    "GRANT SELECT ON v_closed_model TO clerk",
    "GRANT SELECT ON v_open_model TO clerk",
    "GRANT EXECUTE ON MODEL open TO clerk",
    # A table of the same name: its rights are none on the model.
    "CREATE TABLE closed (id INTEGER)",
    "GRANT ALL ON closed TO clerk",
    "GRANT USAGE ON SCHEMA main TO clerk",
]

NOT_THERE = "not found"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with world(folder) as all_connections:
        (folder / "exchange" / "open.txt").write_text(LIGHTGBM.format(low=10))
        root = all_connections.at("root")
        for sql in MODELS:
            root.rows(sql)
        yield all_connections


@pytest.mark.parametrize("door", DOORS)
def test_who_may_ask(made, door):
    ada, carl, root = (made.at(user, door) for user in ("ada", "carl", "root"))
    asked = "SELECT CAST(predict('open', id) AS INTEGER) AS p FROM plain ORDER BY id"
    for connection in (ada, root):
        assert connection.rows(asked) == [("10",), ("20",)]
        assert connection.rows("SELECT CAST(p AS INTEGER) FROM v_open_model ORDER BY id") == [("10",), ("20",)]
        assert connection.rows("SELECT CAST(prediction AS INTEGER) FROM predict('open', TABLE plain) ORDER BY id") == [("10",), ("20",)]
    assert root.rows("SELECT CAST(p AS INTEGER) FROM v_closed_model ORDER BY id") == [("10",), ("20",)]
    # The same words for what is hidden and for what is not there.
    told = refused(ada, "SELECT predict('closed', 1)", NOT_THERE)
    other = refused(ada, "SELECT predict('missing', 1)", NOT_THERE)
    assert told.replace("closed", "missing") == other
    for sql in (
        "SELECT * FROM predict('closed', TABLE plain)",
        "SELECT predict('main.closed', id) FROM plain",
        "SELECT predict('hidden.within', id) FROM plain",
        "SELECT id FROM plain WHERE predict('closed', id) > 1",
        "EXPLAIN SELECT predict('closed', id) FROM plain",
        "CREATE VIEW mine AS SELECT predict('closed', id) AS p FROM plain",
        "INSERT INTO drop_box SELECT id, CAST(predict('closed', id) AS VARCHAR) FROM plain",
        "GRANT EXECUTE ON MODEL closed TO bob",
        "DROP MODEL closed",
    ):
        refused(ada, sql, NOT_THERE, "may not create anything")
    refused(ada, "SELECT * FROM v_closed_model", "cannot be read by")
    refused(carl, asked, NOT_THERE)
    refused(carl, "SELECT predict('open', 1)", NOT_THERE)


@pytest.mark.parametrize("door", DOORS)
def test_what_is_told(made, door):
    names = "SELECT model_schema, model_name, owner FROM system.models ORDER BY 1, 2"
    assert made.at("root", door).rows(names) == [
        ("hidden", "within", "root"), ("main", "closed", "root"), ("main", "open", "root"),
    ]
    assert made.at("ada", door).rows(names) == [("main", "open", "root")]
    assert made.at("carl", door).rows(names) == []
    assert [row[0] for row in made.at("ada", door).rows("SHOW MODELS")] == ["open"]
    assert ("clerk", "MODEL", "main", "open", "SELECT") in made.at("ada", door).rows(
        "SELECT grantee, object_type, table_schema, table_name, privilege FROM system.grants"
    )
    assert any(row[0] == "GRANT SELECT ON MODEL bowshot.main.open TO clerk" for row in made.at("ada", door).rows("SHOW GRANTS"))


def test_who_may_change(made):
    root, ada = made.at("root"), made.at("ada")
    for sql, *words in (
        ("CREATE MODEL mine FROM 'open.txt'", "exchange folder"),
        ("CREATE OR REPLACE MODEL open FROM 'open.txt'", "exchange folder"),
        ("DROP MODEL open", "may not drop model"),
        ("GRANT EXECUTE ON MODEL open TO bob", "may not change access rules"),
        ("DROP MODEL IF EXISTS closed; ", ""),
    ):
        if words == [""]:
            ada.rows(sql)
            assert root.rows("SELECT model_name FROM system.models WHERE model_name = 'closed'") == [("closed",)]
        else:
            refused(ada, sql, *words)
    root.rows("GRANT exchange TO ada")
    refused(ada, "CREATE MODEL mine FROM 'open.txt'", "may not create anything")
    root.rows("GRANT CREATE ON SCHEMA main TO ada")
    refused(ada, "CREATE OR REPLACE MODEL open FROM 'open.txt'", "the name is taken")
    refused(ada, "CREATE OR REPLACE MODEL closed FROM 'open.txt'", "the name is taken")
    ada.rows("CREATE MODEL mine FROM 'open.txt'")
    assert ada.rows("SELECT owner FROM system.models WHERE model_name = 'mine'") == [("ada",)]
    refused(made.at("bob"), "SELECT predict('mine', 1)", NOT_THERE)
    ada.rows("GRANT EXECUTE ON MODEL mine TO bob")
    assert made.at("bob").rows("SELECT CAST(predict('mine', 1) AS INTEGER)") == [("10",)]
    (made.folder / "exchange" / "next.txt").write_text(LIGHTGBM.format(low=11))
    ada.rows("CREATE OR REPLACE MODEL mine FROM 'next.txt'")
    assert made.at("bob").rows("SELECT CAST(predict('mine', 1) AS INTEGER)") == [("11",)], "the next version keeps its rights"
    ada.rows("REVOKE EXECUTE ON MODEL mine FROM bob")
    refused(made.at("bob"), "SELECT predict('mine', 1)", NOT_THERE)
    ada.rows("GRANT EXECUTE ON MODEL mine TO bob")
    ada.rows("DROP MODEL mine")
    ada.rows("CREATE MODEL mine FROM 'next.txt'")
    refused(made.at("bob"), "SELECT predict('mine', 1)", NOT_THERE)
    ada.rows("DROP MODEL mine")
    for sql in ("GRANT INSERT ON MODEL open TO bob", "GRANT SELECT (id) ON MODEL open TO bob", "GRANT EXECUTE ON plain TO bob"):
        refused(root, sql, "not a right on a model", "no columns", "MODEL")
    root.rows("REVOKE CREATE ON SCHEMA main FROM ada")
    root.rows("REVOKE exchange FROM ada")


def test_a_right_on_the_schema_is_one_on_its_models(made):
    root, carl = made.at("root"), made.at("carl")
    root.rows("GRANT SELECT ON SCHEMA hidden TO carl")
    assert carl.rows("SELECT CAST(predict('hidden.within', 1) AS INTEGER)") == [("10",)]
    root.rows("REVOKE SELECT ON SCHEMA hidden FROM carl")
    refused(carl, "SELECT predict('hidden.within', 1)", NOT_THERE)
    root.rows("GRANT EXECUTE ON MODEL hidden.within TO carl")
    assert carl.rows("SELECT CAST(predict('hidden.within', 1) AS INTEGER)") == [("10",)]
    assert carl.rows("SELECT model_name FROM system.models") == [("within",)]
    root.rows("REVOKE EXECUTE ON MODEL hidden.within FROM carl")


def test_policies_do_not_ask_models(made):
    root = made.at("root")
    for sql in (
        "CREATE ROW POLICY by_model ON plain USING (predict('open', id) > 1)",
        "CREATE MASK by_model ON plain (id) USING (predict('closed', id))",
    ):
        refused(root, sql, "models are not allowed in")


def test_scoring(made):
    def scored(user, model):
        calls = FlightCalls(made, user)
        writer, reader = calls.client.do_exchange(flight.FlightDescriptor.for_path("score", model), calls.options)
        rows = pa.table({"id": [1, 5]})
        with writer:
            writer.begin(rows.schema)
            writer.write_table(rows)
            writer.done_writing()
            return reader.read_all()["prediction"].to_pylist()

    assert scored("ada", "open") == [10, 20] and scored("root", "closed") == [10, 20]
    for user, model in (("ada", "closed"), ("ada", "hidden.within"), ("carl", "open")):
        with pytest.raises(Exception, match=NOT_THERE):
            scored(user, model)


def test_files_that_are_sent(made):
    """A client's own file needs no role, but all other rights that CREATE MODEL needs."""

    def sent(user, name, **options):
        calls = FlightCalls(made, user)
        schema = pa.schema([("file", pa.binary())], metadata=options)
        writer, reader = calls.client.do_put(flight.FlightDescriptor.for_path("models", name), schema, calls.options)
        with writer:
            writer.write_batch(pa.record_batch([[LIGHTGBM.format(low=30).encode()]], schema=schema))
            writer.done_writing()
            reader.read()

    def fails(user, name, words, **options):
        with pytest.raises(Exception, match=words):
            sent(user, name, **options)

    root, ada = made.at("root"), made.at("ada")
    fails("ada", "mine", "may not create anything")
    root.rows("GRANT CREATE ON SCHEMA main TO ada")
    sent("ada", "mine")
    assert ada.rows("SELECT owner FROM system.models WHERE model_name = 'mine'") == [("ada",)]
    for model in ("open", "closed"):
        fails("ada", model, "the name is taken", if_exists="replace")
    fails("ada", "hidden.mine", "may not create anything|not found")
    fails("carl", "mine", "may not create anything", if_exists="replace")
    refused(made.at("bob"), "SELECT predict('mine', 1)", NOT_THERE)
    sent("ada", "mine", if_exists="replace")
    assert ada.rows("SELECT CAST(predict('mine', 1) AS INTEGER)") == [("30",)]
    ada.rows("DROP MODEL mine")
    root.rows("REVOKE CREATE ON SCHEMA main FROM ada")


def test_rights_that_go_while_a_plan_is_kept(made):
    """A prepared statement is planned anew when rights change."""
    root, ada = made.at("root"), made.at("ada")
    with ada.connection.cursor() as cursor:
        sql = "SELECT predict('open', ?) AS p"
        cursor.execute(sql, (1.0,))
        assert cursor.fetchall() == [(10.0,)]
        root.rows("REVOKE EXECUTE ON MODEL open FROM clerk")
        try:
            with pytest.raises(Exception, match=NOT_THERE):
                cursor.execute(sql, (1.0,))
                cursor.fetchall()
        finally:
            root.rows("GRANT EXECUTE ON MODEL open TO clerk")


def test_rooms(made):
    """With rules, a room is one's own, or of those who have its role."""
    def place(user, *options):
        calls = FlightCalls(made, user)
        writer, reader = calls.client.do_exchange(flight.FlightDescriptor.for_path("room", "r", "members=2", *options), calls.options)
        batch = pa.record_batch({"x": pa.array([float(len(user))])})
        writer.begin(batch.schema)
        writer.write_batch(batch)
        return writer, reader

    with pytest.raises(Exception, match="does not have the role"):
        place("carl", "role=clerk")[1].read_chunk()
    (one, first), (two, second) = place("ada", "role=clerk"), place("bob", "role=clerk")
    assert first.read_chunk().data.to_pylist() == second.read_chunk().data.to_pylist() == [{"x": 3.0}]
    # Without a role each user has a room of this name.
    (three, third), (four, fourth) = place("ada", "timeout_ms=300"), place("carl", "timeout_ms=300")
    for reader in (third, fourth):
        with pytest.raises(Exception, match="timed out"):
            reader.read_chunk()
    for writer in (one, two, three, four):
        try:
            writer.close()
        except Exception:
            pass
