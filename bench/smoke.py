"""Runs every scenario at the small scale and looks at what comes out: shapes of results, equal answers, and the report as
Chromium renders it, on a wide page and a phone. Says nothing about speed.

`python bench/smoke.py` prints what it checks, and `N passed, N failed`.
"""

import pathlib
import sys
import tempfile

from lib import environments

if __name__ == "__main__":
    environments.enter()
    from lib.smoke import checks

    with tempfile.TemporaryDirectory() as folder:
        sys.exit(checks.main(pathlib.Path(folder)))
