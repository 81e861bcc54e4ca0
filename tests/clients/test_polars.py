"""polars.read_database_uri, which finds the ADBC driver by the scheme of the address."""

import polars
import pytest

import data

# polars opens the connection without saying `autocommit`.
pytestmark = pytest.mark.filterwarnings("ignore:Cannot disable autocommit")


@pytest.fixture
def uri(server):
    return f"flightsql://{server.host}:{server.port}?transport=tcp"


def test_read_database_uri(uri):
    frame = polars.read_database_uri("SELECT * FROM nation ORDER BY n_nationkey", uri, engine="adbc")
    assert frame["n_name"].to_list() == data.NATIONS


def test_a_count(uri):
    frame = polars.read_database_uri("SELECT count(*) AS n FROM lineitem", uri, engine="adbc")
    assert frame.item() == data.LINEITEM_ROWS


def test_every_plain_type(uri):
    frame = polars.read_database_uri("SELECT * FROM plain_types", uri, engine="adbc")
    assert frame.columns == data.plain_types().column_names and frame.height == 3
    assert frame["c_string"].to_list() == ["a", None, "größe 🏹"]
