"""The promises about a faulty backend as one table: what happens -> what the client, the operator and the counters see.

`docs/promises.md` shows these tables, `test_faults.py` plays every row on every wire, and `test_grpc_faults.py` those
of gRPC.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

Phase = Literal["connect", "head", "stream"]


class ClientError(msgspec.Struct, frozen=True):
    """The error that a client receives. `headers` are those that the response must have."""

    status: int
    code: str
    type: str = "upstream_error"
    headers: Mapping[str, str] = {}


class Promise(msgspec.Struct, frozen=True):
    """One row. `id` is a kind of `gateway.demo.faults.kinds.FAILURES`. `early` is the error before the first text,
    and of a client that does not stream; `late` is the code of the error frame after it (None: cannot happen there).

    `phase` is that of an early fault in the counters. `counted` are further counters, beside those of every row.
    `waits`: only a timeout ends the fault. `attempts` to send the request are made.
    """

    id: str
    early: ClientError
    late: str | None = None
    phase: Phase = "connect"
    counted: tuple[str, ...] = ()
    level: Literal["warning", "error"] = "warning"
    waits: bool = False
    attempts: int = 1


def _caller(status: int, code: str = "its_code") -> ClientError:
    return ClientError(status, code, "invalid_request_error")


FINAL: Final = {"x-should-retry": "false"}
TRUNCATED: Final = "upstream_stream_truncated"
LOST: Final = ("gateway_truncated_streams_total",)
SLOW: Final = ("gateway_ttfb_timeouts_total",)

PROMISES: Final[tuple[Promise, ...]] = (
    Promise("unreachable", ClientError(502, "upstream_connection_error"), attempts=2),
    Promise("tls", ClientError(502, "upstream_tls_error", headers=FINAL)),
    Promise("closed", ClientError(502, "upstream_connection_error"), phase="head"),
    Promise("no_http", ClientError(502, "upstream_protocol_error"), phase="head"),
    Promise("no_head", ClientError(504, "upstream_timeout", headers=FINAL), phase="head", counted=SLOW, waits=True),
    Promise("400", _caller(400), phase="head"),
    Promise("422", _caller(422), phase="head"),
    Promise("credential", ClientError(502, "upstream_auth_error", headers=FINAL), phase="head", level="error"),
    Promise("404", _caller(404, "model_not_found"), phase="head"),
    Promise("unknown_url", ClientError(502, "upstream_unknown_url", headers=FINAL), phase="head", level="error"),
    Promise("408", ClientError(504, "upstream_timeout"), phase="head"),
    Promise("409", _caller(409), phase="head"),
    Promise("413", _caller(413), phase="head"),
    Promise("429", ClientError(429, "its_code", "rate_limit_error", {"retry-after": "7"}), phase="head"),
    Promise("429_odd", ClientError(429, "its_code", "rate_limit_error", {"retry-after": "1"}), phase="head"),
    Promise("429_cut", ClientError(429, "rate_limit_exceeded", "rate_limit_error", {"retry-after": "1"}), phase="head"),
    Promise("quota", ClientError(429, "insufficient_quota", "rate_limit_error", FINAL), phase="head"),
    Promise("500", ClientError(502, "upstream_error"), phase="head"),
    Promise("503", ClientError(503, "upstream_overloaded", headers={"retry-after": "3"}), phase="head"),
    Promise("503_bare", ClientError(503, "upstream_overloaded", headers={"retry-after": "1"}), phase="head"),
    Promise("redirect", ClientError(502, "upstream_redirect", headers=FINAL), phase="head"),
    Promise("204", ClientError(502, "upstream_invalid_response"), phase="head"),
    Promise("page", ClientError(502, "upstream_invalid_response"), phase="head"),
    Promise("gzip", ClientError(502, "upstream_response_too_large"), phase="head"),
    Promise("gzip_cut", ClientError(502, TRUNCATED), phase="head", counted=LOST),
    Promise("coding", ClientError(502, "upstream_invalid_response"), phase="head"),
    Promise("empty", ClientError(502, "upstream_invalid_response"), TRUNCATED, "head", counted=LOST),
    Promise("hollow", ClientError(502, "upstream_invalid_response"), phase="head"),
    Promise("error_event", ClientError(502, "upstream_error"), "upstream_error", "head"),
    Promise("too_large", ClientError(502, "upstream_response_too_large"), "upstream_response_too_large", "stream"),
    Promise("event_too_large", ClientError(502, "upstream_event_too_large"), "upstream_event_too_large", "head"),
    Promise("truncated", ClientError(502, TRUNCATED), TRUNCATED, "head", counted=LOST),
    Promise("framing", ClientError(502, TRUNCATED), phase="head", counted=LOST),
    Promise("no_finish", ClientError(502, TRUNCATED), TRUNCATED, "stream", counted=LOST),
    Promise("stall", ClientError(504, "upstream_timeout", headers=FINAL), "upstream_timeout", "head", waits=True),
    Promise("lost_call", ClientError(502, "upstream_invalid_tool_call"), "upstream_invalid_tool_call", "head"),
    Promise("malformed", ClientError(502, "upstream_invalid_event"), "upstream_invalid_event", "head"),
)

# The kinds of `gateway.demo.faults.kinds.GRPC_FAILURES`.
GRPC_PROMISES: Final[tuple[Promise, ...]] = (
    Promise("not_http2", ClientError(502, "upstream_protocol_error", headers=FINAL)),
    Promise("no_settings", ClientError(502, "upstream_connection_error"), waits=True),
    Promise("no_window", ClientError(504, "upstream_timeout", headers=FINAL), phase="head", counted=SLOW, waits=True),
    Promise(
        "refused",
        ClientError(503, "upstream_overloaded", headers={"retry-after": "1"}),
        phase="head",
        attempts=2,
    ),
    Promise(
        "calm",
        ClientError(429, "rate_limit_exceeded", "rate_limit_error", {"retry-after": "1"}),
        "rate_limit_exceeded",
        "head",
    ),
    Promise("insecure", ClientError(502, "upstream_tls_error", headers=FINAL), "upstream_tls_error", "head"),
    Promise("reset", ClientError(502, TRUNCATED), TRUNCATED, "head", counted=LOST),
    Promise("head_too_large", ClientError(502, "upstream_protocol_error"), phase="head"),
    Promise("trailers_too_large", ClientError(502, TRUNCATED), TRUNCATED, "stream", counted=LOST),
    Promise("broken_frames", ClientError(502, TRUNCATED), TRUNCATED, "head", counted=LOST),
    Promise("flood", ClientError(502, TRUNCATED), TRUNCATED, "head", counted=LOST),
    Promise("status_alone", ClientError(503, "upstream_overloaded", headers={"retry-after": "1"}), phase="head"),
    Promise(
        "status_late",
        ClientError(503, "upstream_overloaded", headers={"retry-after": "1"}),
        "upstream_overloaded",
        "stream",
    ),
    Promise("no_status", ClientError(502, TRUNCATED), TRUNCATED, "stream", counted=LOST),
    Promise("half_message", ClientError(502, TRUNCATED), TRUNCATED, "head", counted=LOST),
    Promise("forged_status", ClientError(502, "upstream_invalid_event"), "upstream_invalid_event", "head"),
    Promise("compressed_message", ClientError(502, "upstream_invalid_event"), "upstream_invalid_event", "head"),
    Promise("message_too_large", ClientError(502, "upstream_event_too_large"), "upstream_event_too_large", "head"),
)
