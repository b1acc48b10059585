"""Converts the JSON objects of a response (the events of a stream, or one whole message) into events.

Source: Anthropic, API reference, streaming messages.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from adapters.anthropic_messages import DIALECT
from adapters.anthropic_messages.backend.blocks import (
    CALL_FIELDS,
    CONTENT_FIELDS,
    Block,
    CallBlock,
    OtherBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    emptied,
    open_block,
    text_of,
)
from adapters.anthropic_messages.backend.delta_fast_path import PieceEvent, TextPiece, ThinkingPiece
from adapters.anthropic_messages.backend.failure import reported_failure
from adapters.anthropic_messages.blocks import PIECES
from adapters.anthropic_messages.finish import decode_finish
from adapters.anthropic_messages.usage import TokenCounts
from adapters.openai.backend_errors import minimax_failure
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import BackendProtocolError, BackendTruncated
from gateway.core.events import (
    Event,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from gateway.core.malformed_event import invalid_event
from gateway.core.notices import Action, Notice, NoticeRule, Reported
from gateway.wires.call_ids import CallIds
from gateway.wires.event_stream import StreamEnd

# The fields of the events of a block of which the core's events say everything.
_START_FIELDS: Final = frozenset({"type", "index", "content_block"})
_DELTA_EVENT_FIELDS: Final = frozenset({"type", "index", "delta"})
_END_FIELDS: Final = frozenset({"type", "index"})
# The fields of a message, of its end and of its counts that the events of the core express, or that say nothing to
# another client: how the backend served it.
_MESSAGE_FIELDS: Final = frozenset(
    {"type", "id", "role", "model", "content", "stop_reason", "stop_sequence", "usage", "delta"}
)
_USAGE_FIELDS: Final = frozenset(
    {"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"}
    | {"output_tokens_details", "service_tier", "inference_geo", "speed"}
)
_CALL: Final = "tool_use"
# Those of a whole message, which has no events.
_WHOLE_START: Final[JsonObject] = {"type": "content_block_start"}
_WHOLE_END: Final[JsonObject] = {"type": "content_block_stop"}


class MessageReader:
    """Reads one response. `empty` is true until the message has started, `finished` and `done` are true once it has
    stopped.

    A client of the same API (`own_client`) receives each event as it was written, but for the pieces of content that
    the events of the core hold; for any other client a Notice reports what these do not express. `seed` as in
    CallIds.
    """

    def __init__(self, own_client: bool, *, seed: int = 0) -> None:
        self.empty = True
        self.finished = False
        self.done = False
        self._own_client = own_client
        self._counts = TokenCounts()
        self._open: dict[int, Block] = {}
        self._begun: set[int] = set()
        # The start of the first block, which waits for its content: until then a failure can still be a status.
        self._opening: list[Event] = []
        self._call_ids = CallIds(seed)
        # What stands before the next block: so many calls, and whether text.
        self._calls = 0
        self._spoke = False
        self._reason = ""
        self._sequence: Json = None
        self._reported = Reported()

    def piece(self, event: PieceEvent) -> Event | None:
        """Returns the event of a piece that its open block takes as it is; None: it must be read in full."""
        if self._opening:
            return None
        block, delta = self._open.get(event.index), event.delta
        if isinstance(delta, TextPiece):
            return TextDelta(delta.text) if isinstance(block, TextBlock) else None
        if isinstance(delta, ThinkingPiece):
            if not isinstance(block, ThinkingBlock):
                return None
            block.length += len(delta.thinking)
            return ReasoningDelta(delta.thinking)
        if not isinstance(block, CallBlock):
            return None
        block.grown = True
        return ToolCallDelta(event.index, delta.partial_json)

    def event(self, event: Json) -> list[Event]:
        """Returns the events of one event of a stream. Raises BackendError."""
        if not isinstance(event, dict):
            raise invalid_event("it is not an object")
        kind = event.get("type")
        if kind == "error" or (kind is None and event.get("error") is not None):
            raise reported_failure(event)
        read = _EVENTS.get(kind) if isinstance(kind, str) else None
        if read is None:
            if failure := minimax_failure(event.get("base_resp")):
                raise failure
            if self._own_client and not self.empty and kind:
                return self._behind_opening(self._written(event))
            return self._note("ignored", "UNKNOWN_EVENT", "an event that is not part of a message")
        if self.empty and kind not in _BEFORE_START:
            raise invalid_event("it precedes the start of the message")
        events = read(self, event)
        return self._behind_opening(events) if self._opening and events else events

    def _behind_opening(self, events: list[Event]) -> list[Event]:
        """Returns the events behind the start of the block that waits for them."""
        opening, self._opening = self._opening, []
        return [*opening, *events]

    def message(self, message: Json) -> list[Event]:
        """Returns the events of a whole response. Raises BackendError."""
        if not isinstance(message, dict):
            raise invalid_event("the message is not an object")
        if message.get("type") == "error" or message.get("error") is not None:
            raise reported_failure(message)
        content = message.get("content")
        if not content and (failure := minimax_failure(message.get("base_resp"))):
            raise failure
        if not isinstance(content, list):
            error = BackendProtocolError("The backend's response has no content.", code="upstream_invalid_response")
            error.words = text_of(message, "message") or text_of(message, "detail")
            raise error
        self._counts.add(message.get("usage"))
        events = [self._started(message)]
        if self._own_client:
            events.append(PassthroughFields("response", {**message, "content": []}))
        else:
            events += self._not_shown(message)
        for index, block in enumerate(content):
            events += self._begin(index, block, _WHOLE_START)
            events += self._end(index, _WHOLE_END)
        self._ended(message)
        return [*events, *self._stop({})]

    def end(self, where: StreamEnd) -> list[Event]:
        """Raises BackendTruncated: `message_stop` alone completes a message. `upstream_invalid_response` when no part
        of one arrived."""
        if self.empty and where == "bytes":
            raise BackendTruncated("The backend's response contains no message.", code="upstream_invalid_response")
        raise BackendTruncated("The backend's stream ended before the message was complete.")

    def late(self) -> list[Event]:
        """Returns the report of data that follows the end of the message."""
        return self._note("ignored", "LATE_EVENT", "the backend sent more data after it had ended its message")

    def _start(self, event: JsonObject) -> list[Event]:
        message = event.get("message")
        if not isinstance(message, dict):
            raise invalid_event("the start of the message has no message")
        if not self.empty:
            raise invalid_event("the message starts twice")
        self._counts.add(message.get("usage"))
        usage = self._counts.report(ended=False)
        beside = self._written(event) if self._own_client else self._not_shown(message)
        return [self._started(message), *beside, *([] if usage is None else [usage])]

    def _started(self, message: JsonObject) -> Event:
        self.empty = False
        return ResponseStart(text_of(message, "id") or None, text_of(message, "model") or None)

    def _ping(self, event: JsonObject) -> list[Event]:
        return []

    def _block_start(self, event: JsonObject) -> list[Event]:
        return self._begin(_index_of(event), event.get("content_block"), event)

    def _block_delta(self, event: JsonObject) -> list[Event]:
        block, delta = self._block(_index_of(event)), event.get("delta")
        if not isinstance(delta, dict) or not (kind := text_of(delta, "type")):
            raise invalid_event("a delta has no type")
        field = PIECES.get(kind)
        if self._own_client and (field is None or isinstance(block, OtherBlock)):
            return [PassthroughFields("event", event)]
        if field is None:
            return self._note("dropped", "PART_UNKNOWN", "a piece of content of an unknown type")
        if kind not in block.grows_by:
            raise invalid_event(f"a {kind} does not belong to its content block")
        if not isinstance(piece := delta.get(field), str):
            raise invalid_event(f"a {kind} has no {field}")
        if self._own_client and not piece:
            return [PassthroughFields("event", event)]
        events = block.grow(kind, piece)
        if self._own_client and not (event.keys() <= _DELTA_EVENT_FIELDS and delta.keys() <= {"type", field}):
            rest = {name: value for name, value in delta.items() if name != field}
            return [PassthroughFields("event", {**event, "delta": rest}), *events]
        return events

    def _block_stop(self, event: JsonObject) -> list[Event]:
        return self._end(_index_of(event), event)

    def _delta(self, event: JsonObject) -> list[Event]:
        delta = event.get("delta")
        if not isinstance(delta, dict):
            raise invalid_event("a delta of the message is not an object")
        self._counts.add(event.get("usage"))
        self._ended(delta)
        return self._written(event) if self._own_client else self._not_shown({**event, **delta})

    def _ended(self, fields: JsonObject) -> None:
        """Reads the stop reason, and the stop sequence beside it."""
        reason = fields.get("stop_reason")
        if not isinstance(reason, str | None):
            raise invalid_event("the stop reason is not text")
        if reason:
            self._reason, self._sequence = reason, fields.get("stop_sequence")

    def _stop(self, event: JsonObject) -> list[Event]:
        """Returns the events at the end of the message. Raises BackendProtocolError for a call without an end that may
        lack something, and BackendTruncated for a message without a stop reason."""
        if not self._reason:
            raise BackendTruncated("The backend ended its message without a stop reason.")
        mended = self._mended()
        finish, notice = decode_finish(self._reason, self._sequence)
        usage = self._counts.report(ended=True)
        self.finished = self.done = True
        return [
            *mended,
            *([] if notice is None else [notice]),
            *([] if usage is None else [usage]),
            finish,
            *(self._written(event) if len(event) > 1 else ()),
        ]

    def _mended(self) -> list[Event]:
        """Returns the ends of the blocks whose ends did not come. Raises BackendProtocolError for a call without any
        input; whether the input of the others is whole, it says itself."""
        if not self._open:
            return []
        if any(isinstance(block, CallBlock) and not block.has_input for block in self._open.values()):
            raise invalid_event("the message ends inside a call")
        detail = "the end of a content block was missing in the stream; nothing of it is lost"
        events = self._note("added", "STREAM_MENDED", detail)
        for index in [*self._open]:
            events += self._end(index, {"type": "content_block_stop", "index": index})
        return events

    def _begin(self, index: int, opened: Json, event: JsonObject) -> list[Event]:
        if index in self._begun:
            raise invalid_event("two content blocks have the same index")
        if not isinstance(opened, dict) or not text_of(opened, "type"):
            raise invalid_event("a content block has no type")
        self._begun.add(index)
        block = self._open[index] = open_block(index, opened)
        told: tuple[Notice, ...] = ()
        if isinstance(block, CallBlock):
            block.id, told = self._call_ids.take(opened.get("id"), index)
        if not self._own_client:
            if isinstance(block, ThinkingBlock | RedactedThinkingBlock) and len(self._begun) > 1:
                block.place = {"calls": self._calls, "behind_text": self._spoke}
            self._calls += isinstance(block, CallBlock)
            self._spoke = self._spoke or isinstance(block, TextBlock)
            return [*self._unknown_content(opened), *told, *block.start()]
        if isinstance(block, CallBlock):
            return [*told, *[_own_call(start, opened, event) for start in block.start()]]
        opening: Event = PassthroughFields("event", {**event, "content_block": emptied(opened)})
        content = block.start()
        waits = isinstance(block, TextBlock | ThinkingBlock) and not content and event is not _WHOLE_START
        if waits and len(self._begun) == 1:
            self._opening = [opening]
            return []
        return [opening, *content]

    def _not_shown(self, message: JsonObject) -> list[Event]:
        """Reports the fields of the message, or of its end, that no event of the core expresses."""
        usage = message.get("usage")
        named = [name for name, value in message.items() if name not in _MESSAGE_FIELDS and value]
        if isinstance(usage, dict):
            named += [f"usage.{name}" for name, value in usage.items() if name not in _USAGE_FIELDS and value]
        return self._tell_fields(named)

    def _tell_fields(self, names: list[str]) -> list[Event]:
        if not names:
            return []
        detail = f"the client's dialect has no field for {', '.join(sorted(name[:40] for name in names))}"
        new = self._reported.is_new(detail)
        return [Notice("backend", "ignored", "FIELD_NOT_SHOWN", detail, level="debug")] if new else []

    def _unknown_content(self, opened: JsonObject) -> list[Event]:
        """Reports what a block has beside its own content: the citations of a text, the caller of a call."""
        if text_of(opened, "type") == _CALL:
            return self._tell_fields([name for name, value in opened.items() if name not in CALL_FIELDS and value])
        known = CONTENT_FIELDS.get(text_of(opened, "type"))
        if known is None or not any(value for name, value in opened.items() if name not in known):
            return []
        return self._note("dropped", "PART_UNKNOWN", "unknown fields of a content block")

    def _end(self, index: int, event: JsonObject) -> list[Event]:
        block = self._block(index)
        del self._open[index]
        events = block.stop()
        if self._own_client:
            return self._own_end(block, events, event)
        if isinstance(block, OtherBlock):
            detail = f"a content block of type {block.kind[:40]!r}, which only clients of the same API know"
            new = self._reported.is_new(detail)
            return [Notice("backend", "dropped", "PART_UNKNOWN", detail, level="warning")] if new else []
        return events

    def _own_end(self, block: Block, events: list[Event], event: JsonObject) -> list[Event]:
        """Returns the end of a block: an event of the core for reasoning and calls, else the backend's own."""
        if isinstance(block, TextBlock | OtherBlock):
            return self._written(event)
        if isinstance(block, ThinkingBlock) and not events:
            events = [ReasoningEnd(EMPTY)]
        return [*([] if event.keys() <= _END_FIELDS else self._written(event)), *events]

    def _block(self, index: int) -> Block:
        block = self._open.get(index)
        if block is None:
            raise invalid_event("it names a content block that is not open")
        return block

    def _written(self, event: JsonObject) -> list[Event]:
        """Returns an event as the backend wrote it, for a client of the same API."""
        return [PassthroughFields("event", event)] if self._own_client else []

    def _note(self, action: Action, rule: NoticeRule, detail: str) -> list[Event]:
        """Reports each rule once, because a backend that breaks a rule breaks it in every event."""
        return [Notice("backend", action, rule, detail, level="warning")] if self._reported.is_new(rule) else []


def _own_call(start: Event, opened: JsonObject, event: JsonObject) -> Event:
    """Returns the start of a call with what its event has beside the call: a call may be unwrapped, or wait."""
    if not isinstance(start, ToolCallStart) or (opened.keys() <= CALL_FIELDS and event.keys() <= _START_FIELDS):
        return start
    unknown: Json = {name: value for name, value in opened.items() if name not in CALL_FIELDS}
    return msgspec.structs.replace(start, extra={DIALECT: {**event, "content_block": unknown}})


def _index_of(event: JsonObject) -> int:
    index = event.get("index")
    if type(index) is not int:
        raise invalid_event("it names no content block")
    return index


_EVENTS: Final[dict[str, Callable[[MessageReader, JsonObject], list[Event]]]] = {
    "message_start": MessageReader._start,
    "ping": MessageReader._ping,
    "content_block_start": MessageReader._block_start,
    "content_block_delta": MessageReader._block_delta,
    "content_block_stop": MessageReader._block_stop,
    "message_delta": MessageReader._delta,
    "message_stop": MessageReader._stop,
}
_BEFORE_START: Final = frozenset({"message_start", "ping"})
