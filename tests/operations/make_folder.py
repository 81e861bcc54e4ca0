"""`python make_folder.py NAME`: a small data folder as the built program writes it, kept as `folders/NAME.tar.xz` with what is in it.

Made once for each form of what is on disk, and never again: later programs must open it as it is (`test_folders.py`)."""

import io
import json
import pathlib
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))

import pyarrow as pa

from durable import Database
from program import LIGHTGBM, TOKEN, admin, bowshot
from server import Server

STATEMENTS = [
    "CREATE SCHEMA sales",
    """CREATE TABLE sales.orders (
        id BIGINT PRIMARY KEY, placed DATE NOT NULL, at TIMESTAMP, zoned TIMESTAMP WITH TIME ZONE, price DECIMAL(12, 2) CHECK (price >= 0),
        note VARCHAR DEFAULT 'none', tags BIGINT[], raw BYTEA, yes BOOLEAN, share DOUBLE, small SMALLINT)""",
    "COMMENT ON TABLE sales.orders IS 'one a line'",
    """INSERT INTO sales.orders VALUES
        (1, DATE '2026-01-31', TIMESTAMP '2026-01-31 12:34:56.789', TIMESTAMP WITH TIME ZONE '2026-01-31T12:34:56Z', 12.50, 'straße 🏹', [1, 2],
         x'00ff', true, 0.1, -3),
        (2, DATE '1969-12-31', NULL, NULL, 0.00, NULL, NULL, NULL, false, NULL, NULL)""",
    "OPTIMIZE sales.orders",
    "UPDATE sales.orders SET price = 99.99 WHERE id = 2",
    "DELETE FROM big WHERE n % 3 = 0",
    "CREATE TABLE late (n INTEGER GENERATED ALWAYS AS IDENTITY, t VARCHAR)",
    "INSERT INTO late (t) VALUES ('stays'), ('in the catalog')",
    "CREATE VIEW sales.dear AS SELECT id, price FROM sales.orders WHERE price > 10",
    "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS c FROM big",
    "CREATE MODEL m FROM 'm.txt'",
    "CREATE ROLE readers",
    "GRANT SELECT ON sales.orders TO readers",
    "CREATE TABLE gone (n BIGINT)",
    "DROP TABLE gone",
]
QUESTIONS = [
    "SELECT * FROM sales.orders ORDER BY id",
    "SELECT count(*), sum(n), min(t), max(t) FROM big",
    "SELECT count(*) FROM big FOR VERSION AS OF 0",
    "SELECT * FROM late ORDER BY n",
    "SELECT * FROM sales.dear ORDER BY id",
    "SELECT * FROM counted",
    "SELECT predict('m', 0.5), predict('m', 3.5)",
    "SELECT table_name, version, operation, rows_added, rows_removed FROM bowshot.system.table_history ORDER BY 1, 2",
    "SELECT grantee, privilege FROM bowshot.system.grants WHERE grantee = 'readers' ORDER BY ALL",
]


def answers(database):
    return {sql: [[repr(value) for value in row] for row in database.rows(sql)] for sql in QUESTIONS}


def main(name):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "exchange").mkdir()
        (folder / "exchange" / "m.txt").write_text(LIGHTGBM)
        arguments = [*admin(folder), "--set", f"storage.exchange_folder={folder / 'exchange'}"]
        with Server(data=folder / "data", arguments=arguments) as server:
            with Database(server, token=TOKEN) as database:
                rows = pa.table({"n": pa.array(range(6_000), pa.int64()), "t": [f"row {n}" for n in range(6_000)]})
                database.ingest("big", rows)
                database.run(*STATEMENTS)
                known = answers(database)
            server.kill()
        # As a backup has it: the newest rows are in the catalog, and nothing of the killed one lies about.
        code, _, err = bowshot("backup", folder / "backup", "--data", folder / "data")
        assert code == 0, err
        _, version, _ = bowshot("--version")
        about = json.dumps({"program": version.strip(), "answers": known}, indent=1).encode()
        with tarfile.open(HERE / "folders" / f"{name}.tar.xz", "w:xz") as archive:
            archive.add(folder / "backup", "backup")
            described = tarfile.TarInfo("about.json")
            described.size = len(about)
            archive.addfile(described, io.BytesIO(about))


if __name__ == "__main__":
    main(sys.argv[1])
