"""Encodes the parts of a Warp request that both encodings share: settings, tools, the user's query, images."""

from typing import Final

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.encode.indexed_turn import IndexedTurn
from adapters.warp.backend.encode.tools import supported_tools, write_tools
from adapters.warp.backend.options import WarpOptions
from gateway.core.conversation import Conversation, Image
from gateway.core.data_url import read_image
from gateway.core.notices import Notice
from gateway.core.policy import Policy

# The place of the system text when the text itself has no place for it.
SYSTEM_PROMPT: Final = "SYSTEM_PROMPT"


def open_request(conversation: Conversation, policy: Policy, options: WarpOptions) -> tuple[pb.Request, list[Notice]]:
    """Creates a request with everything but the conversation itself. Raises Unsupported for a tool that cannot be
    offered."""
    request = pb.Request()
    request.task_context.SetInParent()
    _write_settings(request.settings, conversation, policy, options)
    return request, write_tools(request, conversation, options)


def _write_settings(target: pb.Settings, conversation: Conversation, policy: Policy, options: WarpOptions) -> None:
    """Writes the settings. Unset settings are off: rules, drive, planning, web search and other features of Warp's own
    client."""
    if conversation.model:
        target.model_config.base = conversation.model
    target.supports_parallel_tool_calls = conversation.parallel_tool_calls
    target.supported_tools.extend(supported_tools(conversation, policy, options))
    if options.reasoning:
        target.supports_reasoning_message = True


def write_query(target: pb.Input.UserQuery | pb.Message.UserQuery, text: str) -> None:
    """Writes a question in normal mode to the primary agent."""
    target.query = text
    target.mode.SetInParent()
    target.intended_agent = pb.AGENT_PRIMARY


def attach_system(request: pb.Request, text: str) -> None:
    """Attaches the system text to the newest question. A conversation without a question gets an empty one for it."""
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


def write_images(target: pb.InputContext, indexed: IndexedTurn) -> None:
    """Adds the turn's images to a context. Raises Unsupported or InvalidRequest, with the path of the part, for an
    image that cannot be sent."""
    for position, block in enumerate(indexed.turn.blocks):
        if isinstance(block, Image):
            held = read_image(block.url, indexed.part(position, block))
            target.images.add(data=held.data.encode(), mime_type=held.media_type)
