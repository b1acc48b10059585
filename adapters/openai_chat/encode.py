"""Encodes a conversation as the body of a chat completions request."""

from typing import Final

import msgspec

from adapters.openai_chat.canonical import canonical_fields, canonical_turn
from gateway.core.conversation import Conversation, JsonObject
from gateway.core.profiles import Profile
from gateway.dialects.openai_chat import DIALECT
from gateway.dialects.openai_chat.messages import encode_turn

# The fields that offer functions, and the fields by which a pass forbids them. `functions` is deprecated.
_CHOICES: Final = {"tools": "tool_choice", "functions": "function_call"}

_encode: Final = msgspec.json.Encoder().encode


def encode_body(conversation: Conversation, profile: Profile) -> bytes:
    """Encode the client's own fields if the client spoke this dialect; otherwise build the fields from the values."""
    if conversation.dialect != DIALECT:
        return _canonical_body(conversation, profile)
    messages: list[JsonObject] = []
    for turn in conversation.turns:
        source = turn.source
        if source is not None and source.dialect == DIALECT:
            messages.append(source.value)
        else:
            messages += encode_turn(turn, profile)
    body: dict[str, object] = {"model": "", "messages": [], **conversation.params}
    body["model"], body["messages"] = conversation.model, messages
    _follow(conversation, body)
    return _encode(body)


def _canonical_body(conversation: Conversation, profile: Profile) -> bytes:
    kept = frozenset() if profile.state is None else frozenset(profile.state.fields)
    turns = [canonical_turn(turn, kept) for turn in conversation.turns]
    messages = [message for turn in turns for message in encode_turn(turn, profile)]
    return _encode({"model": conversation.model, "messages": messages, **canonical_fields(conversation)})


def _follow(conversation: Conversation, body: dict[str, object]) -> None:
    """Replace what the client wrote by what the passes decided."""
    params = conversation.params
    if conversation.tool_choice == "none":
        body |= {choice: "none" for tools, choice in _CHOICES.items() if params.get(tools)}
    if bool(params.get("stream")) != conversation.stream:
        body["stream"] = conversation.stream
