"""The built program with two users, a browser, and an eye on everything that the page asks for and complains about."""

import contextlib
import os
import pathlib
import shutil
import sys

import pytest
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/clients"))

from server import BUSY_FACTOR, Server, hash_password, wait_until  # noqa: E402

PASSWORD = "a password"
SIZES = {"wide": (1360, 850), "narrow": (640, 900)}


def pytest_addoption(parser):
    parser.addoption("--axe", default=None, help="the script of axe-core")
    parser.addoption("--shots", default=None, help="a folder for screenshots")
    parser.addoption("--browser-program", default=shutil.which("chromium"), help="the browser")
    parser.addoption("--address", default=None, help="a server that runs already, with the users of this file")


@pytest.fixture(scope="session")
def address(request, tmp_path_factory):
    """Where the console is."""
    if request.config.getoption("--address"):
        yield request.config.getoption("--address")
        return
    folder = tmp_path_factory.mktemp("console")
    entry = '[[users]]\nname = "{}"\npassword_hash = "' + hash_password(PASSWORD) + '"\n'
    (folder / "users.toml").write_text(entry.format("ada") + entry.format("bob"))
    (folder / "people.csv").write_text("id,name\n1,Ada\n2,Bob\n")
    # Results of pages that were closed are not waited for as long as usual.
    arguments = ["--users-file", folder / "users.toml", "--set", "limits.result_timeout=20s", "--set", "join_cache.enabled=true"]
    with Server(folder / "people.csv", arguments=arguments, data=folder / "store") as server:
        yield server.http
        server.wait_idle(40)


@pytest.fixture(scope="session")
def guarded(tmp_path_factory):
    """Another server, with rules: bob may read people, and not pay."""
    folder = tmp_path_factory.mktemp("guarded")
    entry = '[[users]]\nname = "{}"\nadmin = {}\npassword_hash = "' + hash_password(PASSWORD) + '"\n'
    (folder / "users.toml").write_text(entry.format("ada", "true") + entry.format("bob", "false"))
    (folder / "files").mkdir()
    (folder / "files/people.csv").write_text("id,name\n1,Ada\n2,Bob\n")
    (folder / "files/pay.csv").write_text("id,amount\n1,100\n")
    with Server(folder / "files", arguments=["--users-file", folder / "users.toml"], data=folder / "store") as server:
        yield server.http


@pytest.fixture(scope="session")
def browser(request):
    program = request.config.getoption("--browser-program")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe(request):
    """The script that looks for what keeps people out."""
    path = request.config.getoption("--axe")
    assert path or "CI" not in os.environ, "continuous integration needs --axe"
    return pathlib.Path(path).read_text() if path else None


@pytest.fixture(params=SIZES)
def console(request, browser, address, axe):
    """A page of the console at one size; it must ask nobody else, and complain about nothing."""
    width, height = SIZES[request.param]
    context = browser.new_context(
        viewport={"width": width, "height": height}, accept_downloads=True, color_scheme="dark", reduced_motion="reduce"
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    console = Console(context, address, axe, request.config.getoption("--shots"), request.param)
    yield console
    context.close()
    assert console.complaints == []
    strangers = [url for url in console.asked if not url.startswith((address + "/", "blob:" + address))]
    assert strangers == []


class Console:
    def __init__(self, context, address, axe, shots, size):
        self.context, self.address, self.axe, self.shots, self.size = context, address, axe, shots, size
        self.asked, self.complaints = [], []
        self.page = context.new_page()
        self.page.set_default_timeout(20_000 * BUSY_FACTOR)
        # Statuses from 400 on are answers that a test wants; the browser complains about them by itself.
        expected = "Failed to load resource: the server responded with a status of 4"
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text)
                if message.type in ("error", "warning") and not message.text.startswith(expected)
                else None
            ),
        )

    def open(self, user="ada", password=PASSWORD):
        self.page.goto(self.address + "/console")
        if user:
            self.log_in(user, password)
            self.page.wait_for_selector(".editor textarea")
        return self.page

    def log_in(self, user, password):
        self.page.fill("input[name=user]", user)
        self.page.fill("input[name=password]", password)
        self.page.click("button:has-text('Log in')")

    def go(self, name):
        self.page.click(f"#menu a:has-text('{name}')")
        self.page.wait_for_selector(f"h1:text-is('{name}')", state="attached")

    def start(self, sql, keys="Control+Shift+Enter"):
        self.page.fill(".editor textarea", sql)
        self.page.press(".editor textarea", "Escape")
        self.page.press(".editor textarea", keys)

    def run(self, sql, until):
        self.start(sql)
        self.page.wait_for_selector(f".status:has-text('{until}')")

    def view(self, name):
        self.page.click(f".views [role=tab]:text-is('{name}')")

    def settled(self):
        """Waits for all that the page has asked for."""
        self.until("document.querySelectorAll('[aria-busy]').length === 0")

    def until(self, expression):
        """Waits for something to be true on the page. The page's policy lets nobody evaluate texts there, so it is asked."""
        wait_until(lambda: self.page.evaluate(expression), expression)

    @contextlib.contextmanager
    def first_answer_late(self, path):
        """The first request of a block to a path is answered at the end of the block."""
        held = []

        def hold(route):
            if held:
                route.continue_()
            else:
                held.append(route)

        self.page.route(path, hold)
        yield
        held[0].continue_()
        self.page.unroute(path, hold)
        # Long enough that an answer which the page wrongly shows is there.
        self.page.wait_for_timeout(300)
        self.settled()

    def cell(self, row, column=0):
        return self.page.wait_for_selector(f"#cell-{row}-{column}:not(:text-is('…'))").inner_text()

    def look(self, name):
        """A picture for people, and a check that nobody is kept out, in the dark and in the light."""
        self.settled()
        for theme in ("dark", "light"):
            self.page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
            if self.shots:
                self.page.screenshot(path=f"{self.shots}/{name}-{self.size}-{theme}.png")
            if self.axe:
                self.page.evaluate(f"() => {{ {self.axe} }}")
                found = self.page.evaluate("async () => (await axe.run()).violations")
                bad = [
                    (one["id"], [node["html"][:200] for node in one["nodes"]][:3])
                    for one in found
                    if one["impact"] in ("serious", "critical")
                ]
                assert bad == [], f"{name}, {theme}"
