"""Folds all events of an answer into one message with the content of the equivalent stream."""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

import msgspec

from gateway.core.conversation import Json
from gateway.core.events import Event, Finish, UsageReport
from gateway.core.notices import Notice
from gateway.dialects.anthropic_messages.blocks import block_event, opened_block, with_citation
from gateway.dialects.anthropic_messages.finish import stop_reason
from gateway.dialects.anthropic_messages.usage import UNCOUNTED, usage_object
from gateway.dialects.base import AnswerHead
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
from gateway.history.call_arguments import as_object

_encode: Final = msgspec.json.Encoder().encode


def encode_answer(events: Iterable[Event], head: AnswerHead, *, shows_thinking: bool) -> bytes:
    """Returns one JSON message from the events of a complete answer. `shows_thinking`: with the text of thinking."""
    blocks = SequentialBlocks()
    steps: list[BlockStep] = []
    finish = Finish("stop")
    usage: UsageReport = UNCOUNTED
    notices: list[Notice] = []
    for event in events:
        if (part := block_event(event)) is not None:
            steps += blocks.feed(part)
        elif type(event) is Finish:
            finish = event
        elif type(event) is UsageReport:
            usage = merge_usage(usage, event)
        elif type(event) is Notice:
            notices.append(event)
    steps += blocks.close()
    message = message_object(head, usage)
    message["content"] = _content(steps, shows_thinking=shows_thinking)
    message["stop_reason"], message["stop_sequence"] = stop_reason(finish), finish.stop_sequence
    if said := dragoman_field(usage, notices if head.diagnostics else None):
        message["dragoman"] = said
    return _encode(message)


def message_object(head: AnswerHead, usage: UsageReport) -> dict[str, Json]:
    """Returns a message that has no content yet."""
    return {
        "id": f"msg_{head.unique}",
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_object(usage),
    }


def _content(steps: Sequence[BlockStep], *, shows_thinking: bool) -> list[Json]:
    content: list[Json] = []
    start: BlockStart | None = None
    pieces: list[str] = []
    for step in steps:
        match step:
            case BlockStart():
                start, pieces = step, []
            case BlockDelta():
                pieces.append(step.text)
            case BlockFields():
                assert start is not None  # only an open text has fields
                start = with_citation(start, step.fields)
            case BlockEnd():
                assert start is not None  # a block opens before it closes
                content.append(_block(start, "".join(pieces), step, shows_thinking=shows_thinking))
            case _:
                assert_never(step)
    return content


def _block(start: BlockStart, text: str, end: BlockEnd, *, shows_thinking: bool) -> dict[str, Json]:
    match start.kind:
        case "text":
            return {**opened_block(start), "text": text}
        case "reasoning" if "data" in start.fields:
            return opened_block(start)
        case "reasoning":
            signature = end.state.get("signature", "")
            return {**opened_block(start), "thinking": text if shows_thinking else "", "signature": signature}
        case "call":
            return {**opened_block(start), "input": as_object(text)}
        case "other":
            return dict(start.fields)
        case _:
            assert_never(start.kind)
