"""Request bytes in, one JSON object out, or a precise 400."""

from gateway.dialects.openai_chat.content import kind_of
from gateway.dialects.openai_chat.faults import Faults
from gateway.errors import InvalidRequest
from gateway.types import Json
from gateway.wire.json_text import MAX_DEPTH, NotJson, decode_json
from gateway.wire.unicode import mend_surrogates


def decode_document(body: bytes, faults: Faults, max_depth: int = MAX_DEPTH) -> dict[str, Json]:
    """The object in the body. Fault: TEXT_UNICODE, because clients that cut strings do send half an emoji, and do so
    again with every later request of the conversation.

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
    """The same of a file, in which an array of messages may stand for the request around it."""
    bare = data.lstrip()[:1] == b"["
    return decode_document(b'{"messages": %b}' % data if bare else data, faults)


def _mended(body: bytes, max_depth: int) -> Json:
    """The value of a body in which nothing is wrong but half a character."""
    try:
        return decode_json(mend_surrogates(body), max_depth)
    except NotJson as error:
        raise InvalidRequest(f"The request body is not valid JSON: {error.reason}.", code="invalid_json") from error
