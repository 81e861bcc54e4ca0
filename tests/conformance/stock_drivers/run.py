"""Runs the tests that libraries have for databases, by their stock drivers, against a server of its own.

    run.py SUITE CACHE [--record] [ARGUMENTS OF THE TESTS …]

`expected/SUITE.json` has how many tests pass and the names of those that fail, by reason. A test that fails and is not there,
or is there and passes, is a failure; so are fewer passed tests. `--record` writes that file: a name keeps its reason, a new
one gets the first of `reasons.toml` whose pattern its message has.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1] / "clients"), str(HERE.parent)]

import result  # noqa: E402
import sdist  # noqa: E402
from server import Server, clean_environment  # noqa: E402

# The modules of Django's tests that run.
DJANGO = "aggregation aggregation_regress backends db_functions expressions expressions_case expressions_window"
DJANGO += " lookup queries transactions"

UNEXPLAINED = "unexplained"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("suite", choices=SUITES)
    arguments.add_argument("cache", type=pathlib.Path)
    arguments.add_argument("--record", action="store_true")
    chosen, more = arguments.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="stock-drivers-") as scratch:
        found = SUITES[chosen.suite](chosen.cache, pathlib.Path(scratch), more)
    path = HERE / "expected" / f"{chosen.suite}.json"
    expected = json.loads(path.read_text()) if path.exists() else {"passed": 0, "failing": {}}
    if chosen.record:
        expected = expect(found, expected["failing"])
        path.write_text(json.dumps(expected, indent=1) + "\n")
    return judge(found, expected)


def serve(dialect):
    return Server(arguments=["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0", "--dialect", dialect])


def sqlalchemy_postgres(cache, scratch, more):
    with serve("postgres") as server:
        make_schemas(server, ["test_schema", "test_schema_2"])
        return run_sqlalchemy(f"postgresql+psycopg://suite@127.0.0.1:{server.pg_port}/bowshot", cache, scratch, more)


def sqlalchemy_mysql(cache, scratch, more):
    with serve("mysql") as server:
        make_schemas(server, ["test", "test_schema", "test_schema_2"])
        uri = f"mysql+pymysql://suite@127.0.0.1:{server.mysql_port}/test?charset=utf8mb4"
        return run_sqlalchemy(uri, cache, scratch, more)


def make_schemas(server, names):
    import psycopg

    uri = f"host=127.0.0.1 port={server.pg_port} user=suite dbname=bowshot"
    with psycopg.connect(uri, autocommit=True) as connection:
        for name in names:
            connection.execute(f"CREATE SCHEMA {name}")


def run_sqlalchemy(uri, cache, scratch, more):
    requirements = fetched("SQLAlchemy", cache, "test/requirements.py") / "test/requirements.py"
    (scratch / "sqlalchemy_requirements.py").write_text(requirements.read_text())
    report = scratch / "report.xml"
    command = [sys.executable, "-m", "pytest", f"--dburi={uri}", f"--junitxml={report}", "-q", "--tb=line"]
    command += ["--maxfail=10000", "--timeout=300", *more]
    path = os.pathsep.join([str(HERE / "sqlalchemy"), str(scratch)])
    subprocess.run(command, cwd=HERE / "sqlalchemy", env=clean_environment({"PYTHONPATH": path}), check=False)
    return dict(read_case(case) for case in xml.etree.ElementTree.parse(report).iter("testcase"))


def read_case(case):
    """The name of a test, without driver and version in that of its class, and `passed`, `skipped` or its messages."""
    name = re.sub(r"^test_suite\.|_(postgresql|mysql)\+[a-z]+_[0-9_]+$", "", case.get("classname")) + "::" + case.get("name")
    texts = [f"{part.get('message')}\n{part.text}" for part in case if part.tag in ("failure", "error")]
    if texts:
        return name, "\n".join(texts)
    return name, "skipped" if case.find("skipped") is not None else "passed"


def django_postgres(cache, scratch, more):
    """Django makes no second database where there is no `CREATE DATABASE`: its other one is another server."""
    tests = fetched("Django", cache, "tests/") / "tests"
    report = scratch / "report.json"
    with serve("postgres") as server, serve("postgres") as other:
        variables = {"PYTHONPATH": str(HERE / "django"), "STOCK_REPORT": str(report)}
        variables |= {"STOCK_DEFAULT_PORT": str(server.pg_port), "STOCK_OTHER_PORT": str(other.pg_port)}
        command = [sys.executable, "runtests.py", "--settings=stock_settings", "--keepdb", "--noinput", "--parallel=1"]
        command += more or DJANGO.split()
        subprocess.run(command, cwd=tests, env=clean_environment(variables), check=False)
    return json.loads(report.read_text())


def fetched(package, cache, part):
    return sdist.fetched(package, cache, [part], HERE / "sdists.txt")


def expect(found, failing):
    """What the committed file says after this run."""
    known = {name: reason for reason, names in failing.items() for name in names if reason != UNEXPLAINED}
    rules = tomllib.loads((HERE / "reasons.toml").read_text())["rule"]
    reasons = collections.defaultdict(list)
    for name, message in sorted(found.items()):
        if message not in ("passed", "skipped"):
            matching = (rule["reason"] for rule in rules if re.search(rule["pattern"], f"{name}\n{message}", re.DOTALL))
            reason = known.get(name) or next(matching, UNEXPLAINED)
            reasons[reason].append(name)
            if reason == UNEXPLAINED:
                print(f"UNEXPLAINED {name}: {last_error(message)}")
    counts = collections.Counter(message for message in found.values() if message in ("passed", "skipped"))
    return {"passed": counts["passed"], "skipped": counts["skipped"], "failing": dict(sorted(reasons.items()))}


def judge(found, expected):
    known = {name: reason for reason, names in expected["failing"].items() for name in names}
    passed = {name for name, message in found.items() if message == "passed"}
    failing = {name: message for name, message in found.items() if message != "skipped" and name not in passed}
    wrong = [(name, "passes, so it must go from the file of failing tests") for name in sorted(passed & known.keys())]
    wrong += [(name, last_error(message)) for name, message in failing.items() if name not in known]
    wrong += [(name, "did not run") for name in sorted(known.keys() - failing.keys() - passed)]
    if len(passed) < expected["passed"]:
        wrong.append(("all tests", f"{len(passed)} passed, {expected['passed']} are expected to"))
    explained = collections.Counter(known[name] for name in failing if name in known)
    for reason, count in explained.most_common():
        print(f"{count} fail: {reason}")
    for name, reason in wrong:
        print(f"FAILED {name}: {reason}")
    result.write(len(passed), wrong, explained.most_common())
    print(f"{len(found) - len(passed) - len(failing)} of features that the library says the database has not")
    print(f"{len(passed)} passed, {len(wrong)} failed")
    return 1 if wrong or not passed else 0


def last_error(message):
    """The line of a report that says what went wrong: the first of SQLAlchemy's, the last of Django's."""
    lines = message.strip().splitlines()
    if lines[0].startswith("Traceback"):
        lines = [line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception|Found)\b", line)] or lines[-1:]
    return lines[0][:200]


SUITES = {"sqlalchemy-postgres": sqlalchemy_postgres, "sqlalchemy-mysql": sqlalchemy_mysql, "django-postgres": django_postgres}

if __name__ == "__main__":
    sys.exit(main())
