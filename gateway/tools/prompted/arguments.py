"""Arguments that were read as one piece, a string or nothing at all -> a JSON object as text, or none."""

import json
from collections import Counter

from gateway.tools.prompted.json_scan import mended_object


def whole_arguments(written: str, mended: Counter[str]) -> str | None:
    """The object that a JSON value amounts to: null is `{}`, and a string is decoded once. None when it is none.

    What was changed is counted in `mended`.
    """
    if written.startswith('"'):
        mended["arguments written as a string were decoded"] += 1
        written = _in_utf8(json.loads(written)).strip() or "null"
    if written == "null":
        mended["missing arguments became {}"] += 1
        return "{}"
    whole = mended_object(written)
    if whole is not None and whole != written:
        mended["characters in strings were escaped"] += 1
    return whole


def _in_utf8(text: str) -> str:
    """JSON text that can be encoded: half a character (a lone surrogate) becomes its escape again."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(f"\\u{ord(part):04x}" if "\ud800" <= part <= "\udfff" else part for part in text)
    return text
