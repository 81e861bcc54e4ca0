"""Runs the commands that work on folders, and reads what they say."""

import json
import subprocess

from server import BUSY_FACTOR, ROOT, binaries, clean_environment, users_file

# A tree of one split.
LIGHTGBM = (ROOT / "tests" / "data" / "lightgbm.txt").read_text()


def bowshot(*arguments, environment=None, prefix=(), seconds=120, folder=None, words=""):
    """Exit code, stdout and stderr of a command, which runs in a folder and reads the words."""
    command = [*prefix, binaries() / "bowshot", *arguments]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=clean_environment(environment), timeout=seconds * BUSY_FACTOR,
        cwd=folder, input=words,
    )  # fmt: skip
    assert "panicked" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def refused(*arguments, words=(), code=1, **options):
    """What a command says that must fail so, with these words."""
    found, _, err = bowshot(*arguments, **options)
    assert found == code and all(word in err for word in words), f"exit code {found}\n{err}"
    return err


# Of the one user that `admin` makes.
TOKEN = "a token of tests alone"


def admin(folder):
    """Arguments of a server that knows an admin, who shows `TOKEN`."""
    return ["--users-file", users_file(folder, tokens={"root": TOKEN}, admins=["root"])]


def backup(data, into, *arguments, **options):
    """What a backup that must succeed says of itself."""
    code, out, err = bowshot("backup", into, "--data", data, "--json", *arguments, **options)
    assert code == 0, err
    return json.loads(out)


def restore(source, data, *arguments):
    code, out, err = bowshot("restore", source, "--data", data, "--json", *arguments)
    assert code == 0, err
    return json.loads(out)


def verify(folder, *arguments, code=0):
    """What `bowshot verify` finds; it must end with this exit code."""
    found, out, err = bowshot("verify", "--data", folder, "--json", *arguments)
    assert found == code, f"exit code {found}\n{out}{err}"
    return json.loads(out)


def faults(folder, *arguments):
    """Place and problem of each fault of a folder that has some."""
    return [(fault["place"], fault["problem"]) for fault in verify(folder, *arguments, code=1)["faults"]]
