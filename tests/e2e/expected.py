"""What an OpenAI client must see for every way in which the agent wire can answer: written down from the wire's rules,
not read back from the backend that plays them."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json

HELLO: Final = "Hello, world. This is a plain answer."
UNICODE: Final = (
    "Grüße, 世界! \U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001d518 e\u0301 "
    "\u2028 \u2029 \u0085 \x01\x1b\x7f \ufeff \u202etxet\u202c שלום مرحبا\r\n\ttab\n\n"
)
PART: Final = "This much arrived"

CAT: Final = ("Execute", '{"command":"cat config.json"}')
PARIS: Final = ("get_weather", '{"city":"Paris","days":3}')
ROME: Final = ("get_weather", '{"city":"Rome","days":3}')


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, or an error: `status` is that of the error as long as nothing was sent; `begun` is the text that a
    stream carries before its error frame (None: nothing, the stream has the status, too)."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = "stop"
    usage: Mapping[str, Json] | None = None
    status: int = 200
    type: str | None = None
    code: str | None = None
    begun: str | None = None
    retry: str | None = None


def calls(*named: tuple[str, str], text: str = "") -> Expected:
    return Expected(text=text, calls=named, finish="tool_calls")


def fails(status: int, code: str, kind: str = "upstream_error", begun: str | None = None) -> Expected:
    return Expected(status=status, code=code, type=kind, begun=begun, retry="1" if status == 503 else None)


def breaks(code: str, status: int = 502, kind: str = "upstream_error") -> Expected:
    """An error after text that no reader has a reason to hold back."""
    return fails(status, code, kind, PART)


TRUNCATED: Final = "upstream_stream_truncated"
MALFORMED: Final = "upstream_invalid_event"

STREAMS: Final[Mapping[str, Expected]] = {
    "plain_text": Expected(text=HELLO),
    "reasoning_text": Expected(text=HELLO, reasoning="The user wants an answer. I shall give one."),
    "single_mcp_call": calls(CAT, text="Let me"),
    "parallel_calls": calls(CAT, PARIS),
    "parallel_calls_two_events": calls(CAT, PARIS),
    "parallel_calls_same_tool": calls(PARIS, ROME),
    "call_then_result": calls(CAT, text="Let me"),
    "native_tool": fails(502, "upstream_unsupported_tool"),
    "native_tool_and_text": Expected(text="I looked around."),
    "server_tool": Expected(text="Done without you."),
    "rollback_retry": Expected(text="This is right."),
    "rollback_to_call": calls(PARIS),
    "rollback_end": fails(503, "upstream_overloaded"),
    "committed_twice": Expected(text="One. Two."),
    "never_committed": Expected(text="Kept."),
    "moved": Expected(text="Before the move, and after it."),
    "moved_in_transaction": Expected(text="Before the move, and after it."),
    "moved_back": Expected(text="Before the move, and after it."),
    "moved_range_unknown": Expected(text="Before the move, and after it."),
    "moved_task_unknown": fails(502, MALFORMED),
    "cited": Expected(text=HELLO),
    "context_window": Expected(
        text=HELLO,
        usage={
            "prompt_tokens": 30,
            "completion_tokens": 12,
            "total_tokens": 42,
            "prompt_tokens_details": {"cached_tokens": 10},
        },
    ),
    "newer_native_tools": Expected(text=HELLO),
    "quota_in_stream": fails(429, "insufficient_quota", "rate_limit_error"),
    "quota_after_text": breaks("insufficient_quota", 429, "rate_limit_error"),
    "context_exceeded": fails(400, "context_length_exceeded", "invalid_request_error"),
    "max_tokens": Expected(text="This answer is cut", finish="length"),
    "llm_unavailable": fails(503, "upstream_overloaded"),
    "internal_error": fails(502, "upstream_error"),
    "other": fails(502, "upstream_error"),
    # The credential is the gateway's own, so its refusal is no 401 of the client's.
    "invalid_api_key": fails(502, "upstream_auth_error"),
    "finished_without_reason": Expected(),
    "text_without_reason": Expected(text=HELLO),
    "empty_finish": Expected(),
    "disconnect_reset": breaks(TRUNCATED),
    "disconnect_fin": breaks(TRUNCATED),
    "disconnect_eof": breaks(TRUNCATED),
    # The request may have run, so it is not sent again.
    "disconnect_before_actions": fails(502, TRUNCATED),
    "disconnect_in_transaction": fails(502, TRUNCATED),
    "stall": breaks("upstream_timeout", 504),
    "stall_first": fails(504, "upstream_timeout"),
    "bad_base64": breaks(MALFORMED),
    "truncated_base64": breaks(MALFORMED),
    "bad_protobuf": breaks(MALFORMED),
    "encodings": Expected(text="Hello, wörld??>>~~. This is a plain answer."),
    "unknown_variant": Expected(text=HELLO),
    "mask_edge": Expected(text="Hello world"),
    "subtask": Expected(text="Mine only."),
    "metadata": Expected(text=HELLO),
    "events_after_finish": Expected(text=HELLO),
    "held_open": Expected(text=HELLO),
    # Only a sum is known: how it splits is not invented.
    "usage_only_total": Expected(text=HELLO, usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 42}),
    "usage_exact": Expected(
        text=HELLO,
        usage={
            "prompt_tokens": 30,
            "completion_tokens": 12,
            "total_tokens": 42,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    ),
    # The wire carries doubles: 2^53 + 1 cannot be said in it.
    "numbers": calls(
        ("measure", '{"count":5,"ratio":1.5,"big":9007199254740992,"nested":[{"n":1}],"nul":null,"s":"5"}')
    ),
    "unicode": Expected(text=UNICODE),
    "long_unicode": Expected(text=UNICODE * (1024 * 1024 // len(UNICODE.encode()))),
    "duplicate_tool_id": calls(PARIS, ROME),
    "missing_tool_id": calls(CAT),
    "empty_tool_name": fails(502, "upstream_invalid_tool_call"),
    "missing_args": calls(("Execute", "{}")),
    "empty_args": calls(("Execute", "{}")),
}

LATER: Final = "Fri, 01 Jan 2100 00:00:00 GMT"

# What the backend answers before any stream; where a second answer is promised, it is the plain text.
HTTP: Final[Mapping[str, tuple[Expected, bool]]] = {
    "quota_http": (fails(429, "insufficient_quota", "rate_limit_error"), False),
    "quota_http_text": (fails(429, "insufficient_quota", "rate_limit_error"), False),
    "http_401": (fails(502, "upstream_auth_error"), False),
    "http_403_html": (fails(502, "upstream_auth_error"), False),
    "http_404": (fails(404, "model_not_found", "invalid_request_error"), False),
    "http_404_url": (fails(502, "upstream_unknown_url"), False),
    "http_413": (fails(413, "request_too_large", "invalid_request_error"), False),
    "http_429_retry_after": (
        msgspec.structs.replace(fails(429, "rate_limit_exceeded", "rate_limit_error"), retry="2"),
        True,
    ),
    "http_429_retry_date": (
        msgspec.structs.replace(fails(429, "rate_limit_exceeded", "rate_limit_error"), retry=LATER),
        True,
    ),
    "http_429_endless": (
        msgspec.structs.replace(fails(429, "rate_limit_exceeded", "rate_limit_error"), retry="1"),
        False,
    ),
    "http_500_then_ok": (fails(502, "upstream_error"), True),
    "http_503_then_ok": (fails(503, "upstream_overloaded"), True),
    "wrong_content_type": (fails(502, "upstream_invalid_response"), False),
    "empty_body": (fails(502, "upstream_invalid_response"), False),
    "stall_headers": (fails(504, "upstream_timeout"), False),
}
