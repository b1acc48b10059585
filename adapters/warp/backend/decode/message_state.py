"""Builds the `extra_content` with the fields that the backend needs back together with a message of its own history."""

from adapters.warp.backend.options import WarpOptions
from adapters.warp.backend.provider_state import ProviderState, write_provider_state
from adapters.warp.multi_agent_pb2 import Message
from gateway.core.conversation import EMPTY, JsonObject


class MessageState:
    """Returns no fields where the history is sent as text, because text has no place for them. `conversation_id` is the
    backend's."""

    def __init__(self, options: WarpOptions) -> None:
        self.conversation_id = ""
        self._wanted = options.encoding == "structured"

    def extra(self, message: Message) -> JsonObject:
        """Return the fields of one message. The gateway neither interprets nor changes them."""
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
