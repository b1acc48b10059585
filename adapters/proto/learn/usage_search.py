"""Finds where the counts of tokens stand, and how those of several messages combine."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from adapters.proto.backend.token_counts import COUNTS
from adapters.proto.learn.learned import Doubt
from adapters.proto.learn.response import RecordedResponse, spots_of
from adapters.proto.learn.spots import Spot, Way
from gateway.core.conversation import Json

_MODES: Final = ("last", "max", "sum")


class LearnedUsage(msgspec.Struct, frozen=True):
    """The rules of the counts, each with the repeated fields to whose items it belongs, and the spots that are read."""

    rules: tuple[tuple[Way, Mapping[str, Any]], ...] = ()
    spots: tuple[Spot, ...] = ()
    doubts: tuple[Doubt, ...] = ()


def find_usage(answers: Sequence[RecordedResponse]) -> LearnedUsage:
    """Returns where the counts of every answer stand."""
    told = [one for one in answers if one.known.usage is not None]
    wanted = {name: [_count(one, name) for one in told] for name in COUNTS}
    spots = spots_of(told, "integer")
    found: dict[str, list[tuple[Spot, str]]] = {
        name: [pair for spot in spots for pair in _counting(spot, told, counts)]
        for name, counts in wanted.items()
        if any(counts)
    }
    doubts: list[Doubt] = []
    apart = found.pop("answer", None) if found.get("completion") else None
    if apart and "reasoning" not in found and any(one.known.reasoning for one in told):
        reason = "no answer has a count of its reasoning, so that a count without it looks alike"
        doubts.append(Doubt("chosen", "read.usage.completion", reason, ("answer",)))
    rules: dict[tuple[Way, str], dict[str, Any]] = {}
    read: list[Spot] = []
    alike: set[str] = set()
    for name, pairs in found.items():
        if not pairs:
            doubts += _missing(name, found)
            continue
        spot, mode = next((pair for pair in pairs if (pair[0].each, pair[1]) in rules), pairs[0])
        rules.setdefault((spot.each, mode), {})[name] = msgspec.to_builtins(spot.written)
        read.append(spot)
        if others := tuple(dict.fromkeys(other.text for other, _ in pairs if other != spot)):
            doubts.append(Doubt("chosen", f"read.usage.{name}", f"{spot.text}; as well fit", others))
        alike |= {other for same, other in pairs if same == spot and other != mode}
    if "sum" in alike:
        reason = "no response has two messages with counts, so that the last, the largest and the sum look alike"
        doubts.append(Doubt("chosen", "read.usage.mode", reason, tuple(sorted(alike))))
    written = [
        (each, {"usage": counts if mode == "last" else {**counts, "mode": mode}})
        for (each, mode), counts in rules.items()
    ]
    return LearnedUsage(tuple(written), tuple(read), tuple(doubts))


def _missing(name: str, found: Mapping[str, Sequence[tuple[Spot, str]]]) -> Iterator[Doubt]:
    """Yields the doubt about a count that no field has, unless the others make it."""
    completion = found.get("completion") or found.get("answer")
    made = {"total": bool(found.get("prompt") and completion), "completion": bool(completion), "answer": True}
    if not made.get(name):
        yield Doubt("open", f"read.usage.{name}", "no field has the counts of every answer")


def _counting(spot: Spot, responses: Sequence[RecordedResponse], counts: Sequence[int]) -> Iterator[tuple[Spot, str]]:
    """Yields the modes in which the values of a spot are the counts of the answers."""
    said = [[value.value for value in one.of(spot)] for one in responses]
    for mode in _MODES:
        if [_combined(values, mode) for values in said] == [*counts]:
            yield spot, mode


def _combined(values: Sequence[int], mode: str) -> int:
    if not values:
        return 0
    return values[-1] if mode == "last" else max(values) if mode == "max" else sum(values)


def _count(response: RecordedResponse, name: str) -> int:
    """Returns a count of the answer that is known; 0: it has none. `answer` is the completion without its reasoning."""
    usage = response.known.usage
    if usage is None:
        return 0
    completion = usage.completion_tokens or 0
    reasoning = _detail(usage.extra.get("completion_tokens_details"), "reasoning_tokens")
    counts = {
        "prompt": usage.prompt_tokens or 0,
        "completion": completion,
        "total": usage.total_tokens or 0,
        "reasoning": reasoning,
        "cached": _detail(usage.extra.get("prompt_tokens_details"), "cached_tokens"),
        "answer": completion - reasoning,
    }
    return counts[name]


def _detail(details: Json, name: str) -> int:
    value = details.get(name) if isinstance(details, dict) else None
    return value if isinstance(value, int) else 0
