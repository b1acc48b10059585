"""Encodes and decodes the provider state in `extra_content.warp` of a message or a call: the fields that the backend
needs back together with a message of its own history.

The client carries it, in the field in which OpenAI clients already carry a provider's own fields, so that conversations
of different clients never mix. For a client that drops it, the state cache may put it back.
"""

from typing import Final

import msgspec

from adapters.warp.backend.options import WarpOptions
from adapters.warp.multi_agent_pb2 import Message
from gateway.core.conversation import EMPTY, JsonObject

CONTAINER: Final = "extra_content"
PROVIDER: Final = "warp"


class ProviderState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Strings of the backend that the gateway does not interpret."""

    conversation_id: str = ""
    task_id: str = ""
    message_id: str = ""
    request_id: str = ""
    server_message_data: str = ""
    server_id: str = ""


NOTHING: Final = ProviderState()


def write_provider_state(state: ProviderState) -> JsonObject:
    """Encodes the state as the `extra` of a call. The result is empty when there is no state."""
    if state == NOTHING:
        return EMPTY
    return {CONTAINER: {PROVIDER: msgspec.to_builtins(state)}}


def read_provider_state(extra: JsonObject) -> ProviderState:
    """Decodes the state from the `extra` of a call or a turn. A value that a client made unreadable counts as
    absent."""
    container = extra.get(CONTAINER)
    carried = container.get(PROVIDER) if isinstance(container, dict) else None
    if not isinstance(carried, dict):
        return NOTHING
    fields = ProviderState.__struct_fields__
    known = {key: value for key, value in carried.items() if key in fields and isinstance(value, str)}
    return msgspec.convert(known, ProviderState)


class MessageState:
    """Returns no fields where the history is sent as text, because text has no place for them. `conversation_id` is the
    backend's."""

    def __init__(self, options: WarpOptions) -> None:
        self.conversation_id = ""
        self._wanted = options.encoding == "structured"

    def extra(self, message: Message) -> JsonObject:
        """Returns the fields of one message. The gateway neither interprets nor changes them."""
        if not self._wanted:
            return EMPTY
        return write_provider_state(
            ProviderState(
                conversation_id=self.conversation_id,
                task_id=message.task_id,
                message_id=message.id,
                request_id=message.request_id,
                server_message_data=message.server_message_data,
                server_id=message.tool_call.call_mcp_tool.server_id,
            )
        )
