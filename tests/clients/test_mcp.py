"""Agents: the Model Context Protocol over HTTP, by hand and with its reference client."""

import asyncio
import json
import subprocess
import types

import pyarrow as pa
import pytest

from http_sql import ask, sql
from server import Process, Server, binaries, clean_environment, users_file


def post(server, body, **headers):
    return ask(server, "POST", "/mcp", body.encode(), **{"content_type": "application/json", **headers})


def request(server, method, params=None, **headers):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    answer = post(server, json.dumps(body), **headers)
    assert answer.status == 200, answer.body
    return answer.json()


def call(server, tool, arguments=None, headers=None):
    """Text and structured content of a tool's result, and whether it is an error."""
    result = request(server, "tools/call", {"name": tool, "arguments": arguments or {}}, **(headers or {}))["result"]
    return result["content"][0]["text"], result["structuredContent"], result["isError"]


def bearer(user):
    return {"authorization": f"Bearer token of {user}"}


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    """A server whose user ada sees some rows and a part of a column."""
    folder = tmp_path_factory.mktemp("rules")
    file = users_file(folder, tokens={user: f"token of {user}" for user in ("root", "ada")}, admins=["root"])
    with Server(arguments=["--users-file", str(file)], data=folder / "data") as server:
        for text in (
            "CREATE TABLE people (id INTEGER PRIMARY KEY, region VARCHAR, ssn VARCHAR COMMENT 'of the office')",
            "INSERT INTO people VALUES (1, 'EU', '111-22-3333'), (2, 'US', '333-44-5555')",
            "CREATE TABLE others (id INTEGER)",
            "GRANT SELECT ON people TO ada",
            "CREATE ROW POLICY own ON people FOR ada USING (region = 'EU')",
            "CREATE MASK ssn ON people (ssn) FOR ada USING (partial(0, 4))",
        ):
            answer = sql(server, text, **bearer("root"))
            assert answer.status == 200, answer.body
        yield server
        server.wait_idle(5)


def test_tools_are_listed_and_only_read(server):
    told = request(server, "initialize", {"protocolVersion": "2025-06-18"})["result"]
    assert told["protocolVersion"] == "2025-06-18" and "tools" in told["capabilities"]
    assert request(server, "initialize", {"protocolVersion": "2024-11-05"})["result"]["protocolVersion"] == "2025-11-25"
    tools = request(server, "tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["list_tables", "describe_table", "query", "explain"]
    assert all(tool["annotations"]["readOnlyHint"] and tool["inputSchema"]["type"] == "object" for tool in tools)


def test_tables_and_their_columns(server):
    text, found, failed = call(server, "list_tables", {"pattern": "nat%"})
    assert not failed and [row[1:3] for row in found["rows"]] == [["main", "nation"]], text
    text, found, _ = call(server, "list_tables", {"limit": 1})
    assert found["row_count"] == 1 and found["is_cut"] and "there are more" in text
    text, found, failed = call(server, "describe_table", {"table": "nation", "sample_rows": 2})
    assert not failed, text
    assert [row[0] for row in found["columns"]["rows"]][:2] == ["n_nationkey", "n_name"]
    assert len(found["sample"]["rows"]) == 2 and "ALGERIA" in text
    text, _, failed = call(server, "describe_table", {"table": "nowhere"})
    assert failed and "not found" in text


def test_a_query_and_its_plan(server):
    text, found, failed = call(server, "query", {"sql": "SELECT n_name FROM nation ORDER BY n_nationkey LIMIT 2;"})
    assert not failed and found["rows"] == [["ALGERIA"], ["ARGENTINA"]]
    assert text.split() == ["n_name", "ALGERIA", "ARGENTINA", "2", "rows"]
    assert call(server, "query", {"sql": "SHOW application_name"})[1]["rows"][0][-1] == "mcp"
    for analyze in (False, True):
        text, _, failed = call(server, "explain", {"sql": "SELECT n_name FROM nation WHERE n_nationkey > 3", "analyze": analyze})
        assert not failed and "nation" in text, text


def test_a_huge_result_is_cut_and_can_be_fetched(server):
    text, found, _ = call(server, "query", {"sql": "SELECT value FROM generate_series(1, 100000000) AS s(value)"})
    assert found["row_count"] == 200 and found["is_cut"] and "first 200 rows of more" in text
    wide = "SELECT repeat('x', 100000) AS t FROM generate_series(1, 1000)"
    assert 1 <= call(server, "query", {"sql": wide, "max_rows": 1000})[1]["row_count"] <= 10
    text, found, _ = call(server, "query", {"sql": "SELECT repeat('x', 3000000) AS t"})
    assert found["row_count"] == 0 and "larger than 1 MiB" in text
    stored = {"sql": "SELECT value FROM generate_series(1, 5000) AS s(value)", "max_rows": 3, "store_result": True}
    text, found, _ = call(server, "query", stored)
    assert found["row_count"] == 3 and found["rows_path"] in text
    assert pa.ipc.open_stream(ask(server, "GET", found["rows_path"]).body).read_all().num_rows == 5000
    assert ask(server, "DELETE", f"/v1/queries/{found['query_id']}").status == 200


@pytest.mark.parametrize("text", [
    "CREATE TABLE {table} (a INTEGER)",
    "INSERT INTO {table} VALUES (2) RETURNING a",
    "WITH w AS (INSERT INTO {table} VALUES (2) RETURNING a) SELECT * FROM w",
    "DELETE FROM {table}",
    "EXPLAIN ANALYZE INSERT INTO {table} VALUES (2)",
    "SET dialect = 'mysql'",
    "COMMIT",
    "CREATE SECRET s (TYPE s3)",
    "COPY {table} TO 'x.csv'",
    "SELECT 1; INSERT INTO {table} VALUES (2)",
    "COMMIT; INSERT INTO {table} VALUES (2)",
])
def test_nothing_but_reading_runs(store, table, text):
    assert sql(store, f"CREATE TABLE {table} AS SELECT 1 AS a").status == 200
    told, _, failed = call(store, "query", {"sql": text.format(table=table)})
    assert failed, told
    told, _, failed = call(store, "explain", {"sql": text.format(table=table), "analyze": True})
    assert failed, told
    assert sql(store, f"SELECT * FROM {table}").rows() == [[1]]


def test_errors_are_results_for_the_model(server):
    refused = {"sql": "SELECT 1", "max_rows": 10_001}, {"sql": ""}, {}
    for arguments in (*refused, {"sql": "SELEC 1"}, {"sql": "SELECT 1", "max_rows": 0}, {"sql": "SELECT 1", "rows": 1}):
        text, told, failed = call(server, "query", arguments)
        assert failed and told["error"]["message"] in text
    text, told, failed = call(server, "query", {"sql": "SELECT * FROM nowhere"})
    assert failed and told["error"]["kind"] == "not_found" and "nowhere" in text


def test_rights_policies_and_masks_hold(rules):
    ada = bearer("ada")
    seen = call(rules, "query", {"sql": "SELECT id, right(ssn, 4), left(ssn, 6) FROM people"}, ada)[1]["rows"]
    assert [row[:2] for row in seen] == [[1, "3333"]] and seen[0][2] != "111-22"
    text, _, _ = call(rules, "describe_table", {"table": "people"}, ada)
    assert "3333" in text and "of the office" in text and "primary key: id" in text
    assert "111-22" not in text and "5555" not in text
    text, found, _ = call(rules, "list_tables", headers=ada)
    assert "others" not in text
    # The number of all rows is for who sees all.
    assert [row[4] for row in found["rows"] if row[2] == "people"] == [None]
    text, _, failed = call(rules, "query", {"sql": "SELECT * FROM others"}, ada)
    assert failed and "not found" in text
    assert len(call(rules, "query", {"sql": "SELECT * FROM people"}, bearer("root"))[1]["rows"]) == 2
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert post(rules, body).error() == (401, "unauthenticated")
    assert post(rules, body, authorization="Bearer wrong").error() == (401, "unauthenticated")


def test_pages_and_other_names_are_refused(server):
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert post(server, ping).json()["result"] == {}
    assert post(server, "{").json()["error"]["code"] == -32700
    assert post(server, "[]").json()["error"]["code"] == -32600
    assert request(server, "resources/list")["error"]["code"] == -32601
    assert request(server, "tools/call", {"name": "drop"})["error"]["code"] == -32602
    for message in ({"id": None, "method": "ping"}, {"id": 1}):
        assert post(server, json.dumps({"jsonrpc": "2.0", **message})).json()["error"]["code"] == -32600
    assert post(server, json.dumps({"id": 1, "method": "ping"})).json()["error"]["code"] == -32600
    for message in ({"method": "notifications/initialized"}, {"id": 1, "result": {}}):
        assert post(server, json.dumps({"jsonrpc": "2.0", **message})).status == 202
    assert post(server, ping, content_type="text/plain").status == 415
    assert post(server, ping, origin="https://evil.example").error() == (403, "denied")
    assert post(server, ping, host="evil.example").error() == (403, "denied")
    assert post(server, ping, mcp_protocol_version="1999-01-01").status == 400
    for method in ("GET", "DELETE", "PUT"):
        answer = ask(server, method, "/mcp")
        assert answer.status == 405 and answer.headers["allow"] == "POST"


def test_agents_of_other_machines_need_a_login():
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    program, arguments = binaries() / "bowshot", ["serve", "--flight", "off", "--http", "0.0.0.0:0", "--insecure", "--data", "memory"]
    with Process(program, arguments) as process:
        server = types.SimpleNamespace(http=process.ports["http"].rstrip("/"))
        assert post(server, ping).error() == (403, "denied")
        assert sql(server, "SELECT 1").rows() == [[1]]
    with Server(environment={"BOWSHOT_HTTP_MCP": "off"}) as off:
        assert post(off, ping).error() == (403, "denied")
    environment = clean_environment({"BOWSHOT_HTTP_MCP": "on"})
    ended = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2 and "`http_mcp` is `on`" in ended.stderr, ended.stderr


def test_the_reference_client(server):
    client = pytest.importorskip("mcp.client.client", reason="mcp is not installed")

    async def ask_all():
        async with client.Client(f"{server.http}/mcp") as agent:
            tools = await agent.list_tools()
            return tools, await agent.call_tool("query", {"sql": "SELECT count(*) AS n FROM nation"})

    tools, result = asyncio.run(ask_all())
    assert {tool.name for tool in tools.tools} == {"list_tables", "describe_table", "query", "explain"}
    assert not result.is_error and result.structured_content["rows"] == [[25]]
