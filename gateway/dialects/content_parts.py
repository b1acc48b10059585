"""Repairs the parts of a content of which no block could be read; each is a fault that names its place."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from gateway.core.conversation import File, Image, Json, Text
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults
from gateway.framing.json_text import encode_json

Part: TypeAlias = Text | Image | File


def part_fault(part: Json, term: str = "content part") -> str:
    """Says what is wrong with a part, which clients of the dialect call by this term."""
    if not isinstance(part, dict):
        return f"a {term} is {kind_of(part)}, not an object"
    kind = part.get("type")
    if not isinstance(kind, str) or not kind:
        return f"a {term} has no type"
    return f"a {term} of type {kind[:40]!r} lacks the field that its type requires"


def part_text(part: Json) -> Part:
    """Returns a malformed part as the text that its client wrote."""
    return Text(part if isinstance(part, str) else encode_json(part))


class PartRepair(NamedTuple):
    """How a dialect repairs a part, what it says of its fault, and what it calls several parts."""

    repaired: Callable[[Json], Part] = part_text
    fault: Callable[[Json], str] = part_fault
    parts: str = "content parts"


TEXT_REPAIR: Final = PartRepair()


def sound_parts(
    parts: Sequence[Json],
    blocks: Iterable[Part | None],
    place: str,
    index: int,
    faults: Faults,
    repair: PartRepair = TEXT_REPAIR,
) -> tuple[Part, ...]:
    """Returns the blocks of the parts, which stand at `place` inside turn `index`; None is that of a malformed part.
    Fault: PART_TYPE."""
    sound: list[Part] = []
    broken: list[int] = []
    for block in blocks:
        if block is None:
            broken.append(len(sound))
            block = repair.repaired(parts[len(sound)])
        sound.append(block)
    if broken:
        faults.add_each(
            "PART_TYPE",
            len(broken),
            lambda n: (index, f"{place}[{broken[n]}]", repair.fault(parts[broken[n]])),
            f"{repair.parts} are malformed",
        )
    return tuple(sound)
