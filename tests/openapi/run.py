"""The HTTP front end against its own description: schemathesis makes requests of openapi.json, good ones and bad ones, and none
of them may be answered with a status from 500 on, or otherwise than the description says. `run.py [--examples N] [--seed N]`.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/clients"))

from server import Server  # noqa: E402

CHECKS = "not_a_server_error,content_type_conformance,response_schema_conformance,allow_header_conformance"
PHASES = "examples,coverage,fuzzing,stateful"
# A statement that happens to be one must not run for long.
SETTINGS = ["--set", "limits.statement_timeout=5s", "--set", "limits.session_timeout=5s", "--set", "limits.result_timeout=5s"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--examples", type=int, default=25)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    with Server(arguments=SETTINGS) as server, tempfile.TemporaryDirectory(prefix="bowshot-openapi-") as folder:
        report = pathlib.Path(folder) / "report.xml"
        # One worker: with two, what draws their requests takes one that it cannot draw again for a fault.
        command = [
            str(pathlib.Path(sys.executable).with_name("schemathesis")), "run", server.http + "/v1/openapi.json",
            "--url", server.http, "--checks", CHECKS, "--phases", PHASES, "--max-examples", str(chosen.examples),
            "--seed", str(chosen.seed), "--workers", "1", "--continue-on-failure", "--report", "junit",
            "--report-junit-path", str(report), "--no-color",
        ]  # fmt: skip
        hooks = {"SCHEMATHESIS_HOOKS": "forms", "PYTHONPATH": str(ROOT / "tests/openapi")}
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, env={**os.environ, **hooks})
        print(done.stdout)
        cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
        failed = [case.get("name") for case in cases if case.find("failure") is not None or case.find("error") is not None]
        requests = re.search(r"([\d,]+) generated", done.stdout)
        count = int(requests[1].replace(",", "")) if requests else 0
        server.wait_idle(20)
        log = [line for line in server.log().splitlines() if "panicked" in line or "internal error" in line]
    for line in [*failed, *log]:
        print(line)
    failures = len(failed) + len(log) or int(done.returncode != 0)
    print(f"{count - failures} passed, {failures} failed")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
