"""Finds what tells the end of a response: a field, or the member of a oneof, that changes in its last message."""

from collections.abc import Iterator, Mapping, Sequence
from posixpath import commonprefix
from typing import Any, Final, get_args

import msgspec

from adapters.proto.backend.field_getters import leaf_of
from adapters.proto.learn.learned import Doubt
from adapters.proto.learn.response import RecordedResponse, spots_of, text_of
from adapters.proto.learn.spots import Spot, Way
from gateway.core.events import Reason

_REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
_NAMES: Final = ("finish", "reason", "stop", "end", "done", "status", "state", "complete", "final", "why")
# How the words begin in the name of a value that no exchange shows, and its meaning: the first that fits counts.
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "failures": (
        *("error", "fail", "cancel", "abort", "invalid", "malformed", "quota", "timeout", "unavailable", "unexpected"),
        *("too_many", "exceed", "broken", "crash", "reject", "internal"),
    ),
    "none": (
        "unspecified",
        "unknown",
        "partial",
        "continu",
        "running",
        "progress",
        "in_progress",
        "not_",
        "none",
        "open",
    ),
    "tool_calls": ("tool", "function", "call"),
    "content_filter": ("safety", "filter", "content_filter", "block", "prohibit", "recitation", "spii"),
    "length": ("length", "max", "limit", "token_limit", "time_limit", "trunc", "too_long", "full"),
    "stop": ("stop", "done", "end", "eos", "complete", "finish", "final", "success"),
}


class FinishPlace(msgspec.Struct, frozen=True):
    """What tells the end: the values of a spot, or the members of a oneof, as words. `words` are the ends that were
    seen, with their reasons; `early` the values before the end, and `failed` those of responses that are errors."""

    each: Way
    key: str
    path: Any
    words: Mapping[str, Reason]
    early: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    text: str = ""


def find_finish(
    responses: Sequence[RecordedResponse], read: Sequence[Spot]
) -> tuple[FinishPlace | None, tuple[Doubt, ...]]:
    """Returns what tells the end of every answer. `read` are the spots that other rules read."""
    complete = [one for one in responses if one.complete and one.known.finish is not None and one.messages]
    if not complete:
        return None, ()
    found = [place for place in _candidates(responses, read) if place is not None]
    if not found:
        return None, ()
    found.sort(key=lambda place: (-len({*place.words.values()}), -_named(place), place.key == "oneof"))
    chosen = found[0]
    others = tuple(place.text for place in found[1:] if len({*place.words.values()}) == len({*chosen.words.values()}))
    doubts = [Doubt("chosen", "read.finish", f"{chosen.text}; as well fit", others)] if others else []
    return chosen, tuple(doubts)


def _named(place: FinishPlace) -> int:
    """How much the last name of a path speaks of an end."""
    last = place.text.rpartition(".")[2].lower()
    return sum(name in last for name in _NAMES)


def presumed_reason(response: RecordedResponse) -> Reason | None:
    """Returns the reason of a response of which no answer is known, by the name of a value in its last message."""
    for spot in spots_of([response], "enum", "text"):
        last = response.of(spot)[-1]
        field = response.spots.fields.get(spot)
        meaning = _assumed(_word(last.value, field), _names_of(field))
        named = any(name in spot.text.lower() for name in _NAMES)
        enough = named or (field is not None and field.enum_type is not None)
        if enough and last.message == len(response.messages) - 1 and meaning in _REASONS:
            return next(reason for reason in _REASONS if reason == meaning)
    for path, oneof in _oneofs([response]):
        names = [str(field.name) for field in oneof.fields]
        last_member = next(reversed([*_members(response, path, oneof.name)]), None)
        meaning = "" if last_member is None else _assumed(last_member[1], names)
        if meaning in _REASONS:
            return next(reason for reason in _REASONS if reason == meaning)
    return None


def _candidates(responses: Sequence[RecordedResponse], read: Sequence[Spot]) -> Iterator[FinishPlace | None]:
    for spot in spots_of(responses, "enum", "text", "flag"):
        if spot in read:
            continue
        field = next((one.spots.fields[spot] for one in responses if spot in one.spots.fields), None)
        leaf = "text" if field is None else leaf_of(field)
        known = () if field is None or leaf != "enum" else _ends(field)
        words = [[(value.message, _word(value.value, field)) for value in one.of(spot)] for one in responses]
        place = _place(responses, words, spot.text, _names_of(field))
        if place is not None and (leaf != "flag" or {*place.words.values()} <= {"stop", "tool_calls"}):
            yield msgspec.structs.replace(place, each=spot.each, path=spot.written, known=known)
    for path, oneof in _oneofs(responses):
        words = [list(_members(one, path, oneof.name)) for one in responses]
        text = f"{path}.{oneof.name}" if path else str(oneof.name)
        known = tuple(str(field.name) for field in oneof.fields)
        place = _place(responses, words, text, known)
        if place is not None:
            yield msgspec.structs.replace(place, key="oneof", path=text, known=known)


def _ends(field: Any) -> tuple[str, ...]:
    """Returns the names of an enum's values, without the one that stands for "not set"."""
    return tuple(str(value.name) for value in field.enum_type.values if value.number or field.has_presence)


def _word(value: Any, field: Any) -> str:
    if field is not None and field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else str(named.name)
    return text_of(value)


def _place(
    responses: Sequence[RecordedResponse],
    words: Sequence[Sequence[tuple[int, str]]],
    text: str,
    known: Sequence[str],
) -> FinishPlace | None:
    """Returns the meaning of words that tell the end; None: they do not. A word means one reason, and comes before no
    end."""
    reasons: dict[str, set[Reason]] = {}
    early: dict[str, None] = {}
    failed: dict[str, None] = {}
    for response, said in zip(responses, words, strict=True):
        if not response.complete:
            failed |= {word: None for _, word in said}
            continue
        if response.known.finish is None:
            continue
        if not said or said[-1][0] < _last_content(response):
            return None
        early |= {word: None for _, word in said[:-1]}
        reasons.setdefault(said[-1][1], set()).add(response.known.finish)
    if not reasons or reasons.keys() & {*early} or any(len(word) > 64 for word in reasons):
        return None
    meanings: dict[str, Reason] = {}
    for word, meant in reasons.items():
        # Many backends end a call as they end a text.
        plain = meant - {"tool_calls"} or ({"stop"} if _assumed(word, known) == "stop" else meant)
        if len(plain) != 1:
            return None
        meanings[word] = plain.pop()
    bad = tuple(word for word in failed if word not in meanings and word not in early)
    return FinishPlace((), "at", "", meanings, tuple(early), bad, (), text)


def _last_content(response: RecordedResponse) -> int:
    """Returns the number of the message with the last piece of a long text."""
    known = response.known.text
    pieces = (
        value.message
        for values in response.spots.values.values()
        for value in values
        if isinstance(value.value, str) and value.value and len(value.value) > 2 and known.endswith(value.value)
    )
    return max(pieces, default=0)


def _oneofs(responses: Sequence[RecordedResponse]) -> list[tuple[str, Any]]:
    found: dict[tuple[str, str], Any] = {}
    for response in responses:
        for spot, values in response.spots.values.items():
            if spot.tensor or spot.each:
                continue
            field = response.spots.fields[spot]
            if field.message_type is not None and not field.is_repeated and hasattr(values[0].value, "DESCRIPTOR"):
                found |= {(spot.path, oneof.name): oneof for oneof in field.message_type.oneofs}
        for message in response.messages[:1]:
            found |= {("", oneof.name): oneof for oneof in message.DESCRIPTOR.oneofs}
    return [(path, oneof) for (path, _), oneof in found.items() if len(oneof.fields) > 1]


def _members(response: RecordedResponse, path: str, name: str) -> Iterator[tuple[int, str]]:
    for number, message in enumerate(response.messages):
        below = message
        for step in path.split(".") if path else ():
            if not below.HasField(step):
                break
            below = getattr(below, step)
        else:
            if (member := below.WhichOneof(name)) is not None:
                yield number, member


def finish_rule(place: FinishPlace) -> tuple[dict[str, Any], tuple[Doubt, ...]]:
    """Returns the rule, and the doubts about values that no exchange shows."""
    reasons: dict[str, str] = dict(place.words)
    none, failures, assumed = list(place.early), list(place.failed), []
    for word in place.known:
        if word in reasons or word in none or word in failures:
            continue
        meaning = _assumed(word, place.known)
        assumed.append(f"{word}: {meaning}")
        if meaning in _REASONS:
            reasons[word] = meaning
        else:
            (none if meaning == "none" else failures).append(word)
    rule: dict[str, Any] = {place.key: msgspec.to_builtins(place.path)}
    if place.words.keys() <= {"True"}:
        return rule, ()
    parts = {"reasons": reasons, "none": none, "failures": failures}
    rule |= {name: part for name, part in parts.items() if part}
    doubt = Doubt("assumed", "read.finish", "values that no exchange shows, by their names", tuple(assumed))
    return rule, (doubt,) if assumed else ()


def _assumed(word: str, known: Sequence[str] = ()) -> str:
    """Returns the meaning of a value by its name, without what the names of all values begin with. A name that says
    nothing is a failure, which no client takes for a whole answer."""
    shared = commonprefix([one.lower() for one in known]) if len(known) > 1 else ""
    own = f"_{word.lower()[shared.rfind('_') + 1 :]}"
    return next((meaning for meaning, parts in _WORDS.items() if any(f"_{part}" in own for part in parts)), "failures")


def _names_of(field: Any) -> tuple[str, ...]:
    """Returns the names of all values of an enum; of another field there are none."""
    return () if field is None or field.enum_type is None else tuple(str(one.name) for one in field.enum_type.values)
