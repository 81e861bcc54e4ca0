"""`python -m crash`: many rounds from the command line; 0 if all were good, 1 with the complaint if one was not."""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile

from .rounds import RESTART_SECONDS, Failed, Options, Run


def main():
    parser = argparse.ArgumentParser(prog="python -m crash", description=__doc__)
    parser.add_argument("--binary", type=pathlib.Path, help="the program `bowshot`; default: that of the suites (BOWSHOT_BIN)")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seconds", type=float, help="stop after the first round that ends later than this")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; must be empty; default: a new temporary folder")
    parser.add_argument("--no-tidying", action="store_true", help="no OPTIMIZE and VACUUM beside the writers")
    parser.add_argument("--restart-seconds", type=float, default=RESTART_SECONDS, help="longest restart; more on a machine that is busy")
    parser.add_argument("--quiet", action="store_true")
    given = parser.parse_args()
    folder = given.folder or pathlib.Path(tempfile.mkdtemp(prefix=f"crash-{given.seed}-"))
    if folder.exists() and any(folder.iterdir()):
        parser.error(f"{folder} is not empty")
    print(f"seed {given.seed}, folder {folder}", file=sys.stderr, flush=True)
    options = Options(folder, given.seed, given.rounds, given.binary, given.seconds, given.quiet, not given.no_tidying, given.restart_seconds)
    run = Run(options)
    try:
        rounds = run.run()
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    counts = run.ledger.counts
    print(
        f"{rounds} rounds of seed {given.seed}: {counts['acknowledged']} acknowledged, {counts['unknown']} unknown, "
        f"{counts['refused']} refused; slowest restart {run.slowest_restart:.2f} s"
    )
    print(f"{rounds} passed, 0 failed")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
