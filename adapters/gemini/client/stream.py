"""Encodes events as a stream of `GenerateContentResponse` objects.

Every chunk is a constant head, a changing part and a constant tail; only the part is encoded for each chunk. A call is
one whole part: it is written when it has ended.

The states (`gateway.dialects.stream_state`): `write` is any chunk but the last one. There is no `finish`: the chunk
with the finish reason is written with the end, because the token counts, which stand in it, may follow the reason.
"""

from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from adapters.gemini.client.errors import error_object
from adapters.gemini.client.stream_form import StreamForm
from adapters.gemini.contents import signature
from adapters.gemini.finish import finish_word
from adapters.gemini.own_chunk import OwnChunk, call_part, counts, notes
from gateway.core.answer import merge_usage
from gateway.core.conversation import EMPTY, Json, JsonObject
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
from gateway.dialects.stream_state import STREAM_TRANSITIONS, StreamState

_encode = msgspec.json.Encoder().encode
_CANDIDATE: Final = b'{"candidates":[{"content":{"parts":['
_ROLE: Final = b'],"role":"model"}'
_INDEX: Final = b',"index":0'


class GeminiStreamEncoder:
    """Encodes one response in one of the two forms.

    `feed` returns the bytes to send now, `close` the last ones, with the finish reason and the token counts; `fail`
    ends the stream instead, and `quiet` keeps it alive.
    """

    def __init__(self, head: AnswerHead, form: StreamForm) -> None:
        self.headers = form.headers
        self._head = head
        self._form = form
        self._facts = b"," + _members({"modelVersion": head.model, "responseId": head.unique}) + b"}"
        self._tail = _ROLE + _INDEX + b"}]" + self._facts + form.behind
        self._before = form.first
        self._text = b""
        self._state = StreamState.NEW
        self._calls: dict[int, tuple[ToolCallStart, list[str]]] = {}
        self._pending: JsonObject = EMPTY
        # The chunk of a backend of the same API whose parts follow.
        self._own: OwnChunk | None = None
        self._finish: Finish | None = None
        # The end that stands in the chunk of a backend of the same API which is written next.
        self._unwritten: Finish | None = None
        self._usage: UsageReport | None = None
        self._notices: list[Notice] | None = [] if head.diagnostics else None

    def feed(self, events: Iterable[Event]) -> bytes:
        """Returns the bytes of these events; they may be sent in one piece."""
        out: list[bytes] = []
        for event in events:
            # Nearly every event is one of these two. Without a chunk before it there is no constant head yet.
            if type(event) is TextDelta and self._text and not self._pending:
                out += (self._text, _encode(event.text), b"}", self._tail)
            elif type(event) is ToolCallDelta:
                self._calls[event.index][1].append(event.arguments)
            else:
                self._event(event, out)
        # What the gateway says of the answer stands in its last chunk.
        if self._own is not None and self._finish is None:
            self._write_own(out)
        return one_line_each(b"".join(out))

    def close(self) -> bytes:
        """Returns the chunk with the finish reason. Returns nothing after an error."""
        if self._state is StreamState.ENDED:
            return b""
        out: list[bytes] = []
        if self._own is not None:
            own = self._own.fields
            self._write_own(out, {**counts(self._usage, own), **notes(self._usage, self._notices, own)})
        else:
            more: dict[str, Json] = {} if self._finish is None else {"finishReason": finish_word(self._finish)}
            # Chat helpers keep only an answer each of whose chunks has a part.
            self._chunk(out, {"text": ""}, more, {**counts(self._usage), **notes(self._usage, self._notices)})
        self._state = STREAM_TRANSITIONS[self._state]["end"]
        return one_line_each(b"".join(out) + self._form.end)

    def quiet(self) -> bytes:
        """Returns a blank line, which both forms ignore."""
        return self._form.quiet

    def fail(self, error: GatewayError) -> bytes:
        """Returns the error. Later output is never sent."""
        if self._state is StreamState.ENDED:
            return b""
        out: list[bytes] = []
        self._unwritten = None
        if self._own is not None:
            self._write_own(out)
        before = self._form.first_error if self._state is StreamState.NEW else self._form.before_error
        self._state = STREAM_TRANSITIONS[self._state]["end"]
        return one_line_each(b"".join(out) + before + _encode(error_object(error, in_stream=True)) + self._form.end)

    def _event(self, event: Event, out: list[bytes]) -> None:
        if type(event) is TextDelta:
            self._chunk(out, {"text": event.text})
        elif type(event) is ReasoningDelta or type(event) is ReasoningEnd:
            self._reasoning(event, out)
        elif type(event) is ToolCallStart or type(event) is ToolCallDelta or type(event) is ToolCallEnd:
            self._call(event, out)
        elif type(event) is PassthroughFields:
            self._unknown(event, out)
        elif type(event) is Finish:
            self._finish = self._unwritten = event
        elif type(event) is UsageReport:
            self._usage = merge_usage(self._usage, event)
        elif type(event) is Notice:
            if self._notices is not None:
                self._notices.append(event)
        elif type(event) is not ResponseStart:
            assert_never(event)

    def _reasoning(self, event: ReasoningDelta | ReasoningEnd, out: list[bytes]) -> None:
        if type(event) is ReasoningEnd:
            if said := signature(event.extra):
                self._chunk(out, {"text": "", **said})
        else:
            self._chunk(out, {"text": event.text, "thought": True})

    def _call(self, event: ToolCallStart | ToolCallDelta | ToolCallEnd, out: list[bytes]) -> None:
        if type(event) is ToolCallStart:
            self._calls[event.index] = (event, [])
        elif type(event) is ToolCallDelta:
            self._calls[event.index][1].append(event.arguments)
        else:
            start, pieces = self._calls.pop(event.index)
            self._chunk(out, call_part(start, "".join(pieces)))

    def _unknown(self, event: PassthroughFields, out: list[bytes]) -> None:
        match event.scope:
            case "response":
                if self._own is not None:
                    self._write_own(out)
                # No text is written directly until the chunk is whole.
                self._own, self._text = OwnChunk(event.fields), b""
            case "event":
                self._chunk(out, event.fields)
            case "choice" | "delta":
                self._pending = {**self._pending, **event.fields}
            case _:
                assert_never(event.scope)

    def _chunk(
        self, out: list[bytes], part: JsonObject, choice: JsonObject = EMPTY, response: JsonObject = EMPTY
    ) -> None:
        """Writes one chunk with this part, or adds the part to the chunk of a backend of the same API."""
        if self._pending:
            part, self._pending = {**part, **self._pending}, EMPTY
        if self._own is not None:
            self._own.parts.append(dict(part))
            return
        out += (self._before, _CANDIDATE, _encode(part), _ROLE)
        if choice:
            out += (b",", _members(choice))
        out += (_INDEX, b"}]")
        if response:
            out += (b",", _members(response))
        out += (self._facts, self._form.behind)
        self._written()

    def _write_own(self, out: list[bytes], last: JsonObject = EMPTY) -> None:
        """Writes the chunk of a backend of the same API. `last` are the gateway's own fields in it."""
        assert self._own is not None  # the caller has seen it
        whole = self._own.whole(self._head, self._unwritten)
        out += (self._before, _encode({**whole, **last}), self._form.behind)
        self._own = self._unwritten = None
        self._written()

    def _written(self) -> None:
        if self._state is StreamState.NEW:
            self._before = self._form.before
        self._text = self._before + _CANDIDATE + b'{"text":'
        self._state = STREAM_TRANSITIONS[self._state]["write"]


def _members(fields: JsonObject) -> bytes:
    """Returns the members of a JSON object without its braces."""
    return _encode(fields)[1:-1]
