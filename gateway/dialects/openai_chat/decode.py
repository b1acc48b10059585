"""Decodes a chat completions request into a Conversation.

The fields around the messages are typed strictly: a wrong field is a 400 that names it. The messages are not: their
faults are repaired and listed in `faults`, so that one faulty message does not silently make a long history unusable.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Json, Sampling
from gateway.core.errors import InvalidRequest
from gateway.dialects.document import Document, read_document
from gateway.dialects.openai_chat import DIALECT
from gateway.dialects.openai_chat.faults import Faults
from gateway.dialects.openai_chat.request_models import RequestBody
from gateway.dialects.openai_chat.tools import read_other_tools, read_tool_choice, read_tools
from gateway.dialects.openai_chat.turns import read_turns
from gateway.framing.json_text import MAX_DEPTH
from gateway.history.rules import violation
from gateway.history.violation_error import violation_error

_WORDS: Final[Mapping[str, str]] = {
    "str": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def decode(body: bytes, max_depth: int = MAX_DEPTH) -> Conversation:
    """Decodes one request. Raises InvalidRequest that names the parameter, and nothing else.

    `model` is the name that the client requested; the server replaces it by the backend's own name.
    """
    return decode_document(read_document(body, max_depth))


def decode_document(document: Document) -> Conversation:
    """Decodes a body that is read already. Fault: TEXT_UNICODE."""
    faults = Faults()
    if document.repaired:
        faults.add("TEXT_UNICODE", -1, "messages")
    params = dict(document.fields)
    messages = _messages(params)
    request = _read_body(params)
    if not messages:
        raise violation_error([violation("MESSAGES_EMPTY", -1, param="messages")])
    turns = read_turns(messages, faults)
    options = request.stream_options
    return Conversation(
        turns,
        read_tools(request, params, faults),
        read_tool_choice(request, params),
        request.parallel_tool_calls is not False,
        request.model,
        _sampling(request),
        request.stream is True,
        options is not None and options.include_usage is True,
        tuple(faults.found),
        params,
        DIALECT,
        () if request.tools is None else read_other_tools(request.tools),
    )


def _messages(params: dict[str, Json]) -> list[Json]:
    """Takes the messages out of the request; the other fields stay."""
    if "messages" not in params:
        raise _missing("messages")
    messages = params.pop("messages")
    if not isinstance(messages, list):
        raise InvalidRequest("messages must be an array.", code="invalid_type", param="messages")
    return messages


def _read_body(params: dict[str, Json]) -> RequestBody:
    if "model" not in params:
        raise _missing("model")
    try:
        request = msgspec.convert(params, RequestBody)
    except msgspec.ValidationError:
        request = _whole_body(params)
    if not request.model.strip():
        raise InvalidRequest("model must name a model; it is empty.", param="model")
    return request


def _whole_body(params: dict[str, Json]) -> RequestBody:
    """100.0 is a whole number in JSON Schema and in languages with a single number type."""
    whole = {key: int(value) for key, value in params.items() if isinstance(value, float) and value.is_integer()}
    try:
        return msgspec.convert({**params, **whole}, RequestBody)
    except msgspec.ValidationError as error:
        raise _wrong_type(str(error)) from error


def _wrong_type(said: str) -> InvalidRequest:
    """Rewrites msgspec's "Expected `int | null`, got `str` - at `$.max_tokens`" in words for the client."""
    reason, _, place = said.partition(" - at `$")
    param = place.rstrip("`").removeprefix(".") or None
    where = param or "The request"
    if reason.startswith("Object missing required field"):
        field = reason.rpartition("field ")[2].strip("`")
        return _missing(f"{param}.{field}" if param else field)
    if reason.startswith("Expected `int` "):
        return InvalidRequest(f"{where} is out of range.", param=param)
    if not reason.startswith("Expected `"):
        return InvalidRequest(f"{where}: {reason[:1].lower()}{reason[1:]}.", param=param)
    expected, _, got = reason.removeprefix("Expected `").partition("`, got `")
    wanted = " or ".join(_WORDS.get(kind, kind) for kind in expected.rstrip("`").split(" | ") if kind != "null")
    found = _WORDS.get(got.rstrip("`"), got.rstrip("`"))
    return InvalidRequest(f"{where} must be {wanted}; it is {found}.", code="invalid_type", param=param)


def _missing(param: str) -> InvalidRequest:
    return InvalidRequest(f"{param} is missing.", code="missing_required_parameter", param=param)


def _sampling(request: RequestBody) -> Sampling:
    """`max_completion_tokens` is the newer name of `max_tokens` and wins where a client sends both."""
    stop = request.stop
    limit = request.max_completion_tokens
    return Sampling(
        request.temperature,
        request.top_p,
        request.max_tokens if limit is None else limit,
        (stop,) if isinstance(stop, str) else tuple(stop or ()),
        request.seed,
    )
