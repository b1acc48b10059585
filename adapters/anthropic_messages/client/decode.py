"""Decodes a Messages request into a Conversation.

The fields around the messages are typed strictly: a wrong field is a 400 that names it. The messages are not: their
faults are repaired and listed in `faults`, so that one faulty message does not silently make a long history unusable.
"""

from typing import Final

from adapters.anthropic_messages import BETA_FIELD, DIALECT, PROVIDER
from adapters.anthropic_messages.client.changes import Changes
from adapters.anthropic_messages.client.compaction import ALONE, SIGNED, asked_compaction, has_instructions
from adapters.anthropic_messages.client.content import ContentReader
from adapters.anthropic_messages.client.directives import NO_DIRECTIVES, read_directives
from adapters.anthropic_messages.client.params import forbids_parallel_calls, own_fields, read_params
from adapters.anthropic_messages.client.paths import PATHS
from adapters.anthropic_messages.client.system_prompt import read_system
from adapters.anthropic_messages.client.tools import read_deferred, read_tool_choice, read_tools
from adapters.anthropic_messages.client.turns import read_turns
from adapters.anthropic_messages.table import COUNT, GENERATE_PATH, MessagesFields
from gateway.core.conversation import EMPTY, Conversation, Json, Sampling, Source
from gateway.core.errors import InvalidRequest
from gateway.core.rules import violation, violation_error
from gateway.core.state_rule import HeldState
from gateway.dialect import ClientRequest, RequestHead
from gateway.dialects.document import Document
from gateway.dialects.faults import Faults
from gateway.dialects.field_types import missing_field, read_fields

COUNT_PATH: Final = f"{GENERATE_PATH}{COUNT}"
# The header with the client's betas.
BETA_HEADER: Final = b"anthropic-beta"
# A block of thinking has a place for the state of this API alone, a call for none.
_HELD: Final = HeldState(frozenset({PROVIDER}), frozenset())


def decode_document(document: Document, head: RequestHead) -> ClientRequest:
    """Decodes a body that is read already. Fault: TEXT_UNICODE. Raises InvalidRequest that names the field.

    `model` is the name that the client requested; the server replaces it by the backend's own name. Only a request for
    a count may leave out `max_tokens`. The echo holds `thinking`, which says whether its text is shown.
    """
    faults, changes = Faults(paths=PATHS), Changes()
    if document.repaired:
        faults.add("TEXT_UNICODE", -1, "messages")
    fields = dict(document.fields)
    messages = _messages(fields)
    if "model" not in fields:
        raise missing_field("model")
    request = read_fields(fields, MessagesFields)
    if not request.model.strip():
        raise InvalidRequest("model must not be empty.", param="model")
    if request.max_tokens is None and head.path != COUNT_PATH:
        raise missing_field("max_tokens")
    if not messages:
        raise violation_error([violation("MESSAGES_EMPTY", -1, param="messages", paths=PATHS)], PATHS)
    params = read_params(request, fields, changes)
    asked = asked_compaction(request, fields)
    if asked is not None and has_instructions(fields):
        changes.drop_field("instructions", "a compaction by the gateway has instructions of its own", "info")
    # A system prompt without a turn stays among the fields.
    if system := read_system(fields.get("system"), faults, changes):
        del fields["system"]
    reader = ContentReader(faults, changes)
    turns = (*system, *read_turns(messages, reader))
    tools, others = ((), ()) if request.tools is None else read_tools(request.tools, fields["tools"], faults)
    own, directives = own_fields(request, fields), NO_DIRECTIVES
    if reader.tool_changes or reader.directing:
        directives = read_directives(reader, tools, request.tools or ())
        tools, own = directives.tools, (*own, *directives.own_fields)
    extended = False
    for tool in tools:
        # Most tools have no further field; a loop costs no call.
        extended = extended or tool.extra is not EMPTY
    conversation = Conversation(
        turns,
        tools,
        read_tool_choice(request.tool_choice),
        parallel_tool_calls=not forbids_parallel_calls(request),
        model=request.model,
        sampling=_sampling(request),
        stream=request.stream is True,
        # The counts are part of every answer.
        include_usage=True,
        faults=tuple(faults.found),
        params=params,
        dialect=DIALECT,
        other_tools=others,
        paths=PATHS,
        notices=changes.all(),
        source=Source(DIALECT, _with_betas(fields, head)),
        object_arguments=True,
        own_fields=own,
        holds=_HELD,
        directives=directives.found,
        deferred=read_deferred(tools, others, messages) if extended else None,
    )
    echo: dict[str, Json] = {"thinking": fields.get("thinking")}
    if asked is not None:
        echo |= {SIGNED: request.compaction is not None, ALONE: asked.alone}
    return ClientRequest(conversation, echo, compacts=asked, compacted=changes.compacted)


def _messages(fields: dict[str, Json]) -> list[Json]:
    """Removes and returns the messages."""
    if "messages" not in fields:
        raise missing_field("messages")
    messages = fields.pop("messages")
    if not isinstance(messages, list):
        raise InvalidRequest("messages must be an array.", code="invalid_type", param="messages")
    return messages


def _with_betas(fields: dict[str, Json], head: RequestHead) -> dict[str, Json]:
    betas = head.headers.get(BETA_HEADER)
    return fields if betas is None else {**fields, BETA_FIELD: betas.decode("latin-1")}


def _sampling(request: MessagesFields) -> Sampling:
    return Sampling(
        request.temperature,
        top_p=request.top_p,
        max_tokens=request.max_tokens,
        stop=tuple(request.stop_sequences or ()),
    )
