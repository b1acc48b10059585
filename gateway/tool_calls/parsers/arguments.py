"""Converts arguments that were read whole (a JSON value, a string or nothing) to a JSON object as text, or None."""

import json
from collections import Counter

from gateway.tool_calls.parsers.json_scan import repaired_object


def whole_arguments(written: str, repaired: Counter[str]) -> str | None:
    """Returns the object in a JSON value: null is `{}`, and a string is decoded once. None when it is no object.

    Every change is counted in `repaired`.
    """
    if written.startswith('"'):
        repaired["arguments written as a string were decoded"] += 1
        written = _in_utf8(json.loads(written)).strip() or "null"
    if written == "null":
        repaired["missing arguments became {}"] += 1
        return "{}"
    whole = repaired_object(written)
    if whole is not None and whole != written:
        repaired["characters in strings were escaped"] += 1
    return whole


def _in_utf8(text: str) -> str:
    """Returns JSON text that can be encoded: half a character (a lone surrogate) becomes its escape again."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(f"\\u{ord(part):04x}" if "\ud800" <= part <= "\udfff" else part for part in text)
    return text
