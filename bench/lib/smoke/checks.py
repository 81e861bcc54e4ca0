"""Runs the scenarios and judges lines and report. Every check is one test: it passes or says what is wrong."""

import concurrent.futures
import html.parser
import json
import os
import pathlib
import subprocess
import sys
import traceback

from .. import arena, cli, places, registry
from ..report import figures, page, targets
from ..report.lines import is_ours
from . import browser, shapes

# turbodbc comes as source alone, and needs libraries that not every Debian has; everything else has to run.
PEERS = [name for name in arena.PEERS if name != "turbodbc"]
# These compare answers through a digest, and say so.
WITH_ANSWERS = {"starrocks", "employees", "clickbench", "lineitem", "select", "same_host"}
SUITES = {"tpch": 22, "tpcds": 99}
LONG = {"tpcds", "latency"}
BLANK_BYTES = 20_000


def main(folder: pathlib.Path) -> int:
    report = folder / "report.html"
    print("running every scenario at the small scale, two at a time", flush=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failed = [name for name, good in zip(longest_first(), pool.map(lambda name: run(name, folder), longest_first())) if not good]
    page.write(folder, report)
    checks = [("the commands succeed", lambda: expect(not failed, f"they do not: {', '.join(failed)}"))]
    checks += [(f"scenario {name}", lambda name=name: scenario(folder, name)) for name in registry.EVERYWHERE]
    checks += [
        ("the report is a whole page", lambda: whole_page(report)),
        ("the report tells what is wanted and what it is", lambda: goals(report)),
        ("the report on a wide page", lambda: looks(browser.probed(report, 1200))),
        ("the report on a phone", lambda: looks(browser.probed(report, 360))),
        ("the report in the dark", lambda: dark(browser.probed(report, 1200), browser.probed(report, 1200, dark=True))),
        ("the report on paper", lambda: expect(4 <= browser.printed(report) <= 80, f"{browser.printed(report)} sheets")),
        ("a picture of the report", lambda: expect(browser.shot(report, 1200) > BLANK_BYTES, "it is blank")),
        ("the report of the committed results", lambda: committed(folder)),
        ("the figures in README.md are those of the committed results", readme_figures),
        ("the command line refuses what it does not know", unknown_names),
    ]
    failed = sum(not passes(name, check) for name, check in checks)
    print(f"\n{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


def longest_first() -> list:
    """The scenarios that need no packages of gigabytes, so that no long one is left at the end with a processor that waits."""
    return sorted(registry.EVERYWHERE, key=lambda name: name not in LONG)


def run(name: str, folder: pathlib.Path) -> bool:
    """One scenario as its users start it; what it says is shown when it has ended."""
    chosen = ["--scale", "small", "--peers", ",".join(PEERS), "--results", str(folder), "--no-report"]
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


def expect(good: bool, wrong: str) -> None:
    if not good:
        raise AssertionError(wrong)


def scenario(folder: pathlib.Path, name: str) -> None:
    """Lines with figures of ours, everything that can be compared is equal, and no peer is silently left out."""
    lines = [json.loads(text) for text in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    expect(bool(lines), "there are no results")
    for line in lines:
        expect(any(is_ours(label) for label in line["contenders"]), f"{line['case']}: ours is not there")
        expect(not line["missing"], f"{line['case']}: not run: {line['missing']}")
        for label, figures in line["contenders"].items():
            has_figure = any(figures.get(metric.name) for metric in registry.SCENARIOS[name].metrics)
            expect(has_figure, f"{line['case']}: {label} has no figure: {figures}")
        if name in WITH_ANSWERS:
            expect(line["settings"]["answers"] == "equal", f"{line['case']}: answers were not compared")
    shapes.check(name, lines)
    if name in SUITES:
        suite(lines[-1], SUITES[name])


def suite(line: dict, queries: int) -> None:
    """All queries run; answers are told to differ at most where decimals are rounded differently."""
    for label, figures in line["contenders"].items():
        if is_ours(label):
            expect(figures["completed"] == queries, f"{label}: failed: {figures['failures']}")


class Page(html.parser.HTMLParser):
    """Counts what the page has, and what it would load."""

    def __init__(self):
        super().__init__()
        self.tags, self.loads = {}, []

    def handle_starttag(self, tag, attributes):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        for name, value in attributes:
            is_link = name in ("src", "href", "xlink:href") and not (value or "").startswith("#")
            if is_link or (value and name != "xmlns" and not name.startswith("xmlns:") and "url(http" in value):
                self.loads.append(f"{tag} {name}={value}")


def whole_page(report: pathlib.Path) -> None:
    text = report.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    expect(page.tags.get("script", 0) == 0, "it has a script")
    expect(not page.loads, f"it loads {page.loads[:3]}")
    figures = page.tags["figure"]
    expect(figures >= len(registry.EVERYWHERE), f"{figures} plots for {len(registry.EVERYWHERE)} scenarios")
    expect(page.tags["svg"] >= figures and page.tags["figcaption"] == figures, "a plot has no drawing or no caption")
    expect(text.count("The numbers behind this plot") == figures, "a plot has no numbers")
    for name in registry.EVERYWHERE:
        expect(f'id="{name}"' in text, f"there is no section of {name}")
    for word in (">nan<", ">NaN<", ">None<", ">inf", "undefined", "$content", "var(--)"):
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
    expect(found["plots"] > 0 and found["empty"] == 0, f"{found['empty']} of {found['plots']} plots are empty")
    expect(found["cuts"] == 0, f"texts are cut off in {found['cuts']} plots: {found['cut']}")
    expect(found["requests"] == 0, f"{found['requests']} requests")


def dark(light: dict, found: dict) -> None:
    looks(found)
    expect(light["background"] != found["background"] and light["ink"] != found["ink"], "the colours are those of the light page")


def committed(folder: pathlib.Path) -> None:
    """The results in the repository make a report too."""
    target = folder / "committed.html"
    expect(cli.main(["--report", str(target)]) == 0, "the command failed")
    goals(target)
    looks(browser.probed(target, 1200))


def readme_figures() -> None:
    text = places.README.read_text(encoding="utf-8")
    expect(figures.BEGIN in text, "there are none")
    expect(figures.written(text, places.RESULTS) == text, "run `cargo xtask bench --figures --no-report`")


def unknown_names() -> None:
    run = pathlib.Path(cli.__file__).resolve().parents[1] / "run.py"
    for words in (["nothing"], ["select", "--peers", "nobody"], ["--scale", "huge"]):
        done = subprocess.run([sys.executable, str(run), *words], capture_output=True, text=True, env=dict(os.environ))
        expect(done.returncode != 0 and "no" in done.stderr, f"{words}: {done.returncode}: {done.stderr}")
