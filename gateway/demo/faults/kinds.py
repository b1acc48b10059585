"""Lists the kinds of faults of a backend, to which the catalogue, the test kit, the promises and the pages refer.

It stands below `gateway.demo` because the demo backends may not import the test kit, and the test kit may import them.
"""

from collections.abc import Mapping
from typing import Final

# Faults that the gateway reports as an error. The value describes the backend's behaviour.
FAILURES: Final[Mapping[str, str]] = {
    "unreachable": "The connection is refused",
    "tls": "A trusted TLS connection cannot be established",
    "closed": "It closes or resets before its head is complete",
    "no_http": "The head is garbage, too large, or has no end",
    "no_head": (
        "No head, an incomplete head, or one that trickles, until the first-byte limit (whole response: total limit)"
    ),
    "400": "400",
    "422": "422",
    "credential": "401 or 403: the gateway's own credential is refused",
    "404": "404 that names a model",
    "unknown_url": "404 that names none: a page, plain text, or other words",
    "408": "408 or 504",
    "409": "409",
    "413": "413",
    "429": "429 with a valid `retry-after`",
    "429_odd": "429 with an invalid `retry-after`, which is dropped",
    "429_cut": "429 whose body breaks off",
    "quota": "429 because the quota is exhausted",
    "500": "500, 502, with or without a page; its text is not passed on",
    "503": "503 or 529",
    "503_bare": "503 without `retry-after`",
    "redirect": "A redirect, which is not followed",
    "204": "204",
    "page": "200 with an HTML page",
    "gzip": "200 with a compression bomb: the body would expand to more than 200 times its size, and a megabyte",
    "gzip_cut": "200 with a compressed body that is invalid or incomplete",
    "coding": "200 with a content coding other than gzip and deflate",
    "empty": "200 with an empty body, or without any event",
    "hollow": "200 with a body of length 0, with JSON that has no answer or is too deep, or with invalid JSON",
    "error_event": "An error in a body with status 200",
    "too_large": "A response larger than `limits.max_response_mb`, or of which a Warp backend rewrote over 256 MB",
    "event_too_large": "An event larger than `limits.max_event_mb`, or a line without end",
    "truncated": "It closes or resets in the body, in an event or in a chunk, or the framing breaks",
    "framing": "The framing breaks in the same read as the head",
    "no_finish": "The body ends cleanly, but the response has no finish",
    "stall": "Silence in the body, nothing but comments, an event that trickles",
    "lost_call": "It finishes for a tool call that is missing, or sends one without a function",
    "malformed": "An event with invalid base64, protobuf or JSON",
}

# Faults that only a backend over gRPC can have, beside those above.
GRPC_FAILURES: Final[Mapping[str, str]] = {
    "not_http2": "It speaks HTTP/1.1",
    "no_settings": "It accepts the connection, and sends no SETTINGS",
    "no_window": "It takes nothing of the request: its window stays closed",
    "refused": "REFUSED_STREAM, or GOAWAY that excludes the request, twice",
    "calm": "RST_STREAM or GOAWAY with ENHANCE_YOUR_CALM",
    "insecure": "RST_STREAM or GOAWAY with INADEQUATE_SECURITY",
    "reset": "RST_STREAM with any other code",
    "head_too_large": "A head of more than 64 KiB, 128 fields or 8 CONTINUATION frames",
    "trailers_too_large": "Trailers of more than that",
    "broken_frames": "Bytes that are no frames, frames out of order, or more data than the window allows",
    "flood": "More than 200 frames without data in a second: PING, SETTINGS, RST_STREAM, empty DATA or unknown ones",
    "status_alone": "An error status instead of a response, in the head alone",
    "status_late": "An error status behind the text, here UNAVAILABLE",
    "no_status": "The stream ends without a status, even after a complete response",
    "half_message": "The status OK inside a message",
    "forged_status": "A status inside the body, as gRPC-Web sends it",
    "compressed_message": "A message whose flag says that it is compressed",
    "message_too_large": "A message whose length exceeds `limits.max_event_mb`; it is refused before it arrives",
}

# Irregular responses without a loss: the gateway serves them.
ODDITIES: Final[Mapping[str, str]] = {
    "unknown": "An unknown event or field",
    "utf8": "Invalid UTF-8 in a text",
    "split": "An event, or a character in it, cut between two reads",
    "compressed": "A body in gzip or deflate, although the gateway requested identity",
    "surrogate": "Half a surrogate pair",
    "twice": "A second finish",
    "late": "Text after the end",
    "late_garbage": "A malformed event or an error after the end",
    "held": "The response is complete but the socket stays open",
    "comments": "Comments and empty lines between events",
    "unended": "The last event has no end marker",
}
