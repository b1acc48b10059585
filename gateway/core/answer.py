"""Folds the events of an answer into one value: what was said, in order, each call whole.

This is the one place that adds events up. A dialect turns the `Answer` into the document of its API; its stream encoder
writes the same events one by one, and both say the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias, assert_never, final

import msgspec

from gateway.core.conversation import EMPTY, JsonObject, ToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningField,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice


@final
class AnswerText(msgspec.Struct, frozen=True):
    """Text that nothing else interrupts, in the pieces in which it came."""

    pieces: list[str]

    @property
    def text(self) -> str:
        """All of the text."""
        return "".join(self.pieces)


@final
class AnswerReasoning(msgspec.Struct, frozen=True):
    """Reasoning that nothing else interrupts, in the pieces in which it came. `field` as in `ReasoningDelta`."""

    pieces: list[str]
    field: ReasoningField = "reasoning_content"

    @property
    def text(self) -> str:
        """All of the reasoning."""
        return "".join(self.pieces)


@final
class AnswerCall(msgspec.Struct, frozen=True):
    """A tool call: its start, the pieces of its arguments, and the `extra` of its end."""

    start: ToolCallStart
    pieces: list[str]
    end: JsonObject = EMPTY

    @property
    def arguments(self) -> str:
        """The arguments, as the JSON text of the wire."""
        return "".join(self.pieces)

    @property
    def block(self) -> ToolCall:
        """The call as a block of the next request."""
        return ToolCall(self.start.id, self.start.name, self.arguments, self.start.extra)


AnswerPart: TypeAlias = AnswerText | AnswerReasoning | ReasoningEnd | AnswerCall | PassthroughFields


class Answer(msgspec.Struct, frozen=True):
    """What the events of an answer add up to.

    `parts` stand in the order in which they began. A text or a piece of reasoning is one part up to the next event of
    another part; notices and counts interrupt nothing. `ends` are the calls that ended, in that order, each with the
    number of parts that had begun by then. `finish` is None while the answer is incomplete, `usage` while no tokens
    were counted.
    """

    parts: Sequence[AnswerPart]
    ends: Sequence[tuple[int, AnswerCall]]
    finish: Finish | None
    usage: UsageReport | None
    notices: Sequence[Notice]

    @property
    def text(self) -> str:
        """All text of the answer."""
        return "".join([part.text for part in self.parts if type(part) is AnswerText])

    @property
    def reasoning(self) -> str:
        """All reasoning of the answer."""
        return "".join([part.text for part in self.parts if type(part) is AnswerReasoning])

    @property
    def calls(self) -> tuple[AnswerCall, ...]:
        """The calls, in the order in which they began."""
        return tuple([part for part in self.parts if type(part) is AnswerCall])

    def completed(self) -> Iterator[AnswerPart]:
        """Yields the parts in the order in which they were complete: a call stands where it ended."""
        ended = 0
        for place, part in enumerate(self.parts):
            while ended < len(self.ends) and self.ends[ended][0] <= place:
                yield self.ends[ended][1]
                ended += 1
            if type(part) is not AnswerCall:
                yield part
        for _, call in self.ends[ended:]:
            yield call


class AnswerReader(msgspec.Struct):
    """Adds up the events of one answer, however they are fed. The other fields are those of the `Answer`.

    `run` is the kind of the text or reasoning that may go on, and `pieces` are its pieces; `calls` are the calls by
    their index, each with its place among the parts.
    """

    parts: list[AnswerPart] = []
    ends: list[tuple[int, AnswerCall]] = []
    finish: Finish | None = None
    usage: UsageReport | None = None
    notices: list[Notice] = []
    run: Literal["text", ""] | ReasoningField = ""
    pieces: list[str] = []
    calls: dict[int, tuple[int, AnswerCall]] = {}

    def feed(self, events: Iterable[Event]) -> None:
        """Takes the next events, which obey `gateway.core.grammar`."""
        run, pieces, parts = self.run, self.pieces, self.parts
        # Compares classes: a match statement on an event of another class takes several times as long.
        for event in events:
            if type(event) is TextDelta:
                if run == "text":
                    pieces.append(event.text)
                else:
                    run, pieces = "text", [event.text]
                    parts.append(AnswerText(pieces))
            elif type(event) is ToolCallDelta:
                self.calls[event.index][1].pieces.append(event.arguments)
            elif type(event) is ReasoningDelta:
                if run == event.field:
                    pieces.append(event.text)
                else:
                    run, pieces = event.field, [event.text]
                    parts.append(AnswerReasoning(pieces, event.field))
            elif type(event) is PassthroughFields or type(event) is ReasoningEnd:
                run = ""
                parts.append(event)
            elif type(event) is UsageReport:
                self.usage = event if self.usage is None else merge_usage(self.usage, event)
            elif type(event) is Finish:
                self.finish = event
            elif type(event) is Notice:
                self.notices.append(event)
            elif type(event) is not ResponseStart:
                run = ""
                self._call(event)
        self.run, self.pieces = run, pieces

    @property
    def answer(self) -> Answer:
        """The answer so far. Further events change it."""
        return Answer(self.parts, self.ends, self.finish, self.usage, self.notices)

    def _call(self, event: ToolCallStart | ToolCallEnd) -> None:
        if type(event) is ToolCallStart:
            call = AnswerCall(event, [])
            self.calls[event.index] = (len(self.parts), call)
            self.parts.append(call)
        elif type(event) is ToolCallEnd:
            place, call = self.calls[event.index]
            if event.extra:
                self.parts[place] = call = AnswerCall(call.start, call.pieces, event.extra)
            self.ends.append((len(self.parts), call))
        else:
            assert_never(event)


def read_answer(events: Iterable[Event]) -> Answer:
    """Returns what these events add up to."""
    reader = AnswerReader()
    reader.feed(events)
    return reader.answer


def merge_usage(earlier: UsageReport | None, later: UsageReport) -> UsageReport:
    """Merges another report: some wires report the prompt tokens first and the completion tokens last."""
    if earlier is None:
        return later
    return UsageReport(
        earlier.prompt_tokens if later.prompt_tokens is None else later.prompt_tokens,
        earlier.completion_tokens if later.completion_tokens is None else later.completion_tokens,
        earlier.total_tokens if later.total_tokens is None else later.total_tokens,
        earlier.estimated or later.estimated,
        {**earlier.extra, **later.extra},
    )
