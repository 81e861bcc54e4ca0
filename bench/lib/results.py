"""Results as JSON lines, one for each comparison, and as a table on the terminal."""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess

from . import environments, places
from .options import Options
from .report import lines, verdicts


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=places.REPOSITORY, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def modified() -> bool:
    """Whether the product's sources differ from the commit."""
    command = ["git", "status", "--porcelain", "--", "crates", "Cargo.lock"]
    return bool(subprocess.run(command, cwd=places.REPOSITORY, capture_output=True, text=True).stdout.strip())


def machine() -> dict:
    model = ""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.release()}",
        "load_before": os.getloadavg()[0],
    }


def versions(peers: dict) -> dict:
    """Of the program under test, Python, the pinned packages, and the peers that have a version of their own."""
    done = subprocess.run([places.program("bowshot"), "--version"], capture_output=True, text=True, check=True)
    return {
        "bowshot": done.stdout.split()[-1],
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in environments.pinned("main")},
        **{f"peer {name}": version for name, version in peers.items()},
    }


def server_settings() -> dict:
    """Limits of the caches that come from the environment, which all servers of a run have. No other variables: results
    are published."""
    ours = (name for name in os.environ if name.startswith("BOWSHOT_") and name.endswith("_BYTES"))
    return {name: os.environ[name] for name in ours}


def record(scenario: str, case: str, contenders: dict, options: Options, **settings) -> None:
    """Appends one comparison to `SCENARIO.jsonl` in the folder of results and prints it. Of the settings, `axes` are what
    the report plots by, `ceilings` the contenders that are no peers but bounds, `missing` the peers that could not run and why,
    `ratios` what cannot be told from the figures, `peer_versions` those of peers that are programs, `client_versions` those of
    clients that are no package of the main environment. What is wanted of the figures is in `targets.toml`.
    """
    line = {
        "scenario": scenario,
        "case": case,
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit(),
        "modified": modified(),
        "machine": machine(),
        "versions": {**versions(settings.pop("peer_versions", {})), **settings.pop("client_versions", {})},
        "command": options.command,
        "missing": settings.pop("missing", {}),
        "axes": settings.pop("axes", {}),
        "ceilings": settings.pop("ceilings", []),
        "ratios": settings.pop("ratios", {}),
        "settings": {"scale": options.scale, "rounds": options.rounds, **server_settings(), **settings},
        "contenders": contenders,
    }
    for verdict in verdicts.judge(lines.line(line)):
        line["ratios"][f"{verdict.metric.title} against {verdict.peer}"] = {"ratio": verdict.ratio}
    options.folder.mkdir(parents=True, exist_ok=True)
    with open(options.folder / f"{scenario}.jsonl", "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    print(f"\n{scenario}: {case}")
    for name, values in contenders.items():
        shown = {key: value for key, value in values.items() if not isinstance(value, list | dict)}
        print(f"  {name:28}", "  ".join(f"{key} {number(value)}" for key, value in shown.items()))
    for name, values in line["ratios"].items():
        print(f"  {name}: {values['ratio']:.2f}")


def number(value) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
