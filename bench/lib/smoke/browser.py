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
  return box.right > innerWidth + 1 && !found.closest('.scroll') && box.width > 0;
});
const drawn = [...document.querySelectorAll('figure svg')].map(found => found.getBoundingClientRect());
parent.postMessage(JSON.stringify({
  width: document.documentElement.scrollWidth, window: innerWidth, wide: wide.slice(0, 3).map(found => found.outerHTML.slice(0, 120)),
  curves: drawn.length, empty: drawn.filter(box => box.width < 100 || box.height < 30).length,
  requests: performance.getEntriesByType('resource').length,
}), '*');
</script></body>"""
# A window may not become as narrow as a phone; a frame does.
FRAME = """<pre id="relayed"></pre><script>
addEventListener('message', event => { document.getElementById('relayed').textContent = event.data; });
</script><iframe src="probed.html" style="width:WIDTHpx;height:4000px;border:0"></iframe>"""


def probe(report: pathlib.Path, width: int) -> dict:
    """What the page looks like in a window of that width."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        raise RuntimeError("there is no Chromium: `apt-get install chromium`")
    page = report.read_text(encoding="utf-8").replace("</body>", PROBE)
    report.with_name("probed.html").write_text(page, encoding="utf-8")
    frame = report.with_name("frame.html")
    frame.write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    command = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
        f"--user-data-dir={report.parent / 'profile'}", "--window-size=1400,2000", "--virtual-time-budget=5000", "--dump-dom",
        f"file://{frame}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    found = re.search(r'<pre id="relayed">(.+?)</pre>', done.stdout, re.DOTALL)
    if not found:
        raise RuntimeError(f"the page did not answer the probe: {done.stderr[-1000:]}")
    return json.loads(html.unescape(found[1]))
