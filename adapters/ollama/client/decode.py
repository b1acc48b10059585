"""Decodes a chat or a generate request into a Conversation.

The fields around the messages are typed strictly: a wrong field is a 400 that names it. The messages are not: their
faults are repaired and listed in `faults`, so that one faulty message does not silently make a long history unusable.
"""

from collections.abc import Sequence

from adapters.ollama import DIALECT
from adapters.ollama.client.answer import CHAT, GENERATE, answer_echo
from adapters.ollama.client.fields import canonical_params, read_request, readable, sampling, unsent_fields
from adapters.ollama.client.images import read_images
from adapters.ollama.client.paths import CHAT_PATHS, GENERATE_PATHS
from adapters.ollama.client.tools import read_other_tools, read_tools
from adapters.ollama.client.turns import read_turns
from adapters.ollama.table import ChatFields, GenerateFields, OllamaOptions, RequestFields
from gateway.core.conversation import Conversation, Json, JsonObject, OtherTool, Text, ToolSpec, Turn, Violation
from gateway.core.errors import InvalidRequest
from gateway.core.field_paths import FieldPaths
from gateway.core.state_rule import NO_STATE
from gateway.dialect import ClientRequest
from gateway.dialects.document import Document, kind_of
from gateway.dialects.faults import Faults


def decode_chat(document: Document) -> ClientRequest:
    """Decodes a chat request. Without messages it asks for no answer. Fault: TEXT_UNICODE."""
    fields = dict(document.fields)
    messages = fields.pop("messages", None)
    if messages is not None and not isinstance(messages, list):
        raise InvalidRequest(
            f"messages must be an array; it is {kind_of(messages)}.", code="invalid_type", param="messages"
        )
    request = read_request(fields, ChatFields)
    faults = Faults(paths=CHAT_PATHS)
    if document.repaired:
        faults.add("TEXT_UNICODE", -1, "messages")
    turns = read_turns(messages or (), faults)
    conversation = _conversation(
        request,
        fields,
        turns,
        CHAT_PATHS,
        tools=read_tools(request, fields.get("tools"), faults),
        other_tools=read_other_tools(request),
        faults=faults.found,
    )
    return ClientRequest(conversation, answer_echo(CHAT, _loading(request, bool(messages))), generates=bool(messages))


def decode_generate(document: Document) -> ClientRequest:
    """Decodes a generate request. Without a prompt it asks for no answer. Fault: TEXT_UNICODE."""
    request = read_request(document.fields, GenerateFields)
    faults = Faults(paths=GENERATE_PATHS)
    if document.repaired:
        faults.add("TEXT_UNICODE", -1, "prompt")
    images = read_images(document.fields.get("images"), "images")
    turns = [Turn("system", (Text(request.system),))] if request.system else []
    turns.append(Turn("user", (Text(request.prompt or ""), *images), index=0))
    conversation = _conversation(request, document.fields, turns, GENERATE_PATHS, faults=faults.found)
    asks = bool(request.prompt)
    return ClientRequest(conversation, answer_echo(GENERATE, _loading(request, asks)), generates=asks)


def _conversation(
    request: RequestFields,
    fields: JsonObject,
    turns: Sequence[Turn],
    paths: FieldPaths,
    *,
    faults: Sequence[Violation],
    tools: tuple[ToolSpec, ...] = (),
    other_tools: tuple[OtherTool, ...] = (),
) -> Conversation:
    """Ollama streams unless the client declines, and counts tokens always."""
    return Conversation(
        tuple(turns),
        tools,
        model=request.model,
        sampling=sampling(request.options or OllamaOptions()),
        stream=request.stream is not False,
        include_usage=True,
        faults=tuple(faults),
        params=canonical_params(request),
        dialect=DIALECT,
        other_tools=other_tools,
        paths=paths,
        notices=unsent_fields(fields, type(request)),
        reads=readable(request),
        object_arguments=True,
        holds=NO_STATE,
    )


def _loading(request: RequestFields, asks: bool) -> str | None:
    """Returns why the answer to a request without messages or a prompt is empty."""
    if asks:
        return None
    return "unload" if _is_zero(request.keep_alive) else "load"


def _is_zero(keep_alive: Json) -> bool:
    """Returns whether the time is 0, as a number of seconds or as text with a unit (`0m`)."""
    if isinstance(keep_alive, str):
        return "0" in keep_alive and set("123456789").isdisjoint(keep_alive)
    return keep_alive == 0
