"""Rows in memory that the server shares, in processes that are forked: none changes what another one reads."""

import subprocess
import sys

import pytest
from conftest import wait_for
from test_same_host import memories

import bowshot

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shares memory in this way")

FORKS = """
import gc, os, sys, bowshot
import pyarrow.compute as pc

SQL = "SELECT generate_series AS n FROM generate_series(1, 1000000)"

def total(rows):
    return pc.sum(rows["n"]).as_py()

connection = bowshot.connect(sys.argv[1], autocommit=True, same_host=True)
rows = connection.sql(SQL).arrow()
wanted = total(rows)
child = os.fork()
if child == 0:
    del rows
    gc.collect()
    os._exit(0)
os.waitpid(child, 0)
others = connection.sql(SQL.replace("generate_series AS", "-generate_series AS")).arrow()
assert total(rows) == wanted, "a child that let go of rows has changed its parent's"
ready, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    before = total(rows)
    os.write(ready[1], b"1")
    os.read(go[0], 1)
    os._exit(0 if before == total(rows) == wanted else 1)
os.read(ready[0], 1)
del rows, others
gc.collect()
others = connection.sql(SQL.replace("generate_series AS", "-generate_series AS")).arrow()
os.write(go[1], b"1")
_, status = os.waitpid(child, 0)
assert status == 0, "a parent that let go of rows has changed its child's"
print("same")
"""


def test_rows_stay_as_they_are_in_processes_that_were_forked(folder):
    with bowshot.server(folder, settings={"result_cache.memory_bytes": 0}) as server:
        command = [sys.executable, "-W", "ignore", "-c", FORKS, server.uri]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.stdout == "same\n", done.stderr
        wait_for(lambda: memories(server) == 0)
