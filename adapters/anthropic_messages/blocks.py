"""Encodes the blocks of an answer as the content blocks in which they open, and what they grow into."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from adapters.anthropic_messages import DIALECT, PROVIDER
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import (
    Event,
    PassthroughFields,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.provider_state import provider_state
from gateway.dialects.sequential_blocks import BlockEvent, BlockKind, BlockStart, OwnBlock, OwnEnd, OwnPiece

_ID: Final = re.compile(r"[A-Za-z0-9_-]+")
_DIGEST: Final = 24
# The kinds of blocks whose text the events of the core hold; any other block stands as its backend wrote it.
_KINDS: Final[dict[Json, BlockKind]] = {"text": "text", "thinking": "reasoning", "redacted_thinking": "reasoning"}
# The field that holds the piece of each type of delta.
PIECES: Final[dict[Json, str]] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "signature_delta": "signature",
}


def block_event(event: Event) -> BlockEvent | None:
    """Returns an event of a block as this API's clients get it, None for any other event.

    Of the state of a piece of reasoning they get what the provider of this API made, without its name.
    """
    if isinstance(event, ReasoningEnd):
        return ReasoningEnd(provider_state(event.extra, PROVIDER))
    if isinstance(event, PassthroughFields):
        return _passed(event) if event.scope == "event" else None
    if isinstance(event, TextDelta | ReasoningDelta | ToolCallStart | ToolCallDelta | ToolCallEnd):
        return event
    return None


def opened_block(start: BlockStart) -> dict[str, Json]:
    """Returns the content block with which a block begins: without its text, without the input of a call."""
    if start.call is not None:
        return {**_own_block(start.call.extra.get(DIALECT)), **_call(start.call)}
    if own := _own_block(start.fields):
        return {**own}
    if start.kind == "reasoning" and "data" in start.fields:
        return {"type": "redacted_thinking", "data": start.fields["data"]}
    return (
        {"type": "thinking", "thinking": "", "signature": ""}
        if start.kind == "reasoning"
        else {"type": "text", "text": ""}
    )


def start_event(start: BlockStart) -> JsonObject:
    """Returns the event with which a block begins, as a backend of the same API wrote it; empty where none did."""
    own = start.fields if start.call is None else start.call.extra.get(DIALECT)
    return own if isinstance(own, Mapping) and "content_block" in own else EMPTY


def _own_block(event: object) -> JsonObject:
    block = event.get("content_block") if isinstance(event, Mapping) else None
    return block if isinstance(block, Mapping) else EMPTY


def _passed(event: PassthroughFields) -> BlockEvent | None:
    """Returns what a backend of the same API wrote of a block; None for an event of the message as a whole."""
    match event.fields:
        case {"type": "content_block_start", "content_block": {"type": kind}}:
            return OwnBlock(_KINDS.get(kind, "other"), event.fields)
        case {"type": "content_block_delta", "index": int(index)}:
            return OwnPiece(event.fields, index)
        case {"type": "content_block_stop"}:
            return OwnEnd()
        case _:
            return None


def with_pieces(block: dict[str, Json], deltas: Iterable[JsonObject]) -> dict[str, Json]:
    """Returns a block with what deltas add to it that no event of the core holds, as Anthropic's SDKs do it."""
    for event in deltas:
        delta = event.get("delta")
        match delta:
            case {"type": "citations_delta", "citation": citation}:
                before = block.get("citations")
                block["citations"] = [*(before if isinstance(before, list) else ()), citation]
            case {"type": "input_json_delta", "partial_json": str(piece)}:
                before = block.get("input")
                block["input"] = before + piece if isinstance(before, str) else piece
            case {"type": kind} if isinstance(delta, dict) and kind not in PIECES:
                block |= {name: value for name, value in delta.items() if name != "type"}
            case _:
                pass
    return block


def client_id(call_id: str) -> str:
    """Returns an id that clients and the API itself accept; the same for the same id, so that a result names it.

    Source: Anthropic, error of `tool_use.id`: "String should match pattern '^[a-zA-Z0-9_-]+$'".
    """
    if _ID.fullmatch(call_id):
        return call_id
    return f"toolu_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGEST]}"


def _call(start: ToolCallStart) -> dict[str, Json]:
    return {"type": "tool_use", "id": client_id(start.id), "name": start.name, "input": {}}
