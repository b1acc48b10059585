"""Reads the policy keys and the profiles of settings.json, which stand at several places of the file."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import SettingsError
from gateway.core.policy import Policy
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from gateway.settings.check import (
    check_keys,
    check_not_negative,
    check_pattern,
    nearest,
    path_of,
    read_object,
    read_struct,
)

ALIASES: Final = {"max_history": "max_history_messages", "disable_builtin_tools": "disable_warp_tools"}
POLICY_KEYS: Final = frozenset(Policy.__struct_fields__)


def read_policy(raw: dict[str, Json], profiles: Mapping[str, Profile], where: str) -> Policy:
    """Returns policy keys as a policy. Raises SettingsError."""
    raw = dict(raw)
    profile = find_profile(raw.pop("profile", "none"), profiles, path_of(where, "profile"))
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
    changes = without_aliases(dict(changes), "")
    check_keys(changes, POLICY_KEYS, "settings")
    kept = {key: value for key, value in msgspec.to_builtins(policy).items() if key != "profile"}
    changed = read_policy({**kept, **changes}, profiles, "settings")
    return changed if "profile" in changes else msgspec.structs.replace(changed, profile=policy.profile)


def read_profiles(raw: JsonObject) -> dict[str, Profile]:
    """Returns the built-in profiles and the file's own, each made from its `base`."""
    profiles = dict(PROFILES)
    for name, value in raw.items():
        where = f"profiles.{name}"
        entry = dict(read_object(value, where))
        check_keys(entry, (*Profile.__struct_fields__, "base"), where)
        base = find_profile(entry.pop("base", "none"), profiles, f"{where}.base")
        profiles[name] = read_struct({**msgspec.to_builtins(base), **entry}, Profile, where)
    return profiles


def find_profile(name: Json, profiles: Mapping[str, Profile], where: str) -> Profile:
    """Returns the profile of a name. Raises SettingsError that names the nearest."""
    if not isinstance(name, str) or name not in profiles:
        meant = nearest(name, profiles) if isinstance(name, str) else ""
        raise SettingsError(f"{where}: there is no profile {name!r}{meant}")
    return profiles[name]


def without_aliases(entry: dict[str, Json], where: str) -> dict[str, Json]:
    """Returns an entry with the names of its keys that are no aliases. Raises SettingsError for a key under both."""
    renamed: dict[str, Json] = {}
    for key, value in entry.items():
        name = ALIASES.get(key, key)
        if name in renamed:
            raise SettingsError(f"{path_of(where, name)} is set twice, once under an alias")
        renamed[name] = value
    return renamed
