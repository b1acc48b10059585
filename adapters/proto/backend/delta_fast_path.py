# fast path: "CPU/chunk, us", decodes the text of a message alone
# budget: "declared protobuf chunk"
# law: tests/adapters/proto/backend/test_delta_fast_path.py
#      test_a_response_is_the_same_when_every_message_is_read_in_full
"""Writes what a message says that differs from an earlier one only in its text and its numbers, without parsing it.

The rules write an earlier message twice into a record: as it is, and with another text and other numbers. What differs
in the two records follows the text and the numbers, and the rest is the same for all such messages. The names of the
fields say beforehand that no rule asks for the value of the text, or of a number that is no token count.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from google.protobuf.message import DecodeError, Message
from msgspec.structs import astuple

from adapters.proto.backend.answer_writer import AnswerWriter
from adapters.proto.backend.arguments_reader import ArgumentsReader
from adapters.proto.backend.frames import Frame
from adapters.proto.backend.read_rules import Rules
from adapters.proto.backend.token_counts import Counts, CountsMode
from gateway.core.errors import BackendError
from gateway.protobuf.text_templates import TextTemplate, TextTemplates, find_template, with_other_number
from gateway.protobuf.wire import LENGTH, VARINT, Span, fields, read_varint

# The method of a writer that was called, and its arguments.
_Call: TypeAlias = tuple[str, tuple[Any, ...]]

_TEXTS: Final = ("text", "reasoning")
_REPEATABLE: Final = frozenset({"text", "reasoning", "new_part", "start", "usage", "stopped_at", "other_choice"})
# Learning takes about as long as parsing so many messages: a short response is not delayed.
_WAIT: Final = 8
# Counts of this size are positive in every type of integers; a varint that is longer than a number may be none.
_LONGEST_COUNT: Final = 4
_LONGEST_NUMBER: Final = 9
_DEEPEST: Final = 8


class _Counting(msgspec.Struct, frozen=True):
    """Token counts of a message, in their order. To those at some of the places a number of the message is added, each
    given by its place among the numbers."""

    counts: tuple[int, ...]
    numbers: tuple[tuple[int, int], ...]
    mode: CountsMode

    def write(self, writer: AnswerWriter, numbers: Sequence[int]) -> None:
        """Writes the counts of a message with these numbers."""
        counts = [*self.counts]
        for at, number in self.numbers:
            counts[at] += numbers[number]
        writer.usage(Counts(*counts), self.mode)


class _Form(msgspec.Struct, frozen=True):
    """What a message says: a text, which `total` tells from other texts where it is the text so far, and counts.
    `replaces`: its counts replace those of one before it that has this form."""

    reasoning: bool
    total: object | None
    counting: tuple[_Counting, ...]
    replaces: bool


# A piece of text and nothing else, as most messages are.
_TEXT: Final = _Form(reasoning=False, total=None, counting=(), replaces=True)


class _Gathered:
    """What the messages of one read say, as long as it can be written together."""

    def __init__(self, writer: AnswerWriter) -> None:
        self.texts: list[str] = []
        self._counted: tuple[_Form, Sequence[int]] | None = None
        self._writer = writer

    def add(self, form: _Form, text: str, numbers: Sequence[int]) -> bool:
        """Adds what a message says. Returns whether its text is new; one that repeats the text so far is read in full,
        as each message is that brings nothing. Raises BackendError."""
        writer = self._writer
        if form.total is not None and not (text := writer.new_part(form.total, text)):
            return False
        if form.reasoning or (form.counting and writer.filters):
            # A text may end the response; what is counted and thought behind it is written in another way.
            self.write()
            if not writer.stopped:
                (writer.reasoning if form.reasoning else writer.text)(text)
                self._count(form, numbers)
            return True
        self.texts.append(text)
        if form.counting:
            # A count of 0 is none.
            if self._counted is not None and not (self._counted[0] is form and form.replaces and 0 not in numbers):
                self._count(*self._counted)
            self._counted = form, numbers
        return True

    def write(self) -> None:
        """Writes all of it. Raises BackendError for an invalid call in the text."""
        texts, self.texts = self.texts, []
        self._writer.texts(texts)
        if self._counted is not None:
            self._count(*self._counted)
            self._counted = None

    def _count(self, form: _Form, numbers: Sequence[int]) -> None:
        for counting in form.counting:
            counting.write(self._writer, numbers)


class DeltaFastPath(TextTemplates[_Form]):
    """The templates of one response."""

    def __init__(self, response: type[Message], rules: Rules, writer: AnswerWriter) -> None:
        super().__init__(_WAIT)
        self._response = response
        self._rules = rules
        self._writer = writer
        self._gathered = _Gathered(writer)

    def write(self, frames: Iterator[Frame], most: int) -> tuple[int, Frame | None]:
        """Writes what the next messages say, at most so many, as long as they are like one that was learned.

        Returns their number, and the frame that follows them, None behind the last one. Raises BackendError: that of
        the frames, behind the messages before it, and that of an invalid call in the text. The response is not over.
        """
        gathered = self._gathered
        count = 0
        frame: Frame | None = None
        try:
            for frame in frames:
                if count == most or type(frame) is not bytes or (found := self.read(frame)) is None:
                    break
                if found[0] is _TEXT:
                    gathered.texts.append(found[1])
                elif not gathered.add(*found):
                    break
                elif self._writer.stopped:
                    return count, None
                count += 1
            else:
                frame = None
        except BackendError:
            gathered.write()
            if self._writer.stopped:
                return count, None
            raise
        gathered.write()
        return count, frame

    def learn(self, payload: bytes) -> None:
        """Keeps the form of a message of which the rules have written one text, if they write nothing else than that,
        the beginning of the response, and token counts."""
        if not self.is_due():
            return
        calls = self._record(payload)
        text = _only_text(calls).encode()
        template = find_template(payload, text)
        if template is None:
            return
        places = dict(self._numbers(payload, (0, len(payload)), self._response.DESCRIPTOR))
        for numbers in (places, {}) if places else ({},):
            learned = template.with_numbers([*numbers], len(payload))
            counted = [place for place in learned.numbers if numbers[_span(place, payload)]]
            if (form := self._form(payload, text, calls, learned, counted)) is not None:
                self.add(learned, form)
                return

    def _form(
        self, payload: bytes, text: bytes, calls: Sequence[_Call], template: TextTemplate, counted: Sequence[slice]
    ) -> _Form | None:
        """Returns what messages of the template say if this one makes these calls; None if more depends on its text and
        on the numbers that are counts."""
        other, other_text = template.with_other_text(payload, text)
        form = _form_of(calls, self._record(other), other_text, self._writer.filters)
        for place in counted:
            if form is None:
                break
            other, more = with_other_number(payload, place)
            number, _ = read_varint(payload, _span(place, payload)[0])
            form = _with_number(form, template.numbers.index(place), number, more, calls, self._record(other))
        return form

    def _record(self, payload: bytes) -> list[_Call]:
        """Returns the calls with which the rules write a message; none if it cannot be read, or not be repeated."""
        record: Any = _Record()
        try:
            self._rules.read(self._response.FromString(payload), record, ArgumentsReader(()))
        except (DecodeError, ValueError, BackendError, _Unrepeatable):
            return []
        made: list[_Call] = record.calls
        return made

    def _numbers(
        self, payload: bytes, within: Span, kind: Any, depth: int = 0, *, counted: bool = False
    ) -> Iterator[tuple[Span, bool]]:
        """Yields the places of the varints of a message on whose values nothing but token counts depends, and whether
        these do. (Any: the stubs define two classes of descriptors.)"""
        named = self._rules.fields
        for number, wire_type, span in fields(payload, *within):
            field = kind.fields_by_number.get(number)
            if wire_type not in (VARINT, LENGTH):
                # What is inside a group has another type.
                return
            if field is None or (named.is_named(field.name) and not named.is_count(field.name)):
                continue
            counts = counted or named.is_count(field.name)
            if wire_type == VARINT and span[1] - span[0] <= (_LONGEST_COUNT if counts else _LONGEST_NUMBER):
                yield span, counts
            below = field.message_type
            if wire_type == LENGTH and below is not None and not below.GetOptions().map_entry and depth < _DEEPEST:
                yield from self._numbers(payload, span, below, depth + 1, counted=counts)


def _span(place: slice, payload: bytes) -> Span:
    begin, end, _ = place.indices(len(payload))
    return begin, end


class _Record:
    """Keeps the calls of those methods of an AnswerWriter that can be repeated. Their results are None. Raises
    _Unrepeatable for any other one."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in _REPEATABLE:
            raise _Unrepeatable(name)
        return lambda *args: self.calls.append((name, args))


class _Unrepeatable(Exception):
    """What a message says is more than texts and counts."""


def _only_text(calls: Sequence[_Call]) -> str:
    """Returns the text that these calls write, as it stands in the message; empty if there is not one such text."""
    found = [args[-1] for name, args in calls if name == "new_part" or (name in _TEXTS and args[-1] is not None)]
    return found[0] if len(found) == 1 else ""


def _form_of(calls: Sequence[_Call], changed: Sequence[_Call], text: str, filters: bool) -> _Form | None:
    """Returns what messages say for which the rules make these calls, whatever their text is; None where more differs
    in the calls for this other text. `filters`: a text may end the response."""
    if [name for name, _ in calls] != [name for name, _ in changed]:
        return None
    total = None
    said = ""
    counting: list[_Counting] = []
    for (name, args), (_, others) in zip(calls, changed, strict=True):
        match name:
            case "new_part" if args[0] == others[0] and others[1] == text:
                total = args[0]
            case "text" | "reasoning" if others == ((text,) if total is None else (None,)):
                said = name
            # Counts before the text are a part of a response that the text ends.
            case "usage" if (said or not filters) and args == others:
                counting.append(_Counting(astuple(args[0]), (), args[1]))
            # The response has what these say since the message from which this one is learned.
            case "start" | "other_choice" if args == others:
                pass
            case "stopped_at" if args == others == ("",):
                pass
            case _:
                return None
    replaces = all([one.mode == "last" for one in counting])
    form = _Form(said == "reasoning", total, tuple(counting), replaces)
    return _TEXT if form == _TEXT else form


def _with_number(
    form: _Form, position: int, number: int, more: int, calls: Sequence[_Call], changed: Sequence[_Call]
) -> _Form | None:
    """Returns what messages say whose number at this position among their numbers may change. `changed` are the calls
    for a message in which it is so much more or less. None where more follows it than sums of token counts."""
    counting: list[_Counting] = []
    if [name for name, _ in calls] != [name for name, _ in changed]:
        return None
    for (name, args), (_, others) in zip(calls, changed, strict=True):
        if name != "usage":
            if args != others:
                return None
            continue
        one = form.counting[len(counting)]
        counts, found = [*one.counts], [*one.numbers]
        for at, (before, after) in enumerate(zip(astuple(args[0]), astuple(others[0]), strict=True)):
            if after - before not in (0, more):
                return None
            if after != before:
                counts[at] -= number
                found.append((at, position))
        counting.append(_Counting(tuple(counts), tuple(found), one.mode))
    return msgspec.structs.replace(form, counting=tuple(counting))
