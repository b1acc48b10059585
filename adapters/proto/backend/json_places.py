"""Reads the places of a JSON document that stands in a field, by paths such as `choices[0].delta.content`."""

from typing import Any, Final

import msgspec

from adapters.proto.backend.field_getters import Condition, Getter, Leaves, Place
from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.options import Conditions
from adapters.text.backend.paths import look_up
from adapters.text.backend.paths import parse_path as parse_json_path
from gateway.core.conversation import Json
from gateway.core.errors import BackendProtocolError
from gateway.core.events import Event
from gateway.core.malformed_event import malformed_event
from gateway.framing.json_text import NotJson, decode_json
from gateway.wires.json_body import EventJson


class JsonDocument:
    """Stands for the type of a message where paths lead into JSON, whose names nothing describes."""


DOCUMENT: Final = JsonDocument()


class DocumentReader:
    """Reads the documents that one rule finds in the messages of a response, in order. Half a character at the end of a
    text is joined with that at the beginning of the next document."""

    def __init__(self) -> None:
        self._json = EventJson()

    def read(self, value: str | bytes, events: list[Event]) -> Json:
        """Returns the document in a field; adds a notice if its text was mended. Raises BackendProtocolError."""
        data = _bytes(value)
        try:
            return self._json.read(data, events)
        except BackendProtocolError as error:
            raise _not_json(data) from error

    def end(self, events: list[Event]) -> None:
        """Adds the notice for half a character that nothing will follow."""
        self._json.end(events)


def read_document(value: str | bytes) -> Json:
    """Returns the JSON of a field, with U+FFFD for half a character. Raises BackendProtocolError for anything else."""
    data = _bytes(value)
    try:
        return decode_json(data, lenient=True)
    except NotJson as error:
        raise _not_json(data) from error


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _not_json(data: bytes) -> BackendProtocolError:
    message = "The backend sent a field that is not JSON, which the mapping expects there."
    return BackendProtocolError(message, notices=(malformed_event(data),))


def find_in_document(written: str, place: str, leaves: Leaves | None = None) -> Place:
    """Returns a place of a document. A value of another type than that of `leaves` reads as none. Raises OptionError
    for text that is no path."""
    steps = _steps(written, place)

    def value(document: Any) -> Json:
        return look_up(document, steps)

    return _place(value, leaves or {})


def find_list(written: str, place: str) -> Getter:
    """Returns the getter of the items of an array; anything else has none. Raises OptionError."""
    steps = _steps(written, place)
    return lambda document: found if isinstance(found := look_up(document, steps), list) else ()


def document_conditions(written: Conditions, place: str) -> Condition:
    """Compiles conditions, which all must hold. Raises OptionError for text that is no path."""
    checks = [_condition(find_in_document(path, f"{place}.{path}"), value) for path, value in written.items()]
    return lambda document: all([check(document) for check in checks])


def _place(value: Getter, leaves: Leaves) -> Place:
    def is_set(document: Any) -> bool:
        return value(document) is not None

    if "struct" in leaves:
        return Place("text", lambda document: _as_text(value(document)), is_set)
    if {"text", "integer"} <= leaves.keys():
        return Place("text", lambda document: found if type(found := value(document)) in (str, int) else "", is_set)
    if "text" in leaves:
        return Place("text", lambda document: found if isinstance(found := value(document), str) else "", is_set)
    if "integer" in leaves:
        return Place("integer", lambda document: found if type(found := value(document)) is int else 0, is_set)
    if "flag" in leaves:
        return Place("flag", lambda document: value(document) is True, is_set)
    return Place("other", value, is_set)


def _as_text(value: Json) -> str:
    """Returns the arguments of a call as JSON text: some wires write the text itself, some the object."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _steps(written: str, place: str) -> tuple[str | int, ...]:
    try:
        return parse_json_path(written)
    except ValueError as error:
        raise mapping_error(place, str(error)) from error


def _condition(found: Place, value: bool | int | str) -> Condition:
    if value in ("set", "unset"):
        check = found.is_set
        return check if value == "set" else lambda document: not check(document)
    return lambda document: type(here := found.get(document)) is type(value) and here == value
