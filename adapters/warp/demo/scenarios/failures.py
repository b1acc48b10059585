"""Defines scenarios that fail inside a stream after a valid beginning."""

from typing import Final

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.demo.scenario import WarpScenario, failure
from adapters.warp.demo.steps import (
    BEGIN,
    COMMIT,
    INIT,
    PRELUDE,
    Step,
    cut,
    finish,
    more_text,
    raw,
    silence,
    text_message,
    text_start,
)

_F: Final = pb.StreamFinished
# The text is committed, so that no reader has a reason to hold it back.
_PART: Final = "This much arrived"
_BEGUN: Final = (*PRELUDE, BEGIN, text_message(_PART), COMMIT)
_QUOTA: Final = _F(quota_limit=_F.QuotaLimit())


def _ends(kind: str, about: str, finished: pb.StreamFinished, status: int | None, code: str) -> WarpScenario:
    return WarpScenario(about=about, turns=((*PRELUDE, finish(finished)),), expect=failure(kind, status, code))


def _ends_after_text(kind: str, about: str, finished: pb.StreamFinished, code: str) -> WarpScenario:
    return WarpScenario(about=about, turns=((*_BEGUN, finish(finished)),), expect=failure(kind, None, code, _PART))


def _broken(kind: str, about: str, *steps: Step, code: str) -> WarpScenario:
    return WarpScenario(about=about, turns=((*_BEGUN, *steps),), expect=failure(kind, None, code, _PART))


_TRUNCATED: Final = "upstream_stream_truncated"
_INVALID: Final = "upstream_invalid_event"

FAILURES: Final[dict[str, WarpScenario]] = {
    "quota_in_stream": _ends(
        "quota", "the quota is exhausted, reported in the stream", _QUOTA, 429, "insufficient_quota"
    ),
    "quota_after_text": _ends_after_text(
        "quota", "the quota is exhausted after some text", _QUOTA, "insufficient_quota"
    ),
    "context_exceeded": _ends(
        "400",
        "the context window is exceeded",
        _F(context_window_exceeded=_F.ContextWindowExceeded()),
        400,
        "context_length_exceeded",
    ),
    "llm_unavailable": _ends(
        "503_bare", "no model is available", _F(llm_unavailable=_F.LLMUnavailable()), 503, "upstream_overloaded"
    ),
    "internal_error": _ends(
        "error_event",
        "an internal error with a message",
        _F(internal_error=_F.InternalError(message="it broke")),
        502,
        "upstream_error",
    ),
    "other": _ends("error_event", "an unspecified failure", _F(other=_F.Other()), 502, "upstream_error"),
    "invalid_api_key": _ends(
        "credential",
        "the user's own key of a provider is wrong",
        _F(invalid_api_key=_F.InvalidApiKey(provider=pb.PROVIDER_OPENAI, model_name="m")),
        502,
        "upstream_auth_error",
    ),
    "disconnect_reset": _broken("truncated", "the connection is reset after some text", cut("reset"), code=_TRUNCATED),
    "disconnect_fin": _broken("truncated", "the connection closes inside the body", cut("fin"), code=_TRUNCATED),
    "disconnect_eof": _broken("no_finish", "a well-formed end without the last event", cut("end"), code=_TRUNCATED),
    "disconnect_before_actions": WarpScenario(
        about="the connection closes before any action",
        turns=((INIT, cut("fin")),),
        expect=failure("truncated", 502, _TRUNCATED),
    ),
    "disconnect_in_transaction": WarpScenario(
        about="a well-formed end inside an open transaction",
        turns=((*PRELUDE, BEGIN, text_start("This much"), more_text(" arrived"), cut("end")),),
        expect=failure("no_finish", 502, _TRUNCATED, _PART),
    ),
    "stall": WarpScenario(
        about="silence after some text",
        turns=((*_BEGUN, silence()),),
        expect=failure("stall", None, "upstream_timeout", _PART),
        waits=True,
    ),
    "stall_first": WarpScenario(
        about="silence after the first event",
        turns=((silence(),),),
        expect=failure("stall", 504, "upstream_timeout"),
        waits=True,
    ),
    "bad_base64": _broken(
        "malformed", "an event with invalid base64, then the normal end", raw(b"%%%"), finish(), code=_INVALID
    ),
    "truncated_base64": _broken(
        "malformed", "truncated base64, then the normal end", raw(b"EhgKFhoUC"), finish(), code=_INVALID
    ),
    "bad_protobuf": _broken(
        "malformed", "base64 without a valid message, then the normal end", raw(b"_w=="), finish(), code=_INVALID
    ),
}
