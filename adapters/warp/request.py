"""The parts of a Warp request that both encodings share: settings, tools, the user's query, images."""

from typing import Final

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.images import decode_image
from adapters.warp.options import WarpOptions
from adapters.warp.placed import Placed
from adapters.warp.tools import supported_tools, write_tools
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.types import Conversation, Image

# Where the system text stands when it has no place in the text itself.
SYSTEM_PROMPT: Final = "SYSTEM_PROMPT"


def open_request(conversation: Conversation, policy: Policy, options: WarpOptions) -> tuple[pb.Request, list[Notice]]:
    """A request with everything but the conversation itself. Raises Unsupported for a tool that cannot be offered."""
    request = pb.Request()
    request.task_context.SetInParent()
    _write_settings(request.settings, conversation, policy, options)
    return request, write_tools(request, conversation, options)


def _write_settings(target: pb.Settings, conversation: Conversation, policy: Policy, options: WarpOptions) -> None:
    """What is not written is off: rules, drive, planning, web search and whatever else needs Warp's own client."""
    if conversation.model:
        target.model_config.base = conversation.model
    target.supports_parallel_tool_calls = conversation.parallel_tool_calls
    target.supported_tools.extend(supported_tools(conversation, policy, options))
    if options.reasoning:
        target.supports_reasoning_message = True


def write_query(target: pb.Input.UserQuery | pb.Message.UserQuery, text: str) -> None:
    """A question in normal mode to the primary agent."""
    target.query = text
    target.mode.SetInParent()
    target.intended_agent = pb.AGENT_PRIMARY


def attach_system(request: pb.Request, text: str) -> None:
    """Put the system text beside the newest question. A conversation that asks nothing gets an empty one for it."""
    _newest_query(request).referenced_attachments[SYSTEM_PROMPT].plain_text = text


def _newest_query(request: pb.Request) -> pb.Input.UserQuery | pb.Message.UserQuery:
    for given in reversed(request.input.user_inputs.inputs):
        if given.HasField("user_query"):
            return given.user_query
    for task in request.task_context.tasks:
        for message in reversed(task.messages):
            if message.HasField("user_query"):
                return message.user_query
    query = request.input.user_inputs.inputs.add().user_query
    write_query(query, "")
    return query


def write_images(target: pb.InputContext, placed: Placed) -> None:
    """Add the turn's images to a context. Raises Unsupported or InvalidRequest, naming the part, for one that cannot
    be sent."""
    for position, block in enumerate(placed.turn.blocks):
        if isinstance(block, Image):
            data, media_type = decode_image(block, placed.param(position))
            target.images.add(data=data, mime_type=media_type)
