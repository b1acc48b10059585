"""Request bytes in, one JSON object out, or a precise 400."""

from gateway.dialects.openai_chat.content import kind_of
from gateway.errors import InvalidRequest
from gateway.types import Json
from gateway.wire.json_text import MAX_DEPTH, NotJson, decode_json


def decode_document(body: bytes, max_depth: int = MAX_DEPTH) -> dict[str, Json]:
    """The object in the body. Raises InvalidRequest `invalid_json`, or `invalid_value` for any other JSON value."""
    try:
        document = decode_json(body, max_depth)
    except NotJson as error:
        raise InvalidRequest(f"The request body is not valid JSON: {error.reason}.", code="invalid_json") from error
    if not isinstance(document, dict):
        raise InvalidRequest(f"The request body must be a JSON object; it is {kind_of(document)}.")
    return document
