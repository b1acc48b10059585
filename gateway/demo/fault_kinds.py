"""Lists the kinds of faults of a backend: the one catalogue that demo backends, test kit, promises and pages refer to.

It stands below `gateway.demo` because the demo backends may not import the test kit, and the test kit may import them.
"""

from collections.abc import Mapping
from typing import Final

# What the gateway reports as an error. The value says what the backend does.
FAILURES: Final[Mapping[str, str]] = {
    "unreachable": "The connection is refused",
    "tls": "No trusted TLS connection comes about",
    "closed": "It closes or resets before its head is complete",
    "no_http": "The head is garbage, a flood, or has no end",
    "no_head": (
        "No head, half of one, or one that trickles, until the first-byte limit (of a whole answer: the total one)"
    ),
    "400": "400",
    "422": "422",
    "credential": "401 or 403: the gateway's own credential is refused",
    "404": "404",
    "408": "408 or 504",
    "409": "409",
    "413": "413",
    "429": "429 with a sound `retry-after`",
    "429_odd": "429 with an odd `retry-after`, which is left out",
    "429_cut": "429 whose body breaks off",
    "quota": "429 because the quota is spent",
    "500": "500, 502, with or without a page; nothing of it is passed on",
    "503": "503 or 529",
    "503_bare": "503 that does not say when to come back",
    "redirect": "A redirect, which is not followed",
    "204": "204",
    "page": "200 with a page",
    "gzip": "200 with a compressed body that is a bomb: it would grow to more than 200 times its size, and a megabyte",
    "gzip_cut": "200 with a compressed body that is none, or that holds less than it should",
    "coding": "200 with a body in another coding than gzip and deflate",
    "empty": "200 with an empty body, or one that holds no event at all",
    "hollow": (
        "200 with a body of length 0, with JSON that holds no answer or is too deep, or with no JSON where it says so"
    ),
    "error_event": "An error in a body with status 200",
    "too_large": "An answer larger than `limits.max_response_mb`, or of which a Warp backend rewrote more than 256 MB",
    "event_too_large": "An event larger than `limits.max_event_mb`, or a line without end",
    "truncated": "It closes or resets in the body, in an event or in a chunk, or the framing breaks",
    "framing": "The framing breaks in the same breath as the head comes",
    "no_finish": "The body ends well, but the answer has no finish",
    "stall": "Silence in the body, nothing but comments, an event that trickles",
    "lost_call": "It ends for a tool call that is not there, or sends one without a function",
    "malformed": "An event that is no base64, protobuf or JSON",
}

# What is odd but loses nothing: the gateway serves the answer.
ODDITIES: Final[Mapping[str, str]] = {
    "unknown": "An event or a field that nobody knows",
    "utf8": "Bytes of a text that are not UTF-8",
    "split": "An event, or a character in it, cut between two reads",
    "compressed": "A body in gzip or deflate, though identity was asked for",
    "surrogate": "Half a surrogate pair",
    "twice": "A second finish",
    "late": "Text after the end",
    "late_garbage": "A malformed event or an error after the end",
    "held": "The answer is complete but the socket stays open",
    "comments": "Comments and empty lines between events",
    "unended": "The last event has no end of its own",
}
