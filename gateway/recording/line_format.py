"""Reads and writes one line of a recording as JSON.

A line of an unknown kind, and the unknown fields of a known one, survive reading and writing.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gateway.core.conversation import Json
from gateway.recording.lines import (
    MAX_LINE,
    AnswerLine,
    BytesLine,
    CloseLine,
    EndLine,
    GapLine,
    HeaderLine,
    HeadLine,
    Line,
    NoticeLine,
    RecordingError,
    RequestLine,
    RouteLine,
    SentLine,
    TryLine,
    UnknownLine,
)

_KINDS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "recording": HeaderLine,
    "request": RequestLine,
    "route": RouteLine,
    "sent": SentLine,
    "head": HeadLine,
    "bytes": BytesLine,
    "gap": GapLine,
    "close": CloseLine,
    "answer": AnswerLine,
    "try": TryLine,
    "notice": NoticeLine,
    "end": EndLine,
}
_NAMES: Final = {line: kind for kind, line in _KINDS.items()}


def encode_line(line: Line) -> bytes:
    """Returns one line with its line end. Raises RecordingError for one above `MAX_LINE`."""
    if isinstance(line, UnknownLine):
        fields: dict[str, Json] = {"kind": line.kind, **line.unknown}
    else:
        fields = {"kind": _NAMES[type(line)], **msgspec.to_builtins(line)}
        fields.pop("unknown", None)
        fields.update(line.unknown)
    encoded = _encoded(fields) + b"\n"
    if len(encoded) > MAX_LINE:
        raise RecordingError(f"A line of {len(encoded)} bytes is longer than the {MAX_LINE} that the format allows.")
    return encoded


def _encoded(fields: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(fields)
    except UnicodeEncodeError:
        # Half of a surrogate pair, which words of a client or a backend may hold, and no JSON reader takes.
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def decode_line(data: bytes) -> Line:
    """Reads one line. Raises RecordingError."""
    if len(data) > MAX_LINE:
        raise RecordingError(f"it is longer than {MAX_LINE} bytes")
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])  # Any: JSON
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordingError(f"it is no JSON object: {error}") from error
    kind = fields.pop("kind", None)
    if not isinstance(kind, str):
        raise RecordingError("it has no kind")
    known = _KINDS.get(kind)
    if known is None:
        number = fields.get("x")
        return UnknownLine(kind, number if isinstance(number, int) else 0, fields)
    unknown = {name: fields.pop(name) for name in [*fields] if name not in known.__struct_fields__[:-1]}
    try:
        line: Any = msgspec.convert(fields, known)
        if isinstance(line, RequestLine | SentLine | BytesLine):
            _content(line)  # raises ValueError for bytes that cannot be read
    except (msgspec.ValidationError, ValueError) as error:
        raise RecordingError(f"{kind}: {error}") from error
    decoded: Line = msgspec.structs.replace(line, unknown=unknown) if unknown else line
    return decoded


def _content(line: RequestLine | SentLine | BytesLine) -> bytes | None:
    data = line.data if isinstance(line, BytesLine) else line.body
    return None if data is None else data.content
