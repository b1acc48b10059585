"""Lists settings by the paths of their keys, so that those of two processes can be compared."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gateway.core.policy import Policy
from gateway.core.profiles import PROFILES, Profile
from gateway.settings.hidden import shown_value
from gateway.settings.values import Settings

# Of these a model has the effective values; what it inherited is said by the others.
_INTERNAL = frozenset({"policy", "inherited"})


def flat_values(settings: Settings) -> dict[str, Any]:
    """Returns the JSON value of each key by its path, as `models.qwen.max_tool_results`; values that may be secrets are
    hidden. Of the built-in profiles only those are listed that the file replaces."""
    return dict(_flat(settings))


def _flat(settings: Settings) -> Iterator[tuple[str, Any]]:
    yield from _policy("", settings.policy, settings.profiles)
    for name in settings.__struct_fields__:
        if name not in ("policy", "profiles", "backends", "models"):
            yield from _leaves(name, getattr(settings, name))
    for name, profile in settings.profiles.items():
        if profile is not PROFILES.get(name):
            yield from _leaves(f"profiles.{name}", profile)
    for name, backend in settings.backends.items():
        plain = msgspec.to_builtins(backend)
        yield from _leaves(f"backends.{name}", {**plain.pop("options"), **plain})
    for name, model in settings.models.items():
        for key in model.__struct_fields__:
            if key not in _INTERNAL:
                yield from _leaves(f"models.{name}.{key}", getattr(model, key))
        yield from _policy(f"models.{name}.", model.policy, settings.profiles)


def _policy(where: str, policy: Policy, profiles: Mapping[str, Profile]) -> Iterator[tuple[str, Any]]:
    for key in policy.__struct_fields__:
        if key == "profile":
            yield f"{where}profile", next((name for name, one in profiles.items() if one == policy.profile), "none")
        else:
            yield from _leaves(f"{where}{key}", getattr(policy, key))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the values below a path. (Any: JSON, or a Struct.)"""
    plain = shown_value(path, value)
    if not isinstance(plain, dict) or not plain:
        yield path, plain
        return
    for key, below in plain.items():
        yield from _leaves(f"{path}.{key}", below)
