"""What the query page tells at a glance: tables, charts, progress, and that data is text wherever it is shown."""

import re

import pytest

LONG = "SELECT count(*) FROM generate_series(1, 3000000) AS a(x), generate_series(1, 3000000) AS b(y) WHERE x * y % 7 = 3"
DAYS = (
    "SELECT DATE '2026-01-01' + CAST(value AS INT) AS day, CAST(value * 0.5 + 1234 AS DECIMAL(15, 2)) AS amount\n"
    "FROM generate_series(1, 60) AS s(value) ORDER BY value"
)
HOSTILE = "<img src=x onerror=alert(1)>"


def choose(console, **choices):
    for label, value in choices.items():
        console.page.get_by_label(label, exact=True).select_option(value)
    console.settled()


def chosen(console, label):
    return console.page.get_by_label(label, exact=True).input_value()


def labels(console):
    """The texts on the axes of the chart."""
    return console.page.locator(".chart > text").all_text_contents()


def test_the_first_visit_shows_the_tables(console):
    page = console.open()
    page.wait_for_selector(".start button:has-text('people')")
    assert page.input_value(".editor textarea") == ""
    assert page.locator(".start button:has-text('information_schema')").count() == 0
    console.look("start")
    page.click(".start button:has-text('people')")
    page.wait_for_selector(".status:has-text('2 rows in')")
    assert page.input_value(".editor textarea") == "SELECT * FROM people LIMIT 100"
    assert page.locator(".start").count() == 0


def test_the_schema_stands_beside_the_editor(console):
    page = console.open()
    tree = page.locator("nav.schema")
    if console.size == "narrow":
        assert tree.is_hidden()
        page.click(".tools button:text-is('Tables')")
    people = tree.locator("[data-name=people]")
    people.wait_for()
    assert tree.locator("summary").first.inner_text() == "bowshot"
    # Columns are there when their table is opened, with their types.
    assert tree.locator(".columns li").count() == 0
    tree.get_by_label("Columns of people").click()
    columns = [text.split() for text in tree.locator(".columns li:visible").all_inner_texts()]
    assert [name for name, *_ in columns] == ["id", "name"]
    assert columns[0][1].lower() == "bigint" and len(columns[1]) > 1, columns
    page.fill(".editor textarea", "SELECT ")
    tree.locator(".columns button:has-text('name')").click()
    page.keyboard.type(" FROM ")
    page.keyboard.press("Escape")
    people.click()
    assert page.input_value(".editor textarea") == "SELECT name FROM people"
    # A new table is there without a reload, whatever its name is.
    console.start(f'CREATE OR REPLACE TABLE "{HOSTILE}" ("<b>1</b>" BIGINT)')
    hostile = tree.locator("button[data-name^='<img']")
    hostile.wait_for()
    assert hostile.inner_text() == HOSTILE
    page.fill(".editor textarea", "")
    hostile.click()
    assert page.input_value(".editor textarea") == f'"{HOSTILE}"'
    assert page.locator("nav.schema img").count() == 0
    console.look("schema")
    tree.locator("input[type=search]").fill("no such table")
    tree.locator("text=No table matches").wait_for()
    tree.locator("input[type=search]").fill("")
    console.start(f'DROP TABLE "{HOSTILE}"')
    hostile.wait_for(state="detached")


def test_what_comes_from_data_is_text(console):
    page = console.open()
    console.run(f"SELECT '{HOSTILE}' AS \"<b>name</b>\", 2 AS \"<i>n</i>\"", "1 row in")
    assert console.cell(0) == HOSTILE
    for view in ("Chart", "Profile", "Plan", "Copy as"):
        console.view(view)
        console.settled()
        if view == "Chart":
            page.wait_for_selector(".chart rect title", state="attached")
            assert page.locator(".chart title").first.text_content() == f"{HOSTILE}: 2"
        assert page.locator(".results img, .results .view b:text-is('name'), .results .view i").count() == 0
    page.click("button:has-text('History')")
    assert page.locator(".past code").first.inner_text().startswith("SELECT '<img")
    assert page.locator(".past img").count() == 0


def test_a_chart_of_days_and_money(console):
    page = console.open()
    console.run(DAYS, "60 rows")
    console.view("Chart")
    page.wait_for_selector(".chart polyline")
    assert [chosen(console, label) for label in ("Kind", "x", "Measure", "y")] == ["line", "day", "sum", "amount"]
    assert page.inner_text(".answer .note") == "all 60 values of day"
    assert page.locator(".chart title").first.text_content() == "2026-01-02: 1,234.50"
    days = [text for text in labels(console) if re.fullmatch(r"2026-\d\d(-\d\d)?", text)]
    assert len(days) >= 2, labels(console)
    assert any(re.fullmatch(r"1,2\d\d", text) for text in labels(console)), labels(console)
    # The chart has the whole width of its card.
    widths = page.evaluate("['.chart', '.answer'].map(name => document.querySelector(name).getBoundingClientRect().width)")
    assert widths[0] >= widths[1] - 2, widths
    choose(console, Kind="scatter")
    page.wait_for_selector(".chart circle")
    assert page.inner_text(".answer .note") == "all 60 rows with values"
    assert page.locator(".chart title").first.text_content().startswith("2026-")
    choose(console, Kind="histogram", x="day")
    page.wait_for_selector(".chart rect")
    assert any(text.startswith("2026-") for text in labels(console))
    console.look("days")


def test_a_chart_says_how_much_it_shows(console):
    page = console.open()
    console.run("SELECT value AS n, value * 2 AS twice FROM generate_series(1, 3000) AS s(value)", "3,000 rows")
    console.view("Chart")
    page.wait_for_selector(".chart polyline")
    assert page.inner_text(".answer .note") == "first 2,000 of 3,000 values of n"
    console.run("SELECT 'a' AS name", "1 row in")
    console.view("Chart")
    choose(console, Kind="scatter")
    page.wait_for_selector(".note:has-text('needs a column of numbers')")


def test_no_answer_stands_under_another_label(console):
    page = console.open()
    console.run(DAYS, "60 rows")
    console.view("Chart")
    page.wait_for_selector(".chart polyline")
    with console.first_answer_late("**/v1/queries"):
        page.get_by_label("Measure", exact=True).select_option("max")
        page.wait_for_selector(".answer .waiting .spinner")
        assert page.locator(".chart").count() == 0
    page.wait_for_selector(".chart[aria-label^='max of amount']")
    with console.first_answer_late("**/v1/queries"):
        console.view("Profile")
        page.wait_for_selector(".answer .waiting:has-text('running for')")
    page.wait_for_selector("td:text-is('amount')")


def test_progress_is_honest(console):
    page = console.open()
    console.start(LONG, "Control+Enter")
    page.wait_for_selector(".status:has-text('running for 1 s')")
    # The plan knows that there will be one row; it is not there yet.
    assert "row" not in page.inner_text(".status")
    assert page.locator(".output .spinner").count() == 1
    assert page.inner_text(".output").endswith("waiting for the first row")
    page.click("button.cancel")
    page.wait_for_selector("[role=alert]:has-text('cancelled')")
    assert page.locator(".output .spinner").count() == 0


def test_a_plan_is_a_tree_that_folds(console):
    page = console.open()
    console.run("SELECT name, count(*) FROM people GROUP BY name", "2 rows")
    console.view("Plan")
    page.click("button:has-text('Explain analyze')")
    page.wait_for_selector(".plan meter")
    assert re.search(r"\d (ns|µs|ms|s)|\d(ns|µs|ms|s)", " ".join(page.locator(".plan .tag").all_inner_texts()))
    below = page.locator(".plan details > ul").first
    assert below.is_visible()
    page.locator(".plan summary.step").first.click()
    assert below.is_hidden()


@pytest.mark.parametrize("width", [390, 360])
def test_a_phone_has_a_small_header(console, width):
    console.page.set_viewport_size({"width": width, "height": 780})
    page = console.open()
    assert page.locator("header.top").bounding_box()["height"] <= 48
    for name in ("Metrics", "Query"):
        console.go(name)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    console.look(f"phone-{width}")


def test_pages_use_the_usual_words(console):
    page = console.open()
    page.click("button:text-is('Theme')")
    expected = {"Queries": ["Refresh", "Pause"], "Caches": ["Refresh", "Cached results", "Predicted joins"], "Metrics": ["Pause"]}
    for name, words in expected.items():
        console.go(name)
        console.settled()
        text = page.inner_text("main")
        for word in words:
            assert word in text, (name, word)
    # A metric is a chart with axes.
    page.wait_for_selector(".metric .chart text:has-text(':')")
    assert page.locator(".metric .chart").first.locator("text").count() >= 3
