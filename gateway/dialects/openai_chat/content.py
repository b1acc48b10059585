"""A message's content in, blocks out: text, images and everything else as the client wrote it."""

from typing import Final

import msgspec

from gateway.dialects.openai_chat.faults import Faults
from gateway.types import EMPTY, File, Image, Json, JsonObject, Text

Part = Text | Image | File

# The Responses API and several frameworks write text parts under these names.
_TEXT_TYPES: Final = frozenset({"text", "input_text", "output_text"})


def read_content(content: Json, index: int, faults: Faults) -> tuple[Part, ...]:
    """The blocks of a content that is there (not null). Faults: CONTENT_TYPE, CONTENT_EMPTY_ARRAY, PART_TYPE."""
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, list):
        if not content:
            faults.add("CONTENT_EMPTY_ARRAY", index, ".content")
        return tuple(_read_part(part, index, position, faults) for position, part in enumerate(content))
    faults.add("CONTENT_TYPE", index, ".content", f"content is {kind_of(content)}, not text or an array of parts")
    if isinstance(content, dict) and ("type" in content or "text" in content):
        return (_read_part(content, index, 0, Faults()),)
    return (Text(json_text(content)),)


def _read_part(part: Json, index: int, position: int, faults: Faults) -> Part:
    if isinstance(part, dict):
        kind = part.get("type")
        block = _known_part(kind, part) if isinstance(kind, str) and kind else None
        if block is not None:
            return block
    faults.add("PART_TYPE", index, f".content[{position}]", _part_fault(part))
    return _mended_part(part)


def _known_part(kind: str, part: dict[str, Json]) -> Part | None:
    """The block for a well-formed part, None for one whose type promises what it does not hold."""
    if kind in _TEXT_TYPES:
        text = part.get("text")
        return Text(text, _rest(part, "text")) if isinstance(text, str) else None
    if kind == "refusal":
        text = part.get("refusal")
        return Text(text, _rest(part, "refusal")) if isinstance(text, str) else None
    if kind == "image_url":
        return _image(part)
    return File(kind, part)


def _image(part: dict[str, Json]) -> Image | None:
    image = part.get("image_url")
    if not isinstance(image, dict) or not isinstance(url := image.get("url"), str):
        return None
    inner = {key: value for key, value in image.items() if key != "url"}
    return Image(url, {**_rest(part, "image_url", "type"), **inner})


def _mended_part(part: Json) -> Part:
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
    return Text(json_text(part))


def _is_empty_text(part: JsonObject) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and kind in _TEXT_TYPES and part.get("text") is None


def _part_fault(part: Json) -> str:
    if not isinstance(part, dict):
        return f"a content part is {kind_of(part)}, not an object"
    kind = part.get("type")
    if not isinstance(kind, str) or not kind:
        return "a content part has no type"
    return f"a content part of type {kind[:40]!r} lacks what its type promises"


def _rest(part: JsonObject, *read: str) -> JsonObject:
    """The fields of a part that its block does not hold itself; the type is one of them unless it is plain text."""
    if len(part) == 2 and part.get("type") in ("text", "image_url"):
        return EMPTY
    return {key: value for key, value in part.items() if key not in read and (key, value) != ("type", "text")}


def json_text(value: Json) -> str:
    """Any JSON value as text."""
    return msgspec.json.encode(value).decode()


_KINDS: Final[dict[type, str]] = {
    dict: "an object",
    list: "an array",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


def kind_of(value: Json) -> str:
    """What JSON calls the value, in words."""
    return _KINDS.get(type(value), "null")
