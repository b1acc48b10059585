"""Aligns the items of a list, such as the turns of a conversation, with the recorded messages of a repeated field."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, groupby
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from adapters.proto.backend.field_values import is_map
from adapters.proto.learn.samples import Sample

# A variant, and the name whose value is sent in a message of its own; empty: the item is one message.
Part: TypeAlias = tuple[str, str]
# Any: an item is a mapping of names.
_Parts: TypeAlias = list[tuple[Part, Any]]

# The text and the calls of a turn, which some services take in messages of their own.
APART: Final = ("$text", "$calls")
# A message that holds one call of a turn, its text in the first.
ONE_CALL: Final = "$call"
# How the messages of a turn of the assistant follow from it: one; text and calls apart; one for each call; one for each
# call, with its result behind it.
_Way: TypeAlias = Literal["one", "apart", "calls", "calls and results"]
_WAYS: Final[tuple[_Way, ...]] = get_args(_Way)
_CALLER: Final = "assistant"
_DEPTH: Final = 3


class Alignment(msgspec.Struct, frozen=True):
    """The recorded message of each part of an item. `together`: neighbours of one variant are one message, whose items
    stand in every repeated field (True) or in the one at a path. (Any: the class of a message exists only at run
    time.)"""

    samples: Mapping[Part, tuple[Sample, ...]]
    together: bool | str = False


def align(name: str, by: str, samples: Sequence[Sample], recorded: Sequence[Sequence[Any]]) -> Iterator[Alignment]:
    """Yields the ways in which the items of a list are the recorded messages: one for one, without the items of some
    variants, as several messages of one turn, or with neighbours of a variant in one message. `by` is the name of the
    variant; empty: there are none."""
    listed = [[(str(item.get(by, "")), item) for item in sample.values.get(name) or ()] for sample in samples]
    variants = sorted({variant for items in listed for variant, _ in items})
    for way in _WAYS if by and _has_calls(listed) else _WAYS[:1]:
        for count in range(len(variants)):
            for silent in combinations(variants, count):
                parts = [list(_parts([one for one in items if one[0] not in silent], way)) for items in listed]
                yield from _aligned(samples, parts, recorded, by)


def _has_calls(listed: Sequence[Sequence[tuple[str, Any]]]) -> bool:
    return any(item.get("$calls") for items in listed for _, item in items)


def _parts(items: Sequence[tuple[str, Any]], way: _Way) -> Iterator[tuple[Part, Any]]:
    told: set[str] = set()
    for variant, item in items:
        if variant != _CALLER or way == "one":
            if item.get("$id") not in told or way != "calls and results":
                yield (variant, ""), item
        elif way == "apart":
            yield from (((variant, name), item) for name in APART if item.get(name))
        else:
            calls = item["$calls"] or [{}]
            for number, call in enumerate(calls):
                yield (variant, ONE_CALL), {**item, **call, **({"$text": None} if number else {})}
                if way == "calls and results":
                    told.add(call.get("$id", ""))
                    yield from (((other, ""), one) for other, one in items if one.get("$id", "") in {call.get("$id")})


def _aligned(
    samples: Sequence[Sample], parts: Sequence[_Parts], recorded: Sequence[Sequence[Any]], by: str
) -> Iterator[Alignment]:
    if all(len(items) == len(messages) for items, messages in zip(parts, recorded, strict=True)):
        yield Alignment(_by_part(samples, parts, recorded))
    elif by and (split := _split(parts, recorded)) is not None:
        messages, together = split
        yield Alignment(_by_part(samples, parts, messages), together)


def _by_part(
    samples: Sequence[Sample], parts: Sequence[_Parts], recorded: Sequence[Sequence[Any]]
) -> dict[Part, tuple[Sample, ...]]:
    found: dict[Part, list[Sample]] = {}
    for sample, items, messages in zip(samples, parts, recorded, strict=True):
        for (part, item), message in zip(items, messages, strict=True):
            found.setdefault(part, []).append(Sample({**sample.values, **item}, message))
    return {part: tuple(below) for part, below in found.items()}


def _split(parts: Sequence[_Parts], recorded: Sequence[Sequence[Any]]) -> tuple[list[list[Any]], bool | str] | None:
    """Returns the recorded messages, each that holds several neighbours split into one for each, and where they are
    joined; None: the neighbours of one variant are not the messages."""
    split: list[list[Any]] = []
    paths: set[str] = set()
    for items, messages in zip(parts, recorded, strict=True):
        runs = [len([*run]) for _, run in groupby(part for part, _ in items)]
        if len(runs) != len(messages):
            return None
        found: list[Any] = []
        for message, count in zip(messages, runs, strict=True):
            if (pieces := _pieces(message, count)) is None:
                return None
            found += pieces[0]
            paths |= {pieces[1]} if count > 1 else set()
        split.append(found)
    if len(paths) > 1:
        return None
    return split, paths.pop() or True


def _pieces(message: Any, count: int) -> tuple[list[Any], str] | None:
    """Returns a message as several, each with its share of the repeated fields, and the path of the one that is shared;
    empty: all are, at the top."""
    if count == 1:
        return [message], ""
    at = _shared(message, count)
    if at is None:
        return None
    pieces: list[Any] = []
    for number in range(count):
        piece = type(message)()
        piece.CopyFrom(message)
        holder = piece
        for step in at[:-1]:
            holder = getattr(holder, step)
        names = at[-1:] or [field.name for field, _ in message.ListFields() if field.is_repeated and not is_map(field)]
        for name in names:
            values = list(getattr(holder, name))
            size = len(values) // count
            holder.ClearField(name)
            getattr(holder, name).extend(values[number * size : (number + 1) * size])
        pieces.append(piece)
    return pieces, ".".join(at)


def _shared(message: Any, count: int) -> tuple[str, ...] | None:
    """Returns the way to the repeated field that neighbours share; empty: all at the top; None: there is none."""
    top = [len(values) for field, values in message.ListFields() if field.is_repeated and not is_map(field)]
    if top:
        return () if not any(size % count for size in top) else None
    return next(_ways(message, count, ()), None)


def _ways(message: Any, count: int, way: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for field, value in message.ListFields():
        if is_map(field):
            continue
        if field.is_repeated and way and len(value) % count == 0:
            yield (*way, field.name)
        elif field.message_type is not None and not field.is_repeated and len(way) < _DEPTH:
            yield from _ways(value, count, (*way, field.name))
