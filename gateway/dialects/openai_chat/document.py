"""Request bytes in, one JSON object out, or a precise 400."""

from typing import Final

import msgspec

from gateway.errors import InvalidRequest
from gateway.types import Json
from gateway.wire.unicode import mend_unicode

MAX_DEPTH: Final = 64
_KINDS: Final = {list: "an array", str: "text", bool: "true or false", int: "a number", float: "a number"}


def decode_document(body: bytes, max_depth: int = MAX_DEPTH) -> dict[str, Json]:
    """The object in the body. Raises InvalidRequest `invalid_json`, or `invalid_value` for any other JSON value.

    A lone surrogate (half an emoji, which clients that cut strings really send) is read as U+FFFD.
    """
    document = _parse(body)
    if _deeper(document, max_depth):
        raise _invalid_json(f"it is nested deeper than {max_depth} levels")
    if not isinstance(document, dict):
        kind = _KINDS.get(type(document), "null")
        raise InvalidRequest(f"The request body must be a JSON object; it is {kind}.")
    return document


def _parse(body: bytes) -> Json:
    try:
        return _loads(body)
    except msgspec.DecodeError as error:
        if (mended := _mended(body)) != body:
            return _parse(mended)
        raise _invalid_json(str(error)) from error


def _loads(body: bytes) -> Json:
    try:
        document: Json = msgspec.json.decode(body)
    except RecursionError as error:
        raise _invalid_json("it is nested too deep") from error
    except UnicodeDecodeError as error:
        raise _invalid_json(_not_utf8(body)) from error
    return document


def _mended(body: bytes) -> bytes:
    """Without lone surrogates; a body that is no UTF-8 stays as it is, since guessing would change words unseen."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return body
    return mend_unicode(body)


def _not_utf8(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return f"it is not UTF-8 (byte {error.start})"
    return "it is not UTF-8"


def _deeper(document: Json, max_depth: int) -> bool:
    level: list[list[Json] | dict[str, Json]] = [[document]]
    for _ in range(max_depth + 1):
        level = [
            value
            for container in level
            for value in (container.values() if isinstance(container, dict) else container)
            if isinstance(value, dict | list)
        ]
        if not level:
            return False
    return True


def _invalid_json(reason: str) -> InvalidRequest:
    return InvalidRequest(f"The request body is not valid JSON: {reason}.", code="invalid_json")
