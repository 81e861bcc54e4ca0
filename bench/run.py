"""Runs the benchmark scenarios: `python bench/run.py SCENARIO…`, with `all` for every one.

Needs only Python 3: packages go into a cache folder at the first start. The programs under test are built with
`cargo build --release -p bowshot -p bowshot-testkit` when they are missing.
"""

import hashlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def environment() -> pathlib.Path:
    """The folder of a Python environment with the pinned packages; made at the first start."""
    requirements = HERE / "requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    cache = pathlib.Path(os.environ.get("BOWSHOT_CACHE", pathlib.Path.home() / ".cache" / "bowshot"))
    home = cache / f"bench-{digest}"
    python = home / "bin" / "python"
    ready = home / "ready"
    if not ready.exists():
        print(f"making {home}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements)], check=True)
        ready.touch()
    return home


def main() -> int:
    home = environment()
    if pathlib.Path(sys.prefix) != home:
        python = str(home / "bin" / "python")
        os.execv(python, [python, *sys.argv])
    sys.path.insert(0, str(HERE))
    from lib import cli

    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
