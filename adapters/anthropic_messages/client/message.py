"""Encodes an answer as one message."""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

import msgspec

from adapters.anthropic_messages.blocks import block_event, opened_block, with_pieces
from adapters.anthropic_messages.finish import final_fields
from adapters.anthropic_messages.usage import UNCOUNTED, usage_object
from gateway.core.answer import Answer, AnswerCall, AnswerPart, AnswerReasoning, AnswerText
from gateway.core.call_arguments import as_object
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import Finish, PassthroughFields, ReasoningEnd, UsageReport
from gateway.dialect import AnswerHead
from gateway.dialects.dragoman_field import dragoman_field
from gateway.dialects.sequential_blocks import (
    WITHOUT_END,
    BlockEvent,
    BlockKind,
    BlockStart,
    OwnBlock,
    OwnEnd,
    OwnPiece,
)

_encode: Final = msgspec.json.Encoder().encode
# What the gateway itself writes of each message.
_WRITTEN: Final = frozenset({"id", "model", "content", "usage"})
# The fields of `message_delta` that are no field of the message.
_OF_END: Final = frozenset({"type", "delta", "usage"})


class OwnMessage(msgspec.Struct):
    """What a backend of the same API wrote of its message beside the content.

    `start`, `end` and `stop` are the events `message_start`, `message_delta` and `message_stop`.
    """

    start: JsonObject = EMPTY
    end: JsonObject = EMPTY
    stop: JsonObject = EMPTY

    def add(self, fields: PassthroughFields) -> bool:
        """Adds what an event has of the message; returns False for any other event."""
        if fields.scope == "response":
            whole = fields.fields
            unfinished = {**whole, "stop_reason": None, "stop_sequence": None}
            last: Json = {name: whole.get(name) for name in ("stop_reason", "stop_sequence")}
            self.start = {"type": "message_start", "message": unfinished}
            self.end = {"type": "message_delta", "delta": last, "usage": whole.get("usage")}
            return True
        match fields.fields.get("type"):
            case "message_start":
                self.start = fields.fields
            case "message_delta":
                self.end = fields.fields
            case "message_stop":
                self.stop = fields.fields
            case _:
                return False
        return True

    @property
    def message(self) -> JsonObject:
        """Returns the message as it began."""
        return _object(self.start.get("message"))

    @property
    def delta(self) -> JsonObject:
        """Returns the fields of the message that its end changed."""
        return _object(self.end.get("delta"))


def encode_answer(answer: Answer, head: AnswerHead, *, shows_thinking: bool) -> bytes:
    """Returns one JSON message. `shows_thinking`: with the text of the thinking."""
    own, content = OwnMessage(), _Content()
    for part in answer.parts:
        if type(part) is not PassthroughFields or not own.add(part):
            content.add(part)
    usage = UNCOUNTED if answer.usage is None else answer.usage
    message = message_object(head, usage, own.message)
    message["content"] = [block.whole(shows_thinking=shows_thinking) for block in content.blocks]
    message |= {name: value for name, value in own.end.items() if name not in _OF_END}
    message |= final_fields(answer.finish or Finish("stop"), own.delta)
    counted = _object(own.end.get("usage"))
    message["usage"] = usage_object(usage, {**_object(own.message.get("usage")), **counted} if counted else None)
    if said := dragoman_field(usage, answer.notices if head.diagnostics else None):
        message["dragoman"] = said
    return _encode(message)


def message_object(head: AnswerHead, usage: UsageReport, own: JsonObject = EMPTY) -> dict[str, Json]:
    """Returns a message that has no content yet. `own` are the fields that a backend of the same API wrote."""
    message: dict[str, Json] = {
        "id": f"msg_{head.unique}",
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_object(usage, own.get("usage")),
    }
    return {**message, **{name: value for name, value in own.items() if name not in _WRITTEN}}


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else EMPTY


class _Block(msgspec.Struct):
    """A content block. `grows`: the next piece of its kind belongs to it. `said` are the fields that a backend of the
    same API wrote behind its beginning, and `state` is that of its reasoning."""

    start: BlockStart
    pieces: list[str]
    grows: bool = True
    said: list[JsonObject] = []
    state: JsonObject = EMPTY

    def whole(self, *, shows_thinking: bool) -> dict[str, Json]:
        """Returns the block with its text, its input and its signature."""
        block = with_pieces(opened_block(self.start), self.said)
        text = "".join(self.pieces)
        match self.start.kind:
            case "text":
                return {**block, "text": text}
            case "reasoning" if block["type"] == "redacted_thinking":
                return block
            case "reasoning":
                signed: dict[str, Json] = {"signature": self.state["signature"]} if "signature" in self.state else {}
                return {**block, "thinking": text if shows_thinking else "", **signed}
            case "call":
                return {**block, "input": as_object(text)}
            case "other":
                return {**block, "input": as_object(given)} if isinstance(given := block.get("input"), str) else block
            case _:
                assert_never(self.start.kind)


class _Content:
    """The content blocks of an answer, in the order in which the stream opens them: that in which they began."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self._calls: dict[int | None, _Block] = {}

    def add(self, part: AnswerPart) -> None:
        """Adds a part of the answer, which is no event of the message as a whole."""
        if type(part) is AnswerText:
            self._grow("text", part.pieces)
        elif type(part) is AnswerReasoning:
            self._grow("reasoning", part.pieces)
        elif type(part) is AnswerCall:
            self._begin(BlockStart(len(self.blocks), "call", part.start), part.pieces)
            self._calls[part.start.index] = self.blocks[-1]
        elif type(part) is ReasoningEnd or type(part) is PassthroughFields:
            self._mark(block_event(part))
        else:
            assert_never(part)

    def _begin(self, start: BlockStart, pieces: Iterable[str] = ()) -> None:
        self.blocks.append(_Block(start, [*pieces]))

    def _grow(self, kind: BlockKind, pieces: Sequence[str]) -> None:
        last = self.blocks[-1] if self.blocks else None
        if last is not None and last.start.kind == kind and last.grows:
            last.pieces += pieces
        else:
            self._begin(BlockStart(len(self.blocks), kind), pieces)

    def _mark(self, event: BlockEvent | None) -> None:
        """Takes the end of reasoning, and what a backend of the same API wrote of a block."""
        last = self.blocks[-1] if self.blocks else None
        if isinstance(event, OwnBlock):
            self._begin(BlockStart(len(self.blocks), event.kind, fields=event.fields))
        elif isinstance(event, ReasoningEnd):
            self._end_reasoning(event.extra, last)
        elif isinstance(event, OwnPiece):
            self._add_fields(event, last)
        elif isinstance(event, OwnEnd) and last is not None and last.start.kind in WITHOUT_END:
            last.grows = False

    def _add_fields(self, piece: OwnPiece, last: _Block | None) -> None:
        call = self._calls.get(piece.call)
        if call is not None:
            call.said.append(piece.fields)
        elif last is not None and last.start.call is None and last.grows:
            last.said.append(piece.fields)

    def _end_reasoning(self, state: JsonObject, last: _Block | None) -> None:
        if last is None or last.start.kind != "reasoning" or not last.grows:
            if not state:
                return
            last = _Block(BlockStart(len(self.blocks), "reasoning", fields=state), [])
            self.blocks.append(last)
        last.state, last.grows = state, False
