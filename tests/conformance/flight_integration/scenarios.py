"""Runs every scenario of the arrow-go integration client against `bowshot_integration`: `scenarios.py CLIENT`."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients"))

from server import Process, binaries  # noqa: E402

SCENARIOS = [
    "auth:basic_proto",
    "middleware",
    "ordered",
    "expiration_time:do_get",
    "expiration_time:list_actions",
    "expiration_time:cancel_flight_info",
    "expiration_time:renew_flight_endpoint",
    "location:reuse_connection",
    "session_options",
    "poll_flight_info",
    "app_metadata_flight_info_endpoint",
    "flight_sql",
    "flight_sql:extension",
    "flight_sql:ingestion",
]


def play(client, scenario):
    """What went wrong, or nothing."""
    try:
        server = Process(binaries() / "bowshot_integration", ["--scenario", scenario, "--port", 0])
    except AssertionError as error:
        return str(error)
    with server:
        host, port = server.ports["flight"].split("://")[1].rsplit(":", 1)
        command = [client, "-host", host, "-port", port, "-scenario", scenario]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        return None if run.returncode == 0 else (run.stdout + run.stderr).strip() or f"exit code {run.returncode}"


def main(client):
    failed = 0
    for scenario in SCENARIOS:
        problem = play(client, scenario)
        if problem is None:
            print(f"PASSED {scenario}", flush=True)
        else:
            failed += 1
            first = problem.splitlines()[0]
            print(f"{problem}\nFAILED {scenario} - {first}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
