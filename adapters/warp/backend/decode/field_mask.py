"""Changes messages through a FieldMask: replaces the masked fields, or appends to their text.

A path is dotted and relative to the message; a oneof's own name is no part of it. A path with a field that the
schema does not know changes nothing, and one that is repeated counts once: a mask is a set, and a few bytes must not
make a long text be copied again and again. A path through a repeated message field goes through its elements pair by
pair, so both lists must be of one length.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

# The stubs define two classes of descriptors, and each returns instances of either.
Field: TypeAlias = Any


class MaskError(Exception):
    """The mask requests an operation that is undefined for this message."""


# The operation at a leaf: changes one field of the target, given the source with the new value.
Leaf = Callable[[Message, Message, Field], None]


def update(target: Message, source: Message, paths: Iterable[str]) -> list[str]:
    """Replaces the masked fields of `target` by those of `source`; unset ones are cleared. Changes `target`.

    Returns the paths that the schema does not define. Raises MaskError for lists of unequal length.
    """
    return [path for path in dict.fromkeys(paths) if not _apply(target, source, path.split("."), _replace)]


def append(target: Message, source: Message, paths: Iterable[str]) -> list[str]:
    """Appends the masked texts of `source` to those of `target`. Changes `target`.

    Returns the paths that the schema does not define. Raises MaskError for a leaf that is not text.
    """
    return [path for path in dict.fromkeys(paths) if not _apply(target, source, path.split("."), _append)]


def _apply(target: Message, source: Message, names: list[str], leaf: Leaf) -> bool:
    field = target.DESCRIPTOR.fields_by_name.get(names[0])
    if field is None or not _is_known(field, names[1:]):
        return False
    if len(names) == 1:
        leaf(target, source, field)
        return True
    return _descend(target, source, field, names[1:], leaf)


def _is_known(field: Field, names: list[str]) -> bool:
    """Returns whether the rest of a path exists below a field. The check comes first, because the descent creates
    messages."""
    for name in names:
        if field.message_type is None or _is_map(field):
            return False
        below = field.message_type.fields_by_name.get(name)
        if below is None:
            return False
        field = below
    return True


def _descend(target: Message, source: Message, field: Field, names: list[str], leaf: Leaf) -> bool:
    if field.is_repeated:
        pairs = _pairs(getattr(target, field.name), getattr(source, field.name), field)
        return all([_apply(below, given, names, leaf) for below, given in pairs])
    if not source.HasField(field.name) and not target.HasField(field.name):
        return True
    return _apply(getattr(target, field.name), getattr(source, field.name), names, leaf)


def _pairs(target: Any, source: Any, field: Field) -> list[tuple[Message, Message]]:
    if len(target) != len(source):
        raise MaskError(f"lists of unequal length in {field.name}")
    return list(zip(target, source, strict=True))


def _replace(target: Message, source: Message, field: Field) -> None:
    if field.is_repeated:
        target.ClearField(field.name)
        getattr(target, field.name).MergeFrom(getattr(source, field.name))
    elif not source.HasField(field.name):
        target.ClearField(field.name)
    elif field.message_type is None:
        setattr(target, field.name, getattr(source, field.name))
    else:
        getattr(target, field.name).CopyFrom(getattr(source, field.name))


def _append(target: Message, source: Message, field: Field) -> None:
    if field.is_repeated or field.type != FieldDescriptor.TYPE_STRING:
        raise MaskError(f"{field.name} is not text")
    setattr(target, field.name, getattr(target, field.name) + getattr(source, field.name))


def _is_map(field: Field) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)
