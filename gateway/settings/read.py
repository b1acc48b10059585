"""Reads settings.json into Settings, checks every part, and names the key and the line of every mistake."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import SettingsError
from gateway.core.policy import Policy
from gateway.core.profiles import PROFILES, Profile
from gateway.settings.check import (
    S,
    check_keys,
    check_not_negative,
    check_pattern,
    nearest,
    path_of,
    read_object,
    read_struct,
)
from gateway.settings.compression import check_compression, compress_settings, without_unset_limits
from gateway.settings.descriptor_files import read_descriptor_set
from gateway.settings.line_numbers import with_line
from gateway.settings.model_names import ModelNames
from gateway.settings.presets import preset_defaults
from gateway.settings.values import (
    BackendSettings,
    CompressSettings,
    InspectorSettings,
    KeeperSettings,
    KeySettings,
    LimitSettings,
    LogSettings,
    ModelSettings,
    Price,
    ResponsesSettings,
    ServerSettings,
    Settings,
    StateSettings,
    TracingSettings,
)

ALIASES: Final = {"max_history": "max_history_messages", "disable_builtin_tools": "disable_warp_tools"}
_POLICY_KEYS: Final = frozenset(Policy.__struct_fields__)
# A backend entry may set these limits; a native backend has no others.
LIMITS: Final = ("max_tool_results", "max_history_messages")
STORE: Final = re.compile(r"memory|sqlite:.+|(valkeys?|rediss?)://.+")
_BACKEND_KEYS: Final = frozenset(BackendSettings.__struct_fields__) - {"options"}
# Names the JSON Schema of the file, for editors; the gateway does not read it.
SCHEMA_KEY: Final = "$schema"
MODEL_KEYS: Final = _POLICY_KEYS | {"backend", "name", "context_length", "compress", "responses", "keeper", "price"}
# The responses of one history may be of several models: they live as long as each other.
MODEL_RESPONSES_KEYS: Final = frozenset({"store"})
# A worker has one memory, whichever models the states are of.
MODEL_KEEPER_KEYS: Final = frozenset(KeeperSettings.__struct_fields__) - {"max_mb"}


def load_settings(path: Path) -> Settings:
    """Reads and checks a settings file. Raises SettingsError that names the setting (or the line of bad JSON)."""
    text = read_text(path)
    try:
        return parse_settings(text)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error.message}") from error


def read_text(path: Path) -> str:
    """Returns the text of a settings file. Raises SettingsError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"{path}: cannot be read: {reason}") from error


def with_place(path: Path, message: str) -> str:
    """A message about a key whose value turned out to be wrong after the file was read, with the file and the line; any
    other message as it is."""
    try:
        located = with_line(path.read_text(encoding="utf-8-sig"), message)
    except (OSError, UnicodeDecodeError):
        return message
    return message if located == message else f"{path}: {located}"


def parse_settings(text: str) -> Settings:
    """Returns the text of a settings file as Settings. Raises SettingsError."""
    raw = decode_settings(text)
    try:
        return read_settings(raw)
    except SettingsError as error:
        raise SettingsError(with_line(text, error.message)) from error


def decode_settings(text: str) -> Json:
    """Returns the JSON of a settings file. Raises SettingsError for text that is none, or that sets a key twice."""
    # json, not msgspec: it reports the line of a mistake, and start-up is no hot path.
    import json

    try:
        decoded: Json = json.loads(text, object_pairs_hook=_no_duplicates, parse_float=_finite, parse_constant=_finite)
    except json.JSONDecodeError as error:
        raise SettingsError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise SettingsError("it is nested too deep") from error
    except ValueError as error:
        raise SettingsError(f"it contains a number that is too large: {error}") from error
    return decoded


def read_settings(raw: Json) -> Settings:
    """Returns decoded JSON as Settings. Raises SettingsError."""
    top = read_object(raw, "settings")
    top = _without_aliases(top, "")
    if not isinstance(top.pop(SCHEMA_KEY, ""), str):
        raise SettingsError(f"{SCHEMA_KEY} must be text: the address of a JSON Schema")
    check_keys(top, _POLICY_KEYS | (frozenset(Settings.__struct_fields__) - {"policy"}), "")
    profiles = _profiles(read_object(top.get("profiles", {}), "profiles"))
    policy_part = {key: value for key, value in top.items() if key in _POLICY_KEYS}
    policy = _policy(policy_part, profiles, "")
    backends = {
        name: _backend(value, f"backends.{name}", profiles)
        for name, value in read_object(top.get("backends", {}), "backends").items()
    }
    compress_part = read_object(top.get("compress", {}), "compress")
    compress = read_struct(compress_part, CompressSettings, "compress")
    responses_part = read_object(top.get("responses", {}), "responses")
    keeper_part = read_object(top.get("keeper", {}), "keeper")
    defaults = ModelDefaults(policy_part, compress_part, responses_part, keeper_part)
    models = {
        name: _model(value, f"models.{name}", defaults, backends, profiles)
        for name, value in read_object(top.get("models", {}), "models").items()
    }
    check_compression(models)
    return Settings(
        policy=policy,
        server=read_struct(top.get("server", {}), ServerSettings, "server"),
        limits=read_struct(top.get("limits", {}), LimitSettings, "limits"),
        log=read_struct(top.get("log", {}), LogSettings, "log"),
        tracing=_tracing(top.get("tracing")),
        inspector=read_struct(top.get("inspector", {}), InspectorSettings, "inspector"),
        state=_state(top.get("state", {})),
        keys=_keys(read_object(top.get("keys", {}), "keys"), models),
        compress=compress,
        responses=read_struct(responses_part, ResponsesSettings, "responses"),
        keeper=read_struct(keeper_part, KeeperSettings, "keeper"),
        profiles=profiles,
        backends=backends,
        models=models,
    )


def _tracing(raw: Json) -> TracingSettings | None:
    return None if raw is None else read_struct(raw, TracingSettings, "tracing")


def _state(raw: Json) -> StateSettings:
    state = read_struct(raw, StateSettings, "state")
    if state.store is not None and not STORE.fullmatch(state.store):
        # The text is not shown: the URL of a server may hold a password.
        raise SettingsError(
            "state.store must be memory, sqlite:PATH, or a valkey://, valkeys://, redis:// or rediss:// URL"
        )
    return state


def _keys(raw: JsonObject, models: Mapping[str, ModelSettings]) -> dict[str, KeySettings]:
    keys = {name: read_struct(value, KeySettings, f"keys.{name}") for name, value in raw.items()}
    for name, entry in keys.items():
        for model in entry.models or ():
            if ModelNames(models).find(model) is None:
                raise SettingsError(f"keys.{name}.models: there is no model {model!r}{nearest(model, models)}")
    return keys


def _backend(raw: Json, where: str, profiles: Mapping[str, Profile]) -> BackendSettings:
    entry = _without_aliases(read_object(raw, where), where)
    for key in ("adapter", "base_url"):
        if key not in entry:
            raise SettingsError(f"{where}.{key} is missing")
    common = {key: value for key, value in entry.items() if key in _BACKEND_KEYS}
    options = {key: value for key, value in entry.items() if key not in _BACKEND_KEYS}
    backend = read_struct(common, BackendSettings, where)
    check_not_negative(backend, where)
    if backend.profile is not None:
        _profile(backend.profile, profiles, f"{where}.profile")
    return msgspec.structs.replace(backend, options=options)


class ModelDefaults(msgspec.Struct, frozen=True):
    """What the top level of the file says for every model."""

    policy: JsonObject
    compress: JsonObject
    responses: JsonObject
    keeper: JsonObject


def _model(
    raw: Json,
    where: str,
    defaults: ModelDefaults,
    backends: Mapping[str, BackendSettings],
    profiles: Mapping[str, Profile],
) -> ModelSettings:
    entry = _without_aliases(read_object(raw, where), where)
    check_keys(entry, MODEL_KEYS, where)
    backend, name = entry.get("backend"), entry.get("name")
    if not isinstance(backend, str):
        raise SettingsError(f"{where}.backend must name one of the backends")
    if backend not in backends:
        raise SettingsError(f"{where}.backend: there is no backend {backend!r}{nearest(backend, backends)}")
    if name is not None and not isinstance(name, str):
        raise SettingsError(f"{where}.name must be text")
    length = entry.get("context_length")
    if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 1):
        raise SettingsError(f"{where}.context_length must be a whole number of 1 or more")
    own = {
        **_of_all_models(backends[backend]),
        **{key: value for key, value in entry.items() if key in _POLICY_KEYS},
    }
    inherited = frozenset(LIMITS) - own.keys()
    compress = compress_settings(defaults.compress, entry.get("compress", {}), path_of(where, "compress"))
    given = {**defaults.policy, **own}
    policy = _policy(without_unset_limits(given, LIMITS) if compress.enabled else given, profiles, where)
    responses = _responses(defaults.responses, entry.get("responses", {}), path_of(where, "responses"))
    keeper = _keeper(defaults.keeper, entry.get("keeper", {}), path_of(where, "keeper"))
    given_price = entry.get("price")
    price = None if given_price is None else read_struct(given_price, Price, path_of(where, "price"))
    return ModelSettings(backend, name, policy, inherited, length, compress, responses, keeper, price)


def _responses(defaults: JsonObject, own: Json, where: str) -> ResponsesSettings:
    entry = read_object(own, where)
    check_keys(entry, MODEL_RESPONSES_KEYS, where)
    return read_struct({**defaults, **entry}, ResponsesSettings, where)


def _keeper(defaults: JsonObject, own: Json, where: str) -> KeeperSettings:
    entry = read_object(own, where)
    check_keys(entry, MODEL_KEEPER_KEYS, where)
    return read_struct({**defaults, **entry}, KeeperSettings, where)


def _of_all_models(backend: BackendSettings) -> dict[str, Json]:
    """Returns the policy keys that a backend entry sets for all its models."""
    limits = {name: getattr(backend, name) for name in LIMITS}
    own: dict[str, Json] = {name: value for name, value in limits.items() if value is not msgspec.UNSET}
    return own if backend.profile is None else {"profile": backend.profile, **own}


def _policy(raw: dict[str, Json], profiles: Mapping[str, Profile], where: str) -> Policy:
    raw = dict(raw)
    profile = _profile(raw.pop("profile", "none"), profiles, path_of(where, "profile"))
    policy = msgspec.structs.replace(read_struct(raw, Policy, where), profile=profile)
    for part, place in (
        (policy, where),
        (policy.recent_tool_results, path_of(where, "recent_tool_results")),
        (policy.loop_guard, path_of(where, "loop_guard")),
    ):
        check_not_negative(part, place)
    for pattern in policy.recent_tool_results.redact:
        check_pattern(pattern, path_of(where, "recent_tool_results.redact"))
    return policy


def override_policy(policy: Policy, changes: JsonObject, profiles: Mapping[str, Profile]) -> Policy:
    """Returns the policy with some keys overridden, as by a model entry. Raises SettingsError."""
    if not changes:
        return policy
    changes = _without_aliases(dict(changes), "")
    check_keys(changes, _POLICY_KEYS, "settings")
    kept = {key: value for key, value in msgspec.to_builtins(policy).items() if key != "profile"}
    changed = _policy({**kept, **changes}, profiles, "settings")
    return changed if "profile" in changes else msgspec.structs.replace(changed, profile=policy.profile)


def _profiles(raw: JsonObject) -> dict[str, Profile]:
    """Returns the built-in profiles and the file's own, each made from its `base`."""
    profiles = dict(PROFILES)
    for name, value in raw.items():
        where = f"profiles.{name}"
        entry = dict(read_object(value, where))
        check_keys(entry, (*Profile.__struct_fields__, "base"), where)
        base = _profile(entry.pop("base", "none"), profiles, f"{where}.base")
        profiles[name] = read_struct({**msgspec.to_builtins(base), **entry}, Profile, where)
    return profiles


def _profile(name: Json, profiles: Mapping[str, Profile], where: str) -> Profile:
    if not isinstance(name, str) or name not in profiles:
        meant = nearest(name, profiles) if isinstance(name, str) else ""
        raise SettingsError(f"{where}: there is no profile {name!r}{meant}")
    return profiles[name]


def check_options(options: JsonObject, kind: type[S], where: str) -> S:
    """Returns an adapter's own keys as its Options: over those of the preset that they name, and with the files read
    that describe a schema (`DescriptorSet`). Raises SettingsError like every other part of the file."""
    check_keys(options, (*kind.__struct_fields__, *sorted(_BACKEND_KEYS)), where)
    entry: dict[str, Any] = dict(options)  # Any: beside JSON it holds descriptors that were read
    for field in msgspec.structs.fields(kind):
        if field.type is DescriptorSet and field.name in options:
            entry[field.name] = read_descriptor_set(options[field.name], path_of(where, field.name))
    return read_struct({**preset_defaults(options, kind, where), **entry}, kind, where)


def _without_aliases(entry: dict[str, Json], where: str) -> dict[str, Json]:
    renamed: dict[str, Json] = {}
    for key, value in entry.items():
        name = ALIASES.get(key, key)
        if name in renamed:
            raise SettingsError(f"{path_of(where, name)} is set twice, once under an alias")
        renamed[name] = value
    return renamed


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise SettingsError(f"{text} is not a number a setting can have")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for key, value in pairs:
        if key in entry:
            raise SettingsError(f"the setting {key!r} is set twice in one object")
        entry[key] = value
    return entry
