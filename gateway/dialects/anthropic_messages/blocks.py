"""Encodes the blocks of an answer as the content blocks in which they open, and what they grow into."""

import hashlib
import re
from typing import Final, assert_never

import msgspec

from gateway.core.conversation import Json, JsonObject
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
from gateway.dialects.anthropic_messages import PROVIDER
from gateway.dialects.sequential_blocks import BlockEvent, BlockStart, TextFields, TextStart

_ID: Final = re.compile(r"[A-Za-z0-9_-]+")
_DIGEST: Final = 24
# The field of a call beside its name and input: which tool of the server made it.
_CALLER: Final = "caller"


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
    match start.kind:
        case "text":
            return {"type": "text", "text": "", **start.fields}
        case "reasoning" if "data" in start.fields:
            return {"type": "redacted_thinking", "data": start.fields["data"]}
        case "reasoning":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "call":
            assert start.call is not None  # a call has its start
            return _call(start.call)
        case "other":
            return {**start.fields, "input": {}} if isinstance(start.fields.get("input"), dict) else {**start.fields}
        case _:
            assert_never(start.kind)


def _passed(event: PassthroughFields) -> BlockEvent:
    """Returns what a backend of the same API sends: the beginning of a text, a citation of it, or another block."""
    match event.fields.get("type"):
        case "text":
            return TextStart(event.fields)
        case "citations_delta":
            return TextFields(event.fields)
        case _:
            return event


def with_citation(start: BlockStart, delta: JsonObject) -> BlockStart:
    """Returns the start of a text with the citation of a delta among its fields."""
    before = start.fields.get("citations")
    citations = [*(before if isinstance(before, list) else ()), delta.get("citation")]
    return msgspec.structs.replace(start, fields={**start.fields, "citations": citations})


def client_id(call_id: str) -> str:
    """Returns an id that clients and the API itself accept; the same for the same id, so that a result names it.

    Source: Anthropic, error of `tool_use.id`: "String should match pattern '^[a-zA-Z0-9_-]+$'".
    """
    if _ID.fullmatch(call_id):
        return call_id
    return f"toolu_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGEST]}"


def _call(start: ToolCallStart) -> dict[str, Json]:
    block: dict[str, Json] = {"type": "tool_use", "id": client_id(start.id), "name": start.name, "input": {}}
    if _CALLER in start.extra:
        block[_CALLER] = start.extra[_CALLER]
    return block
