"""Decodes a chat completions request into a Conversation.

The fields around the messages are typed strictly: a wrong field is a 400 that names it. The messages are not: their
faults are repaired and listed in `faults`, so that one faulty message does not silently make a long history unusable.
"""

from adapters.openai_chat import DIALECT
from adapters.openai_chat.client.foreign_forms import read_foreign_tools, responses_conversation
from adapters.openai_chat.client.tools import read_other_tools, read_tool_choice, read_tools
from adapters.openai_chat.client.turns import read_turns
from adapters.openai_chat.table import ChatFields
from gateway.core.conversation import Conversation
from gateway.core.errors import InvalidRequest
from gateway.core.rules import violation, violation_error
from gateway.dialects.document import Document, read_document
from gateway.dialects.faults import Faults
from gateway.dialects.field_types import missing_field, read_fields
from gateway.framing.json_text import MAX_DEPTH


def decode(body: bytes, max_depth: int = MAX_DEPTH) -> Conversation:
    """Decodes one request. Raises InvalidRequest that names the parameter, and nothing else.

    `model` is the name that the client requested; the server replaces it by the backend's own name.
    """
    return decode_document(read_document(body, max_depth))


def decode_document(document: Document) -> Conversation:
    """Decodes a body that is read already, also one of the Responses API. Faults: TEXT_UNICODE, FOREIGN_FORM."""
    if "messages" not in document.fields or "input" in document.fields:
        return responses_conversation(document)
    faults = Faults()
    if document.repaired:
        faults.add("TEXT_UNICODE", -1, "messages")
    params = dict(document.fields)
    messages = params.pop("messages")
    if not isinstance(messages, list):
        raise InvalidRequest("messages must be an array.", code="invalid_type", param="messages")
    if "model" not in params:
        raise missing_field("model")
    if "tools" in params:
        read_foreign_tools(params, faults)
    request = read_fields(params, ChatFields)
    if not request.model.strip():
        raise InvalidRequest("model must not be empty.", param="model")
    if not messages:
        raise violation_error([violation("MESSAGES_EMPTY", -1, param="messages")])
    turns = read_turns(messages, faults, document.known)
    options = request.stream_options
    # The newer name wins where a client sends both.
    limit = request.max_tokens if request.max_completion_tokens is None else request.max_completion_tokens
    tools, not_offered = read_tools(request, params, faults, document.known_tools)
    return Conversation(
        turns,
        tools,
        read_tool_choice(request, params),
        parallel_tool_calls=request.parallel_tool_calls is not False,
        model=request.model,
        sampling=request.sampling(limit),
        stream=request.stream is True,
        include_usage=options is not None and options.include_usage is True,
        faults=tuple(faults.found),
        params=params,
        dialect=DIALECT,
        other_tools=() if request.tools is None else read_other_tools(request.tools, params["tools"]),
        notices=not_offered,
    )
