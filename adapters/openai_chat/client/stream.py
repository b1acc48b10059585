"""Encodes events as server-sent events of `chat.completion.chunk` objects.

Every chunk is a constant head, a changing middle and a constant tail; only the middle is encoded for each chunk. Known
fields and a backend's unknown ones never share a dictionary: their JSON is concatenated.

The states (`gateway.dialects.stream_state`): `write` is a chunk with a choice, the first of which has the role;
`finish` follows the chunk with the finish reason; the end is `[DONE]`, or the one frame of an error.
"""

from collections.abc import Iterable
from operator import is_not
from typing import ClassVar, Final, assert_never

import msgspec

from adapters.openai.client_errors import encode_error_frame
from adapters.openai.usage import usage_object
from adapters.openai_chat.unknown_fields import as_custom, call_object, merged
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
    Scope,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.core.provider_state import several_states
from gateway.dialects.custom_input import CustomInput
from gateway.dialects.dragoman_field import dragoman_field
from gateway.dialects.event_stream import DONE, EVENT_STREAM_HEADERS, PING, one_line_each
from gateway.dialects.stream_state import NEW, OPEN, STREAM_TRANSITIONS, StreamState

_encode = msgspec.json.Encoder().encode
_ROLE_TEXT: Final = b'"role":"assistant","content":""'
_ROLE_NULL: Final = b'"role":"assistant","content":null'
_SCOPES: Final[tuple[Scope, ...]] = ("response", "choice", "delta")
# Not equal to any event.
_NOTHING: Final = (PassthroughFields("response", EMPTY),)


class ChatStreamEncoder:
    """Encodes one response.

    `feed` returns the bytes to send now, `close` the last ones; `fail` ends the stream instead, and `quiet` keeps it
    alive. `id`, `created` and `model` stand in every chunk. `include_usage` adds the token counts in a last chunk
    without choices; `diagnostics` adds the notices in the last chunk's `dragoman` field. `custom` are the names of the
    client's custom tools.
    """

    headers: ClassVar[tuple[tuple[bytes, bytes], ...]] = EVENT_STREAM_HEADERS

    def __init__(
        self,
        id: str,
        created: int,
        model: str,
        *,
        include_usage: bool = False,
        diagnostics: bool = False,
        custom: frozenset[str] = frozenset(),
    ) -> None:
        head = {"id": id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._head = b"data: " + _encode(head)[:-1] + b","
        self._open = self._head + b'"choices":[{"index":0,"delta":{'
        self._tail = b'}],"usage":null}\n\n' if include_usage else b"}]}\n\n"
        # The unknown fields since the last chunk, and those that the current frame around a delta was made of.
        self._pending: list[PassthroughFields] = []
        self._frame(())
        self._calls: dict[int, _OpenCall] = {}
        self._custom = custom
        self._states: list[JsonObject] = []
        self._state = NEW
        self._usage: UsageReport | None = None
        self._usage_fields: dict[str, Json] = {}
        self._include_usage = include_usage
        self._notices: list[Notice] | None = [] if diagnostics else None

    def feed(self, events: Iterable[Event]) -> bytes:
        """Returns the bytes of these events; they may be sent in one piece."""
        out: list[bytes] = []
        # The pending fields that would repeat the last frame, then None: a delta may follow.
        expected: tuple[PassthroughFields | None, ...] = ()
        met = 0
        for event in events:
            if not expected:
                expected = (*self._framed, None) if self._state is OPEN and not self._pending else _NOTHING
            due = expected[met]
            # Nearly every event is one of these three: a repeated field of the frame, or a delta after all of them.
            if event is due:
                met += 1
            elif due is None and type(event) is TextDelta:
                out += (self._before_text, _encode(event.text), self._close)
                met = 0
            elif due is None and type(event) is ToolCallDelta:
                call = self._calls[event.index]
                call.empty = False
                if call.input is None:
                    out += (self._start, call.head, _encode(event.arguments), b"}}]", self._close)
                else:
                    self._input(call, call.input.add(event.arguments), out)
                met = 0
            else:
                self._pending += self._framed[:met]
                self._event(event, out)
                expected, met = (), 0
        if met:
            self._pending += self._framed[:met]
        if self._pending:
            self._own_chunk(out)
        return one_line_each(b"".join(out))

    def close(self) -> bytes:
        """Returns the usage or diagnostics chunk, if requested, then `[DONE]`. Returns nothing after an error."""
        if self._state is StreamState.ENDED:
            return b""
        self._state = STREAM_TRANSITIONS[self._state]["end"]
        usage = self._usage if self._include_usage else None
        last: dict[str, Json] = {**self._usage_fields, "choices": []}
        if usage is not None:
            last["usage"] = usage_object(usage)
        if said := dragoman_field(usage, self._notices):
            last["dragoman"] = said
        if len(last) == 1 or (usage is None and not said):
            return DONE
        return one_line_each(self._head + _encode(last)[1:] + b"\n\n" + DONE)

    def quiet(self) -> bytes:
        """Returns a comment, which clients ignore."""
        return PING

    def fail(self, error: GatewayError) -> bytes:
        """Returns the one error frame. Later output is never sent."""
        if self._state is StreamState.ENDED:
            return b""
        self._state = STREAM_TRANSITIONS[self._state]["end"]
        return one_line_each(encode_error_frame(error))

    def _event(self, event: Event, out: list[bytes]) -> None:
        if type(event) is PassthroughFields:
            self._add_pending(event)
        elif type(event) is TextDelta:
            self._chunk(out, b'"content":' + _encode(event.text), _ROLE_TEXT)
        elif type(event) is ResponseStart:
            pass
        elif type(event) is Finish:
            self._finish(event, out)
        elif type(event) is ReasoningDelta:
            self._chunk(out, b'"' + event.field.encode() + b'":' + _encode(event.text))
        elif type(event) is ReasoningEnd:
            self._states += [event.extra] if event.extra else ()
        elif type(event) is ToolCallStart or type(event) is ToolCallEnd:
            self._call(event, out)
        elif type(event) is ToolCallDelta:
            call = self._calls[event.index]
            call.empty = False
            self._input(call, event.arguments if call.input is None else call.input.add(event.arguments), out)
        elif type(event) is UsageReport:
            self._usage = merge_usage(self._usage, event)
            self._usage_fields.update(self._pop_pending("response"))
        elif type(event) is Notice:
            if self._notices is not None:
                self._notices.append(event)
        else:
            assert_never(event)

    def _add_pending(self, event: PassthroughFields) -> None:
        # Fields of the response replace earlier ones: the same ones again say nothing.
        if event.scope != "response" or not self._pending or self._pending[-1] is not event:
            self._pending.append(event)

    def _finish(self, event: Finish, out: list[bytes]) -> None:
        if self._states:
            # A message keeps the states of its reasoning in one field, which clients would join piece by piece.
            self._pending.append(PassthroughFields("delta", several_states(self._states)))
        self._chunk(out, b"", _ROLE_TEXT, b'"' + event.reason.encode() + b'"')
        self._state = STREAM_TRANSITIONS[self._state]["finish"]

    def _call(self, event: ToolCallStart | ToolCallEnd, out: list[bytes]) -> None:
        if type(event) is ToolCallStart:
            is_custom = event.extra.get("type") == "custom"
            custom = event.name in self._custom and not is_custom
            call = self._calls[event.index] = _OpenCall(
                len(self._calls), is_custom or custom, CustomInput() if custom else None
            )
            start = msgspec.structs.replace(event, extra=as_custom(event.extra)) if custom else event
            self._chunk(out, b'"tool_calls":[' + call.start(start) + b"]")
            return
        call = self._calls[event.index]
        if call.input is not None:
            self._input(call, call.input.close(), out)
        # Clients parse the arguments: a call without any has the empty object, never empty text.
        if call.empty and not call.custom:
            self._chunk(out, call.head + b'"{}"}}]')

    def _input(self, call: "_OpenCall", text: str, out: list[bytes]) -> None:
        """Writes a piece of the arguments of a call, or of the input of a custom tool."""
        if text or call.input is None:
            self._chunk(out, call.head + _encode(text) + b"}}]")

    def _chunk(self, out: list[bytes], delta: bytes, role: bytes = _ROLE_NULL, reason: bytes = b"null") -> None:
        """Writes one chunk. Before the first one the role is sent in a chunk of its own, as OpenAI does."""
        if self._state is NEW:
            out.append(self._open + role + b'},"finish_reason":null' + self._tail)
        self._state = STREAM_TRANSITIONS[self._state]["write"]
        if len(self._pending) != len(self._framed) or True in map(is_not, self._pending, self._framed):
            self._frame(tuple(self._pending))
        self._pending.clear()
        comma = b"," if delta and self._more else b""
        out += (self._start, delta, comma, self._more, b'},"finish_reason":', reason, self._end)

    def _frame(self, extensions: tuple[PassthroughFields, ...]) -> None:
        """Encodes the constant parts before and behind the delta of a chunk with these unknown fields.

        Backends repeat their unknown fields in every chunk: they are encoded once, until other fields arrive. The
        comparison is by identity, because 1, 1.0 and true are equal.
        """
        self._framed = extensions
        if extensions:
            members = dict.fromkeys(_SCOPES, b"")
            for scope in {extension.scope: None for extension in extensions}:
                members[scope] = _members(_merged(extensions, scope))
            response, choice, self._more = members["response"], members["choice"], members["delta"]
        else:
            response = choice = self._more = b""
        self._start = self._head + response + b',"choices":[{"index":0,"delta":{' if response else self._open
        self._before_text = self._start + b'"content":'
        self._end = b"," + choice + self._tail if choice else self._tail
        self._close = (b"," + self._more if self._more else b"") + b'},"finish_reason":null' + self._end

    def _own_chunk(self, out: list[bytes]) -> None:
        """Writes fields that came without an event of their own.

        Before the first chunk those of the response wait for it. In the middle of the stream they are sent with an
        empty choice, because many clients read `choices[0]` unconditionally.
        """
        if any(event.scope != "response" for event in self._pending) or self._state is OPEN:
            self._chunk(out, b"")
        elif self._state is StreamState.FINISHED:
            out += (self._head, _members(self._pop_pending("response")), b',"choices":[]}\n\n')

    def _pop_pending(self, scope: Scope) -> JsonObject:
        """Removes and returns the pending fields of a scope."""
        taken = _merged(self._pending, scope)
        self._pending = [event for event in self._pending if event.scope != scope]
        return taken


class _OpenCall:
    """An open tool call: its dense index, and the constant head of its argument deltas. `input` reads that of a custom
    tool in the arguments of a function."""

    def __init__(self, index: int, custom: bool, input: CustomInput | None) -> None:
        self.index = index
        self.input = input
        self.custom = custom
        self.empty = True
        kind = b'"custom":{"input":' if custom else b'"function":{"arguments":'
        self.head = b'"tool_calls":[{"index":%d,%s' % (index, kind)

    def start(self, event: ToolCallStart) -> bytes:
        return _encode({"index": self.index, **call_object(event.id, event.name, "", event.extra)})


def _merged(extensions: Iterable[PassthroughFields], scope: Scope) -> JsonObject:
    return merged([extension.fields for extension in extensions if extension.scope == scope], scope)


def _members(fields: JsonObject) -> bytes:
    """Returns the members of a JSON object without its braces."""
    return _encode(fields)[1:-1] if fields else b""
