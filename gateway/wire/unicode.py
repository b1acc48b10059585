"""JSON bytes with broken Unicode in, the same bytes with U+FFFD in its place out.

Strings that were cut in the middle of an emoji reach us as a lone surrogate (`\\ud83d` without its other half), and
backends that cut bytes send half a UTF-8 sequence. A strict JSON decoder refuses the whole document for it.
"""

import re
from typing import Final

# A pair is matched first and kept, as is any other escape, so that `\\\\ud83d` (a backslash and text) stays what it is.
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def mend_surrogates(text: bytes) -> bytes:
    """The same JSON text without lone surrogate escapes. Linear; valid text comes back equal."""
    if b"\\ud" not in text and b"\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], text)


def mend_utf8(data: bytes) -> bytes:
    """The same text in valid UTF-8."""
    return data.decode("utf-8", "replace").encode()
