"""Converts the last event into the finish reason and the usage, or into the error that ended the response."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from adapters.warp.multi_agent_pb2 import LLMProvider, StreamFinished
from gateway.core.backend_status import SOON, status_error
from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendRejected, Kind
from gateway.core.events import Reason, UsageReport

# A missing reason is a success. Tool calls have no reason of their own: they end in `done`, too.
REASONS: Final[Mapping[str | None, Reason]] = {None: "stop", "done": "stop", "max_token_limit": "length"}

QUOTA_SPENT: Final = "The backend's account has used up its quota."


class _Failure(msgspec.Struct, frozen=True):
    status: int
    kind: Kind
    code: str
    message: str
    retries: bool = True


FAILURES: Final[Mapping[str, _Failure]] = {
    "quota_limit": _Failure(429, "rate_limit", "insufficient_quota", QUOTA_SPENT, retries=False),
    "context_window_exceeded": _Failure(
        400,
        "invalid_request",
        "context_length_exceeded",
        "The conversation is longer than the context window of the model.",
        retries=False,
    ),
    "llm_unavailable": _Failure(503, "upstream", "upstream_overloaded", "The model is not available at the moment."),
    "internal_error": _Failure(502, "upstream", "upstream_error", "The backend failed."),
    "other": _Failure(502, "upstream", "upstream_error", "The backend ended the response without a known reason."),
}


def finish_error(finished: StreamFinished) -> BackendError | None:
    """Returns the error that a finish stands for, or None when it is a success."""
    reason = finished.WhichOneof("reason")
    if reason in REASONS:
        return None
    if reason == "invalid_api_key":
        return _invalid_key(finished.invalid_api_key.provider)
    failure = FAILURES.get(reason or "", FAILURES["other"])
    error = BackendRejected(
        failure.message,
        status=failure.status,
        kind=failure.kind,
        code=failure.code,
        headers={"x-should-retry": "false"} if not failure.retries else SOON if failure.status == 503 else {},
    )
    error.words = finished.internal_error.message
    return error


def _invalid_key(number: int) -> BackendError:
    """Creates the error for an invalid key. The key belongs to the gateway, so the error equals that of a 401; it names
    the provider, never the key."""
    names = LLMProvider.DESCRIPTOR.values_by_number
    provider = names[number].name.removeprefix("PROVIDER_") if number in names else "UNKNOWN"
    error = status_error(401, {})
    error.message = f"The backend's key for {provider.replace('_', ' ').title()} was refused."
    return error


def read_usage(finished: StreamFinished, continued: bool) -> UsageReport | None:
    """Returns the tokens of this response, or None when nothing was counted.

    Exact figures are rare. Otherwise only the conversation's total is known; its split is unknown and not guessed. The
    total counts this response alone, unless the backend's conversation was `continued`: then it is an estimate.
    """
    if finished.token_usage:
        return _exact(finished.token_usage)
    counted = finished.conversation_usage_metadata
    maps = (counted.warp_token_usage, counted.byok_token_usage, counted.custom_endpoint_token_usage)
    total = sum(usage.total_tokens for kind in maps for usage in kind.values())
    return UsageReport(total_tokens=total, estimated=continued) if total else None


def _exact(usages: Iterable[StreamFinished.TokenUsage]) -> UsageReport:
    prompt = completion = cached = 0
    for usage in usages:
        prompt += usage.total_input
        completion += usage.output
        cached += usage.input_cache_read
    details: dict[str, Json] = {"prompt_tokens_details": {"cached_tokens": cached}} if cached else {}
    return UsageReport(prompt, completion, prompt + completion, extra=details)
