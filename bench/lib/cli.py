"""Runs benchmark scenarios and writes a report of them. Without scenarios and with --report the report is written of the
results that are there.
"""

import argparse
import pathlib
import shlex
import signal
import sys
import time
import traceback

from . import arena, options, places, registry


SCENARIOS = (
    f"what to run: all, {', '.join(registry.SCENARIOS)}; `all` leaves out "
    f"{', '.join(name for name in registry.SCENARIOS if name not in registry.EVERYWHERE)}, whose packages are large"
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="cargo xtask bench", description=__doc__, allow_abbrev=False)
    made.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=SCENARIOS)
    made.add_argument(
        "--scale", choices=options.SCALES, default="medium",
        help="small: whether everything works, in minutes; medium (default); large: the published sizes, for hours",
    )
    made.add_argument("--rounds", type=int, help=f"turns of each contender after the warm-up (default {options.ROUNDS})")
    made.add_argument("--peers", help=f"peers to run beside ours, separated by commas, or none (default all): {', '.join(arena.PEERS)}")
    made.add_argument("--only", help="contenders whose label contains this text (for trying out; ratios are left out)")
    made.add_argument(
        "--case",
        help="cases (of readers, latency, memory, files, transactions, joins, views, training_readers) whose name contains this text, or "
        "one of several between `|`",
    )
    made.add_argument("--gigabytes", type=float, help="size of `ingest_memory` instead of that of the scale")
    made.add_argument(
        "--rows", type=row_counts,
        help="numbers of rows, separated by commas, instead of those of the scale (starrocks, employees, lineitem, joins, views)",
    )
    made.add_argument(
        "--results", type=pathlib.Path,
        help=f"folder of the JSON lines (default bench/results; for --scale small {places.SMALL_RESULTS})",
    )
    made.add_argument("--report", type=pathlib.Path, help="where to write the report (default report.html beside the results)")
    made.add_argument("--no-report", action="store_true", help="write no report")
    made.add_argument("--figures", action="store_true", help="write the figures of the committed results into docs/")
    return made


def command(arguments: list) -> str:
    """What was asked for, without the folders of this machine."""
    shown, skip = [], False
    for argument in arguments:
        name, _, value = argument.partition("=")
        if not skip and name not in ("--results", "--report"):
            shown.append(argument)
        skip = not skip and name in ("--results", "--report") and not value
    return shlex.join(["cargo", "xtask", "bench", *shown])


def main(arguments: list) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers end and folders go
    asked = parser().parse_args(arguments)
    names = asked.scenarios
    if "all" in names:  # and what was named besides
        names = [*registry.EVERYWHERE, *(name for name in names if name != "all" and name not in registry.EVERYWHERE)]
    check_names("scenario", names, registry.SCENARIOS)
    folder = asked.results or (places.SMALL_RESULTS if asked.scale == "small" else places.RESULTS)
    chosen = options.Options(
        scale=asked.scale, rounds=asked.rounds or options.ROUNDS[asked.scale], only=asked.only, case=asked.case,
        peers=peers(asked.peers), gigabytes=asked.gigabytes, rows=asked.rows, folder=folder,
        command=command(arguments),
    )
    failed = [name for name in names if not ran(name, chosen)]
    if not asked.no_report:
        from .report import page

        page.write(folder, asked.report or places.default_report(folder))
    if asked.figures:
        from .report import figures

        text = places.FIGURES.read_text(encoding="utf-8")
        places.FIGURES.write_text(figures.written(text, places.RESULTS), encoding="utf-8")
        places.PICTURE.write_text(figures.picture(places.RESULTS), encoding="utf-8")
    for name in failed:
        print(f"FAILED: {name}", file=sys.stderr)
    return 1 if failed else 0


def ran(name: str, chosen: options.Options) -> bool:
    """Runs one scenario; a failure is told and does not keep the others from running."""
    started = time.monotonic()
    try:
        registry.SCENARIOS[name].run(chosen)
    except Exception:
        traceback.print_exc()
        return False
    print(f"\n{name} took {time.monotonic() - started:.0f} s")
    return True


def row_counts(text: str) -> tuple:
    return tuple(int(part) for part in text.split(","))


def peers(text: str | None) -> frozenset | None:
    if text is None:
        return None
    names = [] if text == "none" else text.split(",")
    check_names("peer", names, arena.PEERS)
    return frozenset(names)


def check_names(what: str, names: list, known) -> None:
    for name in names:
        if name not in known:
            raise SystemExit(f"there is no {what} `{name}`: {', '.join(known)}")
