"""What the backend wants back unchanged, to and from `extra_content.warp` of a message or a call.

The gateway keeps nothing between requests, so the client carries it, in the place where OpenAI clients already
carry a provider's own fields. Conversations of different clients can therefore never meet.
"""

from typing import Final

import msgspec

from gateway.types import EMPTY, JsonObject

CONTAINER: Final = "extra_content"
PROVIDER: Final = "warp"


class Opaque(msgspec.Struct, frozen=True, omit_defaults=True):
    """Strings of the backend that nobody here reads."""

    conversation_id: str = ""
    task_id: str = ""
    message_id: str = ""
    request_id: str = ""
    server_message_data: str = ""
    server_id: str = ""


NOTHING: Final = Opaque()


def write_opaque(opaque: Opaque) -> JsonObject:
    """As the `extra` of a call; empty when there is nothing to carry."""
    if opaque == NOTHING:
        return EMPTY
    return {CONTAINER: {PROVIDER: msgspec.to_builtins(opaque)}}


def read_opaque(extra: JsonObject) -> Opaque:
    """From the `extra` of a call or a turn. What a client made of it that we cannot read counts as absent."""
    container = extra.get(CONTAINER)
    carried = container.get(PROVIDER) if isinstance(container, dict) else None
    if not isinstance(carried, dict):
        return NOTHING
    known = {key: value for key, value in carried.items() if key in Opaque.__struct_fields__ and isinstance(value, str)}
    return msgspec.convert(known, Opaque)
