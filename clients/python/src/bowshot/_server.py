"""Starts the program `bowshot serve` for this process and ends it with it."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bowshot._errors import InterfaceError, OperationalError

_PROGRAM = "BOWSHOT_PROGRAM"
_PAUSE = 0.02


def program() -> str:
    """The path of the program: what `BOWSHOT_PROGRAM` names, else that of the package `bowshot-server`, else `bowshot` on the
    path."""
    named = os.environ.get(_PROGRAM)
    if named:
        if not os.access(named, os.X_OK):
            raise InterfaceError(f"`{named}`, which `{_PROGRAM}` names, is no program")
        return named
    # A notebook runs in an environment whose programs need not be on the path.
    with contextlib.suppress(ImportError, FileNotFoundError):
        return str(importlib.import_module("bowshot_server").program())
    found = shutil.which("bowshot")
    if found is None:
        hint = f"the wheel `bowshot-server` of a release brings it; another one is named with `{_PROGRAM}`"
        raise InterfaceError("there is no program `bowshot` on the path", hint=hint)
    return found


class Server:
    """A server of one's own: on free ports of the loopback interface, with its tables in memory unless `data` says where.

    `settings` become `--set NAME=VALUE`; `arguments` go to the program as they are.
    """

    def __init__(
        self,
        *sources: str | os.PathLike[str],
        data: str | os.PathLike[str] = "memory",
        settings: Mapping[str, object] | None = None,
        arguments: Sequence[str] = (),
        timeout: float = 60.0,
    ) -> None:
        # Before anything is made that would have to be taken away.
        command = [program(), "serve", *(os.fspath(source) for source in sources), "--data", os.fspath(data)]
        self._folder = tempfile.TemporaryDirectory(prefix="bowshot-")
        folder = pathlib.Path(self._folder.name)
        self.log_path = folder / "log"
        ports = folder / "ports.json"
        command += ["--flight", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ports-file", str(ports)]
        for name, value in (settings or {}).items():
            command += ["--set", f"{name}={value}"]
        command += arguments
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(  # noqa: S603 - the program that the user names
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **_dies_with_parent()
            )
        atexit.register(self.stop)
        try:
            addresses = self._wait(ports, timeout)
        except BaseException:
            self.stop()
            raise
        self.uri = str(addresses["flight"])
        self.http = str(addresses["http"])

    def _wait(self, ports: pathlib.Path, timeout: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise OperationalError(f"the server ended with {self.process.returncode}: {self.log()[-2000:].strip()}")
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                return dict(json.loads(ports.read_text()))
            time.sleep(_PAUSE)
        raise OperationalError(f"the server was not ready within {timeout:g} s: {self.log()[-2000:].strip()}")

    def connect(self, **arguments: Any) -> Any:
        """A connection to it; arguments are those of `bowshot.connect`."""
        from bowshot import connect

        return connect(self.uri, **arguments)

    def log(self) -> str:
        """What the server has written so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def stop(self, timeout: float = 30.0) -> None:
        """Ends it: in peace, and by force if that takes too long. Stopping twice is fine."""
        atexit.unregister(self.stop)
        if self.running:
            self.process.terminate()
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self._folder.cleanup()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<bowshot.Server {getattr(self, 'uri', 'starting')}{'' if self.running else ', stopped'}>"


def server(*sources: str | os.PathLike[str], **arguments: Any) -> Server:
    """Starts a server over files and folders; see `Server` for the arguments."""
    return Server(*sources, **arguments)


def _dies_with_parent() -> dict[str, Any]:
    """What makes the server end when this process is killed. Linux can; elsewhere `atexit` has to do."""
    if not sys.platform.startswith("linux"):
        return {}
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    pr_set_pdeathsig = 1

    def after_fork() -> None:
        libc.prctl(pr_set_pdeathsig, signal.SIGTERM)

    return {"preexec_fn": after_fork}
