"""Reads and writes contents: the pieces of a step, and of a function's result."""

import re
from typing import Final, assert_never

from gateway.core.conversation import EMPTY, File, Image, Json, JsonObject, Text
from gateway.core.data_url import data_url, held_data
from gateway.dialects.content_parts import Part, PartRepair, part_fault, sound_parts
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults
from gateway.framing.json_text import encode_json

# The types of contents, with the kind of part that each is.
KINDS: Final = {"text": "text", "image": "image", "audio": "audio", "document": "file", "video": "video"}
# A file that only Google can find: of its storage, or one that was uploaded to the API.
_is_own_uri: Final = re.compile(r"gs://|files/|https://[^/]+/v1(?:beta|alpha)?/files/").match
# What an answer adds to its texts says nothing to a model.
_TEXT: Final = frozenset({"type", "text", "annotations"})
_IMAGE: Final = frozenset({"type", "data", "mime_type", "uri"})


def is_content(value: Json) -> bool:
    """Returns whether a value is a content, by its type."""
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and kind in KINDS


def read_contents(value: Json, index: int, field: str, faults: Faults) -> tuple[Part, ...]:
    """Returns the blocks in this field of the step at `index`: a text, one content, or an array of contents.

    Faults: CONTENT_MISSING, CONTENT_TYPE, CONTENT_EMPTY_ARRAY, PART_TYPE.
    """
    place = f".{field}"
    match value:
        case str():
            return (Text(value),)
        case None:
            faults.add("CONTENT_MISSING", index, place)
            return ()
        case dict():
            value = [value]
        case list():
            if not value:
                faults.add("CONTENT_EMPTY_ARRAY", index, place)
        case _:
            faults.add("CONTENT_TYPE", index, place, f"{field} is {kind_of(value)}, not an array of contents")
            return (Text(encode_json(value)),)
    blocks = [_read(content, position) for position, content in enumerate(value)]
    return sound_parts(value, blocks, place, index, faults, _REPAIR)


def encode_contents(blocks: tuple[Part, ...]) -> list[Json]:
    """Returns the contents of these blocks."""
    return [_encode(block) for block in blocks]


def _read(content: Json, position: int) -> Part | None:
    """Returns the block of a content, None for one without what its type requires."""
    if not isinstance(content, dict) or not isinstance(kind := content.get("type"), str):
        return None
    if kind == "text":
        text = content.get("text")
        if not isinstance(text, str):
            return None
        # Nearly every text has no other field.
        return Text(text) if content.keys() <= _TEXT else Text(text, _rest(content, _TEXT))
    if kind not in KINDS:
        return File(kind, content, position)
    match content:
        case {"data": str(data), "mime_type": str(media_type)}:
            url = data_url(media_type, data)
        case {"data": str()}:
            return None
        case {"uri": str(uri)} if not _is_own_uri(uri):
            url = uri
        case {"uri": str()}:
            return File(KINDS[kind], content, position)
        case _:
            return None
    if kind == "image":
        return Image(url, _rest(content, _IMAGE), position)
    name = content.get("name")
    return File(KINDS[kind], content, position, url, name if isinstance(name, str) else "")


def _rest(content: JsonObject, read: frozenset[str]) -> JsonObject:
    """Returns the fields of a content that its block does not hold itself."""
    return {name: value for name, value in content.items() if name not in read and value is not None} or EMPTY


def _fault(content: Json) -> str:
    kind = content.get("type") if isinstance(content, dict) else None
    if isinstance(content, dict) and isinstance(kind, str) and "data" in content:
        return f"a content of type {kind[:40]!r} has data without a mime_type"
    return part_fault(content, "content")


_REPAIR: Final = PartRepair(fault=_fault, parts="contents")


def _encode(block: Part) -> Json:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Image():
            return {"type": "image", **_data(block.url)}
        case File():
            return dict(block.part) or {"type": _type_of(block.kind), **_data(block.url)}
        case _:
            assert_never(block)


def _type_of(kind: str) -> str:
    return next((word for word, known in KINDS.items() if known == kind), "document")


def _data(url: str) -> dict[str, Json]:
    held = held_data(url)
    return {"uri": url} if held is None else {"mime_type": held.media_type, "data": held.data}
