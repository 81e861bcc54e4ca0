"""The documentation as a site: every page of `docs/` with its navigation and a search, which need no network. Links and anchors
that lead nowhere are errors."""

from __future__ import annotations

import argparse
import html
import json
import pathlib
import posixpath
import re
import sys

from markdown_it import MarkdownIt

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCE = "https://github.com/bowshot/bowshot/blob/main/"
PARTS = {
    "get-started": "Get started",
    "get-started/coming-from": "Coming from",
    "how-to": "How-to",
    "how-to/clients": "Clients and BI tools",
    "how-to/sources": "Sources elsewhere",
    "reference": "Reference",
    "explanation": "Explanation",
    "contributing/internals": "Internals",
    "contributing/decisions": "Decisions",
}
FIRST = ("quickstart", "console", "sources", "tables", "clients", "access", "configuration", "docker", "operations")
STYLE = """:root{color-scheme:light dark;--line:light-dark(#d3dcd7,#2c3831);--soft:light-dark(#4f5f56,#9fb0a6);--card:light-dark(#f3f6f4,#171f1b);
--link:light-dark(#15803d,#4ade80)}body{margin:0;font:16px/1.6 system-ui,sans-serif;display:grid;grid-template-columns:17rem minmax(0,1fr)}
nav{padding:1rem;border-right:1px solid var(--line);height:100vh;position:sticky;top:0;overflow:auto;box-sizing:border-box;font-size:.92rem}
nav ul{list-style:none;padding:0;margin:.2rem 0 1rem}nav h2{font-size:.85rem;color:var(--soft);margin:0}nav a[aria-current]{font-weight:700}
main{padding:1rem 2.5rem 5rem;max-width:60rem}a{color:var(--link)}pre{background:var(--card);padding:.8rem;overflow:auto;border-radius:8px}
code{font-size:.9em}table{border-collapse:collapse;display:block;overflow:auto}td,th{border:1px solid var(--line);padding:.3rem .6rem;
text-align:left;vertical-align:top}input{width:100%;box-sizing:border-box;font:inherit;padding:.3rem}
@media(max-width:50rem){body{display:block}nav{height:auto;position:static}}"""
SEARCH = """const field=document.querySelector("input"),list=document.getElementById("found");
field.addEventListener("input",()=>{const words=field.value.toLowerCase().split(/\\s+/).filter(Boolean);list.replaceChildren();
if(!words.length)return;PAGES.map(page=>({page,rank:words.every(word=>page.text.includes(word))?words.reduce((sum,word)=>
sum+(page.title.toLowerCase().includes(word)?50:0)+page.text.split(word).length,0):0})).filter(({rank})=>rank).sort((a,b)=>b.rank-a.rank)
.slice(0,12).forEach(({page})=>{const item=document.createElement("li"),link=document.createElement("a");
link.href=document.body.dataset.root+page.path;link.textContent=page.title;item.append(link);list.append(item)})});"""


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower().strip()).replace(" ", "-")


class Site:
    def __init__(self) -> None:
        self.markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
        self.texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "docs").rglob("*.md")}
        self.titles = {path: self._title(text) for path, text in self.texts.items()}
        self.anchors: dict[str, set[str]] = {}
        self.wrong: list[str] = []

    @staticmethod
    def _title(text: str) -> str:
        found = re.search(r"^# (.+)$", text, re.MULTILINE)
        return found[1] if found else "?"

    def _anchors(self, path: str) -> set[str]:
        if path not in self.anchors:
            text = re.sub(r"^```.*?^```", "", (ROOT / path).read_text(), flags=re.MULTILINE | re.DOTALL)
            headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            self.anchors[path] = {slug(re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", heading)) for heading in headings}
        return self.anchors[path]

    def link(self, page: str, target: str) -> str:
        """Where a link of a page leads on the site."""
        if re.match(r"[a-z]+:", target):
            return target
        name, _, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), name)) if name else page
        if not (ROOT / path).exists():
            self.wrong.append(f"{page}: {target} leads nowhere")
        elif anchor and path.endswith(".md") and anchor not in self._anchors(path):
            self.wrong.append(f"{page}: {target}: there is no such heading")
        if path not in self.texts:
            return SOURCE + path
        there = posixpath.relpath(path[:-3] + ".html", posixpath.dirname(page))
        return there + (f"#{anchor}" if anchor else "")

    def page(self, path: str) -> str:
        tokens = self.markdown.parse(self.texts[path])
        for index, token in enumerate(tokens):
            if token.type == "heading_open":
                token.attrSet("id", slug(re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", tokens[index + 1].content)))
            for child in token.children or []:
                if child.type == "link_open":
                    child.attrSet("href", self.link(path, str(child.attrGet("href"))))
        body = self.markdown.renderer.render(tokens, self.markdown.options, {})
        root = "../" * (path.count("/") - 1)
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f'<title>{html.escape(self.titles[path])} · Bowshot</title><link rel="stylesheet" href="{root}style.css">'
            f'<body data-root="{root}"><nav aria-label="Pages"><input type="search" aria-label="Search" placeholder="search">'
            f'<ul id="found"></ul><p><a href="{root}README.html">All pages</a></p>{self._menu(path)}</nav><main>{body}</main><script src="{root}search.js"></script></body></html>\n'
        )

    def _menu(self, here: str) -> str:
        parts = []
        for folder, title in PARTS.items():
            pages = sorted(
                (path for path in self.texts if posixpath.dirname(path) == f"docs/{folder}"),
                key=lambda path: (FIRST.index(stem) if (stem := pathlib.Path(path).stem) in FIRST else len(FIRST), path),
            )
            items = "".join(
                f'<li><a href="{posixpath.relpath(path[:-3] + ".html", posixpath.dirname(here))}"'
                f"{' aria-current=page' if path == here else ''}>{html.escape(self.titles[path])}</a></li>"
                for path in pages
            )
            parts.append(f"<h2>{title}</h2><ul>{items}</ul>")
        return "".join(parts)

    def build(self) -> dict[str, str]:
        files = {path.removeprefix("docs/")[:-3] + ".html": self.page(path) for path in sorted(self.texts)}
        index = [
            {"path": path.removeprefix("docs/")[:-3] + ".html", "title": self.titles[path], "text": re.sub(r"\W+", " ", text).lower()}
            for path, text in sorted(self.texts.items())
        ]
        files["search.js"] = f"const PAGES={json.dumps(index, ensure_ascii=False)};{SEARCH}"
        files["style.css"] = STYLE
        files["index.html"] = '<!doctype html><meta charset="utf-8"><title>Bowshot</title><meta http-equiv="refresh" content="0;url=README.html">\n'
        return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, help="folder of the site; without it, it is only checked")
    out = parser.parse_args().out
    site = Site()
    files = site.build()
    for complaint in site.wrong:
        print(complaint, file=sys.stderr)
    for name, text in files.items() if out else ():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(f"{len(files) - len(site.wrong)} passed, {len(site.wrong)} failed")
    return 1 if site.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
