"""The HTTP front end of the real program: health, readiness, metrics, and what a wrong request gets."""

import pyarrow.flight as flight

import data
from server import Server, wait_until


def test_health_and_readiness(server):
    for path, word in (("/health", "alive"), ("/ready", "ready")):
        status, headers, text = server.get(path)
        assert status == 200 and word in text
        assert headers["content-type"].startswith("application/json")


def test_metrics_count_queries(server):
    def counters():
        return {name: value for name, value in server.metrics().items() if "total" in name and name.startswith("bowshot")}

    before = counters()
    with flight.connect(server.grpc_tcp) as client:
        client.do_get(flight.Ticket(b"SELECT 1")).read_all()
    wait_until(lambda: counters() != before, "a counter moved", 5)


def test_metrics_are_prometheus_text(server):
    status, headers, text = server.get("/metrics")
    assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4")
    named = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    sampled = {line.split("{")[0].split()[0] for line in text.splitlines() if line and not line.startswith("#")}
    suffixes = ("_bucket", "_sum", "_count")
    untyped = [
        name
        for name in sampled
        if name not in named and not any(name.endswith(suffix) and name[: -len(suffix)] in named for suffix in suffixes)
    ]
    assert not untyped
    assert server.metrics()["process_open_fds"] > 0


def test_unknown_paths_and_methods(server):
    assert server.get("/no/such/path")[0] == 404
    assert server.get("/")[0] == 200


def test_a_draining_server_says_so_and_lets_queries_finish(tmp_path):
    folder = data.write_all(tmp_path / "shop")
    with Server(folder) as server, flight.connect(server.grpc_tcp) as client:
        reader = client.do_get(flight.Ticket(b"SELECT * FROM lineitem a CROSS JOIN nation"))
        rows = reader.read_chunk().data.num_rows
        server.terminate()
        wait_until(lambda: server.get("/ready")[0] == 503, "not ready", 5)
        assert server.get("/health")[0] == 200
        with flight.connect(server.grpc_tcp) as late:
            try:
                late.do_get(flight.Ticket(b"SELECT 1")).read_all()
            except flight.FlightUnavailableError:
                pass
            else:
                raise AssertionError("a draining server took a new query")
        rows += sum(chunk.data.num_rows for chunk in reader)
        assert rows == data.LINEITEM_ROWS * 25
