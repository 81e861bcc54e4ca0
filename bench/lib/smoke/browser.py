"""What Chromium makes of the report: a page in a window of some size, asked by a script that only the test adds."""

import html
import json
import pathlib
import re
import shutil
import subprocess

TIMEOUT_S = 300
PROBE = """<script>
const wide = [...document.querySelectorAll('body *')].filter(found => {
  const box = found.getBoundingClientRect();
  return box.right > innerWidth + 1 && !found.closest('.scroll') && box.width > 0 && getComputedStyle(found).display !== 'none';
});
const plots = [...document.querySelectorAll('figure svg')].map(found => found.getBoundingClientRect());
const cut = [...document.querySelectorAll('figure svg')].filter(drawing => {
  const frame = drawing.getBoundingClientRect();
  return [...drawing.querySelectorAll('text')].some(text => {
    const box = text.getBoundingClientRect();
    return box.width > 0 && (box.left < frame.left - 2 || box.right > frame.right + 2);
  });
});
const found = {
  width: document.documentElement.scrollWidth, window: innerWidth, wide: wide.slice(0, 3).map(found => found.outerHTML.slice(0, 120)),
  plots: plots.length, empty: plots.filter(box => box.width < 100 || box.height < 30).length,
  cut: cut.slice(0, 3).map(found => found.closest('figure').querySelector('strong').textContent), cuts: cut.length,
  background: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
  requests: performance.getEntriesByType('resource').length,
};
document.body.insertAdjacentHTML('beforeend', '<pre id="probe"></pre>');
document.getElementById('probe').textContent = JSON.stringify(found);
</script></body>"""


def program() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        raise RuntimeError("there is no Chromium: `apt-get install chromium`")
    return found


def run(folder: pathlib.Path, *words: str) -> str:
    command = [
        program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
        f"--user-data-dir={folder / 'profile'}", *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise RuntimeError(f"Chromium failed: {done.stderr[-1000:]}")
    return done.stdout


def probed(report: pathlib.Path, width: int, dark: bool = False) -> dict:
    """What the page looks like in a window of that width."""
    page = report.with_name("probed.html")
    page.write_text(report.read_text(encoding="utf-8").replace("</body>", PROBE), encoding="utf-8")
    # A window may not become as narrow as a phone; a frame does.
    frame = report.with_name("frame.html")
    style = f"width:{width}px;height:4000px;border:0"
    frame.write_text(f'<iframe src="probed.html" style="{style}"></iframe>{RELAY}', encoding="utf-8")
    words = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
    shown = run(
        report.parent, *words, "--window-size=1400,2000", "--allow-file-access-from-files", "--virtual-time-budget=5000",
        "--dump-dom", f"file://{frame}",
    )
    found = re.search(r'<pre id="relayed">(.*?)</pre>', shown, re.DOTALL)
    if not found:
        raise RuntimeError("the page did not answer the probe")
    return json.loads(html.unescape(found[1]))


RELAY = """<pre id="relayed"></pre><script>
const frame = document.querySelector('iframe');
frame.addEventListener('load', () => {
  document.getElementById('relayed').textContent = frame.contentDocument.getElementById('probe').textContent;
});
</script>"""


def printed(report: pathlib.Path) -> int:
    """The page as PDF; how many sheets it has."""
    target = report.with_suffix(".pdf")
    run(report.parent, f"--print-to-pdf={target}", "--no-pdf-header-footer", f"file://{report}")
    return len(re.findall(rb"/Type\s*/Page[^s]", target.read_bytes()))


def shot(report: pathlib.Path, width: int) -> int:
    """A screenshot; the bytes of its file, which are few when it is blank."""
    target = report.with_suffix(".png")
    run(report.parent, f"--window-size={width},2000", f"--screenshot={target}", f"file://{report}")
    return target.stat().st_size
