"""What `/metrics` counts of access: decisions, logins, the service that decides, lines of the audit trail."""

import contextlib
import re

import psycopg
import pytest

import world
from decisions import Decisions, deny, serving
from world import PASSWORDS, Refused, psycopg_connect


def samples(made):
    """Counters by name and labels."""
    found = {}
    for line in made.server.get("/metrics")[2].splitlines():
        if match := re.match(r"(bowshot_(?:access|logins|audit)\w+)\{([^}]*)\} (\S+)$", line):
            name, labels, value = match.groups()
            found[name, *sorted(re.findall(r'="([^"]*)"', labels))] = float(value)
    return found


def test_what_is_counted(tmp_path):
    audit = {"BOWSHOT_AUDIT_FILE": str(tmp_path / "audit.jsonl")}
    with contextlib.closing(Decisions()) as service, serving(tmp_path, service, audit) as made:
        ada = made.at("ada")
        before = samples(made)

        def more(*names):
            return samples(made).get(names, 0) - before.get(names, 0)

        ada.rows("SELECT id FROM people")
        for sql in ("SELECT * FROM nothing_here", "DROP TABLE people", "DROP TABLE other"):
            with pytest.raises(Refused):
                ada.rows(sql)
        service.decide = lambda asked: deny("late")
        with pytest.raises(Refused):
            ada.rows("SELECT id FROM people WHERE id = 2")
        service.status = 500
        with pytest.raises(Refused):
            ada.rows("SELECT id FROM people WHERE id = 3")
        service.reset()
        decisions = "bowshot_access_decisions_total"
        assert more(decisions, "allowed", "select") == 1
        assert more(decisions, "denied", "drop") == 2 and more(decisions, "not_found", "select") == 1
        assert more(decisions, "denied", "select") == 1 and more(decisions, "select", "undecided") == 1
        outcomes = {name: more("bowshot_access_service_decisions_total", name) for name in ("allowed", "denied", "undecided")}
        assert outcomes["allowed"] >= 1 and outcomes["denied"] == 1 and outcomes["undecided"] == 1
        assert more("bowshot_access_decision_seconds_count", "rules") >= 3
        assert more("bowshot_access_decision_seconds_count", "service") == sum(outcomes.values())
        assert more("bowshot_audit_lines_total", "written") == 6
        made.at("ada", "postgres")
        world.Http(made.server, "ada").rows("SELECT 1")
        for password in ("wrong", "token"):
            with pytest.raises(psycopg.Error):
                psycopg_connect(made.server, "ada", password)
        logins = "bowshot_logins_total"
        assert more(logins, "accepted", "scram") == 1 and more(logins, "refused", "scram") == 2
        assert more(logins, "accepted", "password") == 1
        assert PASSWORDS["ada"] not in made.server.get("/metrics")[2] and "people" not in made.server.get("/metrics")[2]
