"""Compiles the rule that reads tool calls, and reads the forms that arguments have in protobuf messages."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from adapters.proto.answer_writer import AnswerWriter
from adapters.proto.field_getters import Leaf, Place, conditions, find_items, find_place
from adapters.proto.mapping_error import mapping_error
from adapters.proto.options import CallRule
from adapters.proto.schema import MessageType
from adapters.protobuf_values.arguments import encode_arguments
from adapters.protobuf_values.tool_schema import Schema, Steps
from adapters.text.frames import utf8
from gateway.core.conversation import EMPTY, ToolSpec

_NAME: Final[Mapping[Leaf, str]] = {"text": "text"}
_INDEX: Final[Mapping[Leaf, str]] = {"integer": "a whole number"}
_ARGUMENTS: Final[Mapping[Leaf, str]] = {"text": "text", "bytes": "bytes", "struct": "a google.protobuf.Struct"}


class ArgumentsReader:
    """Writes the Structs of one response as JSON text, with the keys and whole numbers that the schemas of the tools
    describe."""

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self._parameters = {tool.name: tool.parameters for tool in tools}
        self._steps = Steps()
        self._schemas: dict[str, Schema] = {}

    def read(self, arguments: Any, name: str, writer: AnswerWriter) -> str:
        """Return a Struct as JSON text. (Any: its class is of the schema's own pool.) Raises InvalidToolCall for a
        number that JSON does not have."""
        declared = name if name in self._parameters else ""
        if declared not in self._schemas:
            self._schemas[declared] = Schema(self._parameters.get(declared, EMPTY), self._steps)
        encoded = encode_arguments(arguments, self._schemas[declared])
        if encoded.inexact:
            detail = "numbers of a call may have lost digits: the wire carries doubles"
            writer.note_once("changed", "NUMBER_INEXACT", detail)
        if self._steps.exhausted:
            detail = "the schema of a tool has too many references to follow"
            writer.note_once("seen", "SCHEMA_NOT_FOLLOWED", detail)
        return encoded.text


CallReader: TypeAlias = Callable[[Any, AnswerWriter, ArgumentsReader], None]


def compile_call(rule: CallRule, kind: MessageType, place: str) -> CallReader:
    """Return the reader of one rule. Raises OptionError."""
    items = None
    if rule.each is not None:
        items, kind = find_items(rule.each, kind, f"{place}.each")
    holds = conditions(rule.when, kind, f"{place}.when") if rule.when else None
    name = find_place(rule.name, kind, f"{place}.name", _NAME)
    arguments = find_place(rule.arguments, kind, f"{place}.arguments", _ARGUMENTS)
    call_id = None if rule.id is None else find_place(rule.id, kind, f"{place}.id", _NAME)
    index = None if rule.index is None else find_place(rule.index, kind, f"{place}.index", _INDEX)
    if rule.mode != "whole":
        if arguments.leaf == "struct":
            raise mapping_error(f"{place}.mode", "a Struct holds whole arguments")
        if index is None and call_id is None:
            raise mapping_error(f"{place}.mode", f"{rule.mode!r} needs an `index` or an `id`")

    def read_one(item: Any, writer: AnswerWriter, structs: ArgumentsReader) -> None:
        named, identity = name.get(item), "" if call_id is None else call_id.get(item)
        if rule.mode == "whole":
            writer.call(None, identity, named, _text(arguments, item, named, writer, structs))
            return
        key = index.get(item) if index is not None else None
        written = _piece(arguments, item, (place, identity if key is None else key), rule.mode, writer)
        writer.call(identity if key is None else key, identity, named, written)

    def read(message: Any, writer: AnswerWriter, structs: ArgumentsReader) -> None:
        for item in (message,) if items is None else items(message):
            if holds is None or holds(item):
                read_one(item, writer, structs)

    return read


def _text(found: Place, item: Any, name: str, writer: AnswerWriter, structs: ArgumentsReader) -> str:
    value = found.get(item)
    if found.leaf == "struct":
        return structs.read(value, name, writer)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _piece(found: Place, item: Any, key: object, mode: str, writer: AnswerWriter) -> str:
    value = found.get(item)
    if mode == "total":
        return writer.new_part(key, utf8().decode(value) if isinstance(value, bytes) else value)
    return writer.characters(key, value) if isinstance(value, bytes) else str(value)
