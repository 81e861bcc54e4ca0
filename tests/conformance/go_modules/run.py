"""Runs the tests that a Go module of others has of itself against the built server: `run.py SUITE [--log FILE] [PACKAGE …]`.

The module comes from Go's proxy; nothing of it is in this repository. Which tests fail, and why, says `SUITE.toml` beside
this file. Another test that fails is a failure, and so is one of the list that passes or did not run.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1] / "clients"), str(HERE.parent)]

import result  # noqa: E402
from server import ROOT, Server, hash_password  # noqa: E402

USER, PASSWORD = "gopher", "secret"
TLS = ROOT / "tests" / "data" / "tls"
# For the tests of a package. One that waits for ever is in the list, with `skipped = true`.
LIMIT = "15m"
ENDS = ("pass", "fail", "skip")
# Nothing that is compiled holds the temporary folder, so that the next run has it from the cache.
GO = {"GOFLAGS": "-trimpath -buildvcs=false -vet=off"}


def pgx(plain, encrypted):
    login = f"user={USER} password={PASSWORD} dbname=bowshot"
    tcp = f"host=127.0.0.1 port={plain.pg_port} {login} sslmode=disable"
    tls = f"host=localhost port={encrypted.pg_port} {login} sslmode=verify-full sslrootcert={TLS / 'ca.pem'}"
    return {
        "PGX_TEST_DATABASE": tcp,
        "PGX_TEST_TCP_CONN_STRING": tcp,
        "PGX_TEST_SCRAM_PASSWORD_CONN_STRING": tcp,
        "PGX_TEST_TLS_CONN_STRING": tls,
    }


def go_sql_driver(plain, _encrypted):
    return {
        "MYSQL_TEST_USER": USER,
        "MYSQL_TEST_ADDR": f"127.0.0.1:{plain.mysql_port}",
        "MYSQL_TEST_DBNAME": "main",
        "MYSQL_TEST_CONCURRENT": "1",
    }


SUITES = {"pgx": ("github.com/jackc/pgx/v5", "v5.13.0", pgx), "go-sql-driver": ("github.com/go-sql-driver/mysql", "v1.10.1", go_sql_driver)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("suite", choices=SUITES)
    arguments.add_argument("packages", nargs="*", help="only these, such as ./pgconn; the list is not compared then")
    arguments.add_argument("--log", type=pathlib.Path, help="keep what the tests print")
    chosen = arguments.parse_args()
    module, version, variables = SUITES[chosen.suite]
    listed = tomllib.loads((HERE / f"{chosen.suite}.toml").read_text())["failing"]
    skipped = {test for entry in listed if entry.get("skipped") for test in entry["tests"]}
    with tempfile.TemporaryDirectory(prefix="bowshot-go-") as scratch:
        folder = pathlib.Path(scratch)
        source = copied(module, version, folder / "source")
        users = folder / "users.toml"
        users.write_text(f'[[users]]\nname = "{USER}"\npassword_hash = "{hash_password(PASSWORD)}"\nadmin = true\n')
        options = ["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0"]
        # The tests of the MySQL driver do not let a password go out in the clear, as it does without TLS.
        options += ["--users-file", users] if chosen.suite == "pgx" else []
        certificate = ["--tls-certificate", TLS / "first.pem", "--tls-key", TLS / "first.key"]
        with Server(arguments=options) as plain, Server(arguments=[*options, *certificate]) as encrypted:
            tests = Tests(source, module, {**os.environ, **GO, **variables(plain, encrypted)}, skipped)
            for package in tests.packages(chosen.packages or ["./..."]):
                tests.run(package)
            if not plain.alive() or not encrypted.alive():
                sys.exit(f"a server has ended:\n{plain.log()[-5000:]}\n{encrypted.log()[-5000:]}")
    if chosen.log:
        chosen.log.write_text("".join(f"=== {test}: {how}\n{tests.output[test]}" for test, how in tests.ends.items()))
    return judge(chosen.suite, tests, listed) if not chosen.packages else 0


def copied(module, version, folder):
    """The module's source where its tests may write, from the module cache, whose files nobody may change."""
    found = subprocess.run(["go", "mod", "download", "-json", f"{module}@{version}"], capture_output=True, check=True)
    shutil.copytree(json.loads(found.stdout)["Dir"], folder, copy_function=shutil.copyfile)
    for path in [folder, *folder.rglob("*/")]:
        path.chmod(0o755)
    return folder


class Tests:
    """How the tests of a module ended: `ends` by name, with the package before it, and what each printed."""

    def __init__(self, source, module, environment, skipped):
        self.source, self.module, self.environment, self.skipped = source, module, environment, skipped
        self.ends, self.output = {}, collections.defaultdict(str)

    def go(self, *arguments):
        command = ["go", *arguments]
        return subprocess.run(command, cwd=self.source, env=self.environment, stdout=subprocess.PIPE, text=True).stdout

    def packages(self, patterns):
        return self.go("list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", *patterns).split()

    def run(self, package):
        """All tests of a package. One that panics ends the others too: they run again without it."""
        left = re.findall(r"^Test\w*$", self.go("test", "-list", "^Test", package), re.MULTILINE)
        left = [test for test in left if self.name(package, test) not in self.skipped]
        while left:
            command = ["test", "-json", "-count=1", "-timeout", LIMIT, "-run", f"^({'|'.join(left)})$", package]
            lines = [json.loads(line) for line in self.go(*command).splitlines()]
            for event in lines:
                self.take(event)
            ended = {event["Test"] for event in lines if "Test" in event and event["Action"] in ENDS}
            if not ended.intersection(left):
                raise RuntimeError(f"none of these tests of {package} ends: {left}")
            left = [test for test in left if test not in ended]

    def name(self, package, test):
        return f"{package}/{test}".removeprefix(f"{self.module}/")

    def take(self, event):
        if "Test" not in event:
            return
        name = self.name(event["Package"], event["Test"])
        if event["Action"] == "output":
            self.output[name] += event["Output"]
        if event["Action"] in ENDS:
            self.ends[name] = event["Action"]

    def leaves(self):
        """What the tests say that have none below them, and those that failed by themselves."""
        below = collections.defaultdict(set)
        for name, end in self.ends.items():
            while name := name.rpartition("/")[0]:
                below[name].add(end)
        return {name: end for name, end in self.ends.items() if not below[name] or (end == "fail" and "fail" not in below[name])}


def judge(suite, tests, listed):
    """Compares with the list; writes the result for `cargo xtask test`."""
    reasons = {test: entry["reason"] for entry in listed for test in entry["tests"]}
    passed, failed, excluded, unused = 0, [], collections.Counter(), set(reasons)
    for test in tests.skipped:
        tests.ends[test] = "skipped"
    for name, end in sorted(tests.leaves().items()):
        entry = next((entry for entry in covering(name) if entry in reasons), None)
        unused.discard(entry)
        if end == "pass" and entry is None:
            passed += 1
        elif end == "pass":
            failed.append((name, f"passes, so `{entry}` must go from {suite}.toml"))
        elif entry is None:
            failed.append((name, f"{end}, and is not in {suite}.toml"))
            print(tests.output[name])
        else:
            excluded[reasons[entry]] += 1
    failed += [(entry, f"is in {suite}.toml, but did not run") for entry in sorted(unused)]
    for name, reason in failed:
        print(f"FAILED {name}: {reason}")
    result.write(passed, failed, sorted(excluded.items()))
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


def covering(name):
    """The entries of the list that would hold a test: its name, and `ABOVE/*` for all below a test."""
    yield name
    while "/" in name:
        name = name.rpartition("/")[0]
        yield f"{name}/*"


if __name__ == "__main__":
    sys.exit(main())
