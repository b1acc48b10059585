"""Converts the last event into the finish reason and the usage, or into the error that ended the response.

It also describes what the backend reports beside the response, in words and counts without contents.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from google.protobuf.unknown_fields import UnknownFieldSet

from adapters.warp.multi_agent_pb2 import Citation, DocumentType, LLMProvider, StreamFinished
from gateway.core.backend_status import SOON, status_error
from gateway.core.conversation import Json
from gateway.core.errors import BackendError, BackendRejected, Kind
from gateway.core.events import Reason, UsageReport

# A missing reason is a success. Tool calls have no reason of their own: they end in `done`, too.
REASONS: Final[Mapping[str | None, Reason]] = {None: "stop", "done": "stop", "max_token_limit": "length"}

# An estimate may exceed the whole window somewhat.
_FULLEST: Final = 2.0

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

    The figures of this response are in `token_usage` or in `request_charges`. If neither counts any token, only the
    conversation's total is known; its split is unknown and not guessed. The total counts this response alone, unless
    the backend's conversation was `continued`: then it is an estimate.
    """
    counted_here = _exact(finished.token_usage) or _charged(finished.request_charges)
    if counted_here is not None:
        return counted_here
    counted = finished.conversation_usage_metadata
    maps = (counted.warp_token_usage, counted.byok_token_usage, counted.custom_endpoint_token_usage)
    total = sum(usage.total_tokens for kind in maps for usage in kind.values())
    return UsageReport(total_tokens=total, estimated=continued) if total else None


def _exact(usages: Iterable[StreamFinished.TokenUsage]) -> UsageReport | None:
    prompt = completion = cached = 0
    for usage in usages:
        prompt += usage.total_input
        completion += usage.output
        cached += usage.input_cache_read
    return _report(prompt, completion, cached, 0)


def _charged(charges: StreamFinished.RequestCharges) -> UsageReport | None:
    """Returns the sum over all models. The four counts of a model are disjoint, as the wire's own client adds them."""
    fresh = completion = cached = written = 0
    for usage in charges.usage_by_category.values():
        maps = (usage.direct_api_inference_usage, usage.byok_inference_usage, usage.custom_endpoint_inference_usage)
        for count in (inference.token_count for kind in maps for inference in kind.values()):
            fresh += count.input
            completion += count.output
            cached += count.input_cache_read
            written += count.input_cache_write
    prompt = fresh + cached + written
    return _report(prompt, completion, cached, written)


def _report(prompt: int, completion: int, cached: int, written: int) -> UsageReport | None:
    if not (prompt or completion):
        return None
    counts = {"cached_tokens": cached, "cache_write_tokens": written}
    details: dict[str, Json] = {name: count for name, count in counts.items() if count}
    extra: dict[str, Json] = {"prompt_tokens_details": details} if details else {}
    return UsageReport(prompt, completion, prompt + completion, extra=extra)


def read_pruned_media(finished: StreamFinished) -> int:
    """Returns how many images and files the backend left out.

    Two published versions of the wire use one number, 13: for this count, whose field 1 is a number, and for the
    charges, whose field 1 is a map. The parser keeps a field 1 that is no map as unknown.
    """
    unknown = UnknownFieldSet(finished.request_charges)
    counts = (unknown[n].data for n in range(len(unknown)) if (unknown[n].field_number, unknown[n].wire_type) == (1, 0))
    return max(counts, default=0)


def describe_citations(citations: Iterable[Citation]) -> str:
    """Returns how many documents of each kind are cited, each document once, or an empty string for none."""
    cited = {(citation.document_type, citation.document_id) for citation in citations}
    names = DocumentType.DESCRIPTOR.values_by_number
    kinds = Counter(_words(names[number].name) if number in names else "unknown" for number, _ in cited)
    return ", ".join(f"{kind} ({count})" for kind, count in sorted(kinds.items()))


def describe_context_window(counted: StreamFinished.ConversationUsageMetadata) -> str:
    """Returns how full the model's context window is and with what, in estimated tokens, or an empty string where the
    backend does not say it.

    `context_window_usage` is a fraction, as the wire's own client reads it; a number that can be none is left out.
    """
    kinds = StreamFinished.ContextWindowSegmentType.DESCRIPTOR.values_by_number
    tokens: Counter[str] = Counter()
    for segment in counted.context_window_segments:
        tokens[_words(kinds.get(segment.segment_type, kinds[0]).name)] += segment.token_count
    said = [f"{kind}: {count} tokens" for kind, count in sorted(tokens.items())]
    if counted.total_input_tokens:
        said.insert(0, f"newest request to the model: {counted.total_input_tokens} tokens")
    if 0 < counted.context_window_usage <= _FULLEST:
        said.insert(0, f"the conversation fills {counted.context_window_usage:.0%} of the model's context window")
    return "; ".join(said)


def _words(name: str) -> str:
    """Returns the name of an enum's value as words, without the prefix."""
    return name.partition("_")[2].replace("_", " ").lower()
