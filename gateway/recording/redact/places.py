"""Tells by the fields that lead to a value of a JSON text how the value is redacted."""

from enum import Enum
from typing import Final

from gateway.core.secrets import is_secret_field

_KEPT: Final = """
role type model object name tool_name finish_reason stop_reason finishReason native_finish_reason done_reason
status event kind code format encoding_format mode mime_type mimeType media_type detail service_tier serviceTier
system_fingerprint reasoning_effort effort tool_choice truncation required pattern $ref language created_at
modelVersion responseId profile level quantization event_type thinking_level thinking_summaries
"""
_TEXTS: Final = """
content text delta arguments partial_json thinking reasoning reasoning_content refusal response
"""
# Fields of the protocols whose values are words of the protocol, or names.
_KEPT_FIELDS: Final = frozenset(_KEPT.split())
# The values of these are words of the protocol, or sentences.
_REASONS: Final = frozenset(("reason", "blockReason"))
# The values of these are texts, which a stream cuts anywhere. Elsewhere a piece that looks like an id is one.
_STREAMED: Final = frozenset(_TEXTS.split())
# The values of these are files in base64, or texts.
_FILES: Final = frozenset(("images", "data"))
# Below these fields stands what the client and its tools say, in fields of their own.
_CONTENT: Final = frozenset(("arguments", "args", "metadata"))
_RESPONSES: Final = frozenset((("functionResponse", "response"), ("function_response", "response")))
# The name of an entry of a list.
ENTRY: Final = "[]"


class Treatment(Enum):
    """How a string is redacted: as a `SECRET` whole; of what is `KEPT`, and of a `REASON` that is one word, secrets
    alone; as a `FILE` in base64; word by word, and of an `ID` each piece by itself, of a `STREAMED` text none."""

    SECRET = "secret"
    KEPT = "kept"
    REASON = "reason"
    FILE = "file"
    ID = "id"
    STREAMED = "streamed"
    TEXT = "text"


class Place:
    """A place in JSON texts, by the names of the fields that lead to it. `is_content`: it stands in an object of the
    client or its tools. Below one root the same names lead to the same object."""

    __slots__ = ("_below", "_content_below", "_is_root", "_name", "_schema_below", "field", "is_content", "treatment")

    def __init__(self, name: str = "", above: "Place | None" = None) -> None:
        outer = above is None or above._is_root
        self._is_root: bool = above is None
        self._below: dict[str, Place] | None = None
        self._name = name
        self.field: str = above.field if above is not None and name == ENTRY else name
        self.is_content = above is not None and above._content_below and not above._schema_below
        self._schema_below: bool = name == "properties" or (above is not None and above._schema_below)
        self._content_below: bool = (
            name in _CONTENT
            or (name == "input" and not outer)
            or (above is not None and (above._content_below or (above._name, name) in _RESPONSES))
        )
        self.treatment = _treatment(self.field, self.is_content)

    def below(self, name: str) -> "Place":
        """Returns the place of a field, or of all entries of a list."""
        if self._below is None:
            self._below = {}
        found = self._below.get(name)
        if found is None:
            found = self._below[name] = Place(name, self)
        return found


def _treatment(field: str, is_content: bool) -> Treatment:
    if is_secret_field(field):
        return Treatment.SECRET
    if field in _KEPT_FIELDS and not is_content:
        return Treatment.KEPT
    if field in _FILES and not is_content:
        return Treatment.FILE
    if field in _REASONS and not is_content:
        return Treatment.REASON
    if field in _STREAMED:
        return Treatment.STREAMED
    return Treatment.ID if field.lower().endswith("id") else Treatment.TEXT
