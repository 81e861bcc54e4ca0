"""What the lines of some scenarios must have beside a figure: nobody and nothing may silently be left out."""

from ..latencies import PERCENTILES
from ..scenarios import files, joins, latency, transactions, views


def expect(good: bool, wrong: str) -> None:
    if not good:
        raise AssertionError(wrong)


def expect_figures(where: str, figures: dict, names) -> None:
    lacking = [name for name in names if not figures.get(name, 0) > 0]
    expect(not lacking, f"{where} has no {lacking}")


def check(scenario: str, lines: list) -> None:
    """Raises `AssertionError` with what is wrong."""
    if scenario in CHECKS:
        CHECKS[scenario](lines)


def of_latency(lines: list) -> None:
    """Everybody has all percentiles and the queries per second; all clients are there, and those that can be are many."""
    for line in lines:
        expect("clients" in line["axes"], f"{line['case']}: it is not told how many clients there are")
        for label, figures in line["contenders"].items():
            expect_figures(f"{line['case']}: {label}", figures, (*PERCENTILES, "queries_per_second"))
    found = {line["axes"]["way"]: set(line["contenders"]) for line in lines}
    many = {
        f"threads in {language}": {one.label for one in latency.CONTENDERS if one.reader in kinds}
        for language, kinds in latency.THREADS.items()
    }
    everybody = {contender.label for contender in latency.CONTENDERS}
    expect(found == {"one client": everybody, **many, "load generator": set(latency.LOAD_MODES)}, f"contenders: {found}")


def of_memory(lines: list) -> None:
    """Server and clients over time, up to the peaks."""
    expect({line["axes"]["clients"] for line in lines} == {1, 2, 16}, "not every number of clients is there")
    for line in lines:
        several = ["all_clients_rss_over_time"] if line["axes"]["clients"] > 1 else []
        for label, figures in line["contenders"].items():
            for name in ["rss_over_time", "client_rss_over_time", *several]:
                sizes = [size for _, size in figures.get(name, [])]
                expect(len(sizes) > 1 and max(sizes) > 0, f"{line['case']}: {label}: {name}: {sizes}")


def of_joins(lines: list) -> None:
    """All cases, and a measured time of looking for joins where none can be used."""
    found = {line["axes"]["what"] for line in lines}
    vain = {"no hit", "no fit"}
    daily = {joins.FIRST_ROWS, joins.FIRST_GROUPS, "dashboard", "new dashboard", "dashboard again", "short queries"}
    expect(found == daily | vain, f"cases: {found}")
    for line in lines:
        if line["axes"]["what"] in vain:
            figures = line["contenders"][joins.ON]
            expect_figures(line["case"], figures, ["lookup_ms"])
            expect(len(figures["query_seconds"]) == 22, f"{line['case']}: {len(figures['query_seconds'])} queries")


def of_views(lines: list) -> None:
    """All cases, and dashboards that views answer."""
    found = {line["axes"]["what"]: line["contenders"] for line in lines}
    expect(set(found) == set(views.CASES), f"cases: {set(found)}")
    for what in (views.DASHBOARD, views.JOINS):
        expect_figures(what, found[what][views.ON], ["answered_from_views"])


def of_files(lines: list) -> None:
    """All cases, with the same contenders and equal answers; of the folder how long everything took."""
    found = {line["axes"]["what"]: line for line in lines}
    cases = {"one CSV file", "one file of JSON lines", files.MANY}
    expect(set(found) == {*cases, files.FOLDER}, f"cases: {set(found)}")
    for what in cases:
        line = found[what]
        expect(line["settings"]["answers"] == "equal", f"{what}: answers were not compared")
        expect(set(line["contenders"]) == {one.label for one in files.CONTENDERS}, f"{what}: {set(line['contenders'])}")
        for label, figures in line["contenders"].items():
            expect_figures(f"{what}: {label}", figures, ("seconds", "first_answer_seconds", "peak_rss"))
    names = ("seconds", "ready_seconds", "listing_seconds")
    expect_figures(files.FOLDER, found[files.FOLDER]["contenders"][files.OURS], names)


def of_transactions(lines: list) -> None:
    """All cases of drivers and tools; each has ours and the database."""
    found = {(line["axes"]["what"], line["axes"]["clients"]): line for line in lines}
    wanted = {(what, clients) for what in (transactions.SELECT_1, transactions.BY_KEY) for clients in (1, 64)}
    wanted |= {(name, order["clients"]) for load in transactions.loads(True) for name, order in load.cases.items()}
    expect(set(found) == wanted, f"cases: {set(found)}")
    for line in lines:
        expect(len(line["contenders"]) in (2, 2 * len(transactions.CLIENTS)), f"{line['case']}: {set(line['contenders'])}")


CHECKS = {"latency": of_latency, "files": of_files, "memory": of_memory, "joins": of_joins, "transactions": of_transactions, "views": of_views}
