"""Runs the benchmark: `python bench/run.py SCENARIO…`, or `cargo xtask bench SCENARIO…`, which is the same.

Needs only Python 3: packages go into a cache folder at the first start. The programs under test are built with
`cargo build --release -p bowshot -p bowshot-testkit` when they are missing.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib import environments


def main() -> int:
    python = environments.python("main")
    if pathlib.Path(sys.prefix) != python.parents[1]:
        os.execv(python, [str(python), *sys.argv])
    from lib import cli

    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
