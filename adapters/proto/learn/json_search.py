"""Finds the template of a JSON value, in a text or in a Struct, from what was recorded of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from adapters.proto.backend.json_shapes import compile_json
from adapters.proto.backend.rendering import has_value
from adapters.proto.backend.template_keys import AS, EACH, WITH
from adapters.proto.backend.template_names import Scope
from adapters.proto.backend.used_names import UsedNames
from adapters.proto.learn.learned import NOTHING, Doubt, Learned, best, merged_order, unexplained
from adapters.proto.learn.samples import ABSENT, client_fields
from gateway.core.conversation import Json
from gateway.core.errors import OptionError


class JsonSample(msgspec.Struct, frozen=True):
    """The values of the names in one exchange, and the recorded JSON value; ABSENT: there is none. (Any: a value may be
    a list of mappings.)"""

    values: Mapping[str, Any]
    value: Any


_NO_JSON: Final = ("bytes",)

# The id of a call is never a constant, however short it is.
ID: Final = "$id"


def find_json(scope: Scope, samples: Sequence[JsonSample], place: str) -> Learned:
    """Returns the template that makes the recorded value in every sample, or what is open."""
    present = [sample for sample in samples if sample.value is not ABSENT]
    if not present:
        return NOTHING
    if (named := _named(scope, samples, place)) is not None:
        return named
    if all(isinstance(sample.value, dict) for sample in present):
        return _object(scope, samples, place)
    if all(isinstance(sample.value, list) for sample in present):
        return _list(scope, samples, place)
    return _constant(scope, samples, place)


def shows(shape: Json, scope: Scope, samples: Sequence[JsonSample]) -> bool:
    """Returns whether the template makes the recorded value in every sample."""
    try:
        render = compile_json(shape, scope, "", UsedNames())
    except OptionError:
        return False
    return all(_same(render(sample.values), sample.value) for sample in samples)


def _same(made: Json, recorded: Any) -> bool:
    if made is None or recorded is ABSENT:
        return made is None and recorded is ABSENT
    # In JSON true is no number.
    return bool(made == recorded) and (type(made) is bool) is (type(recorded) is bool)


def _named(scope: Scope, samples: Sequence[JsonSample], place: str) -> Learned | None:
    """Returns the name whose value was recorded, if one varies or says enough."""
    # An object of the client's own has the client's form, which another client may not have.
    whole = any(isinstance(sample.value, dict | list) for sample in samples)
    fields = [] if whole else client_fields(samples)
    names = [name for name in scope.kinds if scope.kinds[name] not in _NO_JSON]
    found = [name for name in (*names, *sorted(scope.texts), *fields) if shows(name, scope, samples)]
    if not found:
        return None
    same = len({repr(sample.value) for sample in samples}) == 1
    if same and found[0] != ID and not is_specific(samples[0].value):
        return None
    return Learned(found[0], others(place, found[0], found[1:]), 1)


def is_specific(value: Any) -> bool:
    """Returns whether a value that never changes is that of a name rather than a constant: a text of three characters,
    a number that is not small, or an object."""
    match value:
        case bool():
            return False
        case str() | bytes():
            return len(value) > 2
        case int():
            return abs(value) > 9
        case float():
            return value != int(value)
        case _:
            return bool(value)


def others(place: str, name: str, found: Iterable[str]) -> tuple[Doubt, ...]:
    """Returns the doubt about the names that have the same value as the chosen one in every exchange."""
    names = tuple(found)
    return (Doubt("chosen", place, f"{name}; as well fit", names),) if names else ()


def _object(scope: Scope, samples: Sequence[JsonSample], place: str) -> Learned:
    rows = [list(sample.value) for sample in samples if isinstance(sample.value, dict)]
    keys = merged_order(rows) or dict.fromkeys(key for row in rows for key in row)
    members: dict[str, Json] = {}
    doubts: list[Doubt] = []
    evidence = 0
    here = [sample for sample in samples if sample.value is not ABSENT]
    for key in keys:
        below = [JsonSample(sample.values, sample.value.get(key, ABSENT)) for sample in here]
        learned = find_json(scope, below, f"{place}.{key}")
        doubts += learned.doubts
        evidence += learned.evidence
        if learned.template is not None:
            members[key] = learned.template
    found = Learned(members, tuple(doubts), evidence)
    if found.open or shows(members, scope, samples):
        return found
    for name in _conditions(scope, samples):
        if shows({WITH: name, **members}, scope, samples):
            return msgspec.structs.replace(found, template={WITH: name, **members})
    return unexplained(place, "when the object is sent is not shown")


def _conditions(scope: Scope, samples: Sequence[JsonSample]) -> list[str]:
    present = [sample.value is not ABSENT for sample in samples]
    return [
        name
        for name in scope.kinds
        if scope.kinds[name] not in _NO_JSON and [has_value(sample.values.get(name)) for sample in samples] == present
    ]


def _list(scope: Scope, samples: Sequence[JsonSample], place: str) -> Learned:
    found = [each for name in scope.items if (each := _each(name, scope, samples, place)) is not None]
    lengths = {len(sample.value) for sample in samples if sample.value is not ABSENT}
    if len(lengths) == 1 and (static := _static(lengths.pop(), scope, samples, place)) is not None:
        found.append(static)
    return best(found) or unexplained(place, "no list has as many items")


def _each(name: str, scope: Scope, samples: Sequence[JsonSample], place: str) -> Learned | None:
    inner = scope.items[name].all()
    below: list[JsonSample] = []
    for sample in samples:
        items = sample.values.get(name) or ()
        recorded = () if sample.value is ABSENT else sample.value
        if len(items) != len(recorded):
            return None
        below += [JsonSample({**sample.values, **item}, value) for item, value in zip(items, recorded, strict=True)]
    learned = find_json(inner, below, f"{place}.{AS}")
    if not learned.evidence:
        return None
    shape: Json = {EACH: name, AS: learned.template}
    fits = learned.open or shows(shape, scope, samples)
    return msgspec.structs.replace(learned, template=shape) if fits else None


def _static(length: int, scope: Scope, samples: Sequence[JsonSample], place: str) -> Learned | None:
    items: list[Json] = []
    doubts: list[Doubt] = []
    evidence = 0
    here = [sample for sample in samples if sample.value is not ABSENT]
    for position in range(length):
        below = [JsonSample(sample.values, sample.value[position]) for sample in here]
        learned = find_json(scope, below, f"{place}[{position}]")
        if learned.template is None:
            return None
        items.append(learned.template)
        doubts += learned.doubts
        evidence += learned.evidence
    return Learned(items, tuple(doubts), evidence) if shows(items, scope, samples) else None


def _constant(scope: Scope, samples: Sequence[JsonSample], place: str) -> Learned:
    value = next(sample.value for sample in samples if sample.value is not ABSENT)
    if shows(value, scope, samples):
        return Learned(value)
    distinct = {repr(sample.value) for sample in samples if sample.value is not ABSENT}
    if len(distinct) == 1:
        return unexplained(place, f"when {value!r} is sent is not shown")
    return unexplained(place, f"no name has its values, such as {value!r}")
