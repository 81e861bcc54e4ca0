"""The reference of the package, made of its docstrings: `python reference.py` writes docs/reference/python.md."""

from __future__ import annotations

import inspect
import pathlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "python.md"
HEAD = """# Python API

What `import bowshot` has. [The guide](../../clients/python/README.md) shows how it is used, [errors](errors.md) what goes
wrong when. Made of the docstrings by `python clients/python/tests/reference.py`, do not edit.
"""


def page() -> str:
    sys.path.insert(0, str(ROOT / "clients" / "python" / "src"))
    import bowshot
    from bowshot import _errors, aio

    parts = [HEAD, *functions(bowshot), *classes(bowshot), "## Errors\n\n```text\n" + tree(_errors) + "\n```\n"]
    parts += ["## bowshot.aio\n", text(aio) + "\n"]
    parts += [entry for name in ("connect", "Connection") for entry in described(aio, name, "aio.")]
    return "\n".join(parts).rstrip("\n") + "\n"


def functions(module: Any) -> Iterator[str]:
    yield "## Functions\n"
    for name in module.__all__:
        if inspect.isfunction(getattr(module, name)) and getattr(module, name).__doc__:
            yield from described(module, name)


def classes(module: Any) -> Iterator[str]:
    yield "## Classes\n"
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) and thing.__module__.startswith("bowshot") and not issubclass(thing, (Exception, Warning)):
            yield from described(module, name)


def described(module: Any, name: str, prefix: str = "") -> Iterator[str]:
    """A function, or a class with its public methods and properties."""
    thing = getattr(module, name)
    if inspect.isfunction(thing):
        lines = textwrap.fill(call(name, thing), 120, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        yield f"### {prefix}{name}\n\n```text\n{lines}\n```\n\n{text(thing)}\n"
        return
    yield f"### {prefix}{name}\n"
    if text(thing):
        yield f"{text(thing)}\n"
    for member, value in vars(thing).items():
        if member.startswith("_") or not (inspect.isfunction(value) or isinstance(value, property)):
            continue
        shown = member if isinstance(value, property) else call(member, value)
        # Behind the first line it belongs to the item of the list.
        told = textwrap.indent(text(value), "  ").lstrip()
        yield f"- `{shown}`" + (f": {told}" if told else "")
    yield ""


def call(name: str, function: Callable[..., Any]) -> str:
    """Name, parameters and defaults; what types they have the package's own hints say."""
    shown, kinds = [], set()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not kinds & {parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL}:
            shown.append("*")
        kinds.add(parameter.kind)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        shown.append(f"{stars}{parameter.name}{default}")
    return f"{name}({', '.join(shown)})"


def text(thing: Any) -> str:
    """The docstring; a class made by a decorator has one that says nothing."""
    found = inspect.cleandoc(thing.__doc__ or "")
    return "" if found.startswith(f"{getattr(thing, '__name__', '')}(") else found


def tree(errors: Any) -> str:
    """The drawing of the exceptions in the head of their module."""
    return inspect.cleandoc(errors.__doc__).partition("\n\n")[2]


if __name__ == "__main__":
    PAGE.write_text(page())
