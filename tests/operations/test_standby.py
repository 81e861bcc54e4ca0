"""`bowshot standby` and `bowshot take-over`: what was acknowledged is there, and nobody goes two ways."""

from durable import Database
from program import backup, bowshot, refused, verify
from server import Server
from standby import Rounds, Standby


def test_take_overs_under_load(tmp_path):
    rounds = Rounds(tmp_path, seed=1)
    for number in range(4):
        rounds.round(number)
    assert len(rounds.seconds) == 4 and len(rounds.lost) == 1
    assert verify(rounds.data)["faults"] == []


def test_a_copy_shares_files_and_keeps_the_newest_state(tmp_path):
    data, copy, again = (tmp_path / name for name in ("data", "copy", "again"))
    with Server(data=data) as server, Database(server) as database:
        database.run("CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 20000) AS s(value)")
        assert bowshot("standby", copy, "--data", data, "--once")[0] == 0
        node = next(copy.glob("state-*/tables/*/*.parquet")).stat().st_ino
        database.run("INSERT INTO t VALUES (0)")
        code, out, err = bowshot("standby", copy, "--data", data, "--once")
        assert code == 0 and "are shared" in out, err
    (state,) = copy.glob("state-*")
    assert node in {path.stat().st_ino for path in state.glob("tables/*/*.parquet")}
    assert verify(state)["kind"] == "backup"
    assert bowshot("take-over", copy, "--data", again)[0] == 0
    assert verify(again)["kind"] == "data folder" and not list(copy.glob("state-*"))
    with Server(data=again) as server, Database(server) as database:
        assert database.one("SELECT count(*) FROM t") == 20_001


def test_what_is_refused(tmp_path):
    data, copy, again = (tmp_path / name for name in ("data", "copy", "again"))
    refused("standby", copy, "--data", data, "--once", words=[str(data)])
    refused("take-over", copy, "--data", again, words=["no copy", "bowshot standby"], code=2)
    with Server(data=data) as server:
        with Database(server) as database:
            database.run("CREATE TABLE t (n INT)")
        with Standby(copy, data):
            refused("take-over", copy, "--data", again, words=["cannot lock the copy"])
            refused("standby", copy, "--data", data, words=["cannot lock the copy"])
        # Its server is still there.
        refused("take-over", copy, "--data", again, "--from", data, words=["stop the old server first"])
    refused("take-over", copy, "--data", again, "--from", tmp_path / "none", words=["is not a folder", "leave out `--from`"], code=2)
    again.mkdir()
    (again / "mine").write_text("mine")
    refused("take-over", copy, "--data", again, words=["is there and not empty"])
    assert list(copy.glob("state-*")), "what is refused takes nothing away"
    # A folder that has taken over is backed up as any other.
    assert bowshot("take-over", copy, "--data", tmp_path / "next", "--from", data)[0] == 0
    assert backup(tmp_path / "next", tmp_path / "backup")["tables"] == 1
