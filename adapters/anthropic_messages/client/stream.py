"""Encodes events as the server-sent events of a message: its blocks follow one another.

The bytes around a delta are the same for all deltas of a block, and are made when the block opens.

The states (`gateway.dialects.stream_state`): `write` is `message_start`, which comes before all others; at `finish` the
last block is closed, and only the usage may follow, which is in `message_delta` with the reason; the end is
`message_stop`, or the one event of an error. Which block is open, and which events must wait for it, is the matter of
`gateway.dialects.sequential_blocks`.
"""

import re
from collections.abc import Callable, Iterable
from typing import ClassVar, Final, assert_never

import msgspec

from adapters.anthropic_messages.blocks import PIECES, block_event, opened_block, start_event
from adapters.anthropic_messages.client.errors import encode_error_event
from adapters.anthropic_messages.client.input_pieces import InputPieces
from adapters.anthropic_messages.client.message import OwnMessage, message_object
from adapters.anthropic_messages.finish import final_fields
from adapters.anthropic_messages.usage import UNCOUNTED, WHOLE, usage_object
from gateway.core.answer import merge_usage
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import GatewayError
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead
from gateway.dialects.dragoman_field import dragoman_field
from gateway.dialects.event_stream import EVENT_STREAM_HEADERS, one_line_each
from gateway.dialects.sequential_blocks import (
    BlockDelta,
    BlockEnd,
    BlockFields,
    BlockKind,
    BlockStart,
    BlockStep,
    SequentialBlocks,
)
from gateway.dialects.stream_state import STREAM_TRANSITIONS, StreamState

PING: Final = b'event: ping\ndata: {"type":"ping"}\n\n'
# A name that is one line.
_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)
# The events of blocks, which `block_event` reads.
_OF_BLOCKS: Final = frozenset({"content_block_start", "content_block_delta", "content_block_stop"})
_DELTA_END: Final = b"}}\n\n"
# The type of a block's deltas, and their field.
_DELTAS: Final[dict[BlockKind, bytes]] = {
    "text": b'"text_delta","text":',
    "reasoning": b'"thinking_delta","thinking":',
    "call": b'"input_json_delta","partial_json":',
    "other": b'"input_json_delta","partial_json":',
}

_encode: Final = msgspec.json.Encoder().encode


class MessageStreamEncoder:
    """Encodes one answer.

    `feed` returns the bytes to send now, `close` the last ones; `fail` ends the stream instead, and `quiet` keeps it
    alive. `shows_thinking`: with the text of the thinking. `prompt_tokens` estimates the prompt, for a message that
    begins before the backend has counted it: clients show what it fills of the context.
    """

    headers: ClassVar[tuple[tuple[bytes, bytes], ...]] = EVENT_STREAM_HEADERS

    def __init__(self, head: AnswerHead, prompt_tokens: Callable[[], int], *, shows_thinking: bool) -> None:
        self._head = head
        self._prompt_tokens = prompt_tokens
        self._shows_thinking = shows_thinking
        self._blocks = SequentialBlocks()
        self._number = -1
        # What stands before the piece of a delta of the open block.
        self._before = b""
        self._input = InputPieces()
        self._own = OwnMessage()
        self._behind_end: list[bytes] = []
        # Fields of a backend of the same API: of the next piece, and of the next end of a block.
        self._piece_event: JsonObject = EMPTY
        self._end_event: JsonObject = EMPTY
        self._finish = Finish("stop")
        self._usage: UsageReport | None = None
        # Whether the message began before the backend had counted the prompt.
        self._began_uncounted = False
        self._notices: list[Notice] | None = [] if head.diagnostics else None
        self._state = StreamState.NEW

    def feed(self, events: Iterable[Event]) -> bytes:
        """Returns the bytes of these events; they may be sent in one piece."""
        out: list[bytes] = []
        blocks = self._blocks
        for event in events:
            # Nearly every event is a delta of the open block.
            if type(event) is TextDelta and blocks.kind == "text" and not self._piece_event:
                out += (self._before, _encode(event.text), _DELTA_END)
            elif (
                type(event) is ToolCallDelta
                and blocks.call == event.index
                and self._input.is_object
                and not self._piece_event
            ):
                out += (self._before, _encode(event.arguments), _DELTA_END)
            elif (
                type(event) is ReasoningDelta
                and blocks.kind == "reasoning"
                and self._shows_thinking
                and not self._piece_event
            ):
                out += (self._before, _encode(event.text), _DELTA_END)
            else:
                self._event(event, out)
        return one_line_each(b"".join(out))

    def quiet(self) -> bytes:
        """Returns a ping, which clients know as an event and ignore."""
        return PING

    def fail(self, error: GatewayError) -> bytes:
        """Returns the one error event. Later output is never sent."""
        if self._state is StreamState.ENDED:
            return b""
        self._state = STREAM_TRANSITIONS[self._state]["end"]
        return one_line_each(encode_error_event(error, self._head.request_id))

    def close(self) -> bytes:
        """Returns why the answer ended, its token counts, and the end of the message. Returns nothing after an
        error."""
        if self._state is StreamState.ENDED:
            return b""
        self._state = STREAM_TRANSITIONS[self._state]["end"]
        usage, own = self._usage or UNCOUNTED, self._own
        required = WHOLE if self._began_uncounted and usage.prompt_tokens else ("output_tokens",)
        counts = usage_object(usage, own.end.get("usage"), required)
        last: dict[str, Json] = {**own.end, "delta": final_fields(self._finish, own.delta), "usage": counts}
        if said := dragoman_field(usage, self._notices):
            last["dragoman"] = said
        end = (_event("message_delta", last), *self._behind_end, _event("message_stop", own.stop))
        return one_line_each(b"".join(end))

    def _event(self, event: Event, out: list[bytes]) -> None:
        if type(event) is PassthroughFields and self._passed(event, out):
            return
        if (part := block_event(event)) is not None:
            self._start(out)
            self._write(self._blocks.feed(part), out)
        elif type(event) is Finish:
            self._start(out)
            self._write(self._blocks.close(), out)
            self._finish = event
            self._state = STREAM_TRANSITIONS[self._state]["finish"]
        elif type(event) is UsageReport:
            self._usage = event if self._usage is None else merge_usage(self._usage, event)
        elif type(event) is Notice and self._notices is not None:
            self._notices.append(event)

    def _passed(self, event: PassthroughFields, out: list[bytes]) -> bool:
        """Takes or writes what a backend of the same API wrote; returns False for what belongs to a block."""
        kind = event.fields.get("type")
        if kind == "message_delta":
            self._start(out)
        if self._own.add(event):
            return True
        if kind == "content_block_stop":
            self._end_event = event.fields
        if event.scope != "event" or not isinstance(kind, str) or kind in _OF_BLOCKS:
            return False
        self._start(out)
        # The end of the message is written last.
        written = self._behind_end if self._own.end else out
        written.append(_event(kind if _NAME.fullmatch(kind) else "message", event.fields))
        return True

    def _start(self, out: list[bytes]) -> None:
        """Writes the beginning of the message before its first content."""
        if self._state is not StreamState.NEW:
            return
        usage = self._usage
        if usage is None or not usage.prompt_tokens:
            usage = UsageReport(prompt_tokens=self._prompt_tokens(), estimated=True)
            self._began_uncounted = True
        message = message_object(self._head, usage, self._own.message)
        out.append(_event("message_start", {**self._own.start, "message": message}))
        self._state = STREAM_TRANSITIONS[self._state]["write"]

    def _write(self, steps: Iterable[BlockStep], out: list[bytes]) -> None:
        for step in steps:
            match step:
                case BlockStart():
                    self._open(step, out)
                case BlockDelta():
                    self._delta(step.text, out)
                case BlockFields():
                    self._own_piece(step.fields, out)
                case BlockEnd():
                    self._close(step, out)
                case _:
                    assert_never(step)

    def _open(self, start: BlockStart, out: list[bytes]) -> None:
        self._kind = start.kind
        self._number = start.number
        self._before = _delta_head(start.number) + _DELTAS[start.kind]
        self._input = InputPieces()
        opening: dict[str, Json] = {"index": start.number, "content_block": opened_block(start)}
        out.append(_event("content_block_start", {**start_event(start), **opening}))

    def _own_piece(self, event: JsonObject, out: list[bytes]) -> None:
        """Writes a delta of a backend of the same API, or keeps its fields for the piece that follows."""
        delta = event.get("delta")
        if isinstance(delta, dict) and PIECES.get(delta.get("type"), "type") not in delta:
            self._piece_event = event
            return
        out.append(_event("content_block_delta", {**event, "index": self._number}))

    def _delta(self, text: str, out: list[bytes]) -> None:
        if self._kind == "call":
            text = self._input.add(text)
        elif self._kind == "reasoning" and not self._shows_thinking:
            text = ""
        if text:
            self._piece(text, out)

    def _piece(self, text: str, out: list[bytes]) -> None:
        if self._piece_event:
            self._extended_piece(text, out)
        else:
            out += (self._before, _encode(text), _DELTA_END)

    def _extended_piece(self, text: Json, out: list[bytes]) -> None:
        """Writes a piece with the fields that a backend of the same API wrote beside it."""
        event, self._piece_event = self._piece_event, EMPTY
        delta = event["delta"]
        assert isinstance(delta, dict)  # only such an event is kept
        whole: Json = {**delta, PIECES[delta.get("type")]: text}
        out.append(_event("content_block_delta", {**event, "index": self._number, "delta": whole}))

    def _close(self, end: BlockEnd, out: list[bytes]) -> None:
        if self._kind == "call" and (rest := self._input.close()):
            self._piece(rest, out)
        if "signature" in end.state and self._piece_event:
            self._extended_piece(end.state["signature"], out)
        elif "signature" in end.state:
            signature = _encode(end.state["signature"])
            out += (_delta_head(self._number), b'"signature_delta","signature":', signature, _DELTA_END)
        out.append(_event("content_block_stop", {**self._end_event, "index": self._number}))
        self._end_event = EMPTY


def _event(name: str, data: JsonObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode("ascii"), _encode({"type": name, **data}))


def _delta_head(number: int) -> bytes:
    return b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":' % number
