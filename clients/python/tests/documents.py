"""The examples of a page, by the section that they stand in, for the server of the test."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/how-to/python-ecosystem.md"


def example(section, uri):
    """The blocks of Python of a section, as one program over the server at `uri`."""
    found = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"^```python\n(.*?)^```", found[1], re.MULTILINE | re.DOTALL)
    assert blocks, section
    return "\n".join(blocks).replace("grpc://127.0.0.1:50051", uri)


def run(section, uri, **names):
    """Runs them; gives what they have named."""
    names.setdefault("__name__", "example")
    exec(compile(example(section, uri), f"{PAGE.name}: {section}", "exec"), names)
    return names


def orders(connection):
    """The table that the examples read."""
    connection.ingest(
        "orders",
        [{"order_id": number, "name": f"name {number % 3}", "total": number / 2} for number in range(100)],
        mode="replace",
    )
