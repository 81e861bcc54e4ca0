"""The examples of README and docs do what they say. Every block of SQL, of the shell and of Python runs, in the order of its page, on a server
with what `guides.toml` says that the page takes for granted. A line above a block says of the others why not: `<!-- not run: … -->`, or
`<!-- parsed only: … -->` of SQL, whose statements are then sent and may fail for anything but their words. Pages of clients and of
packages have suites of their own."""

import gzip
import os
import re
import shutil
import subprocess
import textwrap
import tomllib

import pyarrow.csv
import pyarrow.parquet
import pytest

from server import ROOT, Server, binaries, users_file
from test_client_pages import INSTALLS, put

TABLE = tomllib.loads((ROOT / "tests" / "clients" / "guides.toml").read_text())
TLS = ROOT / "tests" / "data" / "tls"
FOLDERS = ("get-started", "how-to", "how-to/sources", "reference", "explanation")
RUN = ("sql", "sh", "console", "python")
BLOCK = re.compile(
    r"(?:^ *<!-- (?P<marker>not run|parsed only): (?P<reason>[^\n]+) -->\n)?^ *```(?P<language>\w*)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
#: Statements that name a place on another machine.
ABROAD = re.compile(r"\b(?:s3|gs|az|https?|postgres|mysql)://")
#: What a program that stays becomes: `check` takes the arguments of `serve`. The doctor may find faults of this machine.
PROGRAM = """#!/bin/sh
case "$1" in
serve) shift && exec {program} check "$@" ;;
doctor) {program} "$@" || [ $? = 1 ] ;;
*) exec {program} "$@" ;;
esac
"""


def blocks(page):
    return [found.groupdict() | {"text": textwrap.dedent(found["text"])} for found in BLOCK.finditer(page.read_text())]


def is_run(name, block):
    of_others = TABLE["elsewhere"].get(name, {}).get("languages", ())
    return block["marker"] != "not run" and block["language"] in RUN and block["language"] not in of_others


PAGES = {
    str(page.relative_to(ROOT)): page
    for page in [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted((ROOT / "docs" / folder).glob("*.md")))]
}
RUNNING = [name for name, page in PAGES.items() if any(is_run(name, block) for block in blocks(page))]


@pytest.fixture
def bowshot(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "clients" / "python" / "src")
    import bowshot

    return bowshot


def fill(folder, given):
    """Makes the files of a page; those that are not text are made of CSV."""
    for name, text in given.get("files", {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(text.encode()))
        elif path.suffix == ".parquet":
            pyarrow.parquet.write_table(pyarrow.csv.read_csv(path), path)
    for name in given.get("folders", ()):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, copy in (("first.pem", "server.pem"), ("first.key", "server.key")):
        shutil.copy(TLS / name, folder / copy)
    programs = {"bowshot": PROGRAM.format(program=binaries() / "bowshot"), "journalctl": "#!/bin/sh\n"}
    (folder / "programs").mkdir()
    for name, text in programs.items():
        (folder / "programs" / name).write_text(text)
        (folder / "programs" / name).chmod(0o755)
    if "users" in given:
        users_file(folder, given["users"])


def placed(text, folder, server):
    """Ports become those of the server, folders of a machine those of the page."""
    below = {"var/lib/bowshot": "store"}
    text = re.sub(r"(?<![\w./])/(var/lib/bowshot|etc/bowshot|backups|srv)\b", lambda found: f"{folder}/{below.get(found[1], found[1])}", text)
    return put(text, server)


def shell(text, folder, server):
    kept = "\n".join(line for line in placed(text, folder, server).splitlines() if not line.startswith(INSTALLS))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BOWSHOT_")}
    environment |= {"PATH": f"{folder / 'programs'}:{os.environ['PATH']}", "BOWSHOT_URI": server.flight}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", kept.replace("curl ", "curl -sS --fail-with-body ")],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


def console(text, folder, server):
    """Commands behind `$`, and some lines of what they print; what a server greets with is another suite's."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        told = [" ".join(line.split()) for line in shell(command, folder, server).splitlines()]
        if not command.startswith("bowshot serve"):
            missing = [line for line in shown.splitlines() if " ".join(line.split()) not in told]
            assert not missing, f"{command}\n{told}"


def statements(text):
    """Each with the comment behind its semicolon."""
    parts = re.split(r";[ \t]*(--[^\n]*)?(?:\n|\Z)", text)
    for sql, comment in zip(parts[::2], [*parts[1::2], None], strict=True):
        if re.sub(r"--[^\n]*", "", sql).strip():
            yield sql.strip(), comment or ""


def run_sql(bowshot, connection, text, parsed_only=False):
    for sql, comment in statements(text):
        expected = re.fullmatch(r"--\s*(.+) \(\w{5}\)", comment.strip())
        if parsed_only or ABROAD.search(sql):
            try:
                # One that follows a table has no end.
                repr(connection.sql(sql, timeout=10))
            except bowshot.SqlSyntaxError as error:
                raise AssertionError(sql) from error
            except bowshot.Error:
                pass
        elif expected:
            with pytest.raises(bowshot.Error, match=re.escape(expected[1])):
                repr(connection.sql(sql, timeout=60))
        else:
            repr(connection.sql(sql, timeout=60))


@pytest.mark.parametrize("name", RUNNING)
def test_examples_run(name, tmp_path, monkeypatch, bowshot):
    given = TABLE["page"].get(name, {})
    monkeypatch.chdir(tmp_path)
    fill(tmp_path, given)
    arguments = ["--pg", "127.0.0.1:0", "--mysql", "127.0.0.1:0", *given.get("arguments", ())]
    names = {"__name__": "example"}
    with (
        Server(*given.get("serve", ()), arguments=arguments, data=tmp_path / "store") as server,
        bowshot.connect(server.flight, autocommit=True) as connection,
    ):
        run_sql(bowshot, connection, given.get("sql", ""))
        for block in blocks(PAGES[name]):
            if not is_run(name, block):
                continue
            match block["language"]:
                case "sql":
                    run_sql(bowshot, connection, block["text"], block["marker"] == "parsed only")
                case "python":
                    exec(compile(placed(block["text"], tmp_path, server), name, "exec"), names)
                case "sh":
                    shell(block["text"], tmp_path, server)
                case "console":
                    console(block["text"], tmp_path, server)
        if "connection" in names:
            names["connection"].close()


def test_every_block_says_what_it_is():
    unnamed = [f"{name}: {block['text'][:60]}" for name, page in PAGES.items() for block in blocks(page) if not block["language"]]
    assert not unnamed
    assert set(TABLE["page"]) <= set(RUNNING) and set(TABLE["elsewhere"]) <= set(PAGES)
    assert all((ROOT / entry["by"]).exists() for entry in TABLE["elsewhere"].values())
