"""Puts the page together and writes it."""

import pathlib
import string
import sys

from . import claims, first, lines as result_lines, sections, targets, verdicts, words

TEMPLATE = pathlib.Path(__file__).with_name("page.html")


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
    judged = [verdict for line in found for verdict in verdicts.judge(line)]
    scenarios = dict.fromkeys(line.scenario for line in found)
    content = first.screen(judged) + contents(scenarios) + targets.section(found) + claims.section(found)
    for scenario in scenarios:
        content += sections.section(
            [line for line in found if line.scenario is scenario],
            [verdict for verdict in judged if verdict.line.scenario is scenario],
        )
    return string.Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        lead=first.lead(judged), notice=notice(found), content=content,
        commits=words.code(", ".join(dict.fromkeys(line.raw["commit"] for line in found))),
    )


def contents(scenarios) -> str:
    """Where the parts of the page are."""
    links = {"targets": targets.TITLE, "claims": claims.TITLE, **{scenario.name: scenario.title for scenario in scenarios}}
    items = "".join(f'<li><a href="#{name}">{words.escape(title)}</a></li>' for name, title in links.items())
    return f"<nav><h2>On this page</h2><ul>{items}</ul></nav>"


def notice(found: list) -> str:
    machines = dict.fromkeys(f"{line.machine()}, {line.raw['machine']['memory_gb']} GB" for line in found)
    days = sorted(line.time[:10] for line in found)
    span = " to ".join(dict.fromkeys([days[0], days[-1]]))
    several = " Each comparison was made on one of them; which one is told below every scenario." if len(machines) > 1 else ""
    text = f"<p>Measured {span} on {words.escape('; '.join(machines))}.{several} Client and server share the machine.</p>"
    if any(line.raw["settings"].get("scale") == "small" for line in found):
        text += ('<p class="notice">Some results are of the small scale, which only shows whether everything works: '
                 "their times mean nothing.</p>")
    return text
