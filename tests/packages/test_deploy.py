"""What watches a server: every metric that the dashboard and the alert rules name is one that the server has, with its labels."""

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
LABEL = re.compile(r"[{,]\s*(\w+)\s*(?:=~|!~|!=|=)")
GROUPING = re.compile(r"\b(?:by|without) \(([^)]*)\)")
SAMPLE = re.compile(r"^([a-z_]+)(?:\{([^}]*)\})? ", re.MULTILINE)
#: Those that Prometheus gives to what it reads.
OF_PROMETHEUS = {"instance", "job"}


def expressions():
    """Each expression with the panel or alert that it belongs to."""
    dashboard = json.loads((ROOT / "deploy/grafana/bowshot.json").read_text())
    rules = yaml.safe_load((ROOT / "deploy/helm/bowshot/rules.yml").read_text())
    panels = [(target["expr"], panel["title"]) for panel in dashboard["panels"] for target in panel["targets"]]
    return panels + [(rule["expr"], rule["alert"]) for group in rules["groups"] for rule in group["rules"]]


def labels(expression):
    grouped = {label.strip() for group in GROUPING.findall(expression) for label in group.split(",")}
    return (set(LABEL.findall(expression)) | grouped) - OF_PROMETHEUS


def test_metrics_that_are_watched_are_there(tmp_path):
    watched = [(name, labels(expression), where) for expression, where in expressions() for name in NAME.findall(expression)]
    rules = yaml.safe_load((ROOT / "deploy/helm/bowshot/rules.yml").read_text())
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
            there = {}
            for name, given in SAMPLE.findall(server.get("/metrics")):
                there.setdefault(name, set()).update(re.findall(r'(\w+)="', given))
            return [(name, wanted, where) for name, wanted, where in watched if name not in there or not wanted <= there[name]]

        wait_until(lambda: not missing(), "every metric that is watched")
    outcomes = set(re.findall(r'outcome="(\w+)"', " ".join(map(str, rules["groups"][0]["rules"]))))
    assert outcomes == {"failed"}


def test_prometheus_understands_each_expression(tmp_path):
    # Grafana puts its own values in place of these.
    shown = [expression.replace("$__rate_interval", "5m").replace("$instance", ".*") for expression, _ in expressions()]
    panels = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(shown)]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": panels}]}))
    for file in (ROOT / "deploy/helm/bowshot/rules.yml", tmp_path / "panels.yml"):
        told = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True)
        assert told.returncode == 0, told


def test_alerts_lead_to_the_runbook():
    rules = yaml.safe_load((ROOT / "deploy/helm/bowshot/rules.yml").read_text())
    for rule in rules["groups"][0]["rules"]:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}, rule["alert"]
