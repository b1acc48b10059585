"""Encodes a conversation as the body of a request."""

from collections.abc import Iterator
from typing import Final

import msgspec

from adapters.openai_responses.canonical import canonical_fields, canonical_turn
from gateway.core.conversation import Conversation, JsonObject, Turn
from gateway.core.notices import Notice
from gateway.dialects.openai_responses import DIALECT
from gateway.dialects.openai_responses.items import INSTRUCTIONS, ItemEncoder
from gateway.dialects.openai_responses.names import ToolNames

_encode: Final = msgspec.json.Encoder().encode


def encode_body(conversation: Conversation, notices: list[Notice]) -> bytes:
    """Encode the client's own fields if the client spoke this dialect; otherwise build the fields from the values.

    The backend stores no response, unless a client of this dialect asks for it: the gateway keeps no state to find one
    again.
    """
    if conversation.dialect != DIALECT:
        return _canonical_body(conversation, notices)
    source = conversation.source.in_dialect(DIALECT) if conversation.source is not None else None
    body: dict[str, object] = {"model": "", "input": [], "store": False, **(source or {})}
    body["model"], body["input"] = conversation.model, list(_own_items(conversation.turns, body))
    if conversation.tool_choice == "none" and body.get("tools"):
        body["tool_choice"] = "none"
    if bool(body.get("stream")) != conversation.stream:
        body["stream"] = conversation.stream
    return _encode(body)


def _canonical_body(conversation: Conversation, notices: list[Notice]) -> bytes:
    encoder = ItemEncoder(ToolNames())
    items = [item for turn in conversation.turns for item in encoder.encode(canonical_turn(turn, notices))]
    fields = canonical_fields(conversation)
    return _encode({"model": conversation.model, "input": items, "store": False, **fields})


def _own_items(turns: tuple[Turn, ...], body: dict[str, object]) -> Iterator[JsonObject]:
    """Yield the client's items, and those of the turns that a pass has changed."""
    encoder = ItemEncoder(ToolNames())
    for turn in turns:
        source = turn.source.in_dialect(DIALECT) if turn.source is not None else None
        if source is not None and INSTRUCTIONS in source:
            body[INSTRUCTIONS] = source[INSTRUCTIONS]
            continue
        for item in encoder.encode(turn):
            yield _without_its_id(item) if item.get("encrypted_content") else item


def _without_its_id(item: JsonObject) -> JsonObject:
    """Return an item of reasoning without the id by which the client knows it: the gateway made that one, and the
    provider refuses its encrypted content under another id than its own, but not without any."""
    return {name: value for name, value in item.items() if name != "id"}
