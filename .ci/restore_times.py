"""Gives the files of a fresh clone the times that they had in the clone before it, where their contents are the same.

Cargo takes a source for changed when its time is later than that of what was built of it, so that a fresh clone in the
place of an earlier one builds the whole workspace again, twenty minutes and more, though hardly a file has changed. The
folder of Cargo's builds therefore keeps, for each place of a clone, what every file contained (as git names it) and its
time; a file whose contents are not those keeps its new time, and is built.

A clone in which somebody works is left alone: what was edited, built and put back has times that tell of it.
"""

import json
import os
import pathlib
import subprocess
import sys


def tracked(root: pathlib.Path) -> dict[str, str]:
    """The blob of each tracked file, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "-s", "-z"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    entries = (entry.split("\t", 1) for entry in listed.split("\0") if entry)
    return {path: head.split()[1] for head, path in entries}


def is_clean(root: pathlib.Path) -> bool:
    """Whether all files are as git has them."""
    told = subprocess.run(["git", "status", "--porcelain"], cwd=root, check=True, capture_output=True)
    return not told.stdout


def main() -> None:
    """Restores the times, or records those of a first clone in this place."""
    root = pathlib.Path(__file__).resolve().parents[1]
    kept = pathlib.Path(sys.argv[1]) / "source-times.json"
    places = json.loads(kept.read_text()) if kept.exists() else {}
    before = places.get(str(root), {"clone": None, "files": {}})
    config = root / ".git/config"
    clone = [config.stat().st_ino, config.stat().st_mtime_ns] if config.exists() else None
    if clone in (None, before["clone"]) or not is_clean(root):
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
    places[str(root)] = {"clone": clone, "files": files}
    kept.parent.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_suffix(".new")
    unfinished.write_text(json.dumps(places))
    unfinished.replace(kept)
    print(f"source times: {restored} of {len(files)} files are those of the clone before")


if __name__ == "__main__":
    main()
