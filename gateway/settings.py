"""settings.json -> one frozen Settings, read once at start; every part gets its slice as an argument.

Top level: the policy keys (defaults for every model), then `server`, `limits`, `log`, `keys`, `profiles`, `backends`,
`models`.
"""

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_args

import msgspec

from gateway.errors import SettingsError
from gateway.notices import Level
from gateway.policy import Policy
from gateway.profiles import PROFILES, Profile
from gateway.settings_lines import with_line
from gateway.types import Json, JsonObject

Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
NotNegative: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Port: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=65535)]


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where and how clients are served. Times in seconds.

    `api_keys_env` names the variable that holds the clients' keys, separated by commas, `api_keys_file` a file with
    `name:key` lines. Without any key the gateway is open, and binds to loopback addresses only. `allowed_hosts` are
    the names, besides localhost, under which browsers and clients may address a gateway bound to loopback (a foreign
    name there is DNS rebinding).
    `max_connections` null: as many as the file descriptor limit allows. `max_requests` are served at once by each
    worker; more are refused at once with a 503. `reload` reads the file again when it changes.
    """

    host: str = "127.0.0.1"
    port: Port = 8000
    workers: Annotated[int, msgspec.Meta(ge=1, le=256)] = 1
    reload: bool = True
    api_keys_env: str | None = "DRAGOMAN_API_KEYS"
    api_keys_file: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    max_connections: Count | None = None
    max_requests: Count | None = 1000
    max_body_mb: Positive = 32
    head_timeout_s: Positive = 10
    first_event_gate_s: Positive = 15
    keep_alive_s: Positive = 15
    write_timeout_s: Positive = 60
    drain_s: NotNegative = 10


class KeySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the holder of one client key may do; null: anything. `concurrent_streams` counts all running requests."""

    models: tuple[str, ...] | None = None
    requests_per_minute: Count | None = None
    concurrent_streams: Count | None = None


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much a backend may send: one event, one whole response."""

    max_event_mb: Positive = 4
    max_response_mb: Positive = 64


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the log goes besides stderr, and from which level on. `file` null: stderr only.

    `bodies` adds what clients ask to the DEBUG lines: conversations on disk, so it is never on by itself.
    """

    level: Level = "info"
    file: str | None = "logs/gateway.log"
    max_mb: Positive = 16
    backups: Annotated[int, msgspec.Meta(ge=0)] = 3
    bodies: bool = False


class Timeouts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Deadlines towards a backend, in seconds. `idle` counts progress of the answer, not bytes."""

    connect: Positive = 2
    first_byte: Positive = 60
    idle: Positive = 60
    total: Positive = 600


class RefreshCredential(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bearer token that is bought with a refresh token (RFC 6749, section 6).

    `refresh_token_env` names the variable with the first refresh token, `store` the file (mode 0600) that keeps a
    rotated one. `token_field` is the field of the reply that becomes the bearer token.
    """

    token_url: str
    refresh_token_env: str
    store: str | None = None
    token_field: str = "access_token"

    def __repr__(self) -> str:
        """Without the query of the address: with some issuers it holds a key."""
        return f"RefreshCredential({self.token_url.partition('?')[0]!r}, {self.refresh_token_env!r})"


class BackendSettings(msgspec.Struct, frozen=True):
    """One backend. `options` are the adapter's own keys, checked by the adapter's `Options` type at start.

    `profile` names the provider's rules for every model served here. `max_concurrent` is how many requests it is
    given at once (by each worker).
    """

    adapter: str
    base_url: str
    profile: str | None = None
    api_key_env: str | None = None
    api_key_header: str = "authorization"
    refresh: RefreshCredential | None = None
    headers: Mapping[str, str] = {}
    timeouts: Timeouts = Timeouts()
    max_concurrent: Count | None = None
    options: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        """Without the values of headers, which may be keys."""
        return f"BackendSettings({self.adapter!r}, {self.base_url!r}, headers={sorted(self.headers)})"


class ModelSettings(msgspec.Struct, frozen=True):
    """What a client's model name stands for: a backend, the name there (None: unchanged) and the route's policy."""

    backend: str
    name: str | None
    policy: Policy


class Settings(msgspec.Struct, frozen=True):
    """The whole of settings.json."""

    policy: Policy = Policy()
    server: ServerSettings = ServerSettings()
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()
    keys: Mapping[str, KeySettings] = {}
    profiles: Mapping[str, Profile] = msgspec.field(default_factory=lambda: PROFILES)
    backends: Mapping[str, BackendSettings] = {}
    models: Mapping[str, ModelSettings] = {}

    def route(self, model: str) -> ModelSettings | None:
        """The entry for a model name, or the `"*"` entry, or None."""
        return self.models.get(model) or self.models.get("*")


ALIASES: Final = {"max_history": "max_history_messages", "disable_builtin_tools": "disable_warp_tools"}
_POLICY_KEYS: Final = frozenset(Policy.__struct_fields__)
_BACKEND_KEYS: Final = frozenset(BackendSettings.__struct_fields__) - {"options"}

S = TypeVar("S", bound=msgspec.Struct)


def load_settings(path: Path) -> Settings:
    """Read and check a settings file. Raises SettingsError that names the setting (or the line of bad JSON)."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from error
    try:
        return parse_settings(text)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error.message}") from error


def parse_settings(text: str) -> Settings:
    """The text of a settings file as Settings. Raises SettingsError."""
    # json, not msgspec: it is what tells the line of a mistake, and start-up is no hot path.
    import json

    try:
        raw = json.loads(text, object_pairs_hook=_no_duplicates, parse_float=_finite, parse_constant=_finite)
    except json.JSONDecodeError as error:
        raise SettingsError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise SettingsError("it is nested too deep") from error
    except ValueError as error:
        raise SettingsError(f"it holds a number that is too large: {error}") from error
    try:
        return read_settings(raw)
    except SettingsError as error:
        raise SettingsError(with_line(text, error.message)) from error


def read_settings(raw: Json) -> Settings:
    """Decoded JSON as Settings. Raises SettingsError."""
    top = _object(raw, "settings")
    top = _rename(top, "")
    _check_keys(top, _POLICY_KEYS | (frozenset(Settings.__struct_fields__) - {"policy"}), "")
    profiles = _profiles(_object(top.get("profiles", {}), "profiles"))
    policy_part = {key: value for key, value in top.items() if key in _POLICY_KEYS}
    policy = _policy(policy_part, profiles, "")
    backends = {
        name: _backend(value, f"backends.{name}")
        for name, value in _object(top.get("backends", {}), "backends").items()
    }
    models = {
        name: _model(value, f"models.{name}", policy_part, backends, profiles)
        for name, value in _object(top.get("models", {}), "models").items()
    }
    return Settings(
        policy=policy,
        server=_struct(top.get("server", {}), ServerSettings, "server"),
        limits=_struct(top.get("limits", {}), LimitSettings, "limits"),
        log=_struct(top.get("log", {}), LogSettings, "log"),
        keys=_keys(_object(top.get("keys", {}), "keys"), models),
        profiles=profiles,
        backends=backends,
        models=models,
    )


def _keys(raw: JsonObject, models: Mapping[str, ModelSettings]) -> dict[str, KeySettings]:
    keys = {name: _struct(value, KeySettings, f"keys.{name}") for name, value in raw.items()}
    for name, entry in keys.items():
        for model in entry.models or ():
            if model not in models and "*" not in models:
                raise SettingsError(f"keys.{name}.models: there is no model {model!r}{_nearest(model, models)}")
    return keys


def _backend(raw: Json, where: str) -> BackendSettings:
    entry = _object(raw, where)
    for key in ("adapter", "base_url"):
        if key not in entry:
            raise SettingsError(f"{where}.{key} is missing")
    common = {key: value for key, value in entry.items() if key in _BACKEND_KEYS}
    options = {key: value for key, value in entry.items() if key not in _BACKEND_KEYS}
    backend = _struct(common, BackendSettings, where)
    return msgspec.structs.replace(backend, options=options)


def _model(
    raw: Json,
    where: str,
    defaults: JsonObject,
    backends: Mapping[str, BackendSettings],
    profiles: Mapping[str, Profile],
) -> ModelSettings:
    entry = _rename(_object(raw, where), where)
    _check_keys(entry, _POLICY_KEYS | {"backend", "name"}, where)
    backend, name = entry.get("backend"), entry.get("name")
    if not isinstance(backend, str):
        raise SettingsError(f"{where}.backend must name one of the backends")
    if backend not in backends:
        raise SettingsError(f"{where}.backend: there is no backend {backend!r}{_nearest(backend, backends)}")
    if name is not None and not isinstance(name, str):
        raise SettingsError(f"{where}.name must be text")
    own = {key: value for key, value in entry.items() if key in _POLICY_KEYS}
    if (profile := backends[backend].profile) is not None:
        own = {"profile": profile, **own}
    return ModelSettings(backend, name, _policy({**defaults, **own}, profiles, where))


def _policy(raw: dict[str, Json], profiles: Mapping[str, Profile], where: str) -> Policy:
    raw = dict(raw)
    profile = _profile(raw.pop("profile", "none"), profiles, _path(where, "profile"))
    policy = msgspec.structs.replace(_struct(raw, Policy, where), profile=profile)
    for part, place in (
        (policy, where),
        (policy.recent_tool_results, _path(where, "recent_tool_results")),
        (policy.loop_guard, _path(where, "loop_guard")),
    ):
        _check_not_negative(part, place)
    for pattern in policy.recent_tool_results.redact:
        _check_pattern(pattern, _path(where, "recent_tool_results.redact"))
    return policy


def override_policy(policy: Policy, changes: JsonObject, profiles: Mapping[str, Profile]) -> Policy:
    """The policy with some of its keys set anew, as a model entry would. Raises SettingsError."""
    if not changes:
        return policy
    changes = _rename(dict(changes), "")
    _check_keys(changes, _POLICY_KEYS, "settings")
    kept = {key: value for key, value in msgspec.to_builtins(policy).items() if key != "profile"}
    changed = _policy({**kept, **changes}, profiles, "settings")
    return changed if "profile" in changes else msgspec.structs.replace(changed, profile=policy.profile)


def _check_not_negative(part: msgspec.Struct, where: str) -> None:
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if isinstance(value, int) and value < 0:
            raise SettingsError(f"{_path(where, name)} must be a whole number of 0 or more; it is {value}")


def _check_pattern(pattern: str, where: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise SettingsError(f"{where}: {pattern!r} is no regular expression: {error}") from error


def _profiles(raw: JsonObject) -> dict[str, Profile]:
    """The built-in profiles and the file's own, each made from its `base`."""
    profiles = dict(PROFILES)
    for name, value in raw.items():
        where = f"profiles.{name}"
        entry = dict(_object(value, where))
        base = _profile(entry.pop("base", "none"), profiles, f"{where}.base")
        profiles[name] = _struct({**msgspec.to_builtins(base), **entry}, Profile, where)
    return profiles


def _profile(name: Json, profiles: Mapping[str, Profile], where: str) -> Profile:
    if not isinstance(name, str) or name not in profiles:
        nearest = _nearest(name, profiles) if isinstance(name, str) else ""
        raise SettingsError(f"{where}: there is no profile {name!r}{nearest}")
    return profiles[name]


def _struct(raw: Json, kind: type[S], where: str) -> S:
    entry = _object(raw, where)
    _check_fields(entry, kind, where)
    try:
        return msgspec.convert(entry, kind)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        raise SettingsError(f"{_path(where, path.rstrip('`').lstrip('.'))}: {reason}") from error


def _check_fields(entry: JsonObject, kind: type[msgspec.Struct], where: str) -> None:
    """Unknown names, here and below; and 10.0, a float to whoever reads the file, though decoders would take it."""
    _check_keys(entry, kind.__struct_fields__, where)
    for field in msgspec.structs.fields(kind):
        value = entry.get(field.name)
        below = _path(where, field.name)
        if isinstance(value, float) and field.type in (int, int | None):
            raise SettingsError(f"{below} must be a whole number; it is {value}")
        for part in get_args(field.type) if isinstance(field.type, UnionType) else (field.type,):
            if isinstance(value, dict) and isinstance(part, type) and issubclass(part, msgspec.Struct):
                _check_fields(value, part, below)


def _check_keys(entry: JsonObject, known: Iterable[str], where: str) -> None:
    for key in entry:
        if key not in known:
            raise SettingsError(f"unknown setting {_path(where, key)!r}{_nearest(key, known)}")


def check_options(options: JsonObject, kind: type[S], where: str) -> S:
    """An adapter's own keys as its Options. Raises SettingsError like every other part of the file."""
    for key in options:
        if key not in kind.__struct_fields__:
            raise SettingsError(
                f"unknown setting {_path(where, key)!r}{_nearest(key, {*_BACKEND_KEYS, *kind.__struct_fields__})}"
            )
    return _struct(dict(options), kind, where)


def _rename(entry: dict[str, Json], where: str) -> dict[str, Json]:
    renamed: dict[str, Json] = {}
    for key, value in entry.items():
        name = ALIASES.get(key, key)
        if name in renamed:
            raise SettingsError(f"{_path(where, name)} is set twice, once under an alias")
        renamed[name] = value
    return renamed


def _object(raw: Json, where: str) -> dict[str, Json]:
    if not isinstance(raw, dict):
        raise SettingsError(f"{where or 'settings'} must be an object")
    return raw


def _path(where: str, name: str) -> str:
    return ".".join(part for part in (where, name) if part)


def _nearest(key: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise SettingsError(f"{text} is not a number a setting can have")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for key, value in pairs:
        if key in entry:
            raise SettingsError(f"the setting {key!r} stands twice in one object")
        entry[key] = value
    return entry


def override_server(settings: Settings, host: str | None, port: str | None, workers: str | None = None) -> Settings:
    """The settings with what the command line or the environment says of the server. Raises SettingsError."""
    changes: dict[str, Json] = {}
    if host:
        changes["host"] = host
    if port is not None:
        if not (port.isascii() and port.isdigit()):
            raise SettingsError(f"the port must be a number from 0 to 65535; it is {port!r}")
        changes["port"] = int(port[:9])
    if workers is not None:
        if not (workers.isascii() and workers.isdigit()):
            raise SettingsError(f"the number of workers must be a number from 1 to 256; it is {workers!r}")
        changes["workers"] = int(workers[:9])
    if not changes:
        return settings
    server = _struct({**msgspec.to_builtins(settings.server), **changes}, ServerSettings, "server")
    return msgspec.structs.replace(settings, server=server)


def secret(variable: str | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """The secret that a setting names by environment variable; None when it names none. Raises SettingsError."""
    if variable is None:
        return None
    value = environ.get(variable, "").strip()
    if not value:
        raise SettingsError(f"the environment variable {variable} is named in the settings but not set")
    return value
