"""Decodes a Responses request into a Conversation, and what its answer repeats.

The fields around the input are typed strictly: a wrong field is a 400 that names it. The items of the input are not:
their faults are repaired and listed in `faults`, so that one faulty item does not make a long history unusable.
"""

from typing import Final

import msgspec

from adapters.openai_responses import DIALECT
from adapters.openai_responses.call_items import FORMS
from adapters.openai_responses.client.compaction import (
    IDENTITY,
    MANAGEMENT,
    PATH,
    RETAINED,
    asked_compaction,
    item_identity,
    retained_messages,
)
from adapters.openai_responses.client.fields import canonical_params, check_unsupported, reported_fields
from adapters.openai_responses.client.input_items import TRIGGER, own_items, read_items
from adapters.openai_responses.client.paths import PATHS
from adapters.openai_responses.client.stored_history import read_history, resolved, stored_input
from adapters.openai_responses.client.tool_choice import read_tool_choice
from adapters.openai_responses.function_names import ToolNames
from adapters.openai_responses.table import RequestFields
from adapters.openai_responses.tools import read_deferred, read_tools, tool_places
from adapters.openai_responses.turn_items import INSTRUCTIONS, ITEMS, type_of
from gateway.core.conversation import Conversation, Directive, Json, Sampling, Source, Text, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.core.rules import violation, violation_error
from gateway.core.state_rule import HeldState
from gateway.dialect import ClientRequest
from gateway.dialects.document import Document
from gateway.dialects.faults import Faults
from gateway.dialects.field_types import missing_field, read_fields
from gateway.dialects.offered_functions import not_allowed

# Where the echo keeps the request's fields and the names of its tools.
FIELDS: Final = "fields"
NAMES: Final = "names"
_PREVIOUS: Final = "previous_response_id"
# Of a `response.create` over a WebSocket: false prepares the next request, and asks no model.
_GENERATE: Final = "generate"

# A reasoning item has a place for any state, the item of a call for none.
_HELD: Final = HeldState(calls=frozenset())


def decode_document(document: Document, path: str = "") -> ClientRequest:
    """Decodes the body of a request, with what is stored of the responses that it refers to. Raises InvalidRequest that
    names the parameter, and nothing else. Fault: TEXT_UNICODE.

    A request to compact, by its `path`, is one with the item that asks for it, whose answer has another form.
    """
    compact = path.endswith(PATH)
    faults = Faults(paths=PATHS)
    if document.repaired:
        faults.add("TEXT_UNICODE", -1, ITEMS)
    fields = dict(document.fields)
    value = _input(fields, compact)
    generates = not document.connected or _generates(fields)
    if "model" not in fields:
        raise missing_field("model")
    request = read_fields(fields, RequestFields)
    # The older request for a compaction has no field for it.
    unstreamed = compact and fields.pop("stream", None) is True
    if not request.model.strip():
        raise InvalidRequest("model must not be empty.", param="model")
    check_unsupported(fields)
    if value == [] and generates and not (compact and fields.get(_PREVIOUS)):
        raise violation_error([violation("MESSAGES_EMPTY", -1, param=ITEMS, paths=PATHS)], PATHS)
    history = read_history(document)
    own = resolved(own_items(value), history, document.stored)
    faults.earlier = len(history.items)
    if compact and not (own and isinstance(own[-1], dict) and type_of(own[-1]) == TRIGGER):
        own.append({"type": TRIGGER})
    items = [*history.items, *own]
    tools = read_tools(tool_places(request.tools, items, faults.earlier))
    choice = read_tool_choice(request.tool_choice, tools)
    specs = tools.specs(choice.allowed, faults)
    # Only OpenAI itself runs the tools of which a call is forced.
    own_choice = choice.own or (choice.choice == "required" and bool(tools.others) and not specs)
    notices = [*reported_fields(request, fields), *tools.notices]
    if unstreamed:
        notices.append(Notice("decode", "dropped", "FIELD_NOT_SENT", "stream has no effect at /compact", level="info"))
    if choice.allowed is not None:
        notices += not_allowed(map(tools.names.name, tools.offered), specs, "tool_choice.tools")
    directives: list[Directive] = []
    turns, compacted, compacts = read_items(items, tools.names, faults, notices, faults.earlier, directives)
    if request.instructions:
        turns = (_instructions(request.instructions), *turns)
    conversation = Conversation(
        turns,
        specs,
        "auto" if own_choice else choice.choice,
        parallel_tool_calls=request.parallel_tool_calls is not False,
        model=request.model,
        sampling=Sampling(request.temperature, top_p=request.top_p, max_tokens=request.max_output_tokens),
        stream=request.stream is True and not compact,
        # The answer has token counts in any case.
        include_usage=True,
        faults=tuple(faults.found),
        params=canonical_params(request),
        dialect=DIALECT,
        other_tools=tuple(tools.others),
        paths=PATHS,
        notices=tuple(notices),
        source=Source(DIALECT, fields),
        object_arguments=_with_objects(tools.names),
        own_fields=("tool_choice",) if own_choice else (),
        holds=_HELD,
        directives=tuple(directives),
        deferred=read_deferred(tools) if tools.extended else None,
    )
    echo: dict[str, Json] = {FIELDS: fields, NAMES: msgspec.to_builtins(tools.names.tools)}
    asked = asked_compaction(fields, compacts=compacts) if compacts or MANAGEMENT in fields else None
    if compacts:
        echo[IDENTITY] = item_identity(items)
    if compact:
        echo[RETAINED] = retained_messages(items)
    lasting = request.store is not False
    stored = None if compact or not (lasting or document.connected) else stored_input(history, own)
    return ClientRequest(conversation, echo, generates, asked, compacted, stored, lasting)


def _generates(fields: dict[str, Json]) -> bool:
    """Takes out of the fields of a request whether a model is to answer. Raises InvalidRequest."""
    generate = fields.pop(_GENERATE, None)
    if not isinstance(generate, bool | None):
        raise InvalidRequest(f"{_GENERATE} must be true or false.", param=_GENERATE)
    return generate is not False


def _input(fields: dict[str, Json], compact: bool) -> Json:
    """Takes the input out of the fields of a request. What is stored may be compacted by itself. Raises InvalidRequest
    where it is missing."""
    if compact and fields.get(_PREVIOUS) and fields.get(ITEMS) is None:
        fields.pop(ITEMS, None)
        return []
    if ITEMS not in fields:
        raise missing_field(ITEMS)
    return fields.pop(ITEMS)


def _with_objects(names: ToolNames) -> frozenset[str]:
    """Returns the functions whose calls the client reads as an object (`action`, `operation`)."""
    return frozenset([name for name, tool in names.tools.items() if FORMS[tool.kind].is_object])


def _instructions(text: str) -> Turn:
    return Turn("system", (Text(text),), source=Source(DIALECT, {INSTRUCTIONS: text}))
