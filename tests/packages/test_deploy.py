"""What watches a server: every metric that the dashboard and the alert rules name is one that the server has."""

import json
import pathlib
import re
import subprocess
import sys

import yaml

from roots import Served

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/clients"))

from server import binaries, free_port, wait_until  # noqa: E402

NAME = re.compile(r"\b((?:bowshot|process)_[a-z_]+)\b")


def test_metrics_that_are_watched_are_there(tmp_path):
    dashboard = json.loads((ROOT / "deploy/grafana/bowshot.json").read_text())
    watched = {}
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            watched |= dict.fromkeys(NAME.findall(target["expr"]), panel["title"])
    rules = yaml.safe_load((ROOT / "deploy/helm/bowshot/rules.yml").read_text())
    for rule in rules["groups"][0]["rules"]:
        watched |= dict.fromkeys(NAME.findall(rule["expr"]), rule["alert"])
    port = free_port()
    program = str(binaries() / "bowshot")
    (tmp_path / "people.csv").write_text("id\n1\n2\n")
    command = [program, "serve", str(tmp_path / "people.csv"), "--http", f"127.0.0.1:{port}", "--flight", "127.0.0.1:0"]
    with Served([*command, "--ports-file", str(tmp_path / "ports.json"), "--set", "join_cache.enabled=true"], tmp_path / "log", port) as server:
        ports = tmp_path / "ports.json"
        wait_until(ports.exists, "addresses")
        flight = json.loads(ports.read_text())["flight"]
        server.sql("SELECT a.id FROM people AS a JOIN people AS b ON a.id = b.id")

        def missing():
            """What has not been told yet. Results of a file are kept once it has been left alone for a moment."""
            subprocess.run([program, "sql", "--uri", flight, "SELECT count(*) FROM people"], check=True, capture_output=True)
            there = set(re.findall(r"^([a-z_]+)(?:\{[^}]*\})? ", server.get("/metrics"), re.MULTILINE))
            return {name: where for name, where in watched.items() if name not in there}

        wait_until(lambda: not missing(), "every metric that is watched")
    outcomes = set(re.findall(r'outcome="(\w+)"', " ".join(map(str, rules["groups"][0]["rules"]))))
    assert outcomes == {"failed"}


def test_alerts_lead_to_the_runbook():
    rules = yaml.safe_load((ROOT / "deploy/helm/bowshot/rules.yml").read_text())
    for rule in rules["groups"][0]["rules"]:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}, rule["alert"]
