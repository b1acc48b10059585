"""Encodes events as the server-sent events of a response.

Items follow one another (`gateway.dialects.sequential_blocks`): clients keep track of one at a time. A delta is a
constant head, its sequence number and its text; only these two are encoded for each delta.

A backend of the same dialect may send what no other event expresses, as PassthroughFields:

- of the scope `event`, a whole event of its stream (`{"type": "response.web_search_call.searching", ...}`): an event of
  an item that has no other event, the start or the end of a message with fields of its own, or an annotation of the
  present text. Its `sequence_number` and `output_index` are replaced. An item that only ever was done (in an answer
  that was not streamed) is `response.output_item.done` alone;
- of the scope `delta`, before a delta: its own fields, such as `logprobs`. Before the first delta of a part of
  reasoning, `summary_index` says that it is a summary, and `item_id` under which id its maker reads the item again;
- of the scope `response`, fields of the response object.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar, assert_never

import msgspec

from gateway.core.conversation import EMPTY, Json
from gateway.core.errors import GatewayError
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    Reason,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.dialects.base import AnswerHead, ClientRequest
from gateway.dialects.event_stream import EVENT_STREAM_HEADERS, PING, one_line_each
from gateway.dialects.openai_responses.backend_items import BackendItems
from gateway.dialects.openai_responses.decode import FIELDS, NAMES
from gateway.dialects.openai_responses.errors import error_event
from gateway.dialects.openai_responses.function_names import ToolNames, stored_names
from gateway.dialects.openai_responses.output_items import (
    CONTENT,
    SUMMARY,
    ItemEvent,
    ItemStatus,
    OutputCall,
    OutputItem,
    OutputMessage,
    OutputReasoning,
    item_state,
)
from gateway.dialects.openai_responses.response_object import GrowingResponse
from gateway.dialects.openai_responses.stored_answer import StoredInput, record
from gateway.dialects.openai_responses.stream_state import STREAM_TRANSITIONS, StreamInput, StreamState
from gateway.dialects.sequential_blocks import (
    BlockDelta,
    BlockEnd,
    BlockEvent,
    BlockFields,
    BlockStart,
    BlockStep,
    OwnBlock,
    SequentialBlocks,
    TextFields,
)
from gateway.dialects.stateful import AnswerRecord

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
        return one_line_each(b"".join(out))

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

    def record(self, renew_s: float) -> AnswerRecord:
        """Returns what is stored of the complete answer (`StoringEncoder.record`)."""
        assert isinstance(self._to_store, StoredInput)  # as the decoder made it for an answer to be stored
        return record(self._unique, self._to_store, self.response(), self._created, renew_s)

    def deny(self, notice: Notice) -> None:
        """Makes the rest of the answer say that it is not stored."""
        self._response.deny(notice)

    def _event(self, event: Event, out: list[bytes]) -> None:
        if type(event) is Finish:
            self._finish(event.reason, out)
        elif type(event) is UsageReport:
            self._response.add_usage(event)
        elif type(event) is Notice:
            self._response.notices.append(event)
        elif type(event) is PassthroughFields:
            self._pass(event, out)
        elif type(event) is not ResponseStart:
            self._feed_blocks(event, out)

    def _pass(self, event: PassthroughFields, out: list[bytes]) -> None:
        match event.scope:
            case "response":
                self._response.fields.update(event.fields)
            case "delta":
                self._pending.update(event.fields)
            case "event":
                self._feed_blocks(_block_event(event), out)
            case "choice":
                # An object of another dialect.
                pass
            case _:
                assert_never(event.scope)

    def _feed_blocks(self, event: BlockEvent, out: list[bytes]) -> None:
        for step in self._blocks.feed(event):
            self._block_step(step, out)

    def _finish(self, reason: Reason, out: list[bytes]) -> None:
        self._response.finish(reason)
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
                assert isinstance(self._item, OutputMessage)  # only an open text has fields
                self._write_items(self._item.said(step.fields), out)
            case BlockEnd():
                if self._item is not None:
                    self._write_items(self._item.closing(status, step.state), out)
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
            tool = self._names.tool(block.call.name)
            return OutputCall(self._items, self._unique, tool, block.call.id, block.call.extra)
        if block.kind == "text":
            return OutputMessage(self._items, self._unique, block.fields)
        state = item_state(block.fields)
        if block.fields and not state:
            return None
        identity = self._pending.pop("item_id", state.get("id"))
        return OutputReasoning(self._items, self._unique, identity if isinstance(identity, str) else None)

    def _write_delta(self, text: str, out: list[bytes]) -> None:
        """Writes a piece that may open a part of its item, or that has fields of its own."""
        item = self._item
        pending, self._pending = self._pending, {}
        if isinstance(item, OutputReasoning):
            self._switch_part(item, pending.pop("summary_index", None), out)
        elif isinstance(item, OutputMessage):
            item.add_logprobs(pending.get("logprobs"))
        event = None if item is None else item.delta()
        if item is None or event is None or not pending:
            self._grow(text, out)
            return
        item.pieces.append(text)
        self._write_item(ItemEvent(event.kind, {**event.fields, **pending, "delta": text}), out)

    def _switch_part(self, item: OutputReasoning, summary: Json, out: list[bytes]) -> None:
        if isinstance(summary, int):
            self._write_items(item.switch(SUMMARY, summary), out)
        elif item.delta() is None:
            self._write_items(item.switch(CONTENT, 0), out)
        self._set_delta(item)

    def _grow(self, text: str, out: list[bytes]) -> None:
        """Adds a piece to the open item."""
        self._pieces.append(text)
        if self._delta is not None:
            out.append(self._delta % (self._sequence, _encode(text)))
            self._sequence += 1
        elif isinstance(self._item, OutputCall):
            self._write_items(self._item.grow(text), out)

    def _set_delta(self, item: OutputItem) -> None:
        """Encodes the constant part of the deltas of the open item."""
        event = item.delta()
        self._pieces = item.pieces
        self._delta = None if event is None else _template(event)

    def _open(self, out: list[bytes]) -> None:
        """Writes the first two events, unless they are written."""
        if self._state is StreamState.NEW:
            self._step("open")
            for kind in ("created", "in_progress"):
                self._write(out, f"response.{kind}", {"response": self._response.begun})

    def _write_items(self, events: Iterable[ItemEvent], out: list[bytes]) -> None:
        for event in events:
            self._write_item(event, out)

    def _write_item(self, event: ItemEvent, out: list[bytes]) -> None:
        kind, fields = event
        if kind == "output_item.added":
            self._items += 1
        elif kind == "output_item.done" and isinstance(index := fields["output_index"], int):
            self._response.output[index] = fields["item"]
        self._write(out, f"response.{kind}", fields)

    def _write(self, out: list[bytes], kind: str, fields: Mapping[str, Json]) -> None:
        data = {"type": kind, "sequence_number": self._sequence, **fields}
        out.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode(data)))
        self._sequence += 1

    def _step(self, move: StreamInput) -> None:
        self._state = STREAM_TRANSITIONS[self._state][move]


def _block_event(event: PassthroughFields) -> BlockEvent:
    """Returns an event of the backend's stream as what it is for the order of the items."""
    match event.fields:
        case {"type": "response.output_text.annotation.added"}:
            return TextFields(event.fields)
        case {"type": "response.output_item.added", "item": dict(item)} if item.get("type") == "message":
            return OwnBlock("text", item)
        case {"type": "response.output_item.done", "item": dict(item)} if item.get("type") == "message":
            return TextFields(event.fields)
        case _:
            return event


def _template(event: ItemEvent) -> bytes:
    """Returns the bytes of an event with places for its number and for the JSON of its delta."""
    kind = f"response.{event.kind}"
    data = _encode({"type": kind, **event.fields})[:-1].replace(b"%", b"%%")
    return b"event: %b\ndata: %b" % (kind.encode(), data) + b',"sequence_number":%d,"delta":%b}\n\n'
