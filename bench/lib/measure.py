"""Runs clients against servers in turn and keeps what they measured."""

import json
import os
import pathlib
import statistics
import subprocess
import sys

from . import environments, memory, processes, programs, readers
from .options import Options

CLIENT = pathlib.Path(__file__).with_name("client.py")
WRITER = pathlib.Path(__file__).with_name("writer.py")
CLIENT_TIMEOUT_S = 3600
MESSAGE_CHARACTERS = 300


def program(kind: str, script: pathlib.Path = CLIENT) -> list:
    """The command that runs a kind of client. Raises `Unavailable` where its packages or programs are not to be had."""
    if kind in programs.KINDS:
        return programs.command(kind)
    for path, package in readers.NEEDED_FILES.get(kind, []):
        if not path.exists():
            raise environments.Unavailable(f"there is no {path}: `apt-get install {package}`")
    interpreter = environments.python(readers.ENVIRONMENTS.get(kind, "main"))
    return [str(interpreter), "-W", "ignore", str(script)]


def client(server: processes.Server, kind: str, script: pathlib.Path = CLIENT, begun=lambda pid: None, **order) -> dict:
    """One client process; its answer and the processor time that the server spent meanwhile. `begun` is told the id of the
    process.
    """
    order = {"kind": kind, "uri": server.uri, **order}
    if kind in programs.KINDS:  # the others do it themselves, just before they read
        memory.at_hand(order.get("needed_bytes", 0))
    settings = readers.LARGE_RESULTS.get(kind, {}) if order.get("action") == "fetch" else {}
    before = server.cpu_seconds()
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(program(kind, script), env={**os.environ, **settings}, **piped) as process:
        try:
            begun(process.pid)
            told, errors = process.communicate(json.dumps(order), timeout=CLIENT_TIMEOUT_S)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise RuntimeError(f"{kind} client of {server.name} failed:\n{errors[-3000:]}")
    answer = json.loads(told)
    answer["server_cpu_s"] = server.cpu_seconds() - before
    return answer


def writer(server: processes.Server, kind: str, others: list, **order) -> dict:
    """A client that writes; it begins when all servers have come to rest."""
    processes.settle(others)
    return client(server, kind, WRITER, **order)


def in_turn(contenders: list, options: Options, run) -> dict:
    """A B C C B A A B C …: `run(contender)` in turn, `rounds` times; answers by label. A round goes before that warms up, but
    at the small scale, where nobody looks at the times. Every other round goes backwards, since what one leaves behind, such
    as the state of the memory that it has freed, is felt by the next: of two equal servers, the one that always came after
    another program took a quarter longer.
    """
    answers = {label: [] for label, *_ in contenders}
    warmups = 0 if options.small else 1
    for turn in range(options.rounds + warmups):
        for label, *contender in contenders[:: -1 if turn % 2 else 1]:
            answer = run(*contender)
            if turn >= warmups:
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
    row_count = rows.pop()
    seconds = statistics.median(run["seconds"] for run in runs)
    moved = sum(run["bytes"] for run in runs)
    return {
        "seconds": seconds,
        "first_seconds": statistics.median(answer["runs"][0]["seconds"] for answer in answers),
        "all_seconds": [round(run["seconds"], 4) for run in runs],
        "rows": row_count,
        "bytes": size,
        "rows_per_second": row_count / seconds,
        **({} if not moved else {
            "gb_per_second": size / seconds / 1e9,
            "server_cpu_s_per_gb": sum(answer["server_cpu_s"] for answer in answers) / (moved / 1e9),
        }),
        **processor_times(answers, len(runs)),
    }


def transfer_without_bytes(answers: list) -> dict:
    """Where the bytes are not known, as of tensors: figures that are for each GB are left out."""
    return {name: value for name, value in transfer(answers).items() if name not in ("bytes", "first_seconds")}


def processor_times(answers: list, runs: int) -> dict:
    """Processor seconds of server and client for one run, and the peak of the client's memory."""
    runs += sum(answer.get("warmups", 0) for answer in answers)
    figures = {"server_cpu_s": sum(answer["server_cpu_s"] for answer in answers) / runs}
    if all("client_cpu_s" in answer for answer in answers):
        figures["client_cpu_s"] = sum(answer["client_cpu_s"] for answer in answers) / runs
    if all("client_peak_rss" in answer for answer in answers):
        figures["client_peak_rss"] = max(answer["client_peak_rss"] for answer in answers)
    return figures


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
        "client_cpu_s": statistics.median(answer["client_cpu_s"] for answer in answers),
        "server_cpu_s_per_gb": statistics.median(answer["server_cpu_s"] for answer in answers) / (size / 1e9),
    }


def medians(answers: list, *shown: str) -> dict:
    """Medians of every number in the answers; of those that are `shown` all values, too."""
    names = [name for name, value in answers[0].items() if isinstance(value, int | float)]
    values = {f"all_{name}": [round(answer[name], 4) for answer in answers] for name in shown}
    return {name: statistics.median(answer[name] for answer in answers) for name in names} | values
