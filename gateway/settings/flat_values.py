"""Lists settings by the paths of their keys, so that those of two processes can be compared."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from gateway.core.policy import Policy
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from gateway.settings.compression import MODEL_COMPRESS_KEYS
from gateway.settings.hidden import shown_value
from gateway.settings.model_entry import MODEL_KEEPER_KEYS, MODEL_RESPONSES_KEYS
from gateway.settings.model_names import is_pattern
from gateway.settings.values import BackendSettings, ModelSettings, Settings

# Of these parts of the settings a model has keys of its own.
MODEL_PARTS: Final = {"compress": MODEL_COMPRESS_KEYS, "responses": MODEL_RESPONSES_KEYS, "keeper": MODEL_KEEPER_KEYS}
SECTIONS: Final = (
    "server",
    "limits",
    "log",
    "tracing",
    "inspector",
    "state",
    "compress",
    "responses",
    "keeper",
    "vision",
)


def flat_values(settings: Settings) -> dict[str, Any]:
    """Returns the JSON value of each key by its path, as `models.qwen.max_tool_results`; values that may be secrets are
    hidden. Of the built-in profiles only those are listed that the file replaces."""
    return dict(_flat(settings))


def is_below(path: str, parent: str | None, settings: Settings) -> bool:
    """Returns whether a path is a key, or below it; None or an empty text: each is. A name may have dots: what is of
    `models.gpt-4.1` is not below `models.gpt-4`, where both are models."""
    if not parent:
        return True
    parts = ("keys", "profiles", "backends", "models")
    names = [f"{part}.{name}" for part in parts for name in getattr(settings, part)]
    others = [name for name in names if name.startswith(f"{parent}.")] if parent in names else []
    return _begins(path, parent) and not any(_begins(path, other) for other in others)


def _begins(path: str, parent: str) -> bool:
    return f"{path}.".startswith(f"{parent}.")


def defaults_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Returns the default of each key; UNSET for one without. (Any: JSON, a Struct or UNSET.)"""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        default = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
        found[field.name] = msgspec.UNSET if default is msgspec.NODEFAULT else default
    if kind is Policy:
        found["profile"] = "none"
    return found


def default_name(model: str) -> str | None:
    """Returns the name at the backend of a model whose entry has none; None: each has its own, that of a pattern."""
    return None if is_pattern(model) else model


def _flat(settings: Settings) -> Iterator[tuple[str, Any]]:
    yield from _policy("", settings.policy, settings.profiles)
    for name in SECTIONS:
        part = getattr(settings, name)
        yield from ((name, None),) if part is None else _keys(name, part)
    for name, key in settings.keys.items():
        yield from _keys(f"keys.{name}", key)
    for name, profile in settings.profiles.items():
        if profile is not PROFILES.get(name):
            yield from _keys(f"profiles.{name}", profile)
    for name, backend in settings.backends.items():
        yield from _backend(f"backends.{name}", backend)
    for name, model in settings.models.items():
        yield from _model(f"models.{name}", name, model, settings.profiles)


def _backend(where: str, backend: BackendSettings) -> Iterator[tuple[str, Any]]:
    yield from _keys(where, backend, frozenset(BackendSettings.__struct_fields__) - {"options"})
    for key, value in backend.options.items():
        yield f"{where}.{key}", shown_value(f"{where}.{key}", value)


def _model(where: str, name: str, model: ModelSettings, profiles: Mapping[str, Profile]) -> Iterator[tuple[str, Any]]:
    yield f"{where}.backend", model.backend
    yield f"{where}.name", model.name or default_name(name)
    yield f"{where}.context_length", model.context_length
    yield (
        f"{where}.candidates",
        [one.model if one.weight is None else msgspec.to_builtins(one) for one in model.candidates],
    )
    yield f"{where}.longer", model.longer
    yield from _value(f"{where}.price", model.price)
    # What is not known is not listed: most entries say nothing.
    facts = frozenset(key for key in model.facts.__struct_fields__ if getattr(model.facts, key) is not None)
    yield from _keys(f"{where}.facts", model.facts, facts)
    yield from _policy(f"{where}.", model.policy, profiles)
    for part, keys in MODEL_PARTS.items():
        yield from _keys(f"{where}.{part}", getattr(model, part), keys)


def _policy(where: str, policy: Policy, profiles: Mapping[str, Profile]) -> Iterator[tuple[str, Any]]:
    for key in Policy.__struct_fields__:
        if key == "profile":
            yield f"{where}profile", _profile_name(policy.profile, profiles)
        else:
            yield from _value(f"{where}{key}", getattr(policy, key))


def _profile_name(profile: Profile, profiles: Mapping[str, Profile]) -> str:
    """Two profiles may be equal: the one that is meant comes first."""
    same = (name for name, one in profiles.items() if one is profile)
    return next(same, None) or next((name for name, one in profiles.items() if one == profile), "none")


def _keys(where: str, part: msgspec.Struct, keys: frozenset[str] | None = None) -> Iterator[tuple[str, Any]]:
    for key in part.__struct_fields__:
        if keys is None or key in keys:
            yield from _value(f"{where}.{key}", getattr(part, key))


def _value(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields a value, or those of the keys below it where these are known. (Any: JSON or a Struct.)"""
    if isinstance(value, msgspec.Struct):
        yield from _keys(path, value)
    elif value is not msgspec.UNSET:
        yield path, shown_value(path, value)
