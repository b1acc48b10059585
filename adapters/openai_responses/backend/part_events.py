"""Lists the events about one part of an item: a piece of its text, or the whole of it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.openai_responses.backend.call_item import CALL_INPUT


class PartEvent(msgspec.Struct, frozen=True):
    """An event about one part of an item: the type of the part, the field with its position (None: the only part), and
    the field with its text."""

    part: str
    position: str | None
    text: str


_PARTS: Final[Mapping[str, tuple[str, str | None, str]]] = {
    "output_text": ("output_text", "content_index", "text"),
    "refusal": ("refusal", "content_index", "refusal"),
    "reasoning_text": ("reasoning_text", "content_index", "text"),
    "reasoning_summary_text": ("summary_text", "summary_index", "text"),
    "function_call_arguments": (CALL_INPUT, None, "arguments"),
    "custom_tool_call_input": (CALL_INPUT, None, "input"),
}
PIECES: Final = {f"response.{name}.delta": PartEvent(*part[:2], "delta") for name, part in _PARTS.items()}
WHOLES: Final = {f"response.{name}.done": PartEvent(*part) for name, part in _PARTS.items()}
