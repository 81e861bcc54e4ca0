"""Serves the sample data while a command runs: `serve_for.py [--folder DIR] COMMAND…`. The command finds the server in
BOWSHOT_URI, BOWSHOT_HOST, BOWSHOT_PORT, BOWSHOT_PG_PORT, BOWSHOT_MYSQL_PORT, BOWSHOT_HTTP, and the served folder in
BOWSHOT_TABLES. A second server speaks TLS at
BOWSHOT_TLS_PORT, and BOWSHOT_TLS_HTTP for HTTP; BOWSHOT_TLS_AUTHORITY is the file of the authority that vouches for it."""

import os
import pathlib
import subprocess
import sys
import tempfile

import data
from server import ROOT, Server

TLS = ROOT / "tests" / "data" / "tls"


def main(arguments):
    folder = pathlib.Path.cwd()
    if arguments[:1] == ["--folder"]:
        folder, arguments = (folder / arguments[1]).resolve(), arguments[2:]
    with tempfile.TemporaryDirectory(prefix="bowshot-tables-") as scratch:
        tables = data.write_all(pathlib.Path(scratch) / "shop")
        certificate = ["--tls-certificate", TLS / "first.pem", "--tls-key", TLS / "first.key"]
        others = ["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0"]
        with Server(tables, arguments=others) as server, Server(tables, arguments=certificate) as encrypted:
            environment = {
                **os.environ,
                "BOWSHOT_URI": server.grpc_tcp,
                "BOWSHOT_HOST": server.host,
                "BOWSHOT_PORT": str(server.port),
                "BOWSHOT_PG_PORT": str(server.pg_port),
                "BOWSHOT_MYSQL_PORT": str(server.mysql_port),
                "BOWSHOT_HTTP": server.http,
                "BOWSHOT_TABLES": str(tables),
                "BOWSHOT_TLS_PORT": str(encrypted.port),
                "BOWSHOT_TLS_HTTP": encrypted.http.replace("http://", "https://"),
                "BOWSHOT_TLS_AUTHORITY": str(TLS / "ca.pem"),
            }
            code = subprocess.run(arguments, cwd=folder, env=environment, stdin=subprocess.DEVNULL).returncode
            if code != 0:
                print(f"--- end of the server's log\n{server.log()[-5000:]}", file=sys.stderr)
            server.wait_idle(5.0)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
