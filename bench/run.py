"""Runs the benchmark: `python bench/run.py SCENARIO…`, or `cargo xtask bench SCENARIO…`, which is the same.

Needs only Python 3: packages go into a cache folder at the first start. The programs under test are built with
`cargo build --release -p bowshot -p bowshot-testkit` when they are missing.
"""

import sys

from lib import environments

if __name__ == "__main__":
    environments.enter()
    from lib import cli

    sys.exit(cli.main(sys.argv[1:]))
