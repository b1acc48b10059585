"""Reads settings.json into Settings, checks every part, and names the key and the line of every mistake."""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import SettingsError
from gateway.core.model_facts import claude_id
from gateway.providers.profile import Profile
from gateway.settings.budgets import check_budgets
from gateway.settings.candidates import check_candidates
from gateway.settings.check import (
    S,
    check_keys,
    check_not_negative,
    fault,
    nearest,
    path_of,
    read_object,
    read_struct,
    unknown_name,
)
from gateway.settings.compression import check_compression
from gateway.settings.decode import decode_settings, read_text
from gateway.settings.descriptor_files import read_descriptor_set
from gateway.settings.line_numbers import with_line
from gateway.settings.model_entry import ModelDefaults, read_model
from gateway.settings.model_names import ModelNames, exact_names
from gateway.settings.passed_routes import check_passed_routes
from gateway.settings.policies import POLICY_KEYS, find_profile, read_policy, read_profiles, without_aliases
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
    ResponsesSettings,
    ServerSettings,
    Settings,
    StateSettings,
    TracingSettings,
    VisionSettings,
)
from gateway.settings.vision import check_vision

STORE: Final = re.compile(r"memory|sqlite:.+|(valkeys?|rediss?)://.+")
_BACKEND_KEYS: Final = frozenset(BackendSettings.__struct_fields__) - {"options"}
# Names the JSON Schema of the file, for editors; the gateway does not read it.
SCHEMA_KEY: Final = "$schema"


def load_settings(path: Path) -> Settings:
    """Reads and checks a settings file. Raises SettingsError that names the setting (or the line of bad JSON)."""
    text = read_text(path)
    try:
        return parse_settings(text)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error.message}") from error


def parse_settings(text: str) -> Settings:
    """Returns the text of a settings file as Settings. Raises SettingsError."""
    raw = decode_settings(text)
    try:
        return read_settings(raw)
    except SettingsError as error:
        raise SettingsError(with_line(text, error.message)) from error


def read_settings(raw: Json) -> Settings:
    """Returns decoded JSON as Settings. Raises SettingsError."""
    top = read_object(raw, "settings")
    top = without_aliases(top, "")
    if not isinstance(top.pop(SCHEMA_KEY, ""), str):
        raise SettingsError(f"{SCHEMA_KEY} must be text: the address of a JSON Schema")
    check_keys(top, POLICY_KEYS | (frozenset(Settings.__struct_fields__) - {"policy"}), "")
    profiles = read_profiles(read_object(top.get("profiles", {}), "profiles"))
    policy_part = {key: value for key, value in top.items() if key in POLICY_KEYS}
    policy = read_policy(policy_part, profiles, "")
    backends = {
        name: _backend(value, f"backends.{name}", profiles)
        for name, value in read_object(top.get("backends", {}), "backends").items()
    }
    check_passed_routes(backends)
    compress_part = read_object(top.get("compress", {}), "compress")
    compress = read_struct(compress_part, CompressSettings, "compress")
    responses_part = read_object(top.get("responses", {}), "responses")
    keeper_part = read_object(top.get("keeper", {}), "keeper")
    defaults = ModelDefaults(policy_part, compress_part, responses_part, keeper_part)
    models = {
        name: read_model(value, f"models.{name}", defaults, backends, profiles)
        for name, value in read_object(top.get("models", {}), "models").items()
    }
    check_compression(models)
    check_candidates(models)
    server = read_struct(top.get("server", {}), ServerSettings, "server")
    _check_ids(server, models)
    vision = read_struct(top.get("vision", {}), VisionSettings, "vision")
    check_vision(models, vision)
    keys = _keys(read_object(top.get("keys", {}), "keys"), models)
    check_budgets(keys, models, vision)
    return Settings(
        policy=policy,
        server=server,
        limits=read_struct(top.get("limits", {}), LimitSettings, "limits"),
        log=read_struct(top.get("log", {}), LogSettings, "log"),
        tracing=_tracing(top.get("tracing")),
        inspector=read_struct(top.get("inspector", {}), InspectorSettings, "inspector"),
        state=_state(top.get("state", {})),
        keys=keys,
        compress=compress,
        responses=read_struct(responses_part, ResponsesSettings, "responses"),
        keeper=read_struct(keeper_part, KeeperSettings, "keeper"),
        vision=vision,
        profiles=profiles,
        backends=backends,
        models=models,
    )


def _check_ids(server: ServerSettings, models: Mapping[str, ModelSettings]) -> None:
    """Raises SettingsError for two models with one id in the list for Claude Code."""
    if not server.claude_ids:
        return
    for name in exact_names(models):
        shown = claude_id(name)
        if shown != name and shown in models:
            raise SettingsError(
                f"models.{name}: with server.claude_ids its id is {shown!r}, which is the name of another model: rename"
                " one of them"
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
    entry = without_aliases(read_object(raw, where), where)
    for key in ("adapter", "base_url"):
        if key not in entry:
            raise _missing(key, entry.keys() - _BACKEND_KEYS, where)
    common = {key: value for key, value in entry.items() if key in _BACKEND_KEYS}
    options = {key: value for key, value in entry.items() if key not in _BACKEND_KEYS}
    backend = read_struct(common, BackendSettings, where)
    check_not_negative(backend, where)
    if backend.profile is not None:
        find_profile(backend.profile, profiles, f"{where}.profile")
    return msgspec.structs.replace(backend, options=options)


def _missing(key: str, others: Iterable[str], where: str) -> SettingsError:
    """Returns the error about a key that an entry must have: where it has a very similar one, that is misspelt."""
    written = difflib.get_close_matches(key, sorted(others), n=1, cutoff=0.75)
    if not written:
        return fault(where, f"{where}.{key} is missing")
    place = path_of(where, written[0])
    return unknown_name(place, f"unknown setting {place!r}", written[0], (key,))


def check_options(options: JsonObject, kind: type[S], where: str) -> S:
    """Returns an adapter's own keys as its Options: over those of the preset that they name, and with the files read
    that describe a schema (`DescriptorSet`). Raises SettingsError like every other part of the file."""
    check_keys(options, (*kind.__struct_fields__, *sorted(_BACKEND_KEYS)), where)
    entry: dict[str, Any] = dict(options)  # Any: beside JSON it holds descriptors that were read
    for field in msgspec.structs.fields(kind):
        if field.type is DescriptorSet and field.name in options:
            entry[field.name] = read_descriptor_set(options[field.name], path_of(where, field.name))
    return read_struct({**preset_defaults(options, kind, where), **entry}, kind, where)
