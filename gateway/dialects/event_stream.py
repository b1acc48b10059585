"""Defines what every dialect of server-sent events sends: the headers, and data that is one line to every client."""

from typing import Final

from gateway.dialects.openapi import EVENT_STREAM

EVENT_STREAM_HEADERS: Final = (
    (b"content-type", f"{EVENT_STREAM}; charset=utf-8".encode()),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
# The last event of OpenAI's streams, and a comment, which clients ignore.
DONE: Final = b"data: [DONE]\n\n"
PING: Final = b": ping\n\n"


def one_line_each(data: bytes) -> bytes:
    """Escapes U+2028, U+2029 and U+0085.

    They are legal in JSON and no line ends in SSE, but many clients split lines with a function that takes them for
    line ends.
    """
    if data.isascii():
        return data
    # Not `in`: for bytes it first tries a number, and takes ten times as long.
    if data.find(b"\xe2\x80") >= 0:
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return data.replace(b"\xc2\x85", b"\\u0085") if data.find(b"\xc2\x85") >= 0 else data
