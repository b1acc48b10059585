"""Replaces broken Unicode in JSON bytes by U+FFFD.

Strings that were cut in the middle of an emoji arrive as a lone surrogate (`\\ud83d` without its other half), and
backends that cut bytes send half a UTF-8 sequence. A strict JSON decoder refuses the whole document for it.
"""

import re
from typing import Final

# A pair is matched first and kept, as is any other escape, so that `\\\\ud83d` (a backslash and text) stays unchanged.
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def repair_surrogates(text: bytes) -> bytes:
    """Returns the same JSON text without lone surrogate escapes. Linear; valid text comes back equal."""
    if b"\\ud" not in text and b"\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], text)


def repair_utf8(data: bytes) -> bytes:
    """Returns the same text in valid UTF-8."""
    return data.decode("utf-8", "replace").encode()
