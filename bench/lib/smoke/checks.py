"""Runs the scenarios and judges lines and report. Every check is one test: it passes or says what is wrong."""

import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import traceback

from .. import arena, cli, places, registry
from ..report import figures, page, targets
from ..report.lines import is_ours
from . import browser, shapes
from .shapes import expect

# These compare answers through a digest, and say so.
WITH_ANSWERS = {"starrocks", "employees", "clickbench", "lineitem", "select", "same_host"}
SUITES = {"tpch": 22, "tpcds": 99}
# They begin, so that no long one is left at the end with a processor that waits.
LONG = {"tpcds", "latency", "transactions"}


def main(folder: pathlib.Path) -> int:
    report = folder / "report.html"
    print("running every scenario at the small scale, two at a time", flush=True)
    names = sorted(registry.EVERYWHERE, key=lambda name: name not in LONG)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failed = [name for name, good in zip(names, pool.map(lambda name: run(name, folder), names)) if not good]
    page.write(folder, report)
    checks = [("the commands succeed", lambda: expect(not failed, f"they do not: {', '.join(failed)}"))]
    checks += [(f"scenario {name}", lambda name=name: scenario(folder, name)) for name in registry.EVERYWHERE]
    checks += [
        ("the report is a whole page", lambda: whole_page(report)),
        ("the report tells what is wanted and what it is", lambda: goals(report)),
        ("the report on a wide page", lambda: looks(browser.probe(report, 1200))),
        ("the report on a phone", lambda: looks(browser.probe(report, 360))),
        ("the report of the committed results", lambda: committed(folder)),
        ("figures and their picture in docs are those of the committed results", committed_figures),
        ("the command line refuses what it does not know", unknown_names),
    ]
    failed = sum(not passes(name, check) for name, check in checks)
    print(f"\n{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


def run(name: str, folder: pathlib.Path) -> bool:
    """One scenario as its users start it; what it says is shown when it has ended."""
    chosen = ["--scale", "small", "--peers", ",".join(arena.PEERS), "--results", str(folder), "--no-report"]
    command = [sys.executable, str(places.BENCH / "run.py"), name, *chosen]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, flush=True)
    return done.returncode == 0


def passes(name: str, check) -> bool:
    try:
        check()
    except Exception as error:
        if not isinstance(error, AssertionError):
            traceback.print_exc()
        print(f"FAILED {name}: {error}", flush=True)
        return False
    print(f"ok     {name}", flush=True)
    return True


def scenario(folder: pathlib.Path, name: str) -> None:
    """Lines with figures of ours, everything that can be compared is equal, and no peer is silently left out."""
    lines = [json.loads(text) for text in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    expect(bool(lines), "there are no results")
    for line in lines:
        expect(any(is_ours(label) for label in line["contenders"]), f"{line['case']}: ours is not there")
        expect(not line["missing"], f"{line['case']}: not run: {line['missing']}")
        for label, found in line["contenders"].items():
            has_figure = any(found.get(metric.name) for metric in registry.SCENARIOS[name].metrics)
            expect(has_figure, f"{line['case']}: {label} has no figure: {found}")
            if name in SUITES and is_ours(label):
                expect(found["completed"] == SUITES[name], f"{label}: failed: {found['failures']}")
        if name in WITH_ANSWERS:
            expect(line["settings"]["answers"] == "equal", f"{line['case']}: answers were not compared")
    shapes.check(name, lines)


def whole_page(report: pathlib.Path) -> None:
    text = report.read_text(encoding="utf-8")
    expect("<script" not in text, "it has a script")
    loads = re.findall(r'\b(?:src|href)="(?!#)[^"]*"|url\(http[^)]*\)', text)
    expect(not loads, f"it loads {loads[:3]}")
    for name in registry.EVERYWHERE:
        expect(f'id="{name}"' in text, f"there is no section of {name}")
    for word in (">nan<", ">NaN<", ">None<", ">inf", "undefined", "$content"):
        expect(word not in text, f"`{word}` is in the text")


def goals(report: pathlib.Path) -> None:
    """Every target has its row with a verdict, and every comparison belongs to a kind of user."""
    text = report.read_text(encoding="utf-8")
    expect('id="targets"' in text, "there is no such section")
    section = text.split('id="targets"')[1].split("</section>")[0]
    wanted = targets.FILE.read_text(encoding="utf-8").count("[[target]]")
    verdicts = sum(section.count(f">{verdict}</span>") for verdict in targets.VERDICTS)
    expect(verdicts == wanted, f"{verdicts} verdicts for {wanted} targets")
    expect("<strong>Others</strong>" not in text, "some comparisons belong to no kind of user: bench/users.toml")


def looks(found: dict) -> None:
    expect(found["width"] <= found["window"] and not found["wide"], f"wider than the window: {found['width']}: {found['wide']}")
    expect(found["curves"] > 0 and found["empty"] == 0, f"{found['empty']} of {found['curves']} curves are empty")
    expect(found["requests"] == 0, f"{found['requests']} requests")


def committed(folder: pathlib.Path) -> None:
    """The results in the repository make a report too."""
    target = folder / "committed.html"
    expect(cli.main(["--report", str(target)]) == 0, "the command failed")
    goals(target)
    looks(browser.probe(target, 1200))


def committed_figures() -> None:
    text, again = places.FIGURES.read_text(encoding="utf-8"), "run `cargo xtask bench --figures --no-report`"
    expect(figures.BEGIN in text, "there are none")
    expect(figures.written(text, places.RESULTS) == text, again)
    expect(figures.picture(places.RESULTS) == places.PICTURE.read_text(encoding="utf-8"), again)


def unknown_names() -> None:
    for words in (["nothing"], ["select", "--peers", "nobody"], ["--scale", "huge"]):
        done = subprocess.run([sys.executable, str(places.BENCH / "run.py"), *words], capture_output=True, text=True)
        expect(done.returncode != 0 and "no" in done.stderr, f"{words}: {done.returncode}: {done.stderr}")
