"""Reads the content of a message, or the output of a call, as blocks: text, images, and any other part as it is."""

from typing import Final

from gateway.core.conversation import EMPTY, File, Image, Json, JsonObject, Text
from gateway.core.data_url import is_data_url
from gateway.dialects.content_parts import Part, sound_parts
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults
from gateway.framing.json_text import encode_json

# Frameworks that come from chat completions write `text`.
_TEXT_TYPES: Final = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
# What an answer of the dialect adds to its texts says nothing to a model.
_ANSWER_FIELDS: Final = frozenset({"annotations", "logprobs"})


def read_content(content: Json, index: int, field: str, faults: Faults) -> tuple[Part, ...]:
    """Returns the blocks in this field of the item at `index`.

    An image by URL is an Image. An image or a file that only OpenAI can find (`file_id`, `file_url`) is a File like any
    other part: only OpenAI's own backend accepts it. Faults: CONTENT_MISSING, CONTENT_TYPE, CONTENT_EMPTY_ARRAY,
    PART_TYPE.
    """
    if isinstance(content, str):
        return (Text(content),)
    place = f".{field}"
    if content is None:
        faults.add("CONTENT_MISSING", index, place)
        return ()
    if not isinstance(content, list):
        faults.add("CONTENT_TYPE", index, place, f"{field} is {kind_of(content)}, not text or an array of parts")
        return (Text(encode_json(content)),)
    if not content:
        faults.add("CONTENT_EMPTY_ARRAY", index, place)
    return sound_parts(content, map(_read_part, content), place, index, faults)


def _read_part(part: Json) -> Part | None:
    """Returns the block of a part, None for one without the content of its type."""
    if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
        return None
    if kind in _TEXT_TYPES:
        text = part.get("text")
        if not isinstance(text, str):
            return None
        # Nearly every part has these two fields alone.
        return Text(text) if len(part) == 2 else Text(text, _rest(part, "text"))
    if kind == "refusal":
        text = part.get("refusal")
        return Text(text, {"type": "refusal"}) if isinstance(text, str) else None
    if kind == "input_image" and isinstance(url := part.get("image_url"), str):
        return Image(url, _rest(part, "image_url"))
    return _file(part) if kind == "input_file" else File(kind, part)


def _file(part: JsonObject) -> File:
    data, url, name = part.get("file_data"), part.get("file_url"), part.get("filename")
    named = name if isinstance(name, str) else ""
    if isinstance(data, str) and is_data_url(data):
        return File("input_file", part, url=data, name=named)
    return File("input_file", part, url=url if isinstance(url, str) else "", name=named)


def _rest(part: JsonObject, read: str) -> JsonObject:
    """Returns the fields of a part that its block does not hold itself."""
    left = {"type", read} | _ANSWER_FIELDS
    return {name: value for name, value in part.items() if name not in left and value is not None} or EMPTY
