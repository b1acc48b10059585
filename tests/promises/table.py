"""The promises about a faulty backend as one table: what happens -> what the client, the operator and the counters see.

`docs/promises.md` shows this table, and `test_faults.py` plays every row on every wire.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

Phase = Literal["connect", "head", "stream"]


class Told(msgspec.Struct, frozen=True):
    """What a client is told. `headers` are those that the answer must have."""

    status: int
    code: str
    type: str = "upstream_error"
    headers: Mapping[str, str] = {}


class Promise(msgspec.Struct, frozen=True):
    """One row. `faults` are names of `gateway.testing.faults`. `early` is told before the first text, and to a client
    that does not stream; `late` is the code of the error frame after the first text (None: cannot happen there).

    `phase` is where the counters see an early fault.
    `counted` are further counters, beside those of every row. `waits`: only a limit of time ends the fault.
    """

    id: str
    says: str
    faults: tuple[str, ...]
    early: Told
    late: str | None = None
    phase: Phase = "connect"
    counted: tuple[str, ...] = ()
    level: Literal["warning", "error"] = "warning"
    waits: bool = False


def _caller(status: int, code: str = "its_code") -> Told:
    return Told(status, code, "invalid_request_error")


FINAL: Final = {"x-should-retry": "false"}
TRUNCATED: Final = "upstream_stream_truncated"
LOST: Final = ("gateway_truncated_streams_total",)
SLOW: Final = ("gateway_ttfb_timeouts_total",)

PROMISES: Final[tuple[Promise, ...]] = (
    Promise(
        "unreachable",
        "The connection is refused",
        ("the connection is refused",),
        Told(502, "upstream_connection_error"),
    ),
    Promise(
        "tls",
        "No trusted TLS connection comes about",
        ("no TLS where TLS is expected",),
        Told(502, "upstream_tls_error", headers=FINAL),
    ),
    Promise(
        "closed",
        "It closes or resets before its head is complete",
        ("it closes before the head", "it resets before the head", "it closes in the head"),
        Told(502, "upstream_connection_error"),
        phase="head",
    ),
    Promise(
        "no_http",
        "The head is garbage, a flood, or has no end",
        ("garbage instead of a head", "a flood of headers", "a header without end"),
        Told(502, "upstream_protocol_error"),
        phase="head",
    ),
    Promise(
        "no_head",
        "No head, half of one, or one that trickles, until the first-byte limit (of a whole answer: the total one)",
        ("silence before the head", "half a status line", "a head that trickles"),
        Told(504, "upstream_timeout", headers=FINAL),
        phase="head",
        counted=SLOW,
        waits=True,
    ),
    Promise("400", "400", ("status 400",), _caller(400), phase="head"),
    Promise("422", "422", ("status 422",), _caller(422), phase="head"),
    Promise(
        "credential",
        "401 or 403: the gateway's own credential is refused",
        ("status 401", "status 403"),
        Told(502, "upstream_auth_error", headers=FINAL),
        phase="head",
        level="error",
    ),
    Promise("404", "404", ("status 404",), _caller(404, "model_not_found"), phase="head"),
    Promise("408", "408 or 504", ("status 408", "status 504"), Told(504, "upstream_timeout"), phase="head"),
    Promise("409", "409", ("status 409",), _caller(409), phase="head"),
    Promise("413", "413", ("status 413",), _caller(413), phase="head"),
    Promise(
        "429",
        "429 with a sound `retry-after`",
        ("status 429",),
        Told(429, "its_code", "rate_limit_error", {"retry-after": "7"}),
        phase="head",
    ),
    Promise(
        "429_odd",
        "429 with an odd `retry-after`, which is left out",
        ("status 429 with odd patience",),
        Told(429, "its_code", "rate_limit_error", {"retry-after": ""}),
        phase="head",
    ),
    Promise(
        "429_cut",
        "429 whose body breaks off",
        ("status 429 that breaks off",),
        Told(429, "rate_limit_exceeded", "rate_limit_error"),
        phase="head",
    ),
    Promise(
        "quota",
        "429 because the quota is spent",
        ("status 429 for good",),
        Told(429, "insufficient_quota", "rate_limit_error", FINAL),
        phase="head",
    ),
    Promise(
        "500",
        "500, 502, with or without a page; nothing of it is passed on",
        ("status 500", "status 500 with a page", "status 502 with a page"),
        Told(502, "upstream_error"),
        phase="head",
    ),
    Promise(
        "503",
        "503 or 529",
        ("status 503", "status 529"),
        Told(503, "upstream_overloaded", headers={"retry-after": "3"}),
        phase="head",
    ),
    Promise(
        "503_bare",
        "503 that does not say when to come back",
        ("status 503 without patience",),
        Told(503, "upstream_overloaded", headers={"retry-after": "1"}),
        phase="head",
    ),
    Promise(
        "redirect", "A redirect, which is not followed", ("status 307",), Told(502, "upstream_redirect"), phase="head"
    ),
    Promise("204", "204", ("status 204",), Told(502, "upstream_invalid_response"), phase="head"),
    Promise(
        "page", "200 with a page", ("a page with status 200",), Told(502, "upstream_invalid_response"), phase="head"
    ),
    Promise(
        "gzip",
        "200 with a compressed body that is a bomb: it would grow to more than 200 times its size, and a megabyte",
        ("gzip",),
        Told(502, "upstream_response_too_large"),
        phase="head",
    ),
    Promise(
        "gzip_cut",
        "200 with a compressed body that is none, or that holds less than it should",
        ("gzip that is cut off", "gzip that is none"),
        Told(502, TRUNCATED),
        phase="head",
        counted=LOST,
    ),
    Promise(
        "coding",
        "200 with a body in another coding than gzip and deflate",
        ("brotli",),
        Told(502, "upstream_invalid_response"),
        phase="head",
    ),
    Promise(
        "empty",
        "200 with an empty body, or one that holds no event at all",
        ("an empty body", "nothing but comments and an end"),
        Told(502, "upstream_invalid_response"),
        TRUNCATED,
        "head",
        counted=LOST,
    ),
    Promise(
        "hollow",
        "200 with a body of length 0, with JSON that holds no answer or is too deep, or with no JSON where it says so",
        (
            "a body of no bytes",
            "JSON without an answer",
            "JSON without a choice",
            "JSON that is none",
            "JSON that is too deep",
        ),
        Told(502, "upstream_invalid_response"),
        phase="head",
    ),
    Promise(
        "error_event",
        "An error in a body with status 200",
        ("an error in the body",),
        Told(502, "upstream_error"),
        "upstream_error",
        "head",
    ),
    Promise(
        "too_large",
        "An answer larger than `limits.max_response_mb`, or of which a Warp backend rewrote more than 256 MB",
        ("an answer without end",),
        Told(502, "upstream_response_too_large"),
        "upstream_response_too_large",
        "stream",
    ),
    Promise(
        "event_too_large",
        "An event larger than `limits.max_event_mb`, or a line without end",
        ("an event without end",),
        Told(502, "upstream_event_too_large"),
        "upstream_event_too_large",
        "head",
    ),
    Promise(
        "truncated",
        "It closes or resets in the body, in an event or in a chunk, or the framing breaks",
        (
            "it closes in the body",
            "it resets in the body",
            "it closes in an event",
            "an end in an event",
            "it closes in a chunk",
            "a chunk without a size",
        ),
        Told(502, TRUNCATED),
        TRUNCATED,
        "head",
        counted=LOST,
    ),
    Promise(
        "framing",
        "The framing breaks in the same breath as the head comes",
        ("a chunk without a size right behind the head",),
        Told(502, TRUNCATED),
        phase="head",
        counted=LOST,
    ),
    Promise(
        "no_finish",
        "The body ends well, but the answer has no finish",
        ("an end without a finish",),
        Told(502, TRUNCATED),
        TRUNCATED,
        "stream",
        counted=LOST,
    ),
    Promise(
        "stall",
        "Silence in the body, nothing but comments, an event that trickles",
        ("silence in the body", "nothing but comments", "an event that trickles"),
        Told(504, "upstream_timeout", headers=FINAL),
        "upstream_timeout",
        "head",
        waits=True,
    ),
    Promise(
        "lost_call",
        "It ends for a tool call that is not there, or sends one without a function",
        ("a call that is not there",),
        Told(502, "upstream_invalid_tool_call"),
        "upstream_invalid_tool_call",
        "head",
    ),
    Promise(
        "malformed",
        "An event that is no base64, protobuf or JSON",
        ("a malformed event",),
        Told(502, "upstream_invalid_event"),
        "upstream_invalid_event",
        "head",
    ),
)
