"""`python pictures.py`: the pictures of the README, of the built program: docs/console.png, a chart of TPC-H's orders in the console, and
docs/terminal.svg, the commands of the quickstart with what they print, line by line."""

import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/clients"))

from server import Process, Server, binaries, wait_until  # noqa: E402

STATEMENT = (
    "SELECT o_orderdate AS day, sum(o_totalprice) AS total\nFROM orders\n"
    "WHERE o_orderdate < DATE '1992-07-01'\nGROUP BY day ORDER BY day"
)
COLUMNS, ROW, SECONDS = 76, 19, 0.5
COMMAND, OUTPUT = "#86efac", "#d3dcd7"


class Demo(Process):
    """`bowshot demo` at a small scale."""

    def __init__(self, folder):
        arguments = ["demo", "--scale", "0.1", "--data-dir", folder, "--flight", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        super().__init__(binaries() / "bowshot", arguments)


def console(to):
    with tempfile.TemporaryDirectory() as folder, Demo(folder) as demo, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 720}, color_scheme="light")
        page.set_default_timeout(60_000)
        page.goto(demo.ports["http"].rstrip("/") + "/console")
        page.wait_for_selector(".editor textarea")
        page.fill(".editor textarea", STATEMENT)
        page.press(".editor textarea", "Escape")
        page.press(".editor textarea", "Control+Shift+Enter")
        page.wait_for_selector(".status:has-text('rows')")
        page.click(".views [role=tab]:text-is('Chart')")
        page.wait_for_selector(".chart polyline")
        wait_until(lambda: page.evaluate("document.querySelectorAll('[aria-busy]').length === 0"), "the page is settled")
        page.screenshot(path=str(to))
        browser.close()


def terminal(to):
    """The quickstart of the README as it runs; what `serve` prints is from there, with its fixed ports."""
    block = re.search(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "data").mkdir()
        pathlib.Path(folder, "data/orders.csv").write_text("id,city,total\n1,Kyoto,9.5\n2,Bergen,3\n3,Kyoto,4\n")
        with Server(pathlib.Path(folder, "data")) as server:
            environment = {**os.environ, "PATH": f"{binaries()}:{os.environ['PATH']}", "BOWSHOT_URI": server.flight}
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                if command.startswith("bowshot check"):
                    continue
                if not command.startswith("bowshot serve"):
                    run = command.replace("http://127.0.0.1:8080", server.http).replace("curl ", "curl -sS ")
                    shown = subprocess.run(["bash", "-c", run], cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
                lines += [(COMMAND, f"$ {command}"), *((OUTPUT, line) for line in shown.splitlines() if line)]
    lines = [(colour, line[at : at + COLUMNS]) for colour, line in lines for at in range(0, len(line), COLUMNS)]
    width, height = 8 * COLUMNS + 28, ROW * len(lines) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="monospace" font-size="13">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#101512"/>',
    ]
    for number, (colour, line) in enumerate(lines):
        # Viewers without animation show all lines.
        hidden = f'<set attributeName="opacity" to="0" begin="0s" dur="{number * SECONDS}s"/>' if number else ""
        parts.append(f'<text x="14" y="{ROW * number + 24}" fill="{colour}">{html.escape(line).replace(" ", "&#160;")}{hidden}</text>')
    to.write_text("\n".join([*parts, "</svg>", ""]))


if __name__ == "__main__":
    console(ROOT / "docs/console.png")
    terminal(ROOT / "docs/terminal.svg")
