"""Puts the page together and writes it."""

import pathlib
import string
import sys

from .. import places
from . import claims, first, lines as result_lines, sections, targets, verdicts, words

HERE = pathlib.Path(__file__).resolve().parent
METHOD = "docs/guides/benchmarks.md"


def write(folder: pathlib.Path, target: pathlib.Path) -> None:
    """Makes the report of all results in `folder`."""
    found = result_lines.read(folder)
    if not found:
        print(f"there are no results in {folder}", file=sys.stderr)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(html(found), encoding="utf-8")
    print(f"report: {target}")


def html(found: list) -> str:
    judged = verdicts.of_lines(found)
    summed = verdicts.summaries(judged)
    content = first.screen(judged, found) + contents(found) + targets.section(targets.checked(found))
    content += f'<section id="claims"><h2>{CLAIMS_TITLE}</h2><p>{CLAIMS}</p>{claims.table(found)}</section>'
    content += "".join(
        sections.scenario(groups, [part for part in summed if part.scenario.name == name])
        for name, groups in result_lines.grouped(found).items()
    )
    template = string.Template((HERE / "page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title="Bowshot, measured beside its peers", style=(HERE / "style.css").read_text(encoding="utf-8"),
        lead=first.lead(judged), notice=notice(found), content=content, footer=footer(found),
    )


CLAIMS_TITLE = "Published claims, and the same work here"
CLAIMS = (
    "Other systems have published how many times faster they are than what their users had before. Their figures are from "
    "their machines; what can be compared is the ratio. Both sides of ours were measured in one run on one machine."
)


def notice(found: list) -> str:
    text = [f"<p>{machines(found)} Client and server share the machine. "
            '<a href="#method">How it was measured</a>.</p>']
    if any(line.raw["settings"].get("scale") == "small" for line in found):
        text.append('<p class="notice">Some results are of the small scale, which only shows whether everything works: '
                    "their times mean nothing.</p>")
    return "".join(text)


def contents(found: list) -> str:
    """Where the parts of the page are."""
    links = {"targets": "What we want, and what it is", "claims": CLAIMS_TITLE}
    links |= {line.scenario.name: line.scenario.title for line in found}
    items = "".join(f'<li><a href="#{name}">{words.escape(title)}</a></li>' for name, title in links.items())
    return f'<nav><h2>On this page</h2><ul>{items}</ul></nav>'


def machines(found: list) -> str:
    described = dict.fromkeys(f"{line.machine()}, {line.raw['machine']['memory_gb']} GB" for line in found)
    days = sorted(line.day() for line in found)
    span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    several = " Each comparison was made on one of them; which one is told below every scenario." if len(described) > 1 else ""
    return f"Measured {span} on {words.escape('; '.join(described))}.{several}"


def footer(found: list) -> str:
    commits = ", ".join(dict.fromkeys(line.raw["commit"] for line in found))
    return (
        '<span id="method">Method</span>: every side starts on the same machine, with data of its own on the same disk and '
        "the settings that its documentation advises. The sides take turns (A B C C B A …), each turn in a client process "
        "of its own, after a turn that warms up. Figures are medians over all runs; answers of all sides of a comparison "
        f"were checked to be equal. More is in {words.code(METHOD)}. Commits: {words.code(commits)}. "
        f"Results: {words.code(places.RESULTS.relative_to(places.REPOSITORY))}; this page has no script and loads nothing."
    )
