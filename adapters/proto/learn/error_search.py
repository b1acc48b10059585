"""Finds what tells that a response is an error: a message that only errors have, or a value that no answer has."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from adapters.proto.backend.error_rule import compile_error
from adapters.proto.backend.field_getters import leaf_of
from adapters.proto.backend.options import ErrorRule
from adapters.proto.learn.learned import Doubt
from adapters.proto.learn.response import RecordedResponse, text_of
from adapters.proto.learn.spots import Spot, Way
from gateway.core.errors import BackendError, OptionError

_STATUSES: Final = range(400, 600)


class LearnedError(msgspec.Struct, frozen=True):
    """The rule of an error and the repeated fields that lead to it, the spots that it reads, and the responses that it
    was found in, by their names. (Any: JSON.)"""

    each: Way
    rule: dict[str, Any]
    read: tuple[Spot, ...]
    found_in: frozenset[str]
    doubts: tuple[Doubt, ...] = ()


def find_errors(
    responses: Sequence[RecordedResponse], read: Sequence[Spot]
) -> tuple[tuple[LearnedError, ...], tuple[Doubt, ...]]:
    """Returns the rules of the errors that no other rule tells, and the doubts about those that nothing tells. `read`
    are the spots that other rules read."""
    failed = [one for one in responses if one.known.error is not None and not one.failed and one.messages]
    sound = [one for one in responses if one.complete]
    found: list[LearnedError] = []
    doubts: list[Doubt] = []
    told: set[str] = set()
    for one in failed:
        if one.name in told or any(spot in read for spot in _own(one, sound)):
            continue
        learned = _by_place(one, failed, sound) or _by_value(one, failed, sound, read)
        if learned is not None:
            found.append(learned)
            told |= learned.found_in
        elif not any(spot in read for spot in one.spots.values):
            doubts.append(Doubt("open", "read.error", f"nothing tells the failure of {one.name}"))
    return tuple(found), tuple(doubts)


def _own(response: RecordedResponse, sound: Sequence[RecordedResponse]) -> list[Spot]:
    """Returns the spots that no answer has."""
    known = {spot for one in sound for spot in one.spots.values}
    return [spot for spot in response.spots.values if spot not in known and not spot.tensor]


def _by_place(
    one: RecordedResponse, failed: Sequence[RecordedResponse], sound: Sequence[RecordedResponse]
) -> LearnedError | None:
    """Returns the rule for a message that only errors have."""
    own = _own(one, sound)
    texts = [spot for spot in own if leaf_of(one.spots.fields[spot]) == "text"]
    message = next((spot for spot in texts if _says(one, spot)), next(iter(texts), None))
    told = message or next(iter(own), None)
    if told is None:
        return None
    held = _held(told, [spot for spot in own if spot.each == told.each])
    alike = [other for other in failed if other.of(told)]
    spots = list(dict.fromkeys(spot for other in alike for spot in _own(other, sound)))
    reason = f"every response with it is an error, as {one.name} is"
    doubt = Doubt("assumed", f"read.error: {held}", reason)
    return _with_status({"when": {held: "set"}}, told, message, spots, alike, doubt)


def _by_value(
    one: RecordedResponse, failed: Sequence[RecordedResponse], sound: Sequence[RecordedResponse], read: Sequence[Spot]
) -> LearnedError | None:
    """Returns the rule for a value that no answer has, at a spot that answers have as well."""
    for told, values in one.spots.values.items():
        if told.tensor or told in read or leaf_of(one.spots.fields[told]) not in ("integer", "enum", "flag"):
            continue
        known = {value.value for other in sound for value in other.of(told)}
        value = next((value.value for value in values if value.value not in known), None)
        if value is None:
            continue
        alike = [other for other in failed if any(held.value == value for held in other.of(told))]
        spots = [spot for spot in one.spots.values if spot.each == told.each and spot not in read and not spot.tensor]
        texts = (spot for spot in spots if leaf_of(one.spots.fields[spot]) == "text")
        message = next((spot for spot in texts if _says(one, spot)), None)
        written = _written(value, one.spots.fields[told])
        reason = f"a response with it is an error, as {one.name} is; no other value is taken for one"
        doubt = Doubt("assumed", f"read.error: {told.text} {written}", reason)
        return _with_status({"when": {told.path: written}}, told, message, spots, alike, doubt)
    return None


def _written(value: Any, field: Any) -> Any:
    named = None if field.enum_type is None else field.enum_type.values_by_number.get(value)
    return value if named is None else str(named.name)


def _with_status(
    rule: dict[str, Any],
    told: Spot,
    message: Spot | None,
    spots: Sequence[Spot],
    alike: Sequence[RecordedResponse],
    doubt: Doubt,
) -> LearnedError:
    """Returns the rule with the status and the code that clients got of each error; what nothing gives is open."""
    rule |= {} if message is None else {"message": message.path}
    fields = {spot: one.spots.fields[spot] for one in alike for spot in one.spots.fields}
    paths = [
        spot.path
        for spot in spots
        if spot.each == told.each and spot != message and leaf_of(fields[spot]) in ("integer", "enum", "text")
    ]
    doubts = [doubt]
    names = ", ".join(one.name for one in alike)
    known = [error.status for one in alike if (error := one.known.error) is not None and error.status in _STATUSES]
    for key, candidates in (("status", [*paths, *known[:1]]), ("code", [None, *paths])):
        if not any(getattr(one.known.error, key) for one in alike):
            continue
        ways = (rule if value is None else {**rule, key: value} for value in candidates)
        fitting = next((way for way in ways if all(_gives(way, told, one, key) for one in alike)), None)
        if fitting is None:
            doubts.append(Doubt("open", f"read.error.{key}", f"no field holds the {key} that clients got of {names}"))
        rule = fitting or rule
    return LearnedError(told.each, rule, tuple(spots), frozenset(one.name for one in alike), tuple(doubts))


def _gives(rule: dict[str, Any], told: Spot, response: RecordedResponse, key: str) -> bool:
    """Whether the error of the rule has the status, or the code, that the client got, where it is known. The code of an
    error that is told in the gateway's own words is the gateway's."""
    wanted = getattr(response.known.error, key)
    if not wanted:
        return True
    errors = list(_errors_of(rule, told, response))
    own = key == "code" and all(error.own_words is None for error in errors)
    return bool(errors) and (own or any(getattr(error, key) == wanted for error in errors))


def _errors_of(rule: dict[str, Any], told: Spot, response: RecordedResponse) -> Iterator[BackendError]:
    for value in response.of(told):
        try:
            find_error = compile_error(msgspec.convert(rule, ErrorRule), value.item.DESCRIPTOR, "read.error")
        except OptionError:
            return
        if (error := find_error(value.item)) is not None:
            yield error


def _says(response: RecordedResponse, spot: Spot) -> bool:
    message = "" if response.known.error is None else response.known.error.message
    return any(text_of(value.value) and text_of(value.value) in message for value in response.of(spot))


def _held(told: Spot, own: Sequence[Spot]) -> str:
    """Returns the outermost message of an error that only errors have."""
    above = [spot.path for spot in own if told.path.startswith(f"{spot.path}.")]
    return min(above, key=len, default=told.path)
