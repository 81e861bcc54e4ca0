"""Damaged files of every format: bytes flipped, cut, doubled, put in. A statement over one of them gives rows or an error
that speaks of the file; the server neither ends nor hangs, and no error is an internal one. Prints `N passed, N failed`.

    mutate.py [--count 20000] [--seed 7]
"""

import argparse
import pathlib
import random
import sys
import tempfile
import time

import pyarrow as pa
import pyarrow.flight as flight

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

from cases import all_cases  # noqa: E402
from server import Server  # noqa: E402

# Files that lie in the folder at once.
BATCH = 200
# Seconds that one statement may take, on a machine that has other things to do.
PATIENCE = 60


def mutated(content, chance):
    """A few changes to some bytes."""
    content = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        if not content:
            break
        at = chance.randrange(len(content))
        match chance.randrange(7):
            case 0:
                content[at] ^= 1 << chance.randrange(8)
            case 1:
                content[at] = chance.choice(b'\x00\xff"\',;\t|\n\r{}[]\\:-0\x80')
            case 2:
                del content[at : at + chance.choice([1, 4, 64])]
            case 3:
                content[at:at] = content[at : at + chance.choice([1, 8, 100])]
            case 4:
                content[at:at] = bytes(chance.randrange(256) for _ in range(chance.choice([1, 8])))
            case 5:
                content[at : at + 4] = chance.choice([b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0"])
            case 6:
                del content[at:]
    return bytes(content)


def is_wrong(error):
    """Whether an error is not about the file. For pyarrow, lost data are an internal error, too."""
    late = isinstance(error, flight.FlightTimedOutError)
    return late or (isinstance(error, flight.FlightInternalError) and "returned data loss" not in str(error))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    cases = all_cases()
    passed = failed = refused = 0
    with tempfile.TemporaryDirectory(prefix="bowshot-mutants-") as name:
        folder = pathlib.Path(name) / "files"
        folder.mkdir()
        (folder / "whole.csv").write_text("a\n1\n")
        with Server(folder) as server:
            client = flight.connect(server.grpc_tcp)
            options = flight.FlightCallOptions(timeout=PATIENCE)
            for first in range(0, asked.count, BATCH):
                batch = []
                for number in range(first, min(first + BATCH, asked.count)):
                    case = chance.choice(cases)
                    file = folder / f"m{number}.{case.ending}"
                    file.write_bytes(mutated(case.content, chance))
                    batch.append((case.name, file))
                for origin, file in batch:
                    started = time.monotonic()
                    try:
                        client.do_get(flight.Ticket(f"SELECT * FROM '{file.name}'".encode()), options).read_all()
                        passed += 1
                    except pa.ArrowException as error:
                        if not is_wrong(error):
                            refused += 1
                            passed += 1
                            continue
                        failed += 1
                        kept = pathlib.Path(tempfile.gettempdir()) / f"bowshot-mutant-{file.name}"
                        kept.write_bytes(file.read_bytes())
                        print(f"{origin} after {time.monotonic() - started:.1f} s, kept as {kept}: {str(error)[:400]}")
                    finally:
                        file.unlink()
                assert server.alive(), server.log()
            assert client.do_get(flight.Ticket(b"SELECT a FROM whole")).read_all().num_rows == 1
    print(f"{refused} of them refused")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
