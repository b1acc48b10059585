"""Encodes events as lines of JSON objects (newline-delimited JSON).

The last line has `done: true`, or it is an error; a stream without it is incomplete. Every line before it stands for
itself, so that the encoder has no states: whatever was sent, an error or the last line may follow.
"""

from collections.abc import Iterable
from typing import Final, assert_never

from adapters.ollama.client.answer import AnswerLine, encode, end_fields
from adapters.ollama.client.calls import AnswerCalls
from adapters.ollama.client.errors import encode_error_line
from gateway.core.answer import AnswerReader
from gateway.core.conversation import JsonObject
from gateway.core.errors import GatewayError
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
from gateway.dialects.event_stream import one_line_each

NDJSON: Final = "application/x-ndjson"
NDJSON_HEADERS: Final = (
    (b"content-type", NDJSON.encode()),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class OllamaStreamEncoder:
    """Encodes one answer. A call is one line, which is written when its arguments are complete."""

    headers = NDJSON_HEADERS

    def __init__(self, echo: JsonObject, head: AnswerHead) -> None:
        self._line = AnswerLine(echo, head)
        self._end = AnswerReader()
        self._echo, self._head = echo, head
        self._calls = AnswerCalls()
        self._text, self._more = self._line.text, self._line.more
        self._thinking = self._line.empty + b',"thinking":'

    def feed(self, events: Iterable[Event]) -> bytes:
        """Returns the lines of these events; they may be sent in one piece."""
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta:
                out += (self._text, encode(event.text), self._more)
            elif type(event) is ToolCallDelta:
                self._calls.add(event)
            elif type(event) is ReasoningDelta:
                out += (self._thinking, encode(event.text), self._more)
            elif type(event) is ToolCallStart:
                self._calls.start(event)
            elif type(event) is ToolCallEnd:
                out += (self._line.empty, b',"tool_calls":[', encode(self._calls.end(event)), b"]", self._more)
            elif type(event) is Finish or type(event) is UsageReport or type(event) is Notice:
                self._end.feed((event,))
            elif (
                type(event) is not ResponseStart
                and type(event) is not ReasoningEnd
                and type(event) is not PassthroughFields
            ):
                assert_never(event)
        return one_line_each(b"".join(out))

    def quiet(self) -> bytes:
        """Returns a line without text: clients add it to the answer, and a blank line breaks some of them."""
        return self._line.empty + self._more

    def fail(self, error: GatewayError) -> bytes:
        """Returns the line of the error, which ends the stream."""
        return one_line_each(encode_error_line(error))

    def close(self) -> bytes:
        """Returns the last line. It waits for the end of the stream, because some backends count tokens last."""
        return one_line_each(self._line.done(b'""', end_fields(self._end.answer, self._echo, self._head)))
