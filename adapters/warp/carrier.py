"""What the backend wants back with a message when it is shown its own history -> `extra_content` for the client."""

from adapters.warp.multi_agent_pb2 import Message
from adapters.warp.opaque import Opaque, write_opaque
from adapters.warp.options import WarpOptions
from gateway.types import EMPTY, JsonObject


class Carrier:
    """Gives nothing where the history is sent as text: there is no place for it. `conversation_id` is the backend's."""

    def __init__(self, options: WarpOptions) -> None:
        self.conversation_id = ""
        self._wanted = options.encoding == "structured"

    def extra(self, message: Message) -> JsonObject:
        """The fields of one message, never read and never changed here."""
        if not self._wanted:
            return EMPTY
        return write_opaque(
            Opaque(
                conversation_id=self.conversation_id,
                task_id=message.task_id,
                message_id=message.id,
                request_id=message.request_id,
                server_message_data=message.server_message_data,
                server_id=message.tool_call.call_mcp_tool.server_id,
            )
        )
