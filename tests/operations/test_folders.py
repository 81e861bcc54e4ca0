"""Data folders that earlier programs have written are opened by this one as they are, and go on (`make_folder.py`)."""

import json
import pathlib
import tarfile

import pytest

from durable import Database
from make_folder import answers
from program import TOKEN, admin, restore, verify
from server import Server

FOLDERS = sorted((pathlib.Path(__file__).resolve().parent / "folders").glob("*.tar.xz"))


@pytest.mark.parametrize("archive", FOLDERS, ids=lambda path: path.name)
def test_a_folder_of_an_earlier_program(tmp_path, archive):
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    known = json.loads((tmp_path / "about.json").read_text())["answers"]
    data = tmp_path / "data"
    assert verify(tmp_path / "backup", "--deep")["faults"] == []
    restore(tmp_path / "backup", data)
    with Server(data=data, arguments=admin(tmp_path)) as server, Database(server, token=TOKEN) as database:
        found = answers(database)
        for sql, rows in known.items():
            # Later commits of its own upkeep are no loss.
            assert found[sql] == rows or "table_history" in sql and [row for row in rows if row in found[sql]] == rows, sql
        database.run(
            "INSERT INTO sales.orders (id, placed, price) VALUES (3, DATE '2027-01-01', 1.00)",
            "INSERT INTO late (t) VALUES ('goes on')",
            "ALTER TABLE big ADD COLUMN more BIGINT",
            "OPTIMIZE big",
        )
    with Server(data=data, arguments=admin(tmp_path)) as server, Database(server, token=TOKEN) as database:
        assert database.one("SELECT count(*) FROM sales.orders") == 3
        # Numbers are taken in portions, of which a start begins a new one.
        number, text = database.rows("SELECT n, t FROM late ORDER BY n")[-1]
        assert number > 2 and text == "goes on"
    assert verify(data, "--deep")["faults"] == []


def test_there_are_folders():
    assert FOLDERS
