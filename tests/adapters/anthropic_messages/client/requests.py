"""Decodes requests of the Messages API for the tests of this folder."""

import json
from collections.abc import Iterable
from typing import Any, Final

from adapters.anthropic_messages.client.dialect import AnthropicMessagesDialect
from adapters.anthropic_messages.messages import MessageMerger, encode_message
from gateway.core.conversation import Conversation, JsonObject, Turn
from gateway.dialect import ClientRequest, RequestHead
from gateway.dialects.document import read_document

HELLO: Final[dict[str, Any]] = {"role": "user", "content": "Hello"}


def request(**fields: object) -> ClientRequest:
    """The decoded request with these fields beside the required ones."""
    return decoded({"model": "m", "max_tokens": 64, "messages": [HELLO], **fields})


def decoded(body: dict[str, Any], head: RequestHead | None = None) -> ClientRequest:
    return AnthropicMessagesDialect().decode(
        read_document(json.dumps(body).encode()), head or RequestHead("/v1/messages")
    )


def conversation(**fields: object) -> Conversation:
    return request(**fields).conversation


def history(*messages: object) -> Conversation:
    return conversation(messages=list(messages))


def merged_messages(turns: Iterable[Turn]) -> list[JsonObject]:
    """The messages of turns, which are joined where the client did not write them apart."""
    merger = MessageMerger()
    for turn in turns:
        merger.add(encode_message(turn), None if turn.source is None else turn.index)
    return merger.messages()
