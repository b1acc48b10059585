"""Writes the lines of an answer; a whole answer is one line with all of its content.

A line is a constant opening, its content, and a constant end. The text of a chat stands in `message`, that of a
generate request in `response`.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias, assert_never

import msgspec

from adapters.ollama.client.calls import AnswerCalls
from adapters.ollama.table import DONE_REASONS
from gateway.core.conversation import Json, JsonObject
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead
from gateway.dialects.dragoman_field import dragoman_field
from gateway.dialects.usage import merge_usage, token_counts

AnswerField: TypeAlias = Literal["message", "response"]
CHAT: Final = "message"
GENERATE: Final = "response"

_TEXT: Final[Mapping[Json, bytes]] = {CHAT: b'"message":{"role":"assistant","content":', GENERATE: b'"response":'}
_END: Final[Mapping[Json, bytes]] = {CHAT: b"}", GENERATE: b""}

encode: Final = msgspec.json.Encoder().encode


def answer_echo(field: AnswerField, done_reason: str | None = None) -> JsonObject:
    """Returns what an answer repeats of its request: the field of its text, and why it is empty, if it must be."""
    return {"field": field} if done_reason is None else {"field": field, "done_reason": done_reason}


def time_text(seconds: int) -> str:
    """Returns a Unix time as RFC 3339 writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class AnswerLine:
    """The constant bytes of the lines of one answer.

    A line with text is `text`, the encoded text and `more`; one with other content is `empty`, that content and `more`.
    """

    def __init__(self, echo: JsonObject, head: AnswerHead) -> None:
        field = echo["field"]
        opening = encode({"model": head.model, "created_at": time_text(head.created)})[:-1] + b","
        self._end = _END[field]
        self.text = opening + _TEXT[field]
        self.empty = self.text + b'""'
        self.more = self._end + b',"done":false}\n'

    def done(self, content: bytes, ending: JsonObject) -> bytes:
        """Returns the last line: the encoded text and other content behind it, and the fields that end an answer."""
        return self.text + content + self._end + b',"done":true,' + encode(ending)[1:] + b"\n"


class AnswerEnd:
    """The fields of the last line of an answer: why it ended, its times and tokens, and the gateway's own notes.

    The times are those that the gateway measured. Clients such as strands-agents need them, and Ollama's documentation
    (docs/api.md) says what they are: `load_duration` is the time before the model reads, `prompt_eval_duration` that
    before it writes, `eval_duration` that in which it writes; `total_duration` is all, and all are in nanoseconds.
    """

    def __init__(self, echo: JsonObject, head: AnswerHead) -> None:
        self._reason = echo.get("done_reason")
        self._usage: UsageReport | None = None
        self._notices: list[Notice] | None = [] if head.diagnostics else None
        self._times = head.times

    def add(self, event: Finish | UsageReport | Notice) -> None:
        """Takes the facts of an event."""
        if type(event) is Finish:
            self._reason = DONE_REASONS.words[event.reason]
        elif type(event) is UsageReport:
            self._usage = merge_usage(self._usage, event)
        elif type(event) is Notice:
            if self._notices is not None:
                self._notices.append(event)
        else:
            assert_never(event)

    def fields(self) -> JsonObject:
        """Returns the fields. As Ollama does, it leaves out a count of 0, and so an unknown one."""
        times = self._times()
        fields: dict[str, Json] = {
            "done_reason": self._reason,
            "total_duration": times.prepare + times.wait + times.answer,
            "load_duration": times.prepare,
            "prompt_eval_duration": times.wait,
            "eval_duration": times.answer,
        }
        if self._usage is not None:
            prompt, completion, _ = token_counts(self._usage)
            counts = {"prompt_eval_count": prompt, "eval_count": completion}
            fields |= {name: count for name, count in counts.items() if count}
        if said := dragoman_field(self._usage, self._notices):
            fields["dragoman"] = said
        return fields


def encode_answer(events: Sequence[Event], echo: JsonObject, head: AnswerHead) -> bytes:
    """Returns one JSON object from the events of a complete answer."""
    line, end, calls = AnswerLine(echo, head), AnswerEnd(echo, head), AnswerCalls()
    text: list[str] = []
    thinking: list[str] = []
    complete: list[Json] = []
    # Compares classes: a match statement on an event of another class takes several times as long.
    for event in events:
        if type(event) is TextDelta:
            text.append(event.text)
        elif type(event) is ReasoningDelta:
            thinking.append(event.text)
        elif type(event) is ToolCallDelta:
            calls.add(event)
        elif type(event) is ToolCallStart:
            calls.start(event)
        elif type(event) is ToolCallEnd:
            complete.append(calls.end(event))
        elif type(event) is Finish or type(event) is UsageReport or type(event) is Notice:
            end.add(event)
        # No client of Ollama knows a provider's state of its reasoning.
        elif (
            type(event) is not ResponseStart
            and type(event) is not ReasoningEnd
            and type(event) is not PassthroughFields
        ):
            assert_never(event)
    content = encode("".join(text))
    if thinking:
        content += b',"thinking":' + encode("".join(thinking))
    if complete:
        content += b',"tool_calls":' + encode(complete)
    return line.done(content, end.fields())
