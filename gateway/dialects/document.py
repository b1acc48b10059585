"""Reads the body of a request as one JSON object, or raises a precise 400. Every dialect has such bodies."""

from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json, ToolSpec, Turn
from gateway.core.errors import InvalidRequest
from gateway.framing.json_text import MAX_DEPTH, NotJson, decode_json, repair_surrogates

_KINDS: Final[dict[type, str]] = {
    dict: "an object",
    list: "an array",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


class Document(msgspec.Struct, frozen=True):
    """The fields of a request. `repaired`: it held half a character, which is a fault that the dialect reports.

    `stored` holds the entries that the server has looked up for the request
    (`gateway.dialects.stateful.StatefulDialect`), by their names; None: there is none of this name. `connected`: the
    request came over a connection that remembers its answers (`gateway.dialects.websocket`). `known` are the turns of
    the first messages, which were read before of the same bytes (`gateway.dialects.prefix`), and `known_tools` the
    functions, where all tools are known ones: a dialect that reads each alone need not read these again.
    """

    fields: dict[str, Json]
    repaired: bool = False
    stored: Mapping[str, bytes | None] = {}
    connected: bool = False
    known: tuple[Turn, ...] = ()
    known_tools: tuple[ToolSpec, ...] = ()


def read_document(body: bytes, max_depth: int = MAX_DEPTH) -> Document:
    """Returns the object in the body.

    Half an emoji is a fault and no error, because clients that cut strings do send it, and send it again with every
    later request of the conversation.

    Raises InvalidRequest `invalid_json`, or `invalid_value` for any other JSON value.
    """
    repaired = False
    try:
        value = decode_json(body, max_depth)
    except NotJson:
        value, repaired = _repaired(body, max_depth), True
    if not isinstance(value, dict):
        raise InvalidRequest(f"The request body must be a JSON object; it is {kind_of(value)}.")
    return Document(value, repaired)


def read_saved(data: bytes, history_field: str) -> Document:
    """Reads a file in the same way; it may hold the array in `history_field` instead of a whole request."""
    data = data.removeprefix(BOM_UTF8)
    bare = data.lstrip()[:1] == b"["
    return read_document(b'{"%b": %b}' % (history_field.encode(), data) if bare else data)


def kind_of(value: Json) -> str:
    """Names the JSON type of the value in words."""
    return _KINDS.get(type(value), "null")


def _repaired(body: bytes, max_depth: int) -> Json:
    """Returns the value of a body whose only error is half a character."""
    try:
        return decode_json(repair_surrogates(body), max_depth)
    except NotJson as error:
        raise InvalidRequest(f"The request body is not valid JSON: {error.reason}.", code="invalid_json") from error
