"""Defines the JSON Schema of a summary, for backends that let a model write nothing else.

A backend that enforces it makes even a small model keep to the form, cite turns that exist, and come to an end.
"""

from typing import Final, get_args

from gateway.core.conversation import Json
from gateway.history.compress.plan import Cover
from gateway.history.compress.summary_content import MAX_ITEM, Kind

MAX_ITEMS: Final = 12
MAX_CITED: Final = 8
# An item beside its text: names, quotes, the cited numbers.
_ITEM_TOKENS: Final = 30
# Fewer characters a token than any usual text has, so that the longest summary of this form ends within its limit.
_CHARACTERS_OF_A_TOKEN: Final = 2.5
_LEAST_TEXT: Final = 60


def summary_schema(cover: Cover) -> dict[str, Json]:
    """Returns the schema for the summary of this cover: all of its items together have room in the cover's prose."""
    kinds = get_args(Kind)
    room = cover.prose_tokens / len(kinds)
    longest = _ITEM_TOKENS + MAX_ITEM / _CHARACTERS_OF_A_TOKEN
    most = min(max(int(room / longest), 1), MAX_ITEMS)
    text = int((room / most - _ITEM_TOKENS) * _CHARACTERS_OF_A_TOKEN)
    item: dict[str, Json] = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": min(max(text, _LEAST_TEXT), MAX_ITEM)},
            "from": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": cover.boundary.turns},
                "minItems": 1,
                "maxItems": MAX_CITED,
            },
        },
        "required": ["text", "from"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {kind: {"type": "array", "items": item, "maxItems": most} for kind in kinds},
        "required": ["goal"],
        "additionalProperties": False,
    }
