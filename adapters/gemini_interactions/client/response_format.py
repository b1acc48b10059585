"""Reads the form of the answer that a client asks for."""

from typing import Final, NamedTuple

from adapters.gemini_interactions.table import RequestFields
from gateway.core.conversation import EMPTY, JsonObject
from gateway.core.errors import InvalidRequest

_FORMAT: Final = "response_format"
_TYPE: Final = "response_mime_type"
_JSON: Final = "application/json"
_TEXT: Final = "text/plain"
# The types of formats of the API; an object of another one is a schema, in the API's older form.
_TYPES: Final = frozenset({"text", "image", "audio", "video"})


class ResponseFormat(NamedTuple):
    """The canonical form of the answer's format, and the paths of what only the API itself can answer in."""

    params: JsonObject = EMPTY
    own: tuple[str, ...] = ()


def read_response_format(request: RequestFields) -> ResponseFormat:
    """Returns the form of the answer. Raises InvalidRequest for a wrong one, and for several forms of texts."""
    written = request.response_format
    if written is None:
        return _of_text(None, request.response_mime_type, _TYPE)
    entries = written if isinstance(written, list) else [written]
    texts: list[ResponseFormat] = []
    own: list[str] = []
    for position, entry in enumerate(entries):
        place = f"{_FORMAT}[{position}]" if isinstance(written, list) else _FORMAT
        kind = entry.get("type")
        if kind == "text":
            texts.append(_text_entry(entry, request, place))
        elif isinstance(kind, str) and kind in _TYPES:
            own.append(place)
        elif entry:
            texts.append(_of_text(entry, request.response_mime_type or _JSON, _TYPE))
    if len(texts) > 1:
        raise InvalidRequest(f"{_FORMAT} must have one form of a text.", param=_FORMAT)
    (form,) = texts or (ResponseFormat(),)
    return ResponseFormat(form.params, (*own, *form.own))


def _text_entry(entry: JsonObject, request: RequestFields, place: str) -> ResponseFormat:
    media_type, schema = entry.get("mime_type") or request.response_mime_type, entry.get("schema")
    if not isinstance(media_type, str | None):
        raise InvalidRequest(f"{place}.mime_type must be text.", code="invalid_type", param=f"{place}.mime_type")
    if not isinstance(schema, dict | None):
        raise InvalidRequest(f"{place}.schema must be an object.", code="invalid_type", param=f"{place}.schema")
    return _of_text(schema, media_type or (_TEXT if schema is None else _JSON), f"{place}.mime_type")


def _of_text(schema: JsonObject | None, media_type: str | None, place: str) -> ResponseFormat:
    """Returns the form of a text of this media type, whose field stands at `place`."""
    if media_type in (None, _TEXT):
        if schema is not None:
            raise InvalidRequest(f"{place} must be {_JSON} beside a schema.", param=place)
        return ResponseFormat()
    if media_type != _JSON:
        return ResponseFormat(own=(place,))
    if schema is None:
        return ResponseFormat({_FORMAT: {"type": "json_object"}})
    return ResponseFormat({_FORMAT: {"type": "json_schema", "json_schema": {"schema": dict(schema)}}})
