"""A server that is killed while clients write: a few rounds of `python -m crash`, which runs hundreds.

BOWSHOT_TEST_CRASH_ROUNDS and BOWSHOT_TEST_CRASH_SEED choose how many, and which.
"""

import os
import pathlib
import shutil
import tempfile
import time

import pytest

from crash.check import Check
from crash.ledger import Ledger
from crash.load import make_tables
from crash.rounds import RESTART_SECONDS, Options, Run
from crash.threads import Load
from server import BUSY_FACTOR, Server

ROUNDS = int(os.environ.get("BOWSHOT_TEST_CRASH_ROUNDS", "5"))
SEED = int(os.environ.get("BOWSHOT_TEST_CRASH_SEED", "1"))


# What the driver says when the server dies while it asks whether there are transactions: either that there are none, or an
# error, and then nobody can close the connection that it had half made.
@pytest.mark.filterwarnings("ignore:Cannot disable autocommit")
@pytest.mark.filterwarnings("ignore:A adbc_driver_manager.dbapi.Connection was not explicitly close:ResourceWarning")
@pytest.mark.timeout(600 + 60 * ROUNDS)
def test_a_server_that_is_killed_keeps_its_word():
    print(f"seed {SEED}")
    # Not `tmp_path`: the folder of a failure is kept until somebody has looked at it.
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"crash-{SEED}-"))
    run = Run(Options(folder, SEED, ROUNDS, quiet=True, restart_seconds=RESTART_SECONDS * BUSY_FACTOR))
    assert run.run() == ROUNDS
    assert run.ledger.counts["acknowledged"] > 10 * ROUNDS, "the load hardly ran"
    shutil.rmtree(folder)


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "journal")
    yield ledger
    ledger.close()


def test_without_a_kill_everything_is_as_acknowledged(tmp_path, ledger):
    with Server() as server:
        make_tables(server, ledger)
        working = Load(server, ledger, SEED, 0, tidying=False)
        time.sleep(2)
        working.killed.set()
        working.end()
        assert not ledger.complaints and not ledger.counts["unknown"]
        check = Check(server, tmp_path, ledger)
        for part in (check.batches, check.singles, check.counters, check.transfers, check.tables):
            part()
        assert not check.complaints
        check.connection.close()
        server.wait_idle(5.0)
