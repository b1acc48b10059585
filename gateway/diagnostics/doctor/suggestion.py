"""Turns the fields of a profile that probes found necessary into keys of settings.json."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from gateway.core.model_facts import ModelFacts
from gateway.diagnostics.doctor.finding import Changes, Checked, Suggestion
from gateway.providers.profile import Alphabet, Profile
from gateway.providers.request_rules import RequestRules
from gateway.settings import ModelSettings

_FACTS: Final = ModelFacts.__struct_fields__
_DEFAULT: Final[Mapping[str, Any]] = msgspec.to_builtins(Alphabet())


def merged(before: Changes, more: Changes) -> dict[str, Any]:
    """Returns both; objects are merged field by field. (Any: JSON.)"""
    found = dict(before)
    for name, value in more.items():
        old = found.get(name)
        found[name] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return found


def with_changes(profile: Profile, changes: Changes) -> Profile:
    """Returns the profile with these fields. Raises msgspec.ValidationError for fields that no profile has."""
    fields: dict[str, Any] = msgspec.to_builtins(profile)
    return msgspec.convert(merged(fields, changes), Profile)


def suggested(
    place: tuple[str, str], present: Profile, changes: Changes, profiles: Mapping[str, Profile]
) -> tuple[Suggestion, ...]:
    """Returns the keys to set for the entry at a place, such as `backends.NAME`: a known profile that differs from the
    present one in these fields alone, else a new one with the name of the entry; nothing without changes."""
    if not changes:
        return ()
    wanted = with_changes(present, changes)
    profile = (*place, "profile")
    known = next((name for name, one in profiles.items() if one == wanted), None)
    if known is not None:
        return (Suggestion(profile, known),)
    base = next((name for name, one in profiles.items() if one == present), "none")
    name = place[1] if place[1] not in profiles else f"{place[1]}-doctor"
    fields = {"base": base, **{field: _written(getattr(wanted, field)) for field in changes}}
    return Suggestion(("profiles", name), fields), Suggestion(profile, name)


def told_facts(name: str, entry: ModelSettings, findings: Iterable[Checked]) -> tuple[Suggestion, ...]:
    """Returns the keys to set in the entry of a model for what was found of it: those that the entry lacks, and a
    context length that is above the one found."""
    found = {path: value for one in findings for path, value in one.finding.facts.items()}
    present = {
        "context_length": entry.context_length,
        **{f"facts.{fact}": getattr(entry.facts, fact) for fact in _FACTS},
    }
    return tuple(
        Suggestion(("models", name, *path.split(".")), value)
        for path, value in found.items()
        if present[path] is None or (path == "context_length" and present[path] > value)
    )


def _written(value: object) -> object:
    """Returns a field of a profile as the settings have it, without the defaults of an alphabet or of rules."""
    if isinstance(value, RequestRules):
        return msgspec.to_builtins(value)
    if not isinstance(value, Alphabet):
        return value
    return {name: limit for name, limit in msgspec.to_builtins(value).items() if limit != _DEFAULT[name]}
