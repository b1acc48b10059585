"""Folds all events of an answer into one message with the content of the equivalent stream."""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

import msgspec

from adapters.anthropic_messages.blocks import block_event, opened_block, with_pieces
from adapters.anthropic_messages.finish import final_fields
from adapters.anthropic_messages.usage import UNCOUNTED, usage_object
from gateway.core.call_arguments import as_object
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import Event, Finish, PassthroughFields, UsageReport
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead
from gateway.dialects.dragoman_field import dragoman_field
from gateway.dialects.sequential_blocks import (
    BlockDelta,
    BlockEnd,
    BlockFields,
    BlockStart,
    BlockStep,
    SequentialBlocks,
)
from gateway.dialects.usage import merge_usage

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


def encode_answer(events: Iterable[Event], head: AnswerHead, *, shows_thinking: bool) -> bytes:
    """Returns one JSON message from the events of a complete answer. `shows_thinking`: with the text of thinking."""
    blocks = SequentialBlocks()
    steps: list[BlockStep] = []
    finish = Finish("stop")
    usage: UsageReport = UNCOUNTED
    notices: list[Notice] = []
    own = OwnMessage()
    for event in events:
        if type(event) is PassthroughFields and own.add(event):
            continue
        if (part := block_event(event)) is not None:
            steps += blocks.feed(part)
        elif type(event) is Finish:
            finish = event
        elif type(event) is UsageReport:
            usage = merge_usage(usage, event)
        elif type(event) is Notice:
            notices.append(event)
    steps += blocks.close()
    message = message_object(head, usage, own.message)
    rest = {name: value for name, value in own.end.items() if name not in _OF_END}
    message |= {"content": _content(steps, shows_thinking=shows_thinking), **rest, **final_fields(finish, own.delta)}
    counted = _object(own.end.get("usage"))
    message["usage"] = usage_object(usage, {**_object(own.message.get("usage")), **counted} if counted else None)
    if said := dragoman_field(usage, notices if head.diagnostics else None):
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


def _content(steps: Sequence[BlockStep], *, shows_thinking: bool) -> list[Json]:
    content: list[Json] = []
    start: BlockStart | None = None
    pieces: list[str] = []
    said: list[JsonObject] = []
    for step in steps:
        match step:
            case BlockStart():
                start, pieces, said = step, [], []
            case BlockDelta():
                pieces.append(step.text)
            case BlockFields():
                said.append(step.fields)
            case BlockEnd():
                assert start is not None  # a block opens before it closes
                block = with_pieces(opened_block(start), said)
                content.append(_filled(block, start, "".join(pieces), step, shows_thinking=shows_thinking))
            case _:
                assert_never(step)
    return content


def _filled(
    block: dict[str, Json], start: BlockStart, text: str, end: BlockEnd, *, shows_thinking: bool
) -> dict[str, Json]:
    """Returns a block with its text, its input and its signature."""
    match start.kind:
        case "text":
            return {**block, "text": text}
        case "reasoning" if block["type"] == "redacted_thinking":
            return block
        case "reasoning":
            signed: dict[str, Json] = {"signature": end.state["signature"]} if "signature" in end.state else {}
            return {**block, "thinking": text if shows_thinking else "", **signed}
        case "call":
            return {**block, "input": as_object(text)}
        case "other":
            return {**block, "input": as_object(given)} if isinstance(given := block.get("input"), str) else block
        case _:
            assert_never(start.kind)
