"""Finds where the counts of tokens stand, and how those of several messages combine."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import msgspec

from adapters.proto.backend.token_counts import COUNTS
from adapters.proto.learn.learned import Doubt
from adapters.proto.learn.response import RecordedResponse, spots_of
from adapters.proto.learn.spots import Spot, Way
from gateway.core.conversation import Json

_MODES: Final = ("last", "max", "sum")
# Counts that a service may tell in two parts. The total is made of the others.
_SUMMED: Final = ("prompt", "completion", "cached")


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
    sums: dict[str, tuple[Spot, Spot, str]] = {}
    for name in _SUMMED:
        made = name in found and not found[name] and not (name == "completion" and found.get("answer"))
        if made and (total := next(_summing(spots, told, wanted[name]), None)) is not None:
            sums[name] = total
    doubts: list[Doubt] = []
    apart = found.pop("answer", None) if found.get("completion") or "completion" in sums else None
    if apart and "reasoning" not in found and any(one.known.reasoning for one in told):
        reason = "no answer has a count of its reasoning, so that a count without it looks alike"
        doubts.append(Doubt("chosen", "read.usage.completion", reason, ("answer",)))
    rules: dict[tuple[Way, str], dict[str, Any]] = {}
    read: list[Spot] = []
    alike: set[str] = set()
    for name, pairs in found.items():
        if name in sums:
            one, other, mode = sums[name]
            rules.setdefault((one.each, mode), {})[name] = [one.path, other.path]
            read += [one, other]
            reason = f"the sum of {one.text} and {other.text}, which are it in every answer"
            doubts.append(Doubt("chosen", f"read.usage.{name}", reason))
            continue
        if not pairs:
            doubts += _missing(name, {**found, **{made: [pair] for made, pair in sums.items()}})
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


def _missing(name: str, found: Mapping[str, Sequence[object]]) -> Iterator[Doubt]:
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


def _summing(
    spots: Sequence[Spot], responses: Sequence[RecordedResponse], counts: Sequence[int]
) -> Iterator[tuple[Spot, Spot, str]]:
    """Yields two spots of one item whose values add up to the counts of the answers."""
    for one, other in combinations([spot for spot in spots if not spot.tensor], 2):
        for mode in _MODES:
            said = [
                [_combined([value.value for value in response.of(spot)], mode) for spot in (one, other)]
                for response in responses
            ]
            if one.each == other.each and [sum(pair) for pair in said] == [*counts] and all(_both(said)):
                yield one, other, mode


def _both(said: Sequence[Sequence[int]]) -> Iterator[bool]:
    """Yields for each of two spots whether it has a count in any response."""
    yield from (any(pair[position] for pair in said) for position in range(2))


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
