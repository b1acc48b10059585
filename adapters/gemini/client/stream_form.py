"""Defines the two forms of a stream: server-sent events, and the elements of one array of JSON."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.dialects.event_stream import EVENT_STREAM_HEADERS
from gateway.dialects.openapi import JSON


class StreamForm(msgspec.Struct, frozen=True):
    """What stands around the chunks of a stream.

    `first` stands before the first chunk, `before` before any other, `behind` behind each, `end` behind the last one or
    behind an error. `first_error` and `before_error` stand before an error. `quiet` keeps the connection alive.
    """

    headers: tuple[tuple[bytes, bytes], ...]
    first: bytes
    before: bytes
    behind: bytes
    end: bytes
    first_error: bytes
    before_error: bytes
    quiet: bytes = b"\n"


# SDKs read a line that is not blank and does not begin with `data: ` as the JSON of an error, and every SDK raises it
# where nothing follows it. They read a comment in the same way.
EVENTS: Final = StreamForm(
    EVENT_STREAM_HEADERS, first=b"data: ", before=b"data: ", behind=b"\n\n", end=b"", first_error=b"", before_error=b""
)
ARRAY: Final = StreamForm(
    ((b"content-type", f"{JSON}; charset=utf-8".encode()), *EVENT_STREAM_HEADERS[1:]),
    first=b"[",
    before=b",\n",
    behind=b"",
    end=b"]",
    first_error=b"[",
    before_error=b",\n",
)
FORMS: Final[Mapping[str, StreamForm]] = {"sse": EVENTS, "json": ARRAY}
