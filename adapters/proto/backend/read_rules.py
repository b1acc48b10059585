"""Compiles the rules of a mapping to readers of messages, checked against the type of the message."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from adapters.proto.backend.answer_writer import AnswerWriter
from adapters.proto.backend.arguments_reader import ArgumentsReader
from adapters.proto.backend.call_rule import compile_call
from adapters.proto.backend.error_finders import (
    ErrorFinder,
    find_first,
    find_if,
    find_in_each,
    find_in_first_choice,
    find_inside,
)
from adapters.proto.backend.error_rule import compile_error
from adapters.proto.backend.field_getters import Condition, Getter, Leaves
from adapters.proto.backend.finish_rule import FinishReader, compile_finish
from adapters.proto.backend.json_places import DOCUMENT
from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.named_fields import named_fields
from adapters.proto.backend.options import Count, Path, ReadRule, UsageRule
from adapters.proto.backend.places import Kind, conditions, find_items, find_optional, find_place, single_message
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

_WORD: Final[Leaves] = {"text": "text"}
_COUNT: Final[Leaves] = {"integer": "a whole number"}


class Rules:
    """All rules of one mapping. `reads_end`, `reads_calls`, `reads_stop`: whether any of them reads the end, calls, or
    the stop sequence that was met. `reads_openai`: one reads chunks of OpenAI's chat completions. `state_of` is what
    has opaque state, `call` or `reasoning`. `fields` are the fields that they name."""

    def __init__(self, rules: tuple[ReadRule, ...], kind: Kind) -> None:
        """Raises OptionError with the place of the fault."""
        compiler = _Compiler()
        compiled = [compiler.rule(rule, kind, f"read[{n}]") for n, rule in enumerate(rules)]
        self._readers = [one.read for one in compiled if one.read is not None]
        # By the message that has to be there for an error; None: any.
        self._errors: dict[str | None, list[ErrorFinder]] = {}
        for rule, one in zip(rules, compiled, strict=True):
            if one.find_error is not None:
                self._errors.setdefault(_needed(rule, kind), []).append(one.find_error)
        self.reads_end = compiler.reads_end
        self.reads_calls = compiler.reads_calls
        self.reads_stop = compiler.reads_stop
        self.reads_openai = compiler.reads_openai
        self.state_of = frozenset(compiler.state_of)
        self.fields = named_fields(rules)
        if not compiler.reads_content:
            raise mapping_error("read", "no rule reads text or calls")

    def read(self, message: Any, writer: AnswerWriter, arguments: ArgumentsReader) -> None:
        """Writes what one message says. Raises BackendError for an error that it reports, before all else."""
        for needed, finders in self._errors.items():
            if needed is None or message.HasField(needed):
                for finder in finders:
                    if (error := finder(message)) is not None:
                        raise error
        for reader in self._readers:
            reader(message, writer, arguments)


class _Compiled(msgspec.Struct, frozen=True):
    """The reader and the finder of errors of one rule with its inner rules, as far as it has them."""

    read: Reader | None
    find_error: ErrorFinder | None


class _Scope(msgspec.Struct, frozen=True):
    """The messages, items or documents to which a rule applies, which are of this kind. `key` tells the documents of
    one rule from others."""

    kind: Kind
    key: str
    items: Getter | None
    holds: Condition | None
    choice: Getter | None
    document: Getter | None

    def read(self, read: Reader) -> Reader:
        """Returns the reader of the message that holds them."""
        if self.document is not None:
            read = read_inside(self.document, self.key, read)
        if self.choice is not None:
            read = read_first_choice(self.choice, read)
        if self.holds is not None:
            read = read_if(self.holds, read)
        return read if self.items is None else read_each(self.items, read)

    def find_error(self, finder: ErrorFinder) -> ErrorFinder:
        """Returns the finder of errors in the message that holds them."""
        if self.document is not None:
            finder = find_inside(self.document, finder)
        if self.choice is not None:
            finder = find_in_first_choice(self.choice, finder)
        if self.holds is not None:
            finder = find_if(self.holds, finder)
        return finder if self.items is None else find_in_each(self.items, finder)


def _scope(rule: ReadRule, kind: Kind, place: str) -> _Scope:
    items = document = None
    if rule.each is not None:
        items, kind = find_items(rule.each, kind, f"{place}.each")
    holds = conditions(rule.when, kind, f"{place}.when") if rule.when else None
    choice = None if rule.choice is None else find_place(rule.choice, kind, f"{place}.choice", _COUNT).get
    if rule.json is not None:
        document, kind = _json_field(rule.json, kind, f"{place}.json"), DOCUMENT
    return _Scope(kind, f"{place}.json", items, holds, choice, document)


class _Compiler:
    def __init__(self) -> None:
        self.reads_end = False
        self.reads_calls = False
        self.reads_stop = False
        self.reads_openai = False
        self.state_of: set[str] = set()
        self.reads_content = False

    def rule(self, rule: ReadRule, kind: Kind, place: str) -> _Compiled:
        """Compiles one rule; its readers run in the order start, reasoning, text, call, state, stop, finish, usage,
        inner rules."""
        scope = _scope(rule, kind, place)
        readers = self._own(rule, scope.kind, place)
        finders = [] if rule.error is None else [compile_error(rule.error, scope.kind, f"{place}.error")]
        for n, inner in enumerate(rule.rules):
            below = self.rule(inner, scope.kind, f"{place}.rules[{n}]")
            readers += [] if below.read is None else [below.read]
            finders += [] if below.find_error is None else [below.find_error]
        if not readers and not finders:
            raise mapping_error(place, "the rule reads nothing")
        read = scope.read(read_all(readers)) if readers else None
        if read is not None and rule.each is not None:
            read = read_if_there([rule.each], kind, read)
        return _Compiled(read, scope.find_error(find_first(finders)) if finders else None)

    def _own(self, rule: ReadRule, kind: Kind, place: str) -> list[Reader]:
        readers: list[Reader] = []
        if rule.start is not None:
            id_of = find_optional(rule.start.id, kind, f"{place}.start.id", _WORD)
            model_of = find_optional(rule.start.model, kind, f"{place}.start.model", _WORD)
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
        self.state_of |= {rule.opaque.on} if rule.opaque is not None else set()
        self.reads_openai |= rule.openai
        self.reads_content |= rule.text is not None or rule.call is not None or rule.openai
        return readers

    def _content(self, rule: ReadRule, kind: Kind, place: str) -> list[Reader]:
        readers, opaque = compile_texts(rule, kind, place), rule.opaque
        state = None if opaque is None else find_place(opaque.at, kind, f"{place}.opaque.at", TEXT)
        of_calls = None if opaque is None or opaque.on == "reasoning" else state
        if rule.call is not None:
            readers.append(compile_call(rule.call, kind, f"{place}.call", of_calls))
        elif of_calls is not None:
            raise mapping_error(f"{place}.opaque.on", "the rule has no `call`")
        if opaque is not None and opaque.mode == "delta" and of_calls is not None:
            raise mapping_error(f"{place}.opaque.mode", "only state of the reasoning comes in pieces")
        if opaque is not None and state is not None and of_calls is None:
            readers.append(_thought(state.get, joins=opaque.mode == "delta"))
        return readers


def _thought(state: Getter, *, joins: bool) -> Reader:
    def read_state(message: Any, writer: AnswerWriter, _: ArgumentsReader) -> None:
        # Most messages have none.
        if found := state(message):
            writer.opaque(found, joins=joins)

    return read_state


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


def _usage(rule: UsageRule, kind: Kind, place: str) -> Reader:
    written = {name: _paths(path) for name in COUNTS if (path := getattr(rule, name)) is not None}
    if not written:
        raise mapping_error(place, "the rule reads nothing")
    if rule.completion is not None and rule.answer is not None:
        raise mapping_error(f"{place}.answer", "it stands in place of `completion`")
    getters = [(name, _count(paths, kind, f"{place}.{name}")) for name, paths in written.items()]

    def read_usage(message: Any, writer: AnswerWriter, _: ArgumentsReader) -> None:
        # Most messages report no counts.
        found = {name: count for name, get in getters if (count := get(message)) and count > 0}
        if found:
            writer.usage(Counts(**found), rule.mode)

    return read_if_there(chain.from_iterable(written.values()), kind, read_usage)


def _paths(written: Count) -> tuple[Path, ...]:
    return written if isinstance(written, tuple) else (written,)


def _count(paths: Sequence[Path], kind: Kind, place: str) -> Getter:
    """Returns the getter of a count: of several paths their sum."""
    if not paths:
        raise mapping_error(place, "name at least one path")
    if len(paths) == 1:
        return find_place(paths[0], kind, place, _COUNT).get
    parts = [find_place(path, kind, f"{place}[{n}]", _COUNT).get for n, path in enumerate(paths)]
    return lambda message: sum([count for get in parts if (count := get(message)) > 0])


def _needed(rule: ReadRule, kind: Kind) -> str | None:
    """Returns the field of the message without which an error of the rule cannot be there, if there is one."""
    if rule.each is not None:
        return single_message(rule.each, kind)
    conditions = [rule.when]
    if rule.error is not None and rule.json is None and not rule.rules:
        conditions.append(rule.error.when)
    asked = [path for condition in conditions for path, value in condition.items() if value == "set"]
    return next((name for path in asked if (name := single_message(path, kind)) is not None), None)
