"""`mysql --quick`, as a client of the bench: takes the same order as `client.py` and prints the same answer.

The program's output goes to a file in memory that nobody reads, as in the published measurement; of the run that is
checked it is parsed afterwards.
"""

import json
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

SCRIPT = pathlib.Path(__file__)
BLOCK_BYTES = 1 << 26


def command() -> list:
    """How the bench starts this client. Raises `Unavailable` where there is no such program."""
    from . import mariadb

    mariadb.program("mariadb")
    return [sys.executable, "-W", "ignore", str(SCRIPT)]


PROGRAMS = {"mysql-quick": command}


def main():
    order = json.load(sys.stdin)
    address = json.loads(order["uri"])
    client = [shutil.which("mariadb"), "--no-defaults", "--quick", "--batch", "--protocol=tcp", "-h", "127.0.0.1"]
    client += ["-P", str(address["port"]), "-u", "root", "--skip-column-names", address["database"], "-e", order["query"]]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = pathlib.Path(folder) / "rows"
        runs, digests = [], []
        for index in range(order["repeats"]):
            if sum(run["seconds"] for run in runs) > order["budget_s"]:
                break
            with open(path, "wb") as out:
                started = time.perf_counter()
                subprocess.run(client, check=True, stdout=out)
                seconds = time.perf_counter() - started
            found = parsed(path) if index == 0 and order.get("check") else None
            runs.append({"seconds": seconds, "bytes": 0, "rows": lines(path)})
            if found is not None:
                digests.append(found)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({
        "runs": runs, "digest": digests[0] if digests else None,
        "client_cpu_s": used.ru_utime + used.ru_stime,
    }))


def lines(path: pathlib.Path) -> int:
    with open(path, "rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 24), b""))


def parsed(path: pathlib.Path) -> dict:
    """The digest of tab-separated rows, of which some are in memory at a time; a column's type is that of its first ones."""
    import pyarrow.csv as csv

    sys.path.insert(0, str(SCRIPT.parents[1]))
    from lib import digest

    with csv.open_csv(
        path, csv.ReadOptions(autogenerate_column_names=True, block_size=BLOCK_BYTES),
        csv.ParseOptions(delimiter="\t", quote_char=False),
        csv.ConvertOptions(null_values=["NULL"], strings_can_be_null=True),
    ) as batches:
        return digest.of_batches(batches)


if __name__ == "__main__":
    main()
