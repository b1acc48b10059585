"""Encodes token counts as the OpenAI usage object."""

from msgspec import Struct

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.dialects.usage import token_counts


class Usage(Struct, frozen=True):
    """Token counts; `dragoman.usage` says how reliable they are."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


def usage_object(usage: UsageReport) -> dict[str, Json]:
    """Returns the three counts, then the backend's other fields."""
    prompt, completion, total = token_counts(usage)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **usage.extra}
