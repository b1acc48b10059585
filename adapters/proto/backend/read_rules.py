"""Compiles the rules of a mapping to readers of messages, checked against the type of the message."""

import base64
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from adapters.proto.backend.answer_writer import AnswerWriter
from adapters.proto.backend.arguments_reader import ArgumentsReader
from adapters.proto.backend.call_rule import compile_call
from adapters.proto.backend.field_getters import Getter, Leaves, Place
from adapters.proto.backend.finish_rule import FinishReader, compile_finish
from adapters.proto.backend.json_places import DOCUMENT, read_document
from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.options import ErrorRule, OpaqueRule, Path, ReadRule, UsageRule
from adapters.proto.backend.places import Kind, conditions, find_items, find_place, single_message
from adapters.proto.backend.readers import (
    Reader,
    read_all,
    read_each,
    read_first_choice,
    read_if,
    read_if_there,
    read_inside,
)
from adapters.proto.backend.text_rule import TEXT, compile_texts
from adapters.proto.backend.token_counts import COUNTS, Counts
from adapters.text.backend.failure import reported_failure
from gateway.core.backend_status import status_error
from gateway.core.conversation import Json
from gateway.core.errors import BackendError

# Any: a message whose class exists only at run time.
Judge: TypeAlias = Callable[[Any], BackendError | None]

_WORD: Final[Leaves] = {"text": "text"}
_COUNT: Final[Leaves] = {"integer": "a whole number"}
_CODE: Final[Leaves] = {"text": "text", "integer": "a whole number", "enum": "an enum"}


class Rules:
    """All rules of one mapping. `reads_end`, `reads_calls`, `reads_stop`, `reads_state`: whether any of them reads the
    end, calls, the stop sequence that was met, or opaque state. `reads_openai`: one reads chunks of OpenAI's chat
    completions."""

    def __init__(self, rules: tuple[ReadRule, ...], kind: Kind) -> None:
        """Raises OptionError with the place of the fault."""
        compiler = _Compiler()
        # By the message that has to be there for an error; None: any.
        self._errors: dict[str | None, list[Judge]] = {}
        for n, rule in enumerate(rules):
            if rule.error is not None:
                judges = self._errors.setdefault(_needed(rule, rule.error, kind), [])
                judges.append(compiler.error(rule, kind, f"read[{n}]"))
        self._readers = [compiler.rule(rule, kind, f"read[{n}]") for n, rule in enumerate(rules)]
        self.reads_end = compiler.reads_end
        self.reads_calls = compiler.reads_calls
        self.reads_stop = compiler.reads_stop
        self.reads_state = compiler.reads_state
        self.reads_openai = compiler.reads_openai
        if not compiler.reads_content:
            raise mapping_error("read", "no rule reads text or calls")

    def read(self, message: Any, writer: AnswerWriter, arguments: ArgumentsReader) -> None:
        """Writes what one message says. Raises BackendError for an error that it reports, before all else."""
        for needed, judges in self._errors.items():
            if needed is None or message.HasField(needed):
                for judge in judges:
                    if (error := judge(message)) is not None:
                        raise error
        for reader in self._readers:
            reader(message, writer, arguments)


class _Compiler:
    def __init__(self) -> None:
        self.reads_end = False
        self.reads_calls = False
        self.reads_stop = False
        self.reads_state = False
        self.reads_openai = False
        self.reads_content = False

    def error(self, rule: ReadRule, kind: Kind, place: str) -> Judge:
        """Compiles the error of a rule at the top, which no `each` repeats."""
        if rule.each is not None or rule.error is None:
            raise mapping_error(f"{place}.error", "an error belongs to a rule without `each`")
        if rule.json is None:
            return _error(rule.error, kind, f"{place}.error")
        get, judge = _json_field(rule.json, kind, f"{place}.json"), _error(rule.error, DOCUMENT, f"{place}.error")

        def judge_document(message: Any) -> BackendError | None:
            document = read_document(written) if (written := get(message)) else None
            return None if document is None else judge(document)

        return judge_document

    def rule(self, rule: ReadRule, kind: Kind, place: str, nested: bool = False) -> Reader:
        """Compiles one rule; its readers run in the order start, reasoning, text, call, state, stop, finish, usage,
        inner rules."""
        if nested and rule.error is not None:
            raise mapping_error(f"{place}.error", "an error belongs to a rule at the top of `read`")
        items, above = None, kind
        if rule.each is not None:
            items, kind = find_items(rule.each, kind, f"{place}.each")
        holds = conditions(rule.when, kind, f"{place}.when") if rule.when else None
        choice = None if rule.choice is None else find_place(rule.choice, kind, f"{place}.choice", _COUNT).get
        document = None
        if rule.json is not None:
            document, kind = _json_field(rule.json, kind, f"{place}.json"), DOCUMENT
        readers = self._own(rule, kind, place)
        readers += [self.rule(below, kind, f"{place}.rules[{n}]", True) for n, below in enumerate(rule.rules)]
        if not readers and rule.error is None:
            raise mapping_error(place, "the rule reads nothing")
        read = read_all(readers)
        if document is not None:
            read = read_inside(document, f"{place}.json", read)
        if choice is not None:
            read = read_first_choice(choice, read)
        if holds is not None:
            read = read_if(holds, read)
        return read if items is None else read_if_there([rule.each], above, read_each(items, read))

    def _own(self, rule: ReadRule, kind: Kind, place: str) -> list[Reader]:
        readers: list[Reader] = []
        if rule.start is not None:
            id_of = _optional(rule.start.id, kind, f"{place}.start.id", _WORD)
            model_of = _optional(rule.start.model, kind, f"{place}.start.model", _WORD)
            readers.append(_start(id_of, model_of))
        if rule.openai:
            readers.append(_openai(rule, place))
        readers += self._content(rule, kind, place)
        if rule.stopped_by is not None:
            stop_of = find_place(rule.stopped_by, kind, f"{place}.stopped_by", _WORD).get
            readers.append(lambda message, writer, _: writer.stopped_at(stop_of(message)))
        if rule.finish is not None:
            finish = compile_finish(rule.finish, kind, f"{place}.finish")
            readers.append(read_if_there([rule.finish.oneof or rule.finish.at], kind, _finish(finish)))
        if rule.usage is not None:
            readers.append(_usage(rule.usage, kind, f"{place}.usage"))
        self.reads_end |= rule.finish is not None or rule.openai
        self.reads_calls |= rule.call is not None or rule.openai
        self.reads_stop |= rule.stopped_by is not None
        self.reads_state |= rule.opaque is not None
        self.reads_openai |= rule.openai
        self.reads_content |= rule.text is not None or rule.call is not None or rule.openai
        return readers

    def _content(self, rule: ReadRule, kind: Kind, place: str) -> list[Reader]:
        state = None if rule.opaque is None else _state(rule.opaque, kind, f"{place}.opaque")
        on = None if rule.opaque is None else rule.opaque.on
        readers = compile_texts(rule, kind, place)
        if rule.call is not None:
            readers.append(compile_call(rule.call, kind, f"{place}.call", state if on == "call" else None))
        elif on == "call":
            raise mapping_error(f"{place}.opaque.on", "the rule has no `call`")
        if state is not None and on == "reasoning":
            readers.append(lambda message, writer, _: writer.opaque(state(message)))
        return readers


def _finish(finish: FinishReader) -> Reader:
    return lambda message, writer, _: finish(message, writer)


def _start(id_of: Getter, model_of: Getter) -> Reader:
    def read_start(message: Any, writer: AnswerWriter, _: ArgumentsReader) -> None:
        response_id, model = id_of(message), model_of(message)
        if response_id or model:
            writer.start(response_id or "", model or "")

    return read_start


def _json_field(written: str, kind: Kind, place: str) -> Getter:
    """Returns the getter of a field with a JSON document."""
    if kind is DOCUMENT:
        raise mapping_error(place, "the rule reads JSON already")
    return find_place(written, kind, place, TEXT).get


def _openai(rule: ReadRule, place: str) -> Reader:
    others = (rule.text, rule.reasoning, rule.call, rule.finish, rule.usage, rule.start, rule.stopped_by, rule.opaque)
    if rule.json is None or any(other is not None for other in others):
        raise mapping_error(f"{place}.openai", "it reads the whole document in `json`, and no other key does")
    return lambda document, writer, _: writer.chunk(document)


def _state(rule: OpaqueRule, kind: Kind, place: str) -> Getter:
    """Returns the getter of opaque state as text: bytes are base64."""
    found = find_place(rule.at, kind, f"{place}.at", TEXT)
    if found.leaf == "text":
        return found.get
    return lambda message: base64.b64encode(found.get(message)).decode()


def _usage(rule: UsageRule, kind: Kind, place: str) -> Reader:
    written = {name: path for name in COUNTS if (path := getattr(rule, name)) is not None}
    if not written:
        raise mapping_error(place, "the rule reads nothing")
    if rule.completion is not None and rule.answer is not None:
        raise mapping_error(f"{place}.answer", "it stands in place of `completion`")
    getters = [(name, find_place(path, kind, f"{place}.{name}", _COUNT).get) for name, path in written.items()]

    def read_usage(message: Any, writer: AnswerWriter, _: ArgumentsReader) -> None:
        # Most messages report no counts.
        found = {name: count for name, get in getters if (count := get(message)) and count > 0}
        if found:
            writer.usage(Counts(**found), rule.mode)

    return read_if_there(written.values(), kind, read_usage)


def _optional(written: Path | None, kind: Kind, place: str, leaves: Leaves) -> Getter:
    return _nothing if written is None else find_place(written, kind, place, leaves).get


def _nothing(_: Any) -> None:
    return None


def _needed(rule: ReadRule, error: ErrorRule, kind: Kind) -> str | None:
    """Returns the field of the message without which the error cannot be there, if there is one."""
    asked = [path for path, value in error.when.items() if value == "set"] if rule.json is None else []
    return next((name for path in asked if (name := single_message(path, kind)) is not None), None)


def _error(rule: ErrorRule, kind: Kind, place: str) -> Judge:
    if not rule.when:
        raise mapping_error(f"{place}.when", "an error needs a condition")
    if rule.status is not None and not 400 <= rule.status <= 599:
        raise mapping_error(f"{place}.status", f"{rule.status} is no status of an error")
    holds = conditions(rule.when, kind, f"{place}.when")
    message_of = _optional(rule.message, kind, f"{place}.message", TEXT)
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
