"""Lets several clones share one target folder: gives unchanged files the times that they had when they were built.

    source_times.py sync TARGET     before a build
    source_times.py record TARGET   after a build that went well

Cargo builds a source again when its time is later than that of what was built of it. Each fresh clone would therefore build
the whole workspace. `record` keeps the content (as git names it) and time of each tracked file; `sync` gives a file of the
same content that time back, and a file of other content the present.

A build without `record` makes what was recorded of its crates useless. Its fingerprints are newer than the record, and the
crate is built again. In the clone that recorded last, nothing is changed: its times are right by themselves.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

RECORD = "source-times.json"


def git(root: pathlib.Path, *words: str, text: str | None = None) -> str:
    """What git prints."""
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True, input=text).stdout


def blobs(root: pathlib.Path) -> dict[str, str]:
    """The content of each tracked file as it is in the folder, by path."""
    entries = (entry.split("\t", 1) for entry in git(root, "ls-files", "-s", "-z").split("\0") if entry)
    files = {path: head.split()[1] for path, head in ((path, head) for head, path in entries)}
    files = {path: blob for path, blob in files.items() if (root / path).is_file() and not (root / path).is_symlink()}
    edited = [path for path in git(root, "ls-files", "-m", "-z").split("\0") if path in files]
    if edited:
        hashes = git(root, "hash-object", "--stdin-paths", text="\n".join(edited) + "\n").split()
        files.update(zip(edited, hashes, strict=True))
    return files


def identity(root: pathlib.Path) -> list[str | int]:
    """Tells one clone from another, also where the second one is made in the folder of the first."""
    state = (root / ".git").stat()
    return [str(root), state.st_ino, state.st_ctime_ns if (root / ".git").is_file() else (root / ".git/config").stat().st_mtime_ns]


def built_since(target: pathlib.Path, root: pathlib.Path, recorded_ns: int) -> set[str]:
    """The crates of the product that were built after the record."""
    crates = {folder.name for folder in (root / "crates").iterdir()} - {"xtask"}
    built = set()
    for fingerprint in target.glob("*/.fingerprint/*"):
        crate = fingerprint.name.rpartition("-")[0]
        if crate in crates and any(file.stat().st_mtime_ns > recorded_ns for file in fingerprint.iterdir()):
            built.add(crate)
    return built


def sync(root: pathlib.Path, target: pathlib.Path) -> None:
    """Gives the files of this clone times that Cargo understands."""
    if not (target / RECORD).exists():
        print("source times: nothing is recorded")
        return
    kept = json.loads((target / RECORD).read_text())
    if kept["clone"] == identity(root):
        print("source times: recorded in this clone, left as they are")
        return
    unrecorded = built_since(target, root, kept["recorded_ns"])
    now = time.time_ns()
    same = 0
    files = blobs(root)
    for path, blob in files.items():
        parts = pathlib.Path(path).parts
        is_trusted = parts[1] not in unrecorded if parts[0] == "crates" and len(parts) > 1 else not unrecorded
        before = kept["files"].get(path)
        is_same = is_trusted and before is not None and before[0] == blob
        same += is_same
        times = before[1] if is_same else now
        os.utime(root / path, ns=(times, times))
    # A second `sync` of this clone changes nothing. What is not built yet has a time behind every build.
    record(root, target)
    print(f"source times: {same} of {len(files)} files are as they were built; built since then: {sorted(unrecorded) or 'nothing'}")


def record(root: pathlib.Path, target: pathlib.Path) -> None:
    """Keeps what was built: to be called right after a build of all crates."""
    files = {path: [blob, (root / path).stat().st_mtime_ns] for path, blob in blobs(root).items()}
    unfinished = target / f"{RECORD}.new"
    content = {"clone": identity(root), "recorded_ns": time.time_ns(), "files": files}
    unfinished.write_text(json.dumps(content))
    unfinished.replace(target / RECORD)


if __name__ == "__main__":
    {"sync": sync, "record": record}[sys.argv[1]](pathlib.Path(__file__).resolve().parents[1], pathlib.Path(sys.argv[2]))
