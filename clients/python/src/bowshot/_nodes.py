"""Other nodes of a cluster that hand out parts of a result: where they are, and whether this client goes there.

The node that was asked names them, and answers for their rows too: whoever cannot reach a node, or is not known there,
reads its part through the one that was asked. Credentials go to another node only over the same kind of transport, so
that one that was asked over TLS cannot send its clients to where there is none; and nowhere in the clear where the one that was
asked is on this machine, as the near end of a tunnel is.
"""

from __future__ import annotations

import contextlib
import ipaddress
import threading
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from pyarrow import flight

from bowshot._config import Config
from bowshot._errors import Error, InterfaceError

# "The connection that you have", of Flight's specification.
_REUSE = "arrow-flight-reuse-connection"
_TLS = {"grpc+tls": True, "grpc+tcp": False, "grpc": False}
# A node that could not be reached is not tried again for so long, in seconds; nor waited for longer than that at first.
_FORGOTTEN_AFTER = 30.0
_CONNECT_SECONDS = 5.0


class Closes(Protocol):
    def close(self) -> None: ...


Connected = TypeVar("Connected", bound=Closes)


def config_at(config: Config, endpoint: flight.FlightEndpoint) -> Config | None:
    """How to reach the node whose rows these are; none where that is the node that was asked, or one that is not gone to."""
    for location in endpoint.locations:
        parts = urllib.parse.urlsplit(location.uri.decode(errors="replace"))
        if parts.scheme == _REUSE:
            return None
        tls = _TLS.get(parts.scheme)
        try:
            port = parts.port
        except ValueError:
            continue
        if tls is not config.tls or not parts.hostname or port is None:
            continue
        if (parts.hostname, port) == (config.host, config.port):
            return None
        if not config.tls and _is_here(config.host) and not _is_here(parts.hostname) and _has_credentials(config):
            return None
        # The session's options are those of the plan already, and a certificate's name is that of one host.
        return replace(
            config,
            host=parts.hostname,
            port=port,
            options={},
            tls_server_name=None,
            same_host=False if config.same_host is False else None,
            connect_timeout=min(config.connect_timeout, _CONNECT_SECONDS),
        )
    return None


def _is_here(host: str) -> bool:
    """Whether what is said to a host stays on this machine."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _has_credentials(config: Config) -> bool:
    return bool(config.password or config.token or config.oidc or config.headers)


class Nodes(Generic[Connected]):
    """Connections to other nodes, each made when it is first needed, and kept."""

    def __init__(self, config: Config, connect: Callable[[Config], Connected]) -> None:
        self._config = config
        self._connect = connect
        self._known: dict[str, Connected] = {}
        self._failed: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def at(self, endpoint: flight.FlightEndpoint) -> Connected | None:
        """The connection to the node of an endpoint; none where its rows are read through the node that was asked."""
        config = config_at(self._config, endpoint)
        if config is None:
            return None
        place = config.location
        with self._lock:
            if place in self._known:
                return self._known[place]
            if time.monotonic() < self._failed.get(place, (0.0, ""))[0]:
                return None
        try:
            made = self._connect(config)
        except Error as error:
            with self._lock:
                self._failed[place] = (time.monotonic() + _FORGOTTEN_AFTER, str(error))
            return None
        return self._keep(place, made)

    def _keep(self, place: str, made: Connected) -> Connected:
        with self._lock:
            closed = self._closed
            kept = made if closed else self._known.setdefault(place, made)
        if closed or kept is not made:
            made.close()
        if closed:
            raise InterfaceError("the connection is closed")
        return kept

    def note(self, endpoint: flight.FlightEndpoint) -> str | None:
        """Why rows of an endpoint do not come from its node, where that was tried."""
        config = config_at(self._config, endpoint)
        if config is None or config.location not in self._failed:
            return None
        return f"the node {config.host}:{config.port} cannot be asked: {self._failed[config.location][1]}"

    def close(self) -> None:
        with self._lock:
            known, self._known, self._closed = list(self._known.values()), {}, True
        for connection in known:
            connection.close()
