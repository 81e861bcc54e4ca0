"""Every page of the console, as somebody would use it."""

import json
import re
import time

import pytest

MANY = "SELECT value AS n, value * 2 AS twice FROM generate_series(1, 10000000) AS s(value) ORDER BY n"
LONG = "SELECT count(*) FROM generate_series(1, 3000000) AS a(x), generate_series(1, 3000000) AS b(y) WHERE x * y % 7 = 3"


def test_who_may(console):
    page = console.open(user=None)
    console.look("login")
    console.log_in("ada", "wrong")
    assert "unauthenticated" in page.inner_text("[role=alert]")
    console.log_in("ada", "a password")
    page.wait_for_selector(".editor")
    assert page.inner_text(".user") == "ada"
    # Nothing that the browser keeps tells who may.
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert "a password" not in kept and "Basic" not in kept and "YWRh" not in kept
    page.click("button:has-text('Log out')")
    page.wait_for_selector("form")
    console.log_in("bob", "a password")
    page.wait_for_selector(".editor")
    page.reload()
    page.wait_for_selector("form")


def test_ten_million_rows(console):
    page = console.open()
    console.run(MANY, "10,000,000 rows")
    assert console.cell(0) == "1"
    before = len(console.asked)
    page.focus("[role=grid]")
    page.keyboard.press("Control+End")
    assert console.cell(9_999_999) == "10000000"
    assert console.cell(9_999_998, 1) == "19999998"
    # The scroll bar leads to the middle, the wheel a few rows further.
    page.evaluate("const bar = document.querySelector('.grid-bar'); bar.scrollTop = bar.scrollHeight / 2")
    console.until("/^rows (4,9|5,0)/.test(document.querySelector('.grid-place').textContent)")
    page.hover(".grid-body")
    page.mouse.wheel(0, 240)
    first = page.wait_for_selector("[role=gridcell]:not(:text-is('…'))")
    row = int(first.get_attribute("id").split("-")[1])
    assert first.inner_text() == str(row + 1)
    asked = [url for url in console.asked[before:] if "/rows?" in url]
    assert 2 <= len(asked) <= 12, asked
    assert all("limit=200&" in url for url in asked)
    console.look("rows")


def test_the_editor_helps(console):
    page = console.open()
    console.until("performance.getEntriesByType('resource').filter(e => e.name.includes('/v1/sql')).length >= 3")
    area = page.locator(".editor textarea")
    area.fill("")
    area.press_sequentially("SELECT na")
    area.fill("SELECT p. FROM people AS p")
    area.press("Control+Home")
    for _ in range(9):
        area.press("ArrowRight")
    area.press("Control+ ")
    options = page.locator("[role=option]")
    options.first.wait_for()
    assert [text.split("\n")[0] for text in options.all_inner_texts()] == ["id", "name"]
    area.press("ArrowDown")
    area.press("Enter")
    assert area.input_value() == "SELECT p.name FROM people AS p"
    # Of several statements that at the caret runs.
    area.fill("SELECT 'ä;' AS a;\nSELECT 2 AS b, 3 AS c")
    area.press("Control+End")
    area.press("Control+Enter")
    page.wait_for_selector(".status:has-text('1 row in')")
    assert console.cell(0, 1) == "3"
    # A mistake is marked where it stands.
    area.fill("SELECT 1;\nSELECT 'ä' +* FROM people")
    area.press("Control+Shift+Enter")
    page.click("button:has-text('Go to line 2')")
    assert page.locator(".colours .wrong").count() == 1
    assert area.evaluate("area => area.selectionStart") > 10
    console.look("mistake")
    # A tab has a session: what is set stays.
    console.run("CREATE TEMPORARY TABLE mine AS SELECT 7 AS seven", "row")
    console.run("SELECT seven FROM mine", "1 row in")
    assert console.cell(0) == "7"
    page.click("button:has-text('New tab')")
    page.fill(".editor textarea", "SELECT seven FROM mine")
    page.press(".editor textarea", "Control+Shift+Enter")
    page.wait_for_selector("[role=alert]:has-text('not found')")
    page.click("button:has-text('History')")
    page.click(".past button:has-text('CREATE TEMPORARY TABLE')")
    assert page.input_value(".editor textarea").startswith("CREATE TEMPORARY TABLE")


def test_results_are_looked_at_in_every_way(console, tmp_path):
    page = console.open()
    sql = (
        "SELECT value AS n, value % 5 AS k, value * 0.5 AS x, 'v' || value % 5 AS name,\n"
        "TIMESTAMP '2026-01-01 00:00:00' + value * INTERVAL '1 hour' AS t, CAST(value AS DECIMAL(30, 3)) AS d,\n"
        "CASE WHEN value % 2 = 0 THEN value END AS half, [value, NULL] AS l, value = 1 AS b, DATE '2024-02-29' AS day,\n"
        "arrow_cast(18446744073709551615, 'UInt64') AS u\n"
        "FROM generate_series(1, 1000) AS s(value) ORDER BY value"
    )
    console.run(sql, "1,000 rows")
    assert [console.cell(0, column) for column in range(11)] == [
        "1", "1", "0.5", "v1", "2026-01-01 01:00:00", "1.000", "null", "[1, null]", "true", "2024-02-29",
        "18446744073709551615",
    ]  # fmt: skip
    console.view("Chart")
    for kind in ("bar", "line", "scatter", "histogram"):
        page.get_by_label("Kind", exact=True).select_option(kind)
        console.settled()
        page.wait_for_selector(".chart .mark, .chart .curve", state="attached")
        page.wait_for_selector("pre:has-text('GROUP BY')", state="attached")
    page.get_by_label("x", exact=True).select_option("n")
    console.settled()
    page.wait_for_selector(".chart .mark", state="attached")
    assert page.locator(".chart rect.mark").count() == 30
    for label, value in {"Kind": "bar", "x": "name", "Measure": "sum", "y": "n"}.items():
        page.get_by_label(label, exact=True).select_option(value)
    console.settled()
    page.wait_for_selector(".chart title:text-is('v0: 100,500')", state="attached")
    console.look("chart")
    console.view("Profile")
    page.wait_for_selector("td:text-is('half')")
    console.look("profile")
    console.view("Plan")
    page.click("button:has-text('Explain analyze')")
    page.wait_for_selector(".plan .tag:has-text('rows')")
    assert page.locator(".plan ul").count() >= 1
    console.look("plan")
    console.view("Copy as")
    for language, sign in {
        "Python": ".arrow()", "pandas": ".df()", "Polars": ".pl()", "JDBC": "jdbc:arrow-flight-sql://", "curl": "/v1/sql?format=csv",
    }.items():  # fmt: skip
        page.get_by_label("Language", exact=True).select_option(language)
        text = page.inner_text(".code")
        assert sign in text and "generate_series" in text and "a password" not in text
    page.click("button:text-is('Copy')")
    console.until("navigator.clipboard.readText().then(text => text.includes('curl'))")
    console.look("copy-as")
    console.view("Export")
    for label, start in {"CSV": b"n,k,x,name", "Parquet": b"PAR1", "Arrow": b"ARROW1", "JSON lines": b'{"n":'}.items():
        with page.expect_download() as download:
            page.click(f".choices-bar button:text-is('{label}')")
        path = tmp_path / label
        download.value.save_as(path)
        assert path.read_bytes().replace(b'"n","k","x","name"', b"n,k,x,name").replace(b'{"n": ', b'{"n":').startswith(start)
    console.look("export")


def test_late_answers_replace_no_newer_ones(console):
    page = console.open()
    console.run("SELECT value AS n, 'v' || value % 5 AS name FROM generate_series(1, 1000) AS s(value)", "1,000 rows")
    with console.first_answer_late("**/v1/queries"):
        console.view("Chart")
        page.get_by_label("Measure", exact=True).select_option("count")
        page.wait_for_selector(".chart title:text-is('v0: 200')", state="attached")
    assert page.locator(".chart rect.mark").count() == 5
    with console.first_answer_late("**/v1/queries"):
        console.view("Plan")
        page.click("button:has-text('Explain analyze')")
        page.wait_for_selector(".plan .tag:has-text('rows')")
    assert page.locator(".plan .tag:has-text('rows')").count() >= 1
    # What runs is what the editor had when the key was pressed, and no result of before stands meanwhile.
    with console.first_answer_late("**/v1/queries/*"):
        console.run("SELECT 1 AS n", "running")
        assert page.locator(".views").count() == 0
        page.fill(".editor textarea", "SELECT 2 AS n")
    page.wait_for_selector(".status:has-text('1 row in')")
    assert console.cell(0) == "1"
    # A filter holds for what comes after it.
    with console.first_answer_late("**/v1/sql?*"):
        console.go("Catalog")
        page.fill("input[type=search]", "no such table")
    assert page.locator("[data-name=people]").count() == 0
    page.fill("input[type=search]", "")
    page.wait_for_selector("[data-name=people]")


def test_catalog(console):
    page = console.open()
    table = f"stock_{console.size}"
    # A script is one transaction, and a transaction is one version.
    console.run(f"CREATE OR REPLACE TABLE {table} (id BIGINT PRIMARY KEY, note TEXT)", "changed")
    console.run(f"INSERT INTO {table} VALUES (1, 'a')", "1 row changed")
    console.run(f"UPDATE {table} SET note = 'b'", "1 row changed")
    console.go("Catalog")
    page.fill("input[type=search]", "stock")
    page.click(f"[data-name={table}]")
    console.settled()
    page.wait_for_selector("td:text-is('b')")
    assert page.locator("td:text-is('PRIMARY KEY')").count() == 0
    assert page.locator("a:has-text('Show rows')").count() >= 2
    console.look("catalog")
    # The server may have made a version of its own meanwhile: it optimizes tables.
    page.click("tr:has(td:text-is('INSERT')) a:has-text('Show rows')")
    page.press(".editor textarea", "Control+Enter")
    page.wait_for_selector("#cell-0-1:text-is('a')")


def test_a_denied_table_is_absent(browser, guarded, console):
    def opened(context, user):
        other = type(console)(context, guarded, None, None, "wide")
        other.open(user)
        return other

    def in_catalog(other, name):
        other.go("Catalog")
        other.page.wait_for_selector("[data-name=people]")
        other.settled()
        return other.page.locator(f"[data-name={name}]").count()

    with browser.new_context() as context:
        ada = opened(context, "ada")
        ada.start("GRANT SELECT ON people TO bob", "Control+Enter")
        ada.until("document.querySelector('.status').textContent.length > 0 && !document.querySelector('.status progress')")
        assert in_catalog(ada, "pay") == 1
        ada.go("Access")
        ada.page.wait_for_selector("td:text-is('bob')")
        assert ada.complaints == []
    with browser.new_context() as context:
        bob = opened(context, "bob")
        assert in_catalog(bob, "pay") == 0
        bob.go("Query")
        bob.run("SELECT * FROM people", "2 rows")
        bob.start("SELECT * FROM pay")
        bob.page.wait_for_selector("[role=alert]:has-text('not found')")
        assert bob.complaints == []


def test_queries_are_seen_and_ended(console, browser, address):
    page = console.open()
    page.fill(".editor textarea", LONG)
    page.press(".editor textarea", "Control+Enter")
    page.wait_for_selector(".status progress")
    console.go("Queries")
    running = page.locator("[aria-label='Running statements'] tr:has-text('3000000')")
    running.first.wait_for()
    console.look("queries")
    # Whoever did not start it does not see it.
    with browser.new_context() as other:
        stranger = type(console)(other, address, None, None, "wide")
        stranger.open("bob")
        stranger.go("Queries")
        stranger.settled()
        assert stranger.page.locator("td:has-text('3000000')").count() == 0
        assert stranger.complaints == []
    # Longer than the page waits between two looks: what is pressed stays until it is released.
    running.first.locator("button:has-text('Kill')").click(delay=2500)
    running.first.wait_for(state="detached")
    console.go("Query")
    page.wait_for_selector("[role=alert]:has-text('cancelled')")
    # Cancelled by the one who looks at it.
    page.press(".editor textarea", "Control+Enter")
    page.wait_for_selector(".status progress")
    time.sleep(0.3)
    page.click("button.cancel")
    page.wait_for_selector("[role=alert]:has-text('cancelled')")


@pytest.mark.parametrize("name", ["Caches", "Views", "Sources", "Access", "Nodes", "Settings", "Metrics"])
def test_what_the_server_keeps(console, name):
    page = console.open()
    console.go(name)
    console.settled()
    if name == "Settings":
        page.fill("input[type=search]", "time_zone")
        assert "time_zone" in page.inner_text("tbody tr:visible >> nth=0")
    if name == "Sources":
        page.wait_for_selector("td:text-is('people')")
    if name in ("Access", "Nodes"):
        title = {"Access": "Policies and masks", "Nodes": "Distributed stages"}[name]
        page.wait_for_selector(f"section.card:has-text('{title}') td:text-is('no rows')")
    if name == "Metrics":
        page.wait_for_selector(".metric:has-text('sessions')")
        console.until("document.querySelector('.metric .chart polyline').getAttribute('points').includes(' ')")
    console.look(name.lower())


def test_the_keyboard_is_enough(console):
    page = console.open()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    console.start("SELECT 1 AS a, 2 AS b UNION ALL SELECT 3, 4 ORDER BY 1", "Control+Enter")
    page.wait_for_selector(".status:has-text('2 rows')")
    console.cell(0)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "grid":
            break
    else:
        pytest.fail("the rows are out of reach")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".active:text-is('4')")
    page.keyboard.press("Control+c")
    console.until("navigator.clipboard.readText().then(text => text === '4')")
    grid = page.locator("[role=grid]")
    assert grid.get_attribute("aria-activedescendant") == "cell-1-1"
    assert grid.get_attribute("aria-rowcount") == "3"


def test_every_part_of_a_page_shows_its_statement(console):
    page = console.open()
    for name in ("Catalog", "Queries", "Caches", "Views", "Sources", "Access", "Nodes", "Settings"):
        console.go(name)
        for card in page.locator("section.card").all():
            sql = card.locator(".behind pre").text_content()
            assert re.match(r"(SELECT|SHOW|SUMMARIZE) ", sql), sql
    page.locator(".behind summary").first.click()
    page.locator(".behind a").first.click()
    assert json.dumps(page.input_value(".editor textarea")) == json.dumps("SHOW ALL")
