"""A chat completions request in, a Conversation out.

The envelope is typed strictly: a wrong field is a 400 that names it. The messages are not: what is wrong with them is
mended and listed in `faults`, so that one message of a long history cannot make the whole of it unusable unseen.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.conversation.rules import violation
from gateway.dialects.openai_chat.document import decode_document
from gateway.dialects.openai_chat.faults import Faults
from gateway.dialects.openai_chat.message import read_turns
from gateway.dialects.openai_chat.schema import Envelope
from gateway.dialects.openai_chat.tools import read_tool_choice, read_tools
from gateway.errors import InvalidRequest
from gateway.types import Conversation, Json, Sampling
from gateway.wire.json_text import MAX_DEPTH

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
    """Read one request. Raises InvalidRequest that names the parameter, and nothing else.

    `model` is the name the client asked for; the server puts the backend's own name there.
    """
    faults = Faults()
    return read_request(decode_document(body, faults, max_depth), faults)


def read_request(document: dict[str, Json], faults: Faults) -> Conversation:
    """The same of a body that is decoded already; `faults` are those that were met while decoding it."""
    source = dict(document)
    messages = _messages(source)
    envelope = _envelope(source)
    turns = read_turns(messages, faults)
    if not turns:
        raise _empty()
    options = envelope.stream_options
    return Conversation(
        turns,
        read_tools(envelope, source, faults),
        read_tool_choice(envelope, source),
        envelope.parallel_tool_calls is not False,
        envelope.model,
        _sampling(envelope),
        envelope.stream is True,
        options is not None and options.include_usage is True,
        tuple(faults.found),
        source,
    )


def _messages(source: dict[str, Json]) -> list[Json]:
    """They are taken out of the request: what is left is its envelope."""
    if "messages" not in source:
        raise _missing("messages")
    messages = source.pop("messages")
    if not isinstance(messages, list):
        raise InvalidRequest("messages must be an array.", code="invalid_type", param="messages")
    return messages


def _empty() -> InvalidRequest:
    empty = violation("MESSAGES_EMPTY", -1, param="messages")
    return InvalidRequest(f"{empty.detail} {empty.advice}", code="empty_array", param="messages")


def _envelope(source: dict[str, Json]) -> Envelope:
    if "model" not in source:
        raise _missing("model")
    try:
        envelope = msgspec.convert(source, Envelope)
    except msgspec.ValidationError:
        envelope = _whole_envelope(source)
    if not envelope.model.strip():
        raise InvalidRequest("model must name a model; it is empty.", param="model")
    return envelope


def _whole_envelope(source: dict[str, Json]) -> Envelope:
    """100.0 is a whole number, to JSON Schema and to languages that know no other numbers."""
    whole = {key: int(value) for key, value in source.items() if isinstance(value, float) and value.is_integer()}
    try:
        return msgspec.convert({**source, **whole}, Envelope)
    except msgspec.ValidationError as error:
        raise _wrong_type(str(error)) from error


def _wrong_type(said: str) -> InvalidRequest:
    """msgspec says "Expected `int | null`, got `str` - at `$.max_tokens`"; clients shall read words, not types."""
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


def _sampling(envelope: Envelope) -> Sampling:
    """`max_completion_tokens` is the newer name of `max_tokens` and wins where a client sends both."""
    stop = envelope.stop
    limit = envelope.max_completion_tokens
    return Sampling(
        envelope.temperature,
        envelope.top_p,
        envelope.max_tokens if limit is None else limit,
        (stop,) if isinstance(stop, str) else tuple(stop or ()),
        envelope.seed,
    )
