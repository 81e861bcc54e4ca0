"""Runs SQLAlchemy's suite for dialects against a server of its own; arguments go to pytest. Tests of features that
`requirements_.py` says are not there are counted apart: the suite itself leaves them out. `--every=N` runs a fixed part of
the tests, one of N."""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SOURCES = str(HERE.parent / "src")
sys.path.insert(0, SOURCES)

import bowshot  # noqa: E402

if "BOWSHOT_BIN" in os.environ:
    os.environ.setdefault("BOWSHOT_PROGRAM", str(pathlib.Path(os.environ["BOWSHOT_BIN"]) / "bowshot"))

# Tests that fail, each with the reason.
EXCLUDED = {
    "test_truediv_divisor": "the server's quotient of a DOUBLE and a DECIMAL is a DOUBLE, which is compared as text",
    "test_truediv_numeric": "the same",
    "test_window_rows_between_w_caching": "the server takes no parameters as offsets of a window's frame",
    "test_long_convention_name": "looks for the name of an index, and there are none",
    "test_get_temp_table_indexes": "the same",
    "test_dialect_user_setting_is_restored": "needs two levels of isolation beside autocommit",
    "test_update_from_round_trip": "the server wants the WITH of an UPDATE before it",
}

with bowshot.server() as server:
    with server.connect(autocommit=True) as connection:
        connection.sql("CREATE SCHEMA test_schema")
    uri = server.uri.replace("grpc://", "bowshot://")
    wanted = "not (" + " or ".join(EXCLUDED) + ")"
    every = [word.removeprefix("--every=") for word in sys.argv[1:] if word.startswith("--every=")]
    others = [word for word in sys.argv[1:] if not word.startswith("--every=")]
    command = [sys.executable, "-m", "pytest", f"--dburi={uri}", "-p", "no:warnings", "-k", wanted, *others]
    path = os.pathsep.join([SOURCES, str(HERE)])
    environment = {**os.environ, "PYTHONPATH": path, "BOWSHOT_EVERY": (every or ["1"])[-1]}
    run = subprocess.run(command, cwd=HERE, env=environment, check=False, stdout=subprocess.PIPE, text=True)

print(run.stdout)
counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|errors?|skipped)", run.stdout[-500:])}
failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
if run.returncode and not failed:
    failed = 1
print(f"{counts.get('skipped', 0)} of features that are not there, {len(EXCLUDED)} names excluded")
print(f"{counts.get('passed', 0)} passed, {failed} failed")
sys.exit(run.returncode)
