"""Runs clients against servers in turn and keeps what they measured."""

import json
import pathlib
import statistics
import subprocess
import sys

from . import processes

CLIENT = pathlib.Path(__file__).with_name("client.py")
WRITER = pathlib.Path(__file__).with_name("writer.py")
CLIENT_TIMEOUT_S = 1200


def client(server: processes.Server, kind: str, program: pathlib.Path = CLIENT, **order) -> dict:
    """One client process; its answer and the processor time that the server spent meanwhile."""
    order = {"kind": kind, "uri": server.uri, **order}
    before = server.cpu_seconds()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), json.dumps(order)],
        capture_output=True, text=True, timeout=CLIENT_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{kind} client of {server.name} failed:\n{done.stderr[-3000:]}")
    answer = json.loads(done.stdout)
    answer["server_cpu_s"] = server.cpu_seconds() - before
    return answer


def writer(server: processes.Server, kind: str, others: list, **order) -> dict:
    """A client that writes; it begins when all servers have come to rest."""
    processes.settle(others)
    return client(server, kind, WRITER, **order)


def in_turn(contenders: list, rounds: int, run) -> dict:
    """A B C A B C …: `run(contender)` in turn, `rounds` times; answers by label. The first round warms up."""
    answers = {label: [] for label, *_ in contenders}
    for turn in range(rounds + 1):
        for label, *contender in contenders:
            answer = run(*contender)
            if turn > 0:
                answers[label].append(answer)
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return answers


def transfer(answers: list) -> dict:
    """Medians over all runs of one contender: seconds, those of the first run of each client, GB/s, server seconds per GB."""
    runs = [run for answer in answers for run in answer["runs"]]
    size = statistics.median(run["bytes"] for run in runs)
    rows = {run["rows"] for run in runs}
    if len(rows) != 1:
        raise RuntimeError(f"runs returned different numbers of rows: {rows}")
    seconds = statistics.median(run["seconds"] for run in runs)
    moved = sum(run["bytes"] for run in runs)
    return {
        "seconds": seconds,
        "first_seconds": statistics.median(answer["runs"][0]["seconds"] for answer in answers),
        "all_seconds": [round(run["seconds"], 4) for run in runs],
        "rows": rows.pop(),
        "bytes": size,
        "gb_per_second": size / seconds / 1e9,
        "server_cpu_s_per_gb": sum(answer["server_cpu_s"] for answer in answers) / (moved / 1e9),
    }


def written(answers: list) -> dict:
    """Medians over the turns of a contender that writes `bytes` in `seconds`."""
    seconds = statistics.median(answer["seconds"] for answer in answers)
    size = answers[0]["bytes"]
    return {
        "seconds": seconds,
        "all_seconds": [round(answer["seconds"], 4) for answer in answers],
        "rows": answers[0]["rows"],
        "bytes": size,
        "rows_per_second": answers[0]["rows"] / seconds,
        "gb_per_second": size / seconds / 1e9,
        "cpu_s": statistics.median(answer["client_cpu_s"] + answer["server_cpu_s"] for answer in answers),
        "server_cpu_s": statistics.median(answer["server_cpu_s"] for answer in answers),
    }


def medians(answers: list) -> dict:
    """Medians of every number in the answers."""
    return {name: statistics.median(answer[name] for answer in answers) for name in answers[0]}
