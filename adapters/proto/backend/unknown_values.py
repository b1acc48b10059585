"""Finds what the schema of a backend does not know: fields and values of enums that a newer version has added."""

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.unknown_fields import UnknownFieldSet

from gateway.core.notices import Notice, UnknownValue

# Bounds the work for one message. Few notices say as much as many.
_DEEPEST: Final = 16
_MOST: Final = 16


def unknown_values(message: Any) -> list[Notice]:
    """Returns one notice for each, at most 16. (Any: a message whose class exists only at run time.)"""
    found: dict[Notice, None] = {}
    for notice in _walk(message, message.DESCRIPTOR.name, 0):
        found[notice] = None
        if len(found) == _MOST:
            break
    return list(found)


def _walk(message: Any, path: str, depth: int) -> Iterator[Notice]:
    unknown: Any = UnknownFieldSet(message)  # the stubs lack its iterator
    for field in unknown:
        yield _notice("field", path, field.field_number)
    if depth == _DEEPEST:
        return
    for field, value in message.ListFields():
        below = f"{path}.{field.name}"
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        for item in value if field.is_repeated else (value,):
            if field.message_type is not None:
                yield from _walk(item, below, depth + 1)
            elif field.enum_type is not None and item not in field.enum_type.values_by_number:
                yield _notice("value", below, item)


def _notice(part: str, path: str, number: int) -> Notice:
    detail = f"the schema does not know {part} {number} of {path}, which the backend sent"
    return Notice("backend", "ignored", "SCHEMA_OUTDATED", detail, unknown=UnknownValue(path, number))
