"""Gives the files of a fresh clone the times that they had in the clone before it, where their contents are the same.

Cargo takes a source for changed when its time is later than that of what was built of it, wherever the clone is, so that each
fresh clone builds the whole workspace again, for half an hour, though hardly a file has changed. The folder of CI's builds
therefore keeps what every file contained (as git names it) and its time. A file whose contents are not those keeps its new
time, and is built.

This holds only if nobody else builds into that folder. Where `.ci/run` itself is started in a clone in which somebody works,
what is kept is forgotten: what was edited, built and put back has times that tell nothing.
"""

import json
import os
import pathlib
import subprocess
import sys


def git(root: pathlib.Path, *words: str) -> str:
    """What git says."""
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


def tracked(root: pathlib.Path) -> dict[str, str]:
    """The blob of each tracked file, by its path."""
    entries = (entry.split("\t", 1) for entry in git(root, "ls-files", "-s", "-z").split("\0") if entry)
    return {path: head.split()[1] for head, path in entries}


def identity(root: pathlib.Path) -> list[int] | None:
    """What tells one clone from another; nothing for a clone with edited files, or a second folder of one."""
    config = root / ".git/config"
    if not config.exists() or git(root, "status", "--porcelain"):
        return None
    return [config.stat().st_ino, config.stat().st_mtime_ns]


def main() -> None:
    """Restores the times, or records those of a first clone."""
    root = pathlib.Path(__file__).resolve().parents[1]
    kept = pathlib.Path(sys.argv[1]) / "source-times.json"
    before = json.loads(kept.read_text()) if kept.exists() else {"clone": None, "files": {}}
    clone = identity(root)
    if clone is None or clone == before["clone"]:
        kept.unlink(missing_ok=True)
        print("source times: left as they are, this is no fresh clone")
        return
    files = {}
    restored = 0
    for path, blob in tracked(root).items():
        file = root / path
        if file.is_symlink():
            continue
        same = before["files"].get(path)
        if same and same[0] == blob:
            os.utime(file, ns=(same[1], same[1]))
            restored += 1
        files[path] = [blob, file.stat().st_mtime_ns]
    kept.parent.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_suffix(".new")
    unfinished.write_text(json.dumps({"clone": clone, "files": files}))
    unfinished.replace(kept)
    print(f"source times: {restored} of {len(files)} files are those of the clone before")


if __name__ == "__main__":
    main()
