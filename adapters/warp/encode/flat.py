"""Encodes a conversation as one question with the whole history as text.

This encoding is for a backend without support for client tool calls.
"""

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.encode.parts import attach_images
from adapters.warp.encode.request import write_query
from gateway.adapter import Told
from gateway.core.conversation import Conversation
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.transcript.render import flatten


def write_flat(request: pb.Request, conversation: Conversation, policy: Policy) -> tuple[Told, list[Notice]]:
    """Fill the input with one query. Raises InvalidRequest for an invalid image."""
    told, notices = attach_images(request.input, conversation)
    flattened = flatten(told, policy)
    write_query(request.input.user_inputs.inputs.add().user_query, flattened.text)
    return Told(flattened.text, flattened.system_text), [*notices, *flattened.notices]
