"""Encodes events as the server-sent events of a message: its blocks follow one another.

The bytes around a delta are the same for all deltas of a block, and are made when the block opens.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar, Final, assert_never

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import GatewayError
from gateway.core.events import Event, Finish, ReasoningDelta, TextDelta, ToolCallDelta, UsageReport
from gateway.core.notices import Notice
from gateway.dialects.anthropic_messages.blocks import block_event, opened_block
from gateway.dialects.anthropic_messages.errors import encode_error_event
from gateway.dialects.anthropic_messages.finish import stop_reason
from gateway.dialects.anthropic_messages.input_pieces import InputPieces
from gateway.dialects.anthropic_messages.message import message_object
from gateway.dialects.anthropic_messages.stream_state import STREAM_TRANSITIONS, StreamState
from gateway.dialects.anthropic_messages.usage import UNCOUNTED, usage_object
from gateway.dialects.base import AnswerHead
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
from gateway.dialects.usage import merge_usage

PING: Final = b'event: ping\ndata: {"type":"ping"}\n\n'
_STOP: Final = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
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
        self._finish = Finish("stop")
        self._usage: UsageReport | None = None
        self._notices: list[Notice] | None = [] if head.diagnostics else None
        self._state = StreamState.NEW

    def feed(self, events: Iterable[Event]) -> bytes:
        """Returns the bytes of these events; they may be sent in one piece."""
        out: list[bytes] = []
        blocks = self._blocks
        for event in events:
            # Nearly every event is a delta of the open block.
            if type(event) is TextDelta and blocks.kind == "text":
                out += (self._before, _encode(event.text), _DELTA_END)
            elif type(event) is ToolCallDelta and blocks.call == event.index and self._input.is_object:
                out += (self._before, _encode(event.arguments), _DELTA_END)
            elif type(event) is ReasoningDelta and blocks.kind == "reasoning" and self._shows_thinking:
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
        delta: dict[str, Json] = {
            "stop_reason": stop_reason(self._finish),
            "stop_sequence": self._finish.stop_sequence,
        }
        usage = self._usage or UNCOUNTED
        last: dict[str, Json] = {"delta": delta, "usage": usage_object(usage)}
        if said := dragoman_field(usage, self._notices):
            last["dragoman"] = said
        return one_line_each(_event("message_delta", last)) + _STOP

    def _event(self, event: Event, out: list[bytes]) -> None:
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

    def _start(self, out: list[bytes]) -> None:
        """Writes the beginning of the message before its first content."""
        if self._state is not StreamState.NEW:
            return
        usage = self._usage
        if usage is None or not usage.prompt_tokens:
            usage = UsageReport(prompt_tokens=self._prompt_tokens())
        message = message_object(self._head, usage)
        out.append(_event("message_start", {"message": message}))
        self._state = STREAM_TRANSITIONS[self._state]["start"]

    def _write(self, steps: Iterable[BlockStep], out: list[bytes]) -> None:
        for step in steps:
            match step:
                case BlockStart():
                    self._open(step, out)
                case BlockDelta():
                    self._delta(step.text, out)
                case BlockFields():
                    delta: dict[str, Json] = {"index": self._number, "delta": dict(step.fields)}
                    out.append(_event("content_block_delta", delta))
                case BlockEnd():
                    self._close(step, out)
                case _:
                    assert_never(step)

    def _open(self, start: BlockStart, out: list[bytes]) -> None:
        self._kind = start.kind
        self._number = start.number
        self._before = _delta_head(start.number) + _DELTAS[start.kind]
        self._input = InputPieces()
        block = opened_block(start)
        out.append(
            _event(
                "content_block_start", {"type": "content_block_start", "index": start.number, "content_block": block}
            )
        )
        if start.kind == "other" and (given := start.fields.get("input")) and isinstance(given, dict):
            self._piece(_encode(given).decode(), out)

    def _delta(self, text: str, out: list[bytes]) -> None:
        if self._kind == "call":
            text = self._input.add(text)
        elif self._kind == "reasoning" and not self._shows_thinking:
            text = ""
        if text:
            self._piece(text, out)

    def _piece(self, text: str, out: list[bytes]) -> None:
        out += (self._before, _encode(text), _DELTA_END)

    def _close(self, end: BlockEnd, out: list[bytes]) -> None:
        if self._kind == "call" and (rest := self._input.close()):
            self._piece(rest, out)
        if "signature" in end.state:
            signature = _encode(end.state["signature"])
            out += (_delta_head(self._number), b'"signature_delta","signature":', signature, _DELTA_END)
        out.append(_event("content_block_stop", {"index": self._number}))


def _event(name: str, data: dict[str, Json]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode("ascii"), _encode({"type": name, **data}))


def _delta_head(number: int) -> bytes:
    return b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":' % number
