"""What large results cost in the console: `python measure.py [--rows 10000000] [--columns 20] [--turns 5]`.

Prints seconds from the key until the first rows are seen, and the memory of the page's process, after the first screen and after
200 jumps through all rows (proportional set size; the process of a new tab is taken off). Needs the programs of a build, as the tests
do, and Chromium.
"""

import argparse
import os
import pathlib
import random
import shutil
import statistics
import sys
import time

from playwright.sync_api import sync_playwright

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "clients"))

from server import Server  # noqa: E402


def memory(session):
    """Bytes of the largest process of a page."""
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = []
    for process in found:
        if process["type"] == "renderer":
            lines = pathlib.Path(f"/proc/{process['id']}/smaps_rollup").read_text().splitlines()
            sizes += [int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")]
    return max(sizes)


def turn(browser, address, rows, columns):
    page = browser.new_page(viewport={"width": 1360, "height": 850})
    page.set_default_timeout(120_000)
    session = browser.new_browser_cdp_session()
    page.goto(address + "/console")
    page.wait_for_selector(".editor textarea")
    before = memory(session)
    names = ", ".join(f"value * {number + 1} AS c{number}" for number in range(columns))
    page.fill(".editor textarea", f"SELECT {names} FROM generate_series(1, {rows}) AS s(value)")
    page.press(".editor textarea", "Escape")
    began = time.perf_counter()
    page.press(".editor textarea", "Control+Enter")
    page.wait_for_selector("#cell-0-0:not(:text-is('…'))")
    first = time.perf_counter() - began
    page.wait_for_selector(f".status:has-text('{rows:,} rows')")
    whole = time.perf_counter() - began
    shown = memory(session) - before
    dice = random.Random(1)
    for _ in range(200):
        page.evaluate(f"const bar = document.querySelector('.grid-bar'); bar.scrollTop = bar.scrollHeight * {dice.random():.4f}")
        page.wait_for_timeout(20)
    scrolled = memory(session) - before
    page.close()
    return first, whole, shown, scrolled


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {"rows": 10_000_000, "columns": 20, "turns": 5}.items():
        arguments.add_argument(f"--{name}", type=int, default=value)
    chosen = arguments.parse_args()
    program = shutil.which("chromium") or os.environ["CHROMIUM"]
    with Server() as server, sync_playwright() as playwright:
        found = []
        for _ in range(chosen.turns):
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
            found.append(turn(browser, server.http, chosen.rows, chosen.columns))
            browser.close()
    first, whole, shown, scrolled = (statistics.median(column) for column in zip(*found, strict=True))
    print(
        f"{chosen.rows:,} rows x {chosen.columns} columns: first rows {first:.2f} s, all made {whole:.2f} s, "
        f"memory {shown / 1e6:.0f} MB, after 200 jumps {scrolled / 1e6:.0f} MB (medians of {chosen.turns})"
    )


if __name__ == "__main__":
    main()
