"""Results as JSON lines, one for each comparison, and as a table on the terminal."""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess

from . import places
from .options import Options


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=places.REPOSITORY, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


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


def versions() -> dict:
    """Of the program under test, Python, and the pinned packages."""
    done = subprocess.run([places.program("bowshot"), "--version"], capture_output=True, text=True, check=True)
    names = [line.split("==")[0].split("[")[0] for line in (places.BENCH / "requirements.txt").read_text().split()]
    return {
        "bowshot": done.stdout.split()[-1],
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in names},
    }


def record(scenario: str, case: str, contenders: dict, ratios: dict, options: Options, **settings) -> None:
    """Appends one comparison to `bench/results/SCENARIO.jsonl` and prints it; small ones go to the cache folder."""
    line = {
        "scenario": scenario,
        "case": case,
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "versions": versions(),
        "settings": {"scale": options.scale, "rounds": options.rounds, **settings},
        "contenders": contenders,
        "ratios": ratios,
    }
    folder = options.size(places.RESULTS, places.SMALL_RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{scenario}.jsonl", "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    print(f"\n{scenario}: {case}")
    for name, values in contenders.items():
        shown = {key: value for key, value in values.items() if not isinstance(value, list)}
        print(f"  {name:28}", "  ".join(f"{key} {number(value)}" for key, value in shown.items()))
    for name, values in ratios.items():
        wanted = values.get("wanted")
        verdict = "" if wanted is None else f"   wanted {values['relation']} {wanted}: {'yes' if values['met'] else 'NO'}"
        print(f"  {name}: {values['ratio']:.2f}{verdict}")


def number(value) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def at_least(ratio: float, wanted: float) -> dict:
    return {"ratio": ratio, "relation": ">=", "wanted": wanted, "met": ratio >= wanted}


def at_most(ratio: float, wanted: float) -> dict:
    return {"ratio": ratio, "relation": "<=", "wanted": wanted, "met": ratio <= wanted}


def plain(ratio: float) -> dict:
    return {"ratio": ratio}
