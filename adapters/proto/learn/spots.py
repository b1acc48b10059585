"""Lists what stands at each place of recorded messages: every value with its path, whatever message it is of."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from google.protobuf.message import Message

from adapters.proto.backend.field_values import STRUCT, VALUE, WRAPPERS, is_map
from adapters.proto.backend.options import Path, Tensor
from adapters.proto.backend.schema import Field

# A way through the message: names with dots below the message, or below an item of the repeated field before it.
Way: TypeAlias = tuple[str, ...]
_OPAQUE: Final = frozenset({STRUCT, VALUE, *WRAPPERS})


class Spot(msgspec.Struct, frozen=True):
    """A place: the repeated fields on the way to it, and its path below the last of them; or a tensor of this
    name."""

    each: Way
    path: str
    tensor: bool = False

    @property
    def written(self) -> Path:
        """The path as a rule names it."""
        return Tensor(self.path) if self.tensor else self.path

    @property
    def text(self) -> str:
        """The whole path, for a person."""
        return ".".join([*(f"{name}[]" for name in self.each), self.path])


class Value(msgspec.Struct, frozen=True):
    """One value at a spot: the number of its message in the response, the item that holds it, the value, and its number
    in the message. An item of several values is the same object in all of them."""

    message: int
    item: Any
    value: Any
    order: int = 0


class Spots(msgspec.Struct):
    """The values at each spot of one response or request, in order, and the field of each spot."""

    values: dict[Spot, list[Value]] = {}
    fields: dict[Spot, Field] = {}

    def of(self, spot: Spot) -> list[Any]:
        """Returns the values at a spot, without their places."""
        return [value.value for value in self.values.get(spot, ())]


def find_spots(messages: Sequence[Any]) -> Spots:
    """Returns everything that the messages hold. A Struct, a Value and what a wrapper holds are one value each, and so
    is a message, beside what it holds. (Any: the class of a message exists only at run time.)"""
    spots = Spots({}, {})
    for number, message in enumerate(messages):
        for order, (spot, field, value, item) in enumerate(_walk(message, (), "", message)):
            spots.fields[spot] = field
            spots.values.setdefault(spot, []).append(Value(number, item, value, order))
    return spots


def _walk(message: Any, each: Way, above: str, item: Any) -> Iterator[tuple[Spot, Field, Any, Any]]:
    for field, value in message.ListFields():
        if field.is_extension:
            continue
        path = f"{above}{field.name}"
        if is_map(field):
            yield from _of_map(field, value, each, path, item)
        elif not field.is_repeated:
            yield Spot(each, path), field, _plain(field, value), item
            if _has_fields(field):
                yield from _walk(value, each, f"{path}.", item)
        elif field.message_type is not None:
            for below in value:
                yield from _walk(below, (*each, path), "", below)
        elif len(value) == 1:
            yield Spot(each, f"{path}[0]"), field, value[0], item


def _of_map(
    field: Field, entries: Mapping[Any, Any], each: Way, path: str, item: Any
) -> Iterator[tuple[Spot, Field, Any, Any]]:
    yield Spot(each, path), field, entries, item
    inner = field.message_type.fields_by_name["value"]
    for key, value in entries.items():
        if isinstance(key, str) and '"' not in key:
            spot = Spot(each, f'{path}["{key}"]')
            yield spot, inner, _plain(inner, value), item
            if _has_fields(inner):
                yield from _walk(value, each, f"{spot.path}.", item)


def _plain(field: Field, value: Any) -> Any:
    """Returns a value as rules read it: that of a wrapper is what it holds."""
    wrapped = field.message_type is not None and field.message_type.full_name in WRAPPERS
    return value.value if wrapped else value


def _has_fields(field: Field) -> bool:
    return field.message_type is not None and field.message_type.full_name not in _OPAQUE


def numbers(message: Message) -> dict[str, int | float]:
    """Returns the numbers of a message by their paths, also those in JSON text."""
    found: dict[str, int | float] = {}
    for spot, values in find_spots([message]).values.items():
        for position, value in enumerate(values):
            path = f"{spot.text}#{_name_of(value.item)}#{position if not spot.each else ''}"
            found |= _numbers(value.value, path)
    return found


def _name_of(item: Any) -> str:
    """Returns the text of the first field of an item, which often tells it apart."""
    for field, value in item.ListFields():
        if field.type == field.TYPE_STRING and not field.is_repeated:
            return f"{value}"
    return ""


def _numbers(value: Any, path: str) -> dict[str, int | float]:
    match value:
        case bool():
            return {}
        case int() | float():
            return {path: value}
        case str() | bytes():
            try:
                parsed = json.loads(value)
            except ValueError:
                return {}
            found: dict[str, int | float] = {}
            if isinstance(parsed, dict):
                found = {
                    f"{path}.{key}": below
                    for key, below in parsed.items()
                    if isinstance(below, int | float) and not isinstance(below, bool)
                }
            return found
        case _:
            return {}
