"""Compiles the rule that finds the end of a response. Every value of an enum must have a meaning: none is a success by
default. A text may be one that no rule knows: one that says so is a failure, any other a stop with a notice."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from adapters.proto.backend.answer_writer import AnswerWriter
from adapters.proto.backend.field_getters import Leaves, Place
from adapters.proto.backend.json_places import DOCUMENT
from adapters.proto.backend.mapping_error import mapping_error, unknown_name
from adapters.proto.backend.options import FinishRule
from adapters.proto.backend.places import Kind, conditions, find_place
from adapters.text.backend.event_reader import FAILURES, REASONS
from gateway.core.errors import BackendRejected
from gateway.core.events import Reason

# Any: a message whose class exists only at run time.
FinishReader: TypeAlias = Callable[[Any, AnswerWriter], None]
_WORDS: Final[Leaves] = {"enum": "an enum", "text": "text", "flag": "a bool"}
# A text with one of these words is reported as a failure: as a stop it would be a success.
_FAILED: Final = FAILURES | {"errors", "exception", "fail", "failed", "fails", "failure"}
# The words of `internal_error`, `InternalError` and `INTERNAL_ERROR`.
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def compile_finish(rule: FinishRule, kind: Kind, place: str) -> FinishReader:
    """Returns the reader of one rule. Raises OptionError."""
    ways = [name for name, value in (("at", rule.at), ("oneof", rule.oneof), ("reason", rule.reason)) if value]
    if len(ways) != 1:
        raise mapping_error(place, "write one of `at`, `oneof` and `reason`")
    read = _COMPILERS[ways[0]](rule, kind, place)
    if not rule.when:
        return read
    holds = conditions(rule.when, kind, f"{place}.when")
    return lambda message, writer: read(message, writer) if holds(message) else None


def _by_reason(rule: FinishRule, _: Kind, place: str) -> FinishReader:
    reason = rule.reason
    if not rule.when or reason is None:
        raise mapping_error(place, "a `reason` needs a condition in `when`")
    return lambda message, writer: writer.finish(reason, "")


def _by_value(rule: FinishRule, kind: Kind, place: str) -> FinishReader:
    found = find_place(rule.at or "", kind, f"{place}.at", _WORDS)
    if found.leaf == "enum":
        return _by_enum(rule, found, place)
    if found.leaf == "text":
        failures = frozenset(rule.failures)

        def read(message: Any, writer: AnswerWriter) -> None:
            if (word := found.get(message)) and word not in rule.none:
                declared = rule.reasons.get(word)
                _end(word, declared if declared or word in failures else _reason(word), failures, writer)

        return read
    if rule.reasons or rule.none or rule.failures:
        raise mapping_error(place, "a bool has no other meaning than the end; use `when` for more")
    return lambda message, writer: writer.finish("stop", "") if found.get(message) else None


def _reason(word: str) -> Reason | None:
    """Returns the common meaning of a text, in any case; None: it is unknown. Raises BackendRejected for one that says
    that the response failed, such as `internal_error`."""
    if (reason := REASONS.get(word.lower())) is not None:
        return reason
    if word.lower() in FAILURES or not _FAILED.isdisjoint(part.lower() for part in _PARTS.findall(word)):
        raise _failed()
    return None


def _by_enum(rule: FinishRule, found: Place, place: str) -> FinishReader:
    enum = found.field.enum_type
    numbers = {name: value.number for name, value in enum.values_by_name.items()}
    not_set = {name for name, number in numbers.items() if number == 0 and not found.field.has_presence}
    needed = set(numbers) - not_set
    # A newer version of the schema has values that this one lacks: their names are their numbers.
    lacking = [name for name in _named(rule) if name.isdecimal() and int(name) not in enum.values_by_number]
    numbers |= {name: int(name) for name in lacking}
    _check_meanings(rule, numbers, needed, enum.full_name, place)
    for part in ("reasons", "failures"):
        if silent := not_set.intersection(getattr(rule, part)):
            name = sorted(silent)[0]
            raise mapping_error(f"{place}.{part}", f"{name} is the value 0, which stands for 'not set' here")
    words = {number: name for name, number in numbers.items()}
    skipped = {numbers[name] for name in (*rule.none, *not_set)}
    has_presence, failures = found.field.has_presence, frozenset(rule.failures)

    def read(message: Any, writer: AnswerWriter) -> None:
        number = found.get(message)
        if number in skipped or (has_presence and not found.is_set(message)):
            return
        word = words.get(number, str(number))
        _end(word, rule.reasons.get(word), failures, writer)

    return read


def _by_oneof(rule: FinishRule, kind: Kind, place: str) -> FinishReader:
    if kind is DOCUMENT:
        raise mapping_error(f"{place}.oneof", "JSON has no oneof; write `at` or `when`")
    *above, last = (rule.oneof or "").split(".")
    owner = find_place(".".join(above), kind, f"{place}.oneof", {"message": "a message"}) if above else None
    holder = kind if owner is None else owner.field.message_type
    if last not in holder.oneofs_by_name:
        reason = f"{holder.full_name} has no oneof {last!r}"
        raise unknown_name(f"{place}.oneof", reason, last, holder.oneofs_by_name)
    members = [field.name for field in holder.oneofs_by_name[last].fields]
    _check_meanings(rule, members, members, f"the oneof {last!r}", place)
    failures = frozenset(rule.failures)

    def read(message: Any, writer: AnswerWriter) -> None:
        member = (message if owner is None else owner.get(message)).WhichOneof(last)
        if member is not None and member not in rule.none:
            _end(member, rule.reasons.get(member), failures, writer)

    return read


def _check_meanings(rule: FinishRule, known: Iterable[str], needed: Iterable[str], what: str, place: str) -> None:
    """Refuses names that do not exist, and values without a meaning."""
    known = list(known)
    for part in ("reasons", "none", "failures"):
        for name in getattr(rule, part):
            if name not in known:
                raise unknown_name(f"{place}.{part}", f"{what} has no value {name!r}", name, known)
    if missing := sorted(set(needed).difference(_named(rule))):
        raise mapping_error(place, f"{missing[0]} has no meaning: name it in `reasons`, `none` or `failures`")


def _named(rule: FinishRule) -> tuple[str, ...]:
    return (*rule.reasons, *rule.none, *rule.failures)


def _end(word: str, reason: Reason | None, failures: frozenset[str], writer: AnswerWriter) -> None:
    if word in failures:
        raise _failed()
    if reason is None:
        detail = f"the backend's finish reason {word[:40]!r} is unknown; read as stop"
        writer.note_once("changed", "FINISH_REASON_UNKNOWN", detail)
    writer.finish(reason or "stop", word)


def _failed() -> BackendRejected:
    return BackendRejected("The backend ended its response early.", code="upstream_stream_truncated")


_COMPILERS: Final[Mapping[str, Callable[[FinishRule, Kind, str], FinishReader]]] = {
    "at": _by_value,
    "oneof": _by_oneof,
    "reason": _by_reason,
}
