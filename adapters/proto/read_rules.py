"""Compiles the rules of a mapping to readers of messages, checked against the type of the message."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from adapters.proto.answer_writer import AnswerWriter, Counts
from adapters.proto.call_rule import ArgumentsReader, compile_call
from adapters.proto.field_getters import Getter, Leaf, Place, conditions, find_items, find_place
from adapters.proto.finish_rule import compile_finish
from adapters.proto.mapping_error import mapping_error
from adapters.proto.options import ErrorRule, ReadRule, UsageRule
from adapters.proto.schema import MessageType
from adapters.text.failure import reported_failure
from adapters.text.frames import utf8
from gateway.core.backend_status import status_error
from gateway.core.conversation import Json
from gateway.core.errors import BackendError

# Any: a message whose class exists only at run time.
Reader: TypeAlias = Callable[[Any, AnswerWriter, ArgumentsReader], None]

_TEXT: Final[Mapping[Leaf, str]] = {"text": "text", "bytes": "bytes"}
_WORD: Final[Mapping[Leaf, str]] = {"text": "text"}
_COUNT: Final[Mapping[Leaf, str]] = {"integer": "a whole number"}
_CODE: Final[Mapping[Leaf, str]] = {"text": "text", "integer": "a whole number", "enum": "an enum"}
_COUNTED: Final = ("prompt", "completion", "total", "reasoning", "cached")


class Rules:
    """All rules of one mapping. `tells_end`, `reads_calls`: whether any of them tells the end, or reads calls."""

    def __init__(self, rules: tuple[ReadRule, ...], kind: MessageType) -> None:
        """Raises OptionError with the place of the fault."""
        self._errors = [
            _error(rule.error, kind, f"read[{n}].error") for n, rule in enumerate(rules) if rule.error is not None
        ]
        compiler = _Compiler()
        self._readers = [compiler.rule(rule, kind, f"read[{n}]") for n, rule in enumerate(rules)]
        self.tells_end = compiler.tells_end
        self.reads_calls = compiler.reads_calls
        if not compiler.reads_content:
            raise mapping_error("read", "no rule reads text or calls")

    def read(self, message: Any, writer: AnswerWriter, arguments: ArgumentsReader) -> None:
        """Write what one message says. Raises BackendError for an error that it reports, before all else."""
        for judge in self._errors:
            if (error := judge(message)) is not None:
                raise error
        for reader in self._readers:
            reader(message, writer, arguments)


class _Compiler:
    def __init__(self) -> None:
        self.tells_end = False
        self.reads_calls = False
        self.reads_content = False

    def rule(self, rule: ReadRule, kind: MessageType, place: str, nested: bool = False) -> Reader:
        """Compile one rule; its readers run in the order start, reasoning, text, call, finish, usage, inner rules."""
        if nested and rule.error is not None:
            raise mapping_error(f"{place}.error", "an error belongs to a rule at the top of `read`")
        items = None
        if rule.each is not None:
            items, kind = find_items(rule.each, kind, f"{place}.each")
        holds = conditions(rule.when, kind, f"{place}.when") if rule.when else None
        readers = self._own(rule, kind, place)
        readers += [self.rule(below, kind, f"{place}.rules[{n}]", True) for n, below in enumerate(rule.rules)]
        if not readers and rule.error is None:
            raise mapping_error(place, "the rule reads nothing")
        if items is None and holds is None and len(readers) == 1:
            return readers[0]

        def read(message: Any, writer: AnswerWriter, arguments: ArgumentsReader) -> None:
            for item in (message,) if items is None else items(message):
                if holds is None or holds(item):
                    for reader in readers:
                        reader(item, writer, arguments)

        return read

    def _own(self, rule: ReadRule, kind: MessageType, place: str) -> list[Reader]:
        readers: list[Reader] = []
        if rule.start is not None:
            id_of = _optional(rule.start.id, kind, f"{place}.start.id", _WORD)
            model_of = _optional(rule.start.model, kind, f"{place}.start.model", _WORD)
            readers.append(lambda message, writer, _: writer.start(id_of(message) or "", model_of(message) or ""))
        if rule.reasoning is not None:
            readers.append(_text(rule.reasoning, rule.mode, kind, f"{place}.reasoning", AnswerWriter.reasoning))
        if rule.text is not None:
            readers.append(_text(rule.text, rule.mode, kind, f"{place}.text", AnswerWriter.text))
        if rule.call is not None:
            readers.append(compile_call(rule.call, kind, f"{place}.call"))
        if rule.finish is not None:
            finish = compile_finish(rule.finish, kind, f"{place}.finish")
            readers.append(lambda message, writer, _: finish(message, writer))
        if rule.usage is not None:
            readers.append(_usage(rule.usage, kind, f"{place}.usage"))
        self.tells_end |= rule.finish is not None
        self.reads_calls |= rule.call is not None
        self.reads_content |= rule.text is not None or rule.call is not None
        return readers


def _text(written: str, mode: str, kind: MessageType, place: str, write: Callable[[AnswerWriter, str], None]) -> Reader:
    found = find_place(written, kind, place, _TEXT)
    get = found.get
    if found.leaf == "text" and mode == "delta":

        def read_piece(message: Any, writer: AnswerWriter, _: ArgumentsReader) -> None:
            if text := get(message):
                write(writer, text)

        return read_piece

    def read(message: Any, writer: AnswerWriter, _: ArgumentsReader) -> None:
        value = get(message)
        if found.leaf == "bytes":
            value = utf8().decode(value) if mode == "total" else writer.characters(place, value)
        if value:
            write(writer, writer.new_part(place, value) if mode == "total" else value)

    return read


def _usage(rule: UsageRule, kind: MessageType, place: str) -> Reader:
    written = [(name, getattr(rule, name)) for name in _COUNTED]
    getters = [_optional(path, kind, f"{place}.{name}", _COUNT) for name, path in written]
    if all(path is None for _, path in written):
        raise mapping_error(place, "the rule reads nothing")
    return lambda message, writer, _: writer.usage(Counts(*[max(get(message) or 0, 0) for get in getters]), rule.mode)


def _optional(written: str | None, kind: MessageType, place: str, leaves: Mapping[Leaf, str]) -> Getter:
    return _nothing if written is None else find_place(written, kind, place, leaves).get


def _nothing(_: Any) -> None:
    return None


def _error(rule: ErrorRule, kind: MessageType, place: str) -> Callable[[Any], BackendError | None]:
    if not rule.when:
        raise mapping_error(f"{place}.when", "an error needs a condition")
    if rule.status is not None and not 400 <= rule.status <= 599:
        raise mapping_error(f"{place}.status", f"{rule.status} is no status of an error")
    holds = conditions(rule.when, kind, f"{place}.when")
    message_of = _optional(rule.message, kind, f"{place}.message", _TEXT)
    code = None if rule.code is None else find_place(rule.code, kind, f"{place}.code", _CODE)

    def judge(message: Any) -> BackendError | None:
        if not holds(message):
            return None
        said = message_of(message) or ""
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
        named = None if code is None else _code(code, message)
        if rule.status is not None and rule.status != 400:
            return status_error(rule.status, {}, message=text, code=None if named is None else str(named))
        failure: dict[str, Json] = {"message": text, "code": rule.status or named, "type": named}
        return reported_failure(failure)

    return judge


def _code(found: Place, message: Any) -> str | int | None:
    value: str | int = found.get(message)
    if found.leaf == "enum":
        known = found.field.enum_type.values_by_number.get(value)
        return None if known is None else str(known.name).lower()
    return value or None
