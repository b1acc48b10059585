"""A conversation as one question: the whole history as text, for a backend that does not know our calls."""

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.parts import attach_images
from adapters.warp.request import write_query
from gateway.conversation.flatten import flatten
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.types import Conversation


def write_flat(request: pb.Request, conversation: Conversation, policy: Policy) -> list[Notice]:
    """Fill the input with one query. Raises Unsupported for a part that text cannot tell and the policy does not
    allow to be a placeholder."""
    told, notices = attach_images(request.input, conversation, policy)
    flattened = flatten(told, policy)
    write_query(request.input.user_inputs.inputs.add().user_query, flattened.text)
    return [*notices, *flattened.notices]
