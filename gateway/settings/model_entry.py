"""Reads one entry of `models` in settings.json, over what its backend and the top level of the file say."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import SettingsError
from gateway.core.model_facts import ModelFacts
from gateway.core.requirements import Requirement
from gateway.providers.profile import Profile
from gateway.settings.candidates import read_candidates
from gateway.settings.check import S, check_keys, nearest, path_of, read_object, read_struct
from gateway.settings.compression import MODEL_COMPRESS_KEYS, without_unset_limits
from gateway.settings.policies import POLICY_KEYS, read_policy, without_aliases
from gateway.settings.values import (
    BackendSettings,
    CompressSettings,
    KeeperSettings,
    ModelSettings,
    Price,
    ResponsesSettings,
)

# A backend entry may set these limits; a native backend has no others.
LIMITS: Final = ("max_tool_results", "max_history_messages")
MODEL_KEYS: Final = POLICY_KEYS | {
    "backend",
    "name",
    "context_length",
    "compress",
    "responses",
    "keeper",
    "price",
    "facts",
    "candidates",
    "longer",
    "require",
}
# The responses of one history may be of several models: they live as long as each other.
MODEL_RESPONSES_KEYS: Final = frozenset({"store"})
# A worker has one memory, whichever models the states are of.
MODEL_KEEPER_KEYS: Final = frozenset(KeeperSettings.__struct_fields__) - {"max_mb"}


class _Required(msgspec.Struct, frozen=True):
    require: tuple[Requirement, ...]


class ModelDefaults(msgspec.Struct, frozen=True):
    """The defaults of every model at the top level of the file."""

    policy: JsonObject
    compress: JsonObject
    responses: JsonObject
    keeper: JsonObject


def read_model(
    raw: Json,
    where: str,
    defaults: ModelDefaults,
    backends: Mapping[str, BackendSettings],
    profiles: Mapping[str, Profile],
) -> ModelSettings:
    """Returns the entry of a model, completed by that of its backend and by the top level. Raises SettingsError."""
    entry = without_aliases(read_object(raw, where), where)
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
        **{key: value for key, value in entry.items() if key in POLICY_KEYS},
    }
    inherited = frozenset(LIMITS) - own.keys()
    compress = _part("compress", entry, defaults.compress, MODEL_COMPRESS_KEYS, CompressSettings, where)
    given = {**defaults.policy, **own}
    policy = read_policy(without_unset_limits(given, LIMITS) if compress.enabled else given, profiles, where)
    responses = _part("responses", entry, defaults.responses, MODEL_RESPONSES_KEYS, ResponsesSettings, where)
    keeper = _part("keeper", entry, defaults.keeper, MODEL_KEEPER_KEYS, KeeperSettings, where)
    given_price = entry.get("price")
    price = None if given_price is None else read_struct(given_price, Price, path_of(where, "price"))
    facts = read_struct(entry.get("facts", {}), ModelFacts, path_of(where, "facts"))
    others = read_candidates(entry.get("candidates", []), path_of(where, "candidates"))
    longer = entry.get("longer")
    if longer is not None and not isinstance(longer, str):
        raise SettingsError(f"{where}.longer must name another model")
    require = read_struct({"require": entry.get("require", [])}, _Required, where).require
    parts = (compress, responses, keeper, price, facts, require, others, longer)
    return ModelSettings(backend, name, policy, inherited, length, *parts)


def _part(name: str, entry: JsonObject, defaults: JsonObject, keys: frozenset[str], kind: type[S], where: str) -> S:
    """Returns a part of the entry, which may set these keys, over the same part of the top level."""
    place = path_of(where, name)
    own = read_object(entry.get(name, {}), place)
    check_keys(own, keys, place)
    return read_struct({**defaults, **own}, kind, place)


def _of_all_models(backend: BackendSettings) -> dict[str, Json]:
    """Returns the policy keys that a backend entry sets for all its models."""
    limits = {name: getattr(backend, name) for name in LIMITS}
    own: dict[str, Json] = {name: value for name, value in limits.items() if value is not msgspec.UNSET}
    return own if backend.profile is None else {"profile": backend.profile, **own}
