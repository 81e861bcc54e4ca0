"""Where to connect and how: addresses, keyword arguments and profiles become one `Config`."""

from __future__ import annotations

import os
import pathlib
import stat
import sys
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bowshot._errors import InterfaceError
from bowshot._messages import OptionValue
from bowshot._oidc import Oidc

DEFAULT_PORT = 50051
_PLAIN = ("grpc", "grpc+tcp", "bowshot")
_TLS = ("grpc+tls", "grpcs", "bowshot+tls", "bowshots")


@dataclass(frozen=True)
class Config:
    """What a connection is made from. Its text shows no secrets."""

    host: str
    port: int
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    # Where a token is to be had, instead of one.
    oidc: Oidc | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    autocommit: bool = False
    timeout: float | None = None
    connect_timeout: float = 20.0
    progress: bool | None = None
    tls_ca: bytes | None = field(default=None, repr=False)
    tls_cert: bytes | None = field(default=None, repr=False)
    tls_key: bytes | None = field(default=None, repr=False)
    tls_verify: bool = True
    tls_server_name: str | None = None
    # Whether rows come in memory that a server on this machine shares; None: where that is possible.
    same_host: bool | None = None

    @property
    def location(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"grpc+{'tls' if self.tls else 'tcp'}://{host}:{self.port}"


def configure(uri: str, **arguments: Any) -> Config:
    """The configuration of an address, a profile or both; what is given as an argument counts most."""
    given = {name: value for name, value in arguments.items() if value is not None}
    if uri.startswith("profile:"):
        profile = read_profile(uri.removeprefix("profile:"))
        if "uri" not in profile:
            raise InterfaceError(f"profile `{uri.removeprefix('profile:')}` has no `uri`")
        uri, given = str(profile.pop("uri")), _merge(profile, given)
    config, from_uri = _parse(uri)
    return _apply(config, _merge(from_uri, given))


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**base, **over}
    if "options" in base and "options" in over:
        merged["options"] = {**base["options"], **over["options"]}
    # A token that is given stands against a password that was there, and the other way round.
    ways = {
        "token": ("user", "password", "oidc_"),
        "password": ("token", "oidc_"),
        "oidc_issuer": ("user", "password", "token"),
    }
    for way in (way for way in ways if way in over):
        merged = {name: value for name, value in merged.items() if name in over or not name.startswith(ways[way])}
    return merged


def _parse(uri: str) -> tuple[Config, dict[str, Any]]:
    parts = urllib.parse.urlsplit(uri if "://" in uri else f"grpc://{uri}")
    if parts.scheme not in _PLAIN + _TLS or not parts.hostname:
        raise InterfaceError(
            f"`{parts.scheme if '://' in uri else uri}` is no address of a server",
            hint="write HOST:PORT, grpc://HOST:PORT, grpc+tls://HOST:PORT, bowshot://HOST:PORT/CATALOG/SCHEMA or profile:NAME",
        )
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise InterfaceError("the port of the address is no number from 1 to 65535") from None
    found: dict[str, Any] = {}
    for name in ("username", "password"):
        value = getattr(parts, name)
        if value:
            found["user" if name == "username" else name] = urllib.parse.unquote(value)
    options: dict[str, OptionValue] = {}
    names = [urllib.parse.unquote(part) for part in parts.path.split("/") if part]
    if len(names) > 2:
        raise InterfaceError("an address has at most a catalog and a schema behind the host")
    options.update(zip(("catalog", "schema"), names, strict=False))
    for name, value in urllib.parse.parse_qsl(parts.query, keep_blank_values=True):
        if name in _FROM_TEXT:
            found[name] = _FROM_TEXT[name](value)
        else:
            options[name] = value
    if options:
        found["options"] = options
    return Config(parts.hostname, port, tls=parts.scheme in _TLS), found


def _truth(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise InterfaceError(f"`{text}` is neither true nor false")


def _same_host(value: str | bool) -> bool | None:
    if isinstance(value, bool):
        return value
    return None if value == "auto" else _truth(value)


_LOGIN: dict[str, Any] = {
    f"oidc_{name}": _truth if name == "cache" else str for name in Oidc.__dataclass_fields__ if name != "client_secret"
}
# What an address may say behind its question mark; everything else is an option of the session.
_FROM_TEXT: dict[str, Any] = {
    "token": str,
    "tls": _truth,
    "tls_ca": str,
    "tls_cert": str,
    "tls_key": str,
    "tls_verify": _truth,
    "tls_server_name": str,
    "autocommit": _truth,
    "timeout": float,
    "connect_timeout": float,
    "progress": _truth,
    "same_host": str,
    **_LOGIN,
}


def _apply(config: Config, given: dict[str, Any]) -> Config:
    known = (set(Config.__dataclass_fields__) - {"oidc", "host", "port"}) | set(_LOGIN)
    unknown = sorted(set(given) - known)
    if unknown:
        raise InterfaceError(f"`{unknown[0]}` is no setting of a connection")
    for name in ("tls_ca", "tls_cert", "tls_key"):
        if name in given:
            given[name] = _pem(given[name])
    given = _with_login(given)
    if "same_host" in given:
        given["same_host"] = _same_host(given["same_host"])
    if not given.get("tls", config.tls) and any(name in given for name in ("tls_ca", "tls_cert", "tls_server_name")):
        raise InterfaceError("there are settings of TLS for an address without TLS", hint="write grpc+tls://HOST:PORT")
    if ("user" in given) + ("token" in given) + ("oidc" in given) > 1:
        raise InterfaceError("there are several of a user, a token and an identity provider", hint="give one of them")
    return replace(config, **given)


def _with_login(given: dict[str, Any]) -> dict[str, Any]:
    """Settings whose names begin with `oidc_` are one."""
    asked = {name.removeprefix("oidc_"): value for name, value in given.items() if name.startswith("oidc_")}
    if not asked:
        return given
    if not {"issuer", "client_id"} <= set(asked):
        raise InterfaceError("a login at an identity provider needs `oidc_issuer` and `oidc_client_id`")
    return {**{name: value for name, value in given.items() if not name.startswith("oidc_")}, "oidc": Oidc(**asked)}


def _pem(value: str | bytes | os.PathLike[str]) -> bytes:
    """A certificate or key, given as it is or as the path of its file."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str) and value.lstrip().startswith("-----BEGIN"):
        return value.encode()
    try:
        return pathlib.Path(value).read_bytes()
    except OSError as error:
        raise InterfaceError(f"file `{os.fspath(value)}` cannot be read: {error.strerror}") from error


def profiles_path() -> pathlib.Path:
    """`BOWSHOT_PROFILES`, else `bowshot/profiles.toml` in the folder for configuration."""
    if "BOWSHOT_PROFILES" in os.environ:
        return pathlib.Path(os.environ["BOWSHOT_PROFILES"])
    folder = os.environ.get("XDG_CONFIG_HOME") or pathlib.Path.home() / ".config"
    return pathlib.Path(folder) / "bowshot" / "profiles.toml"


def read_profile(name: str) -> dict[str, Any]:
    """One table of the file of profiles. `password_env` and `token_env` name variables of the environment."""
    path = profiles_path()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InterfaceError(f"there are no profiles: `{path}` cannot be read: {error.strerror}") from error
    profiles = _toml(text, path)
    profile = profiles.get(name)
    if not isinstance(profile, dict):
        known = ", ".join(sorted(name for name, value in profiles.items() if isinstance(value, dict)))
        raise InterfaceError(f"there is no profile `{name}` in `{path}`", hint=f"there are: {known}" if known else None)
    profile = dict(profile)
    secrets = ("password", "token", "oidc_client_secret")
    if any(secret in profile for secret in secrets):
        _check_private(path)
    for secret in secrets:
        variable = profile.pop(f"{secret}_env", None)
        if variable is not None:
            if variable not in os.environ:
                raise InterfaceError(f"profile `{name}` takes its {secret} from `{variable}`, which is not set")
            profile[secret] = os.environ[variable]
    return profile


def _check_private(path: pathlib.Path) -> None:
    if os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InterfaceError(
            f"`{path}` has a secret in it and others may read it",
            hint=f"chmod 600 {path}, or name a variable of the environment with `password_env`",
        )


def _toml(text: str, path: pathlib.Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib as toml
    else:
        try:
            import tomli as toml
        except ImportError:
            raise InterfaceError("profiles need a reader of TOML on Python 3.10", hint="pip install tomli") from None
    try:
        return dict(toml.loads(text))
    except toml.TOMLDecodeError as error:
        raise InterfaceError(f"`{path}` is no TOML: {error}") from error
