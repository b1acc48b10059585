"""Aligns the items of a list, such as the turns of a conversation, with the recorded messages of a repeated field."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, groupby
from typing import Any

import msgspec

from adapters.proto.learn.samples import Sample


class Alignment(msgspec.Struct, frozen=True):
    """The recorded message of each item, by variant. `together`: neighbours of one variant are one message. (Any: the
    class of a message exists only at run time.)"""

    samples: Mapping[str, tuple[Sample, ...]]
    together: bool = False


def align(name: str, by: str, samples: Sequence[Sample], recorded: Sequence[Sequence[Any]]) -> Iterator[Alignment]:
    """Yields the ways in which the items of a list are the recorded messages: one for one, without the items of some
    variants, or with neighbours of a variant in one message. `by` is the name of the variant; empty: there are none."""
    items = [[(item.get(by, ""), item) for item in sample.values.get(name) or ()] for sample in samples]
    variants = sorted({variant for listed in items for variant, _ in listed})
    for count in range(len(variants)):
        for silent in combinations(variants, count):
            kept = [[pair for pair in listed if pair[0] not in silent] for listed in items]
            if all(len(pairs) == len(messages) for pairs, messages in zip(kept, recorded, strict=True)):
                yield Alignment(_by_variant(samples, kept, recorded))
            elif by and (parts := _split(kept, recorded)) is not None:
                yield Alignment(_by_variant(samples, kept, parts), together=True)


def _by_variant(
    samples: Sequence[Sample], items: Sequence[Sequence[tuple[str, Any]]], recorded: Sequence[Sequence[Any]]
) -> dict[str, tuple[Sample, ...]]:
    found: dict[str, list[Sample]] = {}
    for sample, pairs, messages in zip(samples, items, recorded, strict=True):
        for (variant, item), message in zip(pairs, messages, strict=True):
            found.setdefault(variant, []).append(Sample({**sample.values, **item}, message))
    return {variant: tuple(below) for variant, below in found.items()}


def _split(items: Sequence[Sequence[tuple[str, Any]]], recorded: Sequence[Sequence[Any]]) -> list[list[Any]] | None:
    """Returns the recorded messages, each that holds several neighbours split into one for each; None: the neighbours
    of one variant are not the messages."""
    parts: list[list[Any]] = []
    for pairs, messages in zip(items, recorded, strict=True):
        runs = [len([*run]) for _, run in groupby(variant for variant, _ in pairs)]
        if len(runs) != len(messages):
            return None
        split = [_parts(message, count) for message, count in zip(messages, runs, strict=True)]
        if any(part is None for part in split):
            return None
        parts.append([part for found in split for part in found or ()])
    return parts


def _parts(message: Any, count: int) -> list[Any] | None:
    if count == 1:
        return [message]
    repeated = [(field, values) for field, values in message.ListFields() if field.is_repeated]
    if not repeated or any(len(values) % count for _, values in repeated):
        return None
    parts: list[Any] = []
    for number in range(count):
        part = type(message)()
        part.CopyFrom(message)
        for field, values in repeated:
            part.ClearField(field.name)
            size = len(values) // count
            getattr(part, field.name).extend(values[number * size : (number + 1) * size])
        parts.append(part)
    return parts
