"""Parses the paths of a mapping: `delta.content`, `outputs[0].text`, `outputs[name=text].data`, `labels["key"]`."""

import re
from typing import Final, TypeAlias

import msgspec

from adapters.proto.backend.mapping_error import mapping_error

_STEP: Final = re.compile(
    r"""(?:\A|\.)(?P<name>[A-Za-z_]\w*)
    (?:\[(?:(?P<position>\d{1,4})|(?P<field>[A-Za-z_]\w*)=(?P<value>[^\]"]*)|"(?P<key>[^"]*)")\])?""",
    re.VERBOSE,
)


class Position(msgspec.Struct, frozen=True):
    """The item of a repeated field at this position, from 0."""

    position: int


class Match(msgspec.Struct, frozen=True):
    """The first item of a repeated field whose own field has this value."""

    field: str
    value: str


class Key(msgspec.Struct, frozen=True):
    """The value of a map at this key."""

    key: str


Selector: TypeAlias = Position | Match | Key


class Step(msgspec.Struct, frozen=True):
    """A field by its name, and which of its items is meant, of a repeated field or a map."""

    name: str
    selector: Selector | None = None


def parse_path(written: str, place: str) -> tuple[Step, ...]:
    """Returns the steps of a path. Raises OptionError for text that is no path."""
    steps: list[Step] = []
    position = 0
    while position < len(written) or not steps:
        found = _STEP.match(written, position)
        if found is None:
            forms = 'write names, such as delta.content, outputs[0].text, outputs[name=text].data or labels["a"]'
            raise mapping_error(place, f"{written!r} is not a path; {forms}")
        steps.append(Step(found["name"], _selector(found)))
        position = found.end()
    return tuple(steps)


def _selector(found: re.Match[str]) -> Selector | None:
    if found["position"] is not None:
        return Position(int(found["position"]))
    if found["field"] is not None:
        return Match(found["field"], found["value"])
    return None if found["key"] is None else Key(found["key"])
