"""`bowshot sql` on a terminal: the prompt, its commands, completion, history, and Ctrl-C."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import pytest

from server import BUSY_FACTOR, binaries, wait_until

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000000) AS s(value)"


class Prompt:
    """A prompt on a terminal of its own."""

    def __init__(self, server, folder):
        self.seen = ""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BOWSHOT_")}
        environment |= {"BOWSHOT_URI": server.flight, "HOME": str(folder), "XDG_STATE_HOME": str(folder), "TERM": "xterm"}
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.execve(binaries() / "bowshot", ["bowshot", "sql"], environment)
        self.wait(r"bowshot> ")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait(self, pattern, seconds=20):
        """Reads on until the pattern has come; returns what came with it."""
        deadline = time.monotonic() + seconds * BUSY_FACTOR
        while not (found := re.search(pattern, self.seen)):
            ready, _, _ = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{pattern!r} did not come: {self.seen!r}"
            self.seen += os.read(self.terminal, 65536).decode(errors="replace")
        text, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return text

    def run(self, text, pattern):
        self.type(text + "\r")
        answer = self.wait(pattern)
        self.wait(r"bowshot> ")
        return answer

    def end(self, word="\\q"):
        self.type(word + "\r")
        _, status = os.waitpid(self.process, 0)
        os.close(self.terminal)
        self.process = None
        return os.waitstatus_to_exitcode(status)


@pytest.fixture
def prompt(server, tmp_path):
    prompt = Prompt(server, tmp_path)
    yield prompt
    if prompt.process:
        os.kill(prompt.process, signal.SIGKILL)
        os.waitpid(prompt.process, 0)
        os.close(prompt.terminal)


def test_statements_span_lines_and_end_at_semicolons(prompt):
    prompt.type("SELECT count(*)\r")
    prompt.run("FROM nation WHERE n_name <> ';';", r"25[\s\S]*\(1 row\)")
    assert prompt.end() == 0


def test_errors_leave_the_prompt_usable(prompt):
    assert "nowhere" in prompt.run("SELECT * FROM nowhere;", r"error: .*")
    prompt.run("SELECT 40 + 2;", r"\b42\b[\s\S]*\(1 row\)")
    prompt.run("\\nonsense", r"error: unknown command")


def test_commands(prompt):
    prompt.run("\\d", r"\bnation +\| TABLE")
    assert "VARCHAR (Utf8)" in prompt.run("\\d nation", r"n_name +\|.*")
    prompt.run("\\timing on", r"timing is on")
    prompt.run("\\x", r"expanded output is on")
    prompt.run("SELECT 1 AS one;", r"one \| 1[\s\S]*time: ")
    prompt.run("\\?", r"\\set NAME=V")


def test_lists(prompt):
    prompt.type("\\d\r")
    prompt.wait(r"catalog +\| schema")
    tables = prompt.wait(r"bowshot> ")
    assert "nation" in tables
    assert "information_schema" not in tables and "system" not in tables
    prompt.run("\\l", r"\bbowshot\b[\s\S]*\(\d+ rows?\)")
    prompt.run("\\dn", r"\bmain\b[\s\S]*\(\d+ rows\)")
    assert "concat_ws" not in prompt.run("\\df low*", r"\blower\b[\s\S]*\(\d+ rows?\)")


def test_files_of_statements_and_of_results(prompt, tmp_path):
    script, out = tmp_path / "two.sql", tmp_path / "out.csv"
    script.write_text("SELECT 1 AS first;\nSELECT 2 AS second;\n")
    prompt.run(f"\\i {script}", r"first[\s\S]*second[\s\S]*\(1 row\)")
    prompt.run(f"\\i {tmp_path / 'none.sql'}", r"error: cannot read")
    prompt.run(f"\\o {tmp_path / 'out.xyz'}", r"error: cannot determine the format of")
    prompt.run(f"\\o {out}", r"the next result goes to")
    prompt.run("SELECT nonsense;", r"error: ")
    assert not out.exists()
    prompt.run("SELECT 42 AS answer;", r"written to")
    assert out.read_text() == "answer\n42\n"
    prompt.run("SELECT 43 AS answer;", r"\b43\b[\s\S]*\(1 row\)")


def test_the_last_statement_is_edited(server, tmp_path, monkeypatch):
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/40/41/" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    prompt = Prompt(server, tmp_path)
    prompt.run("SELECT 40 + 2;", r"\b42\b[\s\S]*\(1 row\)")
    prompt.run("\\e", r"SELECT 41 \+ 2;[\s\S]*\b43\b[\s\S]*\(1 row\)")
    assert prompt.end() == 0


def test_long_tables_go_through_the_pager(server, tmp_path, monkeypatch):
    paged = tmp_path / "paged"
    pager = tmp_path / "pager.sh"
    pager.write_text(f'#!/bin/sh\ncat > {paged}\necho "seen: $1"\n')
    pager.chmod(0o755)
    monkeypatch.setenv("PAGER", f"{pager} all")
    prompt = Prompt(server, tmp_path)
    fcntl.ioctl(prompt.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 80, 0, 0))
    # The next input is the first that knows of the new size.
    prompt.run("SELECT 1 AS one;", r"\b1\b[\s\S]*\(1 row\)")
    prompt.run("SELECT value FROM generate_series(1, 19) AS s(value);", r"seen: all[\s\S]*\(19 rows\)")
    assert paged.read_text().split()[-1] == "19"
    prompt.run("SELECT value FROM generate_series(1, 17) AS s(value);", r"\b17\b[\s\S]*\(17 rows\)")
    assert paged.read_text().split()[-1] == "19" and prompt.end() == 0


@pytest.mark.parametrize("word", ["exit", "quit;", "EXIT"])
def test_words_that_leave(server, tmp_path, word):
    assert Prompt(server, tmp_path).end(word) == 0


def test_names_and_keywords_are_completed(prompt):
    prompt.type("sel\t")
    prompt.wait(r"select")
    prompt.type(" count(*) from nat\t\t")
    prompt.wait(r"nation")
    prompt.type(" where n_nationk\t")
    prompt.wait(r"n_nationkey")
    prompt.type("\x03")
    prompt.wait(r"bowshot> ")


def test_history_is_kept(prompt, server, tmp_path):
    prompt.run("SELECT 7 * 6;", r"\(1 row\)")
    assert prompt.end() == 0
    again = Prompt(server, tmp_path)
    again.type("\x1b[A\x1b[A")
    again.wait(r"SELECT 7 \* 6;")
    again.type("\r")
    again.wait(r"\b42\b")
    assert again.end() == 0


def test_ctrl_c_cancels_on_the_server_and_shows_progress_until_then(prompt):
    prompt.type(ENDLESS + ";\r")
    prompt.wait(r"running, \d")
    prompt.type("\x03")
    prompt.wait(r"cancelled[\s\S]*bowshot> ")

    def logged():
        query = "SELECT outcome FROM system.queries WHERE statement LIKE '%1000000000000%' AND statement NOT LIKE '%LIKE%';"
        return "cancelled" in prompt.run(query, r"outcome[\s\S]*\(\d+ rows?\)")

    wait_until(logged, "the query is logged as cancelled")


def test_ctrl_c_ends_a_single_statement(server, tmp_path):
    process, terminal = pty.fork()
    if process == 0:
        os.execv(binaries() / "bowshot", ["bowshot", "sql", "--uri", server.flight, ENDLESS])
    seen = b""
    while b"running" not in seen:
        seen += os.read(terminal, 65536)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 1
