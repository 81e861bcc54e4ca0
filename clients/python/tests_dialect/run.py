"""Runs SQLAlchemy's suite for dialects against a server of its own; arguments go to pytest."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SOURCES = str(HERE.parent / "src")
sys.path.insert(0, SOURCES)

import bowshot  # noqa: E402

if "BOWSHOT_BIN" in os.environ:
    os.environ.setdefault("BOWSHOT_PROGRAM", str(pathlib.Path(os.environ["BOWSHOT_BIN"]) / "bowshot"))

with bowshot.server() as server:
    with server.connect(autocommit=True) as connection:
        connection.sql("CREATE SCHEMA test_schema")
    uri = server.uri.replace("grpc://", "bowshot://")
    command = [sys.executable, "-m", "pytest", f"--dburi={uri}", *sys.argv[1:]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCES, str(HERE)])}
    sys.exit(subprocess.run(command, cwd=HERE, env=environment, check=False).returncode)
