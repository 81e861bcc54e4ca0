"""Rules in a file: what `bowshot access` shows and does, and that it does nothing twice, by halves, or for others."""

import contextlib
import pathlib
import subprocess

import pytest

import world
from server import binaries
from world import PASSWORDS, Refused, refused

RULES = (pathlib.Path(__file__).parent / "rules.toml").read_text()
SETUP = [
    "CREATE TABLE people (id INTEGER, name VARCHAR, region VARCHAR, ssn VARCHAR, salary INTEGER)",
    "INSERT INTO people VALUES (1, 'Anna', 'EU', '111-22-3333', 150), (2, 'Bert', 'US', '222-33-4444', 250)",
]


@pytest.fixture
def made(tmp_path):
    with world.world(tmp_path, SETUP) as made:
        yield made


def run(made, what, rules, *more, user="root"):
    file = made.folder / "rules.toml"
    file.write_text(rules)
    command = [str(binaries() / "bowshot"), "access", what, str(file), "--uri", made.server.flight, "--user", user, *more]
    return subprocess.run(command, capture_output=True, timeout=120, text=True, env={"BOWSHOT_PASSWORD": PASSWORDS[user]})


def done(made, what, rules, *more):
    found = run(made, what, rules, *more)
    assert found.returncode == 0, found.stderr
    return [line.removesuffix(";") for line in found.stdout.splitlines()]


def state(made):
    return sorted(made.at("root").rows("SELECT kind, definition FROM system.access_rules"))


def test_apply_makes_the_rules_of_the_file_and_does_nothing_twice(made):
    before = state(made)
    shown = done(made, "diff", RULES)
    assert state(made) == before == [], "diff changes nothing"
    assert run(made, "diff", RULES, "--check").returncode == 1
    assert done(made, "apply", RULES) == shown and len(shown) > 10
    after = state(made)
    assert done(made, "apply", RULES) == [] and done(made, "diff", RULES, "--check") == []
    assert state(made) == after
    root = made.at("root")
    root.rows("ALTER USER ada PASSWORD 'ada''s own'")
    assert made.at("ada").rows("SELECT id, region, ssn, salary FROM people") == [("1", "EU", "*******3333", "100")]
    with pytest.raises(Refused):
        made.at("ada").rows("SELECT name FROM people")
    assert done(made, "diff", RULES) == [], "a password is no rule"


def test_every_change_is_followed_and_the_password_stays(made):
    done(made, "apply", RULES)
    made.at("root").rows("ALTER USER ada PASSWORD 'ada''s own'")
    made.at("root").rows("CREATE ROLE by_hand")
    made.at("root").rows("GRANT DELETE ON people TO ada")
    made.at("root").rows("CREATE MASK by_hand ON people (name) USING (redact)")
    rules = (
        RULES.replace('"id", "region", "ssn", "salary"', '"id", "name"').replace("partial(0,4)", "redact")
        .replace('members = ["clerk"]', 'members = ["clerk", "ada"]').replace(', note = "it\'s"', "").replace("admin = true", "")
    )  # fmt: skip
    shown = done(made, "apply", rules)
    assert any("DROP ROLE" in sql and "by_hand" in sql for sql in shown) and any("REVOKE DELETE" in sql for sql in shown)
    assert any("RESET" in sql for sql in shown) and any("NOADMIN" in sql for sql in shown), shown
    assert done(made, "diff", rules) == []
    assert made.at("ada").rows("SELECT id, name FROM people") == [("1", "Anna")], "the password is what it was"
    nothing = "\n".join(f"{name} = []" for name in ("roles", "users", "memberships", "grants", "policies", "masks"))
    done(made, "apply", nothing)
    assert state(made) == [] and done(made, "diff", RULES) != []


@pytest.mark.parametrize("broken", [
    '[[policies]]\nname = "late"\ntable = "people"\nusing = "no_column = 1"',
    '[[masks]]\nname = "late"\ntable = "people"\ncolumn = "salary"\nfor = ["nobody"]\nusing = "null"',
    '[[memberships]]\nrole = "clerk"\nmembers = ["staff"]',
    '[[grants]]\ntable = "missing"\nrights = ["SELECT"]\nto = ["staff"]',
])
def test_all_or_nothing(made, broken):
    found = run(made, "apply", RULES + broken)
    assert found.returncode == 1 and "nothing was changed" in found.stderr, (found.stdout, found.stderr)
    assert found.stdout == "" and state(made) == []


def test_only_admins(made):
    done(made, "apply", RULES)
    made.at("root").rows("ALTER USER ada PASSWORD 'ada''s own'")
    before = state(made)
    for what in ("diff", "apply"):
        found = run(made, what, "roles = []", user="ada")
        assert found.returncode == 1 and found.stdout == "", (found.stdout, found.stderr)
    refused(made.at("ada"), "SELECT * FROM system.access_rules", "not found")
    assert ("access_rules",) not in made.at("ada").rows("SELECT table_name FROM information_schema.tables")
    assert state(made) == before


def test_nobody_drops_who_is_asking(made):
    done(made, "apply", RULES)
    made.at("root").rows("ALTER USER boss PASSWORD 'the boss'")
    PASSWORDS["boss"] = "the boss"
    rules = RULES.replace('name = "boss"', 'name = "other"').replace('to = ["boss"]', 'to = ["other"]')
    found = run(made, "apply", rules, user="boss")
    assert found.returncode == 1 and "another admin" in found.stderr
    assert run(made, "apply", rules).returncode == 0


def test_rules_hold_no_secret(made):
    done(made, "apply", RULES)
    root = made.at("root")
    root.rows("ALTER USER ada PASSWORD 'ada''s own'")
    root.rows("CREATE TOKEN t FOR ada")
    root.rows("CREATE MASK h ON people (name) USING (hash)")
    text = str(state(made))
    assert "argon2" not in text and "SCRAM" not in text and "salt" not in text and "sha256" not in text
    with contextlib.closing(world.OPEN["postgres"](made.server, "ada")) as ada:
        with pytest.raises(Refused):
            ada.rows("SELECT * FROM system.access_rules")
