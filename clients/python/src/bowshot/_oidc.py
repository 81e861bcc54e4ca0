"""Logging in at an identity provider (OpenID Connect) as a person: in a browser on this machine (RFC 8252, with PKCE of
RFC 7636), or with a code in one anywhere (RFC 8628). What the provider hands out is sent to the server as a bearer token,
renewed before it ends, and kept for the next process in a file that only this user can read.

No answer of a provider is shown but its error code and its description; tokens are in no message and no `repr`.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import math
import os
import pathlib
import secrets
import stat
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import webbrowser
from dataclasses import dataclass, field
from typing import Any

from bowshot._errors import InterfaceError, UnauthenticatedError, UnavailableError

FLOWS = ("auto", "browser", "device", "cached")
TOKENS = ("access_token", "id_token")
_TIMEOUT_S = 20.0
_ANSWER_BYTES = 1 << 20
# A token is renewed so long before it ends, in seconds.
_AHEAD_S = 30.0
# How long a person has for a login in the browser; a provider says it for codes.
_BROWSER_S = 300.0
# A token of which nobody says when it ends is good for so long; nobody waits longer than the second for a person.
_TOKEN_S = 300.0
_LONGEST_S = 1800.0
_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
_DONE = b"<!doctype html><meta charset=utf-8><title>Bowshot</title><p>You are logged in, and may close this page."
_FAILED = b"<!doctype html><meta charset=utf-8><title>Bowshot</title><p>The login has failed; the program says why."


@dataclass(frozen=True)
class Oidc:
    """Where a person logs in, and for what."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    flow: str = "auto"
    scope: str = "openid offline_access"
    audience: str | None = None
    # Which of the tokens the server wants.
    token: str = "access_token"  # noqa: S105 - a name
    cache: bool = True

    def __post_init__(self) -> None:
        if self.flow not in FLOWS:
            raise InterfaceError(f"`oidc_flow` is one of {', '.join(FLOWS)}, not `{self.flow}`")
        if self.token not in TOKENS:
            raise InterfaceError(f"`oidc_token` is one of {', '.join(TOKENS)}, not `{self.token}`")
        _check_address(self.issuer)


class Login:
    """One person at one provider. Threads and connections share it."""

    def __init__(self, oidc: Oidc) -> None:
        self._oidc = oidc
        self._lock = threading.Lock()
        self._tokens = _read(oidc) if oidc.cache else _Tokens()
        self._document: dict[str, Any] | None = None

    def token(self) -> str:
        """A token that is good for a while: the one that is there, a renewed one, or that of a new login."""
        with self._lock:
            if self._tokens.until - _AHEAD_S > time.time():
                return self._tokens.token
            if not self._renewed():
                self._take(self._log_in())
            return self._tokens.token

    def forget(self) -> None:
        """The server does not take the token: the next one is renewed, or that of a new login."""
        with self._lock:
            self._tokens.until = 0.0

    def _renewed(self) -> bool:
        if self._tokens.refresh is None:
            return False
        try:
            self._take(self._ask("token_endpoint", grant_type="refresh_token", refresh_token=self._tokens.refresh))
        except _RefusedError:
            # It has ended, or was taken back.
            self._tokens = _Tokens()
            return False
        return True

    def _take(self, answer: dict[str, Any]) -> None:
        token = answer.get(self._oidc.token)
        if not isinstance(token, str):
            raise UnauthenticatedError(
                f"the provider has given no {self._oidc.token}",
                hint="choose the other one with `oidc_token`, or another `oidc_scope`",
            )
        until = _number(_claims(token).get("exp"), time.time() + _number(answer.get("expires_in"), _TOKEN_S))
        refresh = answer.get("refresh_token")
        self._tokens = _Tokens(token, until, refresh if isinstance(refresh, str) and refresh else self._tokens.refresh)
        if self._oidc.cache:
            _write(self._oidc, self._tokens)

    def _log_in(self) -> dict[str, Any]:
        flow = self._oidc.flow
        if flow == "auto":
            flow = "browser" if _has_browser() or "device_authorization_endpoint" not in self._discovered() else "device"
        if flow == "cached":
            raise UnauthenticatedError("nobody is logged in", hint="log in once with another `oidc_flow`")
        return self._by_browser() if flow == "browser" else self._by_device()

    def _by_device(self) -> dict[str, Any]:
        more = {} if self._oidc.audience is None else {"audience": self._oidc.audience}
        code = self._ask("device_authorization_endpoint", scope=self._oidc.scope, **more)
        place = code.get("verification_uri_complete") or code.get("verification_uri")
        print(f"To log in, open {place} and enter the code {code.get('user_code')}", file=sys.stderr, flush=True)
        pause, until = (
            _number(code.get("interval"), 5),
            time.monotonic() + min(_number(code.get("expires_in"), 600), _LONGEST_S),
        )
        while time.monotonic() < until:
            time.sleep(min(pause, _LONGEST_S))
            try:
                return self._ask("token_endpoint", grant_type=_DEVICE, device_code=str(code.get("device_code")))
            except _RefusedError as refused:
                if refused.code == "slow_down":
                    pause += 5
                elif refused.code != "authorization_pending":
                    raise
        raise UnauthenticatedError("nobody has entered the code in time", hint="connect again for a new one")

    def _by_browser(self) -> dict[str, Any]:
        verifier, state, nonce = (secrets.token_urlsafe(48) for _ in range(3))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        with _Return(state) as back:
            asked = {
                "response_type": "code", "client_id": self._oidc.client_id, "redirect_uri": back.uri, "scope": self._oidc.scope,
                "state": state, "nonce": nonce, "code_challenge": challenge, "code_challenge_method": "S256",
                **({} if self._oidc.audience is None else {"audience": self._oidc.audience}),
            }  # fmt: skip
            place = self._endpoint("authorization_endpoint")
            page = f"{place}{'&' if '?' in place else '?'}{urllib.parse.urlencode(asked)}"
            if not webbrowser.open(page):
                print(f"To log in, open {page}", file=sys.stderr, flush=True)
            code = back.wait(_BROWSER_S)
            answer = self._ask(
                "token_endpoint", grant_type="authorization_code", code=code, redirect_uri=back.uri, code_verifier=verifier
            )
        if _claims(answer.get("id_token")).get("nonce", nonce) != nonce:
            raise UnauthenticatedError("the provider has answered another login", hint="connect again")
        return answer

    def _discovered(self) -> dict[str, Any]:
        if self._document is None:
            document = _call(self._oidc.issuer.rstrip("/") + "/.well-known/openid-configuration", None)
            if str(document.get("issuer", "")).rstrip("/") != self._oidc.issuer.rstrip("/"):
                raise UnauthenticatedError(
                    "the provider calls itself otherwise than `oidc_issuer`", hint="write it as the provider does"
                )
            self._document = document
        return self._document

    def _endpoint(self, name: str) -> str:
        place = self._discovered().get(name)
        if not isinstance(place, str):
            raise UnauthenticatedError(f"the provider has no {name}", hint="choose another `oidc_flow`")
        _check_address(place)
        return place

    def _ask(self, endpoint: str, **form: str) -> dict[str, Any]:
        said = {"client_id": self._oidc.client_id, **form}
        if self._oidc.client_secret is not None:
            said["client_secret"] = self._oidc.client_secret
        return _call(self._endpoint(endpoint), said)


class _RefusedError(UnauthenticatedError):
    """What the provider says when it gives no token (RFC 6749 section 5.2)."""

    def __init__(self, code: str, description: str) -> None:
        text = f": {description}" if description else ""
        super().__init__(f"the identity provider refuses the login (`{code}`){text}", hint="connect again to log in")
        self.code = code


@dataclass
class _Tokens:
    token: str = field(default="", repr=False)
    until: float = 0.0
    refresh: str | None = field(default=None, repr=False)


_logins: dict[Oidc, Login] = {}
_logins_lock = threading.Lock()


def login(oidc: Oidc) -> Login:
    """The login of this process."""
    with _logins_lock:
        return _logins.setdefault(oidc, Login(oidc))


def _has_browser() -> bool:
    if sys.platform.startswith("linux") and not (
        "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ or "BROWSER" in os.environ
    ):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return "SSH_CONNECTION" not in os.environ


def _check_address(address: str) -> None:
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")):
        raise InterfaceError("an identity provider is asked over https alone", hint="write https://… as `oidc_issuer`")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A form with secrets in it goes to the address that was checked, and no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def _call(address: str, form: dict[str, str] | None) -> dict[str, Any]:
    data = None if form is None else urllib.parse.urlencode(form).encode()
    request = urllib.request.Request(address, data, {"accept": "application/json"})  # noqa: S310 - checked
    try:
        try:
            with _opener.open(request, timeout=_TIMEOUT_S) as answer:
                return _json(answer.read(_ANSWER_BYTES))
        except urllib.error.HTTPError as refused:
            with refused:
                said = _json(refused.read(_ANSWER_BYTES))
            raise _RefusedError(
                str(said.get("error", refused.code))[:80], str(said.get("error_description", ""))[:300]
            ) from None
    except OSError as error:
        host = urllib.parse.urlsplit(address).netloc
        raise UnavailableError(
            f"the identity provider `{host}` cannot be asked: {error}", hint="look whether it is up"
        ) from None


def _json(content: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        found = json.loads(content)
        if isinstance(found, dict):
            return found
    return {}


def _number(value: Any, otherwise: float) -> float:
    """A positive number that a provider has said, some of them as a text."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        number = float(value)
        if 0 < number < math.inf:
            return number
    return otherwise


def _claims(token: Any) -> dict[str, Any]:
    """What a token says of itself; nothing of one that is no JWT. Whether it is true, the server decides."""
    parts = token.split(".") if isinstance(token, str) else []
    if len(parts) != 3:
        return {}
    with contextlib.suppress(ValueError):
        return _json(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    return {}


class _Return:
    """The page on this machine to which the provider sends the browser back."""

    def __init__(self, state: str) -> None:
        found: dict[str, str] = {}

        class Page(http.server.BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self) -> None:
                address = urllib.parse.urlsplit(self.path)
                said = {name: values[0] for name, values in urllib.parse.parse_qs(address.query).items()}
                ours = address.path == "/callback" and secrets.compare_digest(said.get("state", ""), state)
                if ours and not found:
                    found.update(said)
                body = _DONE if ours and "code" in said else _FAILED
                self.send_response(200 if ours else 404)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._found = found
        self._server = http.server.HTTPServer(("127.0.0.1", 0), Page)
        self._server.timeout = 0.5
        self.uri = f"http://127.0.0.1:{self._server.server_port}/callback"

    def wait(self, seconds: float) -> str:
        """The code that the browser has brought."""
        until = time.monotonic() + seconds
        while not self._found:
            if time.monotonic() > until:
                raise UnauthenticatedError("nobody has logged in in time", hint="connect again")
            self._server.handle_request()
        if "code" not in self._found:
            raise _RefusedError(self._found.get("error", "no code")[:80], self._found.get("error_description", "")[:300])
        return self._found["code"]

    def __enter__(self) -> _Return:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.server_close()


def _path(oidc: Oidc) -> pathlib.Path:
    folder = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    # Whoever has logged in in one way need not do it in another.
    about = (oidc.issuer, oidc.client_id, oidc.scope, oidc.audience, oidc.token)
    name = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
    return pathlib.Path(folder) / "bowshot" / "logins" / f"{name}.json"


def _read(oidc: Oidc) -> _Tokens:
    """What an earlier process has kept; nothing if others could have written or read it."""
    path = _path(oidc)
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        if os.name == "posix":
            about = path.stat()
            if about.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or about.st_uid != os.getuid():
                return _Tokens()
        kept = json.loads(path.read_text(encoding="utf-8"))
        return _Tokens(str(kept["token"]), float(kept["until"]), kept["refresh"])
    return _Tokens()


def _write(oidc: Oidc, tokens: _Tokens) -> None:
    """A login that cannot be kept is one for this process."""
    path = _path(oidc)
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Made so that only its owner can open it.
        handle, name = tempfile.mkstemp(dir=path.parent)
        with open(handle, "w", encoding="utf-8") as file:
            json.dump({"token": tokens.token, "until": tokens.until, "refresh": tokens.refresh}, file)
        os.replace(name, path)
