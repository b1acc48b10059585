"""Checks the headers of requests, and decodes those of responses: the same in every version of HTTP."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

Headers: TypeAlias = Sequence[tuple[str, str]]
# Returns the headers of a signature, from the headers that are sent and the body.
Signer: TypeAlias = Callable[[Mapping[str, str], bytes], Headers]

# The size of a head or of trailers: names, values and two bytes for each; and their number.
MAX_HEAD: Final = 64 * 1024
MAX_HEADERS: Final = 128

# RFC 9110, sections 5.1 and 5.5. A line end in a value would allow it to forge headers or a second request.
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# Headers that only the client sets, since only it knows their values.
_FRAMING: Final = frozenset({"content-length", "transfer-encoding", "expect", "upgrade", "te", "trailer"})
_USUAL: Final = (
    "access-control-allow-origin",
    "access-control-expose-headers",
    "alt-svc",
    "cache-control",
    "cf-cache-status",
    "cf-ray",
    "connection",
    "content-length",
    "content-type",
    "date",
    "keep-alive",
    "openai-organization",
    "openai-processing-ms",
    "openai-version",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "vary",
    "via",
    "x-content-type-options",
    "x-request-id",
)


class _HeaderNames(dict[bytes, str]):
    """Maps header names to lower case. It does not grow, whatever names servers send."""

    def __missing__(self, name: bytes) -> str:
        return name.decode("latin-1").lower()


# The two usual spellings of the most common names; a look-up is faster than decoding.
_NAMES: Final = _HeaderNames({written.encode(): name for name in _USUAL for written in (name, name.title())})


def is_header_value(value: str) -> bool:
    """Returns whether the text is valid as a header value."""
    return _VALUE.fullmatch(value) is not None


def check_header(name: str, value: str) -> None:
    """Raises ValueError, which does not show the value, when the header cannot be sent."""
    if not _NAME.fullmatch(name) or name.lower() in _FRAMING:
        raise ValueError(f"{name[:100]!r} is not a header name that can be set")
    if not is_header_value(value):
        raise ValueError(f"the value of the header {name[:100]!r} contains characters that a header cannot have")


def decode_headers(lines: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Decodes header lines: names become lower case, repeated ones have their values joined."""
    headers: dict[str, str] = {}
    for name, value in lines:
        headers[_NAMES[name]] = value.decode("latin-1")
    if len(headers) < len(lines):
        headers.clear()
        for name, value in lines:
            before = headers.get(_NAMES[name])
            text = value.decode("latin-1")
            headers[_NAMES[name]] = text if before is None else f"{before}, {text}"
    return headers
