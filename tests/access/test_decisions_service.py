"""A service that decides and is slow, gone, far away or asked a lot at once; what is kept of its answers."""

import contextlib
import ssl

import pytest

import world
from authority import Authority
from decisions import ALLOW, PEOPLE, Decisions, deny, objects, serving
from server import Server, together, wait_until
from world import Refused


def test_a_service_that_is_slow_or_gone(tmp_path):
    service = Decisions()
    environment = {"BOWSHOT_ACCESS_DECISION_TIMEOUT": "500ms"}
    try:
        with serving(tmp_path, service, environment) as made:
            ada = made.at("ada")
            assert ada.rows("SELECT id FROM people") == [("1",)]
            service.delay = 60
            with pytest.raises(Refused, match="gave no decision"):
                ada.rows("SELECT id FROM people")
            assert service.at_once > 0, "the service has not answered yet"
            service.reset()
            wait_until(lambda: service.at_once == 0, "it has slept")
            # Every third answer is an error.
            turns = {"next": 0}

            def flap(asked):
                turns["next"] += 1
                return ALLOW if turns["next"] % 3 else b"oops"

            service.decide, outcomes = flap, []
            for _ in range(20):
                try:
                    outcomes.append(ada.rows("SELECT id FROM people") == [("1",)])
                except Refused as error:
                    assert "gave no decision" in str(error)
                    outcomes.append(None)
            assert True in outcomes and None in outcomes and False not in outcomes, outcomes
            service.close()
            with pytest.raises(Refused, match="gave no decision"):
                ada.rows("SELECT id FROM people")
            assert "gave no decision" in made.server.log()
            service.reset()
    finally:
        with contextlib.suppress(OSError):
            service.close()


def test_questions_at_once_are_bounded(tmp_path):
    environment = {"BOWSHOT_ACCESS_DECISION_CONNECTIONS": "3", "BOWSHOT_ACCESS_DECISION_TIMEOUT": "20s"}
    with contextlib.closing(Decisions()) as service, serving(tmp_path, service, environment) as made:
        service.delay, service.most = 0.05, 0

        def ask():
            with world.Flight(made.server, "ada") as connection:
                for _ in range(4):
                    assert connection.rows("SELECT id FROM people") == [("1",)]

        together(*[ask] * 8)
        assert service.most <= 3, service.most


def test_decisions_are_kept_for_the_very_same_question(tmp_path):
    with contextlib.closing(Decisions()) as service, serving(tmp_path, service, {"BOWSHOT_ACCESS_DECISION_CACHE": "6s"}) as made:
        ada, root = made.at("ada"), made.at("root")
        ada.rows("SELECT id FROM people")
        service.asked.clear()
        for _ in range(5):
            ada.rows("SELECT id FROM people")
        assert not service.about("query")
        ada.rows("SELECT id, name FROM people")
        root.rows("SELECT id FROM people")
        assert [(asked["user"], len(objects(asked)[PEOPLE])) for asked in service.about("query")] == [("ada", 2), ("root", 1)]
        # What was no decision is not kept.
        service.status = 500
        with pytest.raises(Refused, match="gave no decision"):
            ada.rows("SELECT name FROM people")
        service.reset()
        assert ada.rows("SELECT name FROM people") == [("Anna",)]
        service.decide = lambda asked: deny("over")

        def refused():
            try:
                ada.rows("SELECT id FROM people")
            except Refused as error:
                return "over" in str(error)

        wait_until(refused, "what was allowed before is not any more", 10)


def test_over_tls_with_a_token(tmp_path):
    authority, others = Authority(tmp_path / "authority"), Authority(tmp_path / "others")
    pair = authority.server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(pair.pem), str(pair.key))
    service = Decisions(context)
    with contextlib.closing(service):
        known = {"BOWSHOT_ACCESS_DECISION_CA_FILE": str(authority.own.pem), "BOWSHOT_ACCESS_DECISION_TOKEN": "only for us"}
        with serving(tmp_path / "good", service, known) as made:
            assert made.at("ada").rows("SELECT id FROM people") == [("1",)]
            assert {name.lower(): value for name, value in service.headers[-1].items()}["authorization"] == "Bearer only for us"
        asked = len(service.asked)
        with pytest.raises(Refused, match="gave no decision"):
            with serving(tmp_path / "bad", service, {"BOWSHOT_ACCESS_DECISION_CA_FILE": str(others.own.pem)}):
                pass
        assert len(service.asked) == asked


@pytest.mark.parametrize("url", ["http://192.0.2.1/x", "ftp://127.0.0.1/", "nonsense", "http://example.org/"])
def test_an_address_that_others_can_read_stops_the_start(tmp_path, url):
    with pytest.raises(AssertionError, match="the policy service cannot be used"):
        Server(environment={"BOWSHOT_ACCESS_DECISION_URL": url})
