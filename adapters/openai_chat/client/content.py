"""Reads a message's content as blocks: text, images, and any other part as the client wrote it."""

from typing import Final

from gateway.core.conversation import EMPTY, File, Image, Json, JsonObject, Text
from gateway.core.data_url import is_data_url
from gateway.dialects.content_parts import Part, PartRepair, sound_parts
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults
from gateway.framing.json_text import encode_json

# The Responses API and several frameworks write text parts under these names.
_TEXT_TYPES: Final = frozenset({"text", "input_text", "output_text"})


def read_content(content: Json, index: int, faults: Faults) -> tuple[Part, ...]:
    """Returns the blocks of a content that is not null. Faults: CONTENT_TYPE, CONTENT_EMPTY_ARRAY, PART_TYPE."""
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, list):
        if not content:
            faults.add("CONTENT_EMPTY_ARRAY", index, ".content")
        return sound_parts(content, map(_read_part, content), ".content", index, faults, _REPAIR)
    faults.add("CONTENT_TYPE", index, ".content", f"content is {kind_of(content)}, not text or an array of parts")
    if isinstance(content, dict) and ("type" in content or "text" in content):
        return (_read_part(content) or _repaired_part(content),)
    return (Text(encode_json(content)),)


def _read_part(part: Json) -> Part | None:
    """The block for a part that is well formed."""
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    return _known_part(kind, part) if isinstance(kind, str) and kind else None


def _known_part(kind: str, part: dict[str, Json]) -> Part | None:
    """Returns the block for a well-formed part, None for a part without the content of its type."""
    if kind in _TEXT_TYPES:
        text = part.get("text")
        return Text(text, _rest(part, "text")) if isinstance(text, str) else None
    if kind == "refusal":
        text = part.get("refusal")
        return Text(text, _rest(part, "refusal")) if isinstance(text, str) else None
    if kind == "image_url":
        return _image(part)
    return _file(part) if kind == "file" else File(kind, part)


def _file(part: dict[str, Json]) -> File:
    match part.get("file"):
        case {"file_data": str(data), **others} if is_data_url(data):
            name = others.get("filename")
            return File("file", part, url=data, name=name if isinstance(name, str) else "")
        case _:
            return File("file", part)


def _image(part: dict[str, Json]) -> Image | None:
    image = part.get("image_url")
    if not isinstance(image, dict) or not isinstance(url := image.get("url"), str):
        return None
    inner = {key: value for key, value in image.items() if key != "url"}
    return Image(url, {**_rest(part, "image_url", "type"), **inner})


def _repaired_part(part: Json) -> Part:
    if isinstance(part, str):
        return Text(part)
    if isinstance(part, dict):
        for key in ("text", "content", "refusal"):
            if isinstance(text := part.get(key), str):
                return Text(text)
        if isinstance(url := part.get("image_url"), str):
            return Image(url, _rest(part, "image_url", "type"))
        if _is_empty_text(part):
            return Text("")
    return Text(encode_json(part))


_REPAIR: Final = PartRepair(_repaired_part)


def _is_empty_text(part: JsonObject) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and kind in _TEXT_TYPES and part.get("text") is None


def _rest(part: JsonObject, *read: str) -> JsonObject:
    """Returns the fields of a part that its block does not hold itself, with its type unless that is plain text."""
    if len(part) == 2 and part.get("type") in ("text", "image_url"):
        return EMPTY
    return {key: value for key, value in part.items() if key not in read and (key, value) != ("type", "text")}
