"""Combines finders of errors: several, in each item, under a condition, in the document of a field."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from adapters.proto.backend.field_getters import Condition, Getter
from adapters.proto.backend.json_places import read_document
from gateway.core.errors import BackendError

# The error that a message reports, or None. (Any: a message whose class exists only at run time.)
ErrorFinder: TypeAlias = Callable[[Any], BackendError | None]


def find_first(finders: Sequence[ErrorFinder]) -> ErrorFinder:
    """Returns one finder for several, whose errors come in their order."""
    if len(finders) == 1:
        return finders[0]
    return lambda message: next((error for finder in finders if (error := finder(message)) is not None), None)


def find_in_each(items: Getter, finder: ErrorFinder) -> ErrorFinder:
    """Returns the finder of an error in the items of a message."""
    return lambda message: next((error for item in items(message) if (error := finder(item)) is not None), None)


def find_if(holds: Condition, finder: ErrorFinder) -> ErrorFinder:
    """Returns the finder of an error in the messages for which the condition holds."""
    return lambda message: finder(message) if holds(message) else None


def find_in_first_choice(number: Getter, finder: ErrorFinder) -> ErrorFinder:
    """Returns the finder of an error in the first choice, 0."""
    return lambda message: None if number(message) else finder(message)


def find_inside(get: Getter, finder: ErrorFinder) -> ErrorFinder:
    """Returns the finder of an error in the JSON document of a field of a message, where there is one."""

    def find_in_document(message: Any) -> BackendError | None:
        document = read_document(written) if (written := get(message)) else None
        return None if document is None else finder(document)

    return find_in_document
