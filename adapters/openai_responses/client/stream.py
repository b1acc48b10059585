"""Encodes events as the server-sent events of a response.

Items follow one another (`gateway.dialects.sequential_blocks`): clients keep track of one at a time. A delta is a
constant head, its sequence number and its text; only these two are encoded for each delta.

The states (`gateway.dialects.stream_state`): `write` is `response.created`, which comes before a failure, too, because
clients accept no other first event; `finish` is the end of the last item, and only token counts may still arrive; the
end is `response.completed`, `response.incomplete` or `response.failed`.

A backend of the same dialect sends what no other event expresses as PassthroughFields:

- of the scope `event`, a whole event of its stream (`{"type": "response.web_search_call.searching", ...}`), except the
  deltas of texts and all of calls. Of a message and of reasoning, they say where its parts begin and end; the events
  that the core knows put the texts into them. `sequence_number` and `output_index` are replaced. Of an item without
  events of its own that only ever was done (in an answer that was not streamed), there is `response.output_item.done`
  alone;
- of the scope `delta`, before a delta: its own fields, such as `logprobs`;
- of the scope `response`, fields of the response object.

The start of a call has the event that began it in `extra`, below the name of the dialect, and its end those that ended
it, by their types.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, assert_never

import msgspec

from adapters.openai_responses import DIALECT
from adapters.openai_responses.call_items import FORMS, called_tool
from adapters.openai_responses.client.backend_items import BackendItems
from adapters.openai_responses.client.decode import FIELDS, NAMES
from adapters.openai_responses.client.errors import error_event
from adapters.openai_responses.client.output_items import (
    ItemEvent,
    ItemStatus,
    OutputCall,
    OutputItem,
    OutputText,
    item_id,
    item_state,
    message,
    reasoning,
)
from adapters.openai_responses.client.own_fields import with_own
from adapters.openai_responses.client.response_object import GrowingResponse
from adapters.openai_responses.client.stored_answer import record
from adapters.openai_responses.function_names import ClientTool, ToolNames, stored_names
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import GatewayError
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead, ClientRequest
from gateway.dialects.event_stream import EVENT_STREAM_HEADERS, PING, one_line_each
from gateway.dialects.sequential_blocks import (
    BlockDelta,
    BlockEnd,
    BlockEvent,
    BlockFields,
    BlockKind,
    BlockStart,
    BlockStep,
    OwnBlock,
    OwnEnd,
    OwnPiece,
    SequentialBlocks,
)
from gateway.dialects.stateful import AnswerRecord
from gateway.dialects.stored_chain import StoredInput
from gateway.dialects.stream_state import STREAM_TRANSITIONS, StreamInput, StreamState

# The items whose parts the gateway writes, and the events around all items.
_TEXTS: Final[Mapping[str, BlockKind]] = {"message": "text", "reasoning": "reasoning"}
# A type that is one line.
_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)
_REASONING: Final = "rs"
# A prefix and an id: of OpenAI's form, and of any. Longer ids are refused.
_PUBLISHED_ID: Final = re.compile(r"(\w+) \1_[\w-]{1,60}", re.ASCII)
_OWN_ID: Final = re.compile(r"\w+ .+", re.DOTALL)
_FRAMES: Final = frozenset({"response.created", "response.in_progress", "response.completed", "response.incomplete"})

_encode = msgspec.json.Encoder().encode


class ResponsesStreamEncoder:
    """Encodes one response.

    `feed` returns the bytes to send now, `close` the last ones; `fail` ends the stream instead, and `quiet` keeps it
    alive. `response` is the object that a client which does not stream receives.
    """

    headers: ClassVar = EVENT_STREAM_HEADERS

    def __init__(self, request: ClientRequest, head: AnswerHead) -> None:
        self._unique = head.unique
        self._created = head.created
        self._to_store = request.to_store
        asked = request.echo.get(FIELDS)
        self._response = GrowingResponse(head, asked if isinstance(asked, dict) else EMPTY)
        names = request.echo.get(NAMES)
        self._names = stored_names(names) if names and isinstance(names, dict) else ToolNames()
        self._state = StreamState.NEW
        self._sequence = 0
        self._blocks = SequentialBlocks()
        self._item: OutputItem | None = None
        # The pieces of the part that grows now, and the event of a piece: its number and its text stand for themselves.
        self._pieces: list[str] = []
        self._delta: bytes | None = None
        self._items = 0
        self._backend_items = BackendItems()
        # What a backend of the same dialect says of the answer as a whole, and its open items by its own indexes.
        self._frames: dict[str, JsonObject] = {}
        self._own: dict[int, BlockKind] = {}
        self._ids: set[str] = set()
        # Fields of the next delta, from a backend of the same dialect.
        self._pending: dict[str, Json] = {}

    def feed(self, events: Iterable[Event]) -> bytes:
        """Returns the bytes of these events; they may be sent in one piece."""
        out: list[bytes] = []
        blocks = self._blocks
        for event in events:
            # Nearly every event is a further piece of the open block.
            if type(event) is TextDelta and blocks.kind == "text" and not self._pending:
                piece = event.text
            elif type(event) is ToolCallDelta and blocks.call == event.index and not self._pending:
                piece = event.arguments
            elif type(event) is ReasoningDelta and blocks.kind == "reasoning" and not self._pending:
                piece = event.text
            else:
                self._event(event, out)
                continue
            if self._delta is None:
                self._grow(piece, out)
            else:
                self._pieces.append(piece)
                out.append(self._delta % (self._sequence, _encode(piece)))
                self._sequence += 1
        data = b"".join(out)
        return data if data.isascii() else one_line_each(data)

    def close(self) -> bytes:
        """Returns the last event. Returns nothing after an error."""
        if self._state is StreamState.ENDED:
            return b""
        out: list[bytes] = []
        self._open(out)
        self._write(out, f"response.{self._response.status}", {"response": self.response()})
        self._step("end")
        return one_line_each(b"".join(out))

    def quiet(self) -> bytes:
        """Returns what clients ignore: a comment before the first event, later an event, because a comment does not
        count as a sign of life with every client."""
        if self._state is not StreamState.OPEN:
            return PING
        out: list[bytes] = []
        self._write(out, "response.in_progress", {"response": self._response.begun})
        return one_line_each(b"".join(out))

    def fail(self, error: GatewayError) -> bytes:
        """Returns the two events of a failure, of which each client reads another one."""
        if self._state is StreamState.ENDED:
            return b""
        out: list[bytes] = []
        self._open(out)
        self._write(out, "error", error_event(error))
        self._write(out, "response.failed", {"response": self._response.failed(error)})
        self._step("end")
        return one_line_each(b"".join(out))

    def response(self) -> dict[str, Json]:
        """Returns the response object of a complete answer."""
        return self._response.complete()

    def whole(self) -> bytes:
        """Returns the response object as JSON, for a client that does not stream."""
        return _encode(self.response())

    def record(self, renew_s: float | None) -> AnswerRecord:
        """Returns what is stored of the complete answer (`StoringEncoder.record`)."""
        assert isinstance(self._to_store, StoredInput)  # as the decoder made it for an answer to be stored
        return record(self._unique, self._to_store, self.response(), self._created, renew_s)

    def deny(self, notice: Notice) -> None:
        """Makes the rest of the answer say that it is not stored."""
        self._response.deny(notice)

    def _event(self, event: Event, out: list[bytes]) -> None:
        if type(event) is Finish:
            self._finish(event, out)
        elif type(event) is UsageReport:
            self._response.add_usage(event)
        elif type(event) is Notice:
            self._response.notices.append(event)
        elif type(event) is PassthroughFields:
            self._pass(event, out)
        elif type(event) is not ResponseStart:
            if type(event) is ToolCallEnd:
                self._own.pop(event.index, None)
            self._feed_blocks(event, out)

    def _pass(self, event: PassthroughFields, out: list[bytes]) -> None:
        match event.scope:
            case "response":
                self._response.add_fields(event.fields)
            case "delta":
                self._pending.update(event.fields)
            case "event":
                self._pass_event(event, out)
            case "choice":
                # An object of another dialect.
                pass
            case _:
                assert_never(event.scope)

    def _pass_event(self, passed: PassthroughFields, out: list[bytes]) -> None:
        """Takes or writes an event of the backend's stream: of the answer, of an open item, or of any other one."""
        event = passed.fields
        kind, index = str(event.get("type")), event.get("output_index")
        if kind in _FRAMES:
            self._frames[kind] = event
            return
        item = event.get("item")
        text = _TEXTS.get(str(item.get("type"))) if isinstance(item, dict) else None
        if kind == "response.output_item.added" and text is not None and type(index) is int:
            self._own[index] = text
            self._feed_blocks(OwnBlock(text, event), out)
        elif type(index) is int and index in self._own:
            is_call = self._own[index] == "call"
            self._feed_blocks(OwnPiece(event, index if is_call else None), out)
            if kind == "response.output_item.done" and self._own.pop(index) == "text" and self._is_next(index):
                self._feed_blocks(OwnEnd(), out)
        elif self._backend_items.begins(event):
            self._feed_blocks(passed, out)
        else:
            self._open(out)
            self._write_items(self._backend_items.events(event, self._items), out)

    def _is_next(self, index: int) -> bool:
        """Returns whether the item of the backend's with this index is open or held back, not closed."""
        return self._blocks.call is not None or (isinstance(self._item, OutputText) and self._item.source == index)

    def _feed_blocks(self, event: BlockEvent, out: list[bytes]) -> None:
        for step in self._blocks.feed(event):
            self._block_step(step, out)

    def _finish(self, finish: Finish, out: list[bytes]) -> None:
        self._response.finish(finish)
        self._open(out)
        for step in self._blocks.close():
            self._block_step(step, out, self._response.status)
        self._step("finish")

    def _block_step(self, step: BlockStep, out: list[bytes], status: ItemStatus = "completed") -> None:
        match step:
            case BlockStart():
                self._start_block(step, out)
            case BlockDelta():
                self._write_delta(step.text, out)
            case BlockFields():
                if self._item is not None:
                    self._write_items(self._item.said(step.fields), out)
                    self._set_delta(self._item)
            case BlockEnd():
                if self._item is not None:
                    self._write_items(self._item.closing(status, _said_at_end(step.state)), out)
                    self._item = self._delta = None
            case _:
                assert_never(step)

    def _start_block(self, block: BlockStart, out: list[bytes]) -> None:
        self._open(out)
        if block.kind == "other":
            self._write_items(self._backend_items.events(block.fields, self._items), out)
            return
        self._item = self._new_item(block)
        if self._item is not None:
            self._write_items(self._item.opening(), out)
            self._set_delta(self._item)

    def _new_item(self, block: BlockStart) -> OutputItem | None:
        """Returns the item of a block; None for reasoning of which the client may read nothing, not even its state."""
        if block.call is not None:
            return self._new_call(block.call)
        own = block.fields if "item" in block.fields else EMPTY
        if block.kind == "text":
            return message(self._items, self._identity("msg", own), own)
        state = item_state(block.fields)
        if block.fields and not own and not state:
            return None
        return reasoning(self._items, self._identity(_REASONING, own or {"item": {**state}}), own)

    def _new_call(self, call: ToolCallStart) -> OutputCall:
        tool = self._names.tool(call.name)
        said = call.extra.get(DIALECT)
        own = said if isinstance(said, dict) else EMPTY
        if own:
            self._own[call.index] = "call"
            self._backend_items.place(own, self._items)
            tool, own = self._own_tool(tool, call.name, own)
        return OutputCall(self._items, self._identity(FORMS[tool.kind].prefix, own), tool, call.id, own)

    def _own_tool(self, tool: ClientTool, name: str, own: JsonObject) -> tuple[ClientTool, JsonObject]:
        """Returns the tool that a backend of the same dialect called, also one that the request does not offer, and the
        event that began its call. A call that was unwrapped is one of `tool`, and its item was that of another."""
        item = own.get("item")
        called = called_tool(item) if isinstance(item, dict) else None
        if called is not None and name in (called.name, self._names.name(called)):
            return called, own
        if not isinstance(item, dict) or tool.kind != "function":
            return tool, EMPTY
        return tool, {**own, "item": {field: value for field, value in item.items() if field != "namespace"}}

    def _identity(self, prefix: str, own: JsonObject) -> str:
        """Returns the id of a new item: the one that its backend gave it, unless OpenAI would refuse it, or another
        item of the answer has it. Encrypted reasoning is read again only under the id that its maker gave it."""
        self._backend_items.place(own, self._items)
        item = own.get("item")
        identity = item.get("id") if isinstance(item, dict) else None
        known = _OWN_ID if prefix == _REASONING else _PUBLISHED_ID
        if not isinstance(identity, str) or known.fullmatch(f"{prefix} {identity}") is None or identity in self._ids:
            identity = item_id(prefix, self._unique, self._items)
        self._ids.add(identity)
        return identity

    def _write_delta(self, text: str, out: list[bytes]) -> None:
        """Writes a piece that may open a part of its item, or that has fields of its own."""
        item = self._item
        pending, self._pending = self._pending, {}
        if isinstance(item, OutputText):
            if item.delta() is None:
                self._write_items(item.grow(""), out)
                self._set_delta(item)
            item.add_logprobs(pending.get("logprobs"))
        event = None if item is None else item.delta()
        if item is None or not pending:
            self._grow(text, out)
        elif event is None:
            self._write_items([ItemEvent(grown.kind, {**grown.fields, **pending}) for grown in item.grow(text)], out)
        else:
            item.pieces.append(text)
            self._write_item(ItemEvent(event.kind, {**event.fields, **pending, "delta": text}), out)

    def _grow(self, text: str, out: list[bytes]) -> None:
        """Adds a piece to the open item."""
        if self._delta is not None:
            self._pieces.append(text)
            out.append(self._delta % (self._sequence, _encode(text)))
            self._sequence += 1
        elif self._item is not None:
            self._write_items(self._item.grow(text), out)
            self._set_delta(self._item)

    def _set_delta(self, item: OutputItem) -> None:
        """Encodes the constant part of the deltas of the open item."""
        event = item.delta()
        self._pieces = item.pieces
        self._delta = None if event is None else _template(event)

    def _open(self, out: list[bytes]) -> None:
        """Writes the first two events, unless they are written."""
        if self._state is StreamState.NEW:
            self._step("write")
            for kind in ("created", "in_progress"):
                self._write(out, f"response.{kind}", {"response": self._response.begun})

    def _write_items(self, events: Iterable[ItemEvent], out: list[bytes]) -> None:
        for event in events:
            self._write_item(event, out)

    def _write_item(self, event: ItemEvent, out: list[bytes]) -> None:
        kind, fields = event
        if kind == "output_item.added":
            self._items += 1
        elif kind == "output_item.done" and type(index := fields.get("output_index")) is int and "item" in fields:
            self._response.output[index] = fields["item"]
        said = fields.get("type")
        name = f"response.{kind}" if said is None else str(said)
        self._write(out, name if _NAME.fullmatch(name) else "message", fields)

    def _write(self, out: list[bytes], kind: str, fields: Mapping[str, Json]) -> None:
        data = {"type": kind, "sequence_number": self._sequence, **fields}
        if kind in self._frames:
            data = {**with_own(fields, self._frames[kind]), **data}
        out.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode(data)))
        self._sequence += 1

    def _step(self, move: StreamInput) -> None:
        self._state = STREAM_TRANSITIONS[self._state][move]


def _said_at_end(state: JsonObject) -> JsonObject:
    """Returns what the end of a block says: the events of a backend of the same dialect, or the state of reasoning."""
    said = state.get(DIALECT)
    return said if isinstance(said, dict) else state


def _template(event: ItemEvent) -> bytes:
    """Returns the bytes of an event with places for its number and for the JSON of its delta."""
    kind = f"response.{event.kind}"
    data = _encode({"type": kind, **event.fields})[:-1].replace(b"%", b"%%")
    return b"event: %b\ndata: %b" % (kind.encode(), data) + b',"sequence_number":%d,"delta":%b}\n\n'
