"""Completes the token counts of an answer, and says how far they can be trusted; invents none."""

from collections.abc import Mapping
from typing import Final, Literal

from gateway.core.answer import merge_usage as merge_usage  # dialects of other packages have it from here
from gateway.core.conversation import Json
from gateway.core.events import MOST_TOKENS, UsageReport

UsageNote = Literal["total_only", "partial", "estimated"]
UsagePart = Literal["cached_tokens", "cache_write_tokens", "reasoning_tokens"]

# Where servers of chat completions report the parts of a count, OpenAI's places first. Sources: the references of
# DeepSeek (`prompt_cache_hit_tokens`), Kimi (`cached_tokens`) and Mistral's SDK (`num_cached_tokens`,
# `prompt_token_details`), SGLang's protocol (`reasoning_tokens`), Alibaba, "Context cache", and LiteLLM, "Prompt
# caching" (`cache_creation_*`, `cache_read_input_tokens`; its count of the prompt includes them).
_PLACES: Final[dict[UsagePart, tuple[tuple[str, str], ...]]] = {
    "cached_tokens": (
        ("prompt_tokens_details", "cached_tokens"),
        ("prompt_token_details", "cached_tokens"),
        ("", "prompt_cache_hit_tokens"),
        ("", "cached_tokens"),
        ("", "num_cached_tokens"),
        ("", "cache_read_input_tokens"),
    ),
    "cache_write_tokens": (
        ("prompt_tokens_details", "cache_write_tokens"),
        ("prompt_tokens_details", "cache_creation_input_tokens"),
        ("prompt_tokens_details", "cache_creation_tokens"),
        ("", "cache_creation_input_tokens"),
    ),
    "reasoning_tokens": (("completion_tokens_details", "reasoning_tokens"), ("", "reasoning_tokens")),
}


def token_counts(usage: UsageReport) -> tuple[int, int, int]:
    """Returns the tokens of the prompt, of the completion, and of both, for clients that require numbers.

    A missing count follows from the two others; where it does not, it is 0 and `usage_note` says so.
    """
    prompt, completion, total = usage.prompt_tokens, usage.completion_tokens, usage.total_tokens
    if total is not None:
        if prompt is None and completion is not None:
            prompt = max(total - completion, 0)
        elif completion is None and prompt is not None:
            completion = max(total - prompt, 0)
    prompt, completion = prompt or 0, completion or 0
    return prompt, completion, prompt + completion if total is None else total


def usage_part(usage: UsageReport, part: UsagePart) -> int | None:
    """Returns the tokens of a count that were cached or reasoning; None: the backend did not report them."""
    if not usage.extra:
        return None
    for details, name in _PLACES[part]:
        fields: Json | Mapping[str, Json] = usage.extra.get(details) if details else usage.extra
        count = fields.get(name) if isinstance(fields, Mapping) else None
        if type(count) is int and 0 <= count <= MOST_TOKENS:
            return count
    return None


def usage_note(usage: UsageReport) -> UsageNote | None:
    """Returns the note on the origin of the counts; None when the backend reported all of them."""
    if usage.estimated:
        return "estimated"
    asked, answered = usage.prompt_tokens is not None, usage.completion_tokens is not None
    if asked and answered:
        return None
    if usage.total_tokens is None:
        return "partial"
    return None if asked or answered else "total_only"
