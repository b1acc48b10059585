"""Decodes request bytes into one JSON object, or raises a precise 400."""

from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.dialects.openai_chat.content import kind_of
from gateway.dialects.openai_chat.faults import Faults
from gateway.framing.json_text import MAX_DEPTH, NotJson, decode_json
from gateway.framing.utf8 import repair_surrogates


def decode_document(body: bytes, faults: Faults, max_depth: int = MAX_DEPTH) -> dict[str, Json]:
    """Returns the object in the body. Fault: TEXT_UNICODE.

    Half an emoji is a fault and no error, because clients that cut strings do send it, and send it again with every
    later request of the conversation.

    Raises InvalidRequest `invalid_json`, or `invalid_value` for any other JSON value.
    """
    try:
        document = decode_json(body, max_depth)
    except NotJson:
        document = _mended(body, max_depth)
        faults.add("TEXT_UNICODE", -1, "messages")
    if not isinstance(document, dict):
        raise InvalidRequest(f"The request body must be a JSON object; it is {kind_of(document)}.")
    return document


def decode_messages(data: bytes, faults: Faults) -> dict[str, Json]:
    """Decodes a file in the same way; it may hold an array of messages instead of a whole request."""
    bare = data.lstrip()[:1] == b"["
    return decode_document(b'{"messages": %b}' % data if bare else data, faults)


def _mended(body: bytes, max_depth: int) -> Json:
    """Returns the value of a body whose only error is half a character."""
    try:
        return decode_json(repair_surrogates(body), max_depth)
    except NotJson as error:
        raise InvalidRequest(f"The request body is not valid JSON: {error.reason}.", code="invalid_json") from error
