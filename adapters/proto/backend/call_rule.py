"""Compiles the rule that reads tool calls."""

import base64
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from adapters.proto.backend.answer_writer import AnswerWriter
from adapters.proto.backend.arguments_reader import ArgumentsReader
from adapters.proto.backend.field_getters import Condition, Leaves, Place
from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.options import CallRule, ReadRule
from adapters.proto.backend.places import Kind, conditions, find_items, find_place, holder_is_set

_NAME: Final[Leaves] = {"text": "text"}
_INDEX: Final[Leaves] = {"integer": "a whole number"}
_PIECES: Final[Leaves] = {"text": "text", "bytes": "bytes"}
_OBJECTS: Final[Leaves] = {"struct": "a google.protobuf.Struct", "map": "a map", "message": "a message"}
_ARGUMENTS: Final[Leaves] = {**_PIECES, **_OBJECTS}


CallReader: TypeAlias = Callable[[Any, AnswerWriter, ArgumentsReader], None]


def reads_ids(rules: Sequence[ReadRule]) -> bool:
    """Returns whether one of the rules, or of those in them, reads the ids of calls."""
    return any((rule.call is not None and rule.call.id is not None) or reads_ids(rule.rules) for rule in rules)


def compile_call(rule: CallRule, kind: Kind, place: str, state: Place | None = None) -> CallReader:
    """Returns the reader of one rule. `state` is the place in the message of the opaque state of the calls. A call
    whose message is not there is none; where the call has no message of its own, neither is one of which nothing is
    said. Raises OptionError."""
    items = None
    if rule.each is not None:
        items, kind = find_items(rule.each, kind, f"{place}.each")
    holds = conditions(rule.when, kind, f"{place}.when") if rule.when else None
    name = find_place(rule.name, kind, f"{place}.name", _NAME)
    arguments = find_place(rule.arguments, kind, f"{place}.arguments", _ARGUMENTS)
    call_id = None if rule.id is None else find_place(rule.id, kind, f"{place}.id", _NAME)
    index = None if rule.index is None else find_place(rule.index, kind, f"{place}.index", _INDEX)
    is_there = holder_is_set([rule.name, rule.arguments], kind, f"{place}.name")
    if is_there is None and items is None:
        is_there = _any_said([found for found in (name, arguments, call_id, index) if found is not None])
    if rule.mode != "whole":
        if arguments.leaf not in _PIECES:
            raise mapping_error(f"{place}.mode", f"{_ARGUMENTS[arguments.leaf]} holds whole arguments")
        if index is None and call_id is None:
            raise mapping_error(f"{place}.mode", f"{rule.mode!r} needs an `index` or an `id`")

    def read_one(item: Any, opaque: str, writer: AnswerWriter, reader: ArgumentsReader) -> None:
        named, identity = name.get(item), "" if call_id is None else call_id.get(item)
        if rule.mode == "whole":
            writer.call(None, identity, named, _text(arguments, item, named, writer, reader), opaque)
            return
        key = index.get(item) if index is not None else None
        written = _piece(arguments, item, (place, identity if key is None else key), rule.mode, writer)
        writer.call(identity if key is None else key, identity, named, written, opaque)

    def read(message: Any, writer: AnswerWriter, reader: ArgumentsReader) -> None:
        for item in (message,) if items is None else items(message):
            if (holds is None or holds(item)) and (is_there is None or is_there(item)):
                read_one(item, "" if state is None else _state(state, message), writer, reader)

    return read


def _any_said(places: Sequence[Place]) -> Condition:
    """Returns the condition that one of the places has a value, which is not empty."""
    return lambda item: any([found.is_set(item) if found.leaf in _OBJECTS else found.get(item) for found in places])


def _state(found: Place, message: Any) -> str:
    value: str | bytes = found.get(message)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _text(found: Place, item: Any, name: str, writer: AnswerWriter, reader: ArgumentsReader) -> str:
    value = found.get(item)
    if found.leaf in _OBJECTS:
        return reader.read(found, value, name, writer)
    return writer.characters(found, value, whole=True) if isinstance(value, bytes) else str(value)


def _piece(found: Place, item: Any, key: object, mode: str, writer: AnswerWriter) -> str:
    value = found.get(item)
    text = writer.characters(key, value, whole=mode == "total") if isinstance(value, bytes) else str(value)
    return writer.new_part(key, text) if mode == "total" else text
