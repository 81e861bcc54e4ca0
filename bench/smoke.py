"""Runs every scenario at the small scale and looks at what comes out: shapes of results, equal answers, and the report as
Chromium renders it, in light and dark, on a wide page, a phone and paper. Says nothing about speed.

`python bench/smoke.py` prints what it checks, and `N passed, N failed`.
"""

import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib import environments


def main() -> int:
    python = environments.python("main")
    if pathlib.Path(sys.prefix) != python.parents[1]:
        os.execv(python, [str(python), *sys.argv])
    from lib.smoke import checks

    with tempfile.TemporaryDirectory() as folder:
        return checks.main(pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
