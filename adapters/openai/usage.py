"""Encodes token counts as the OpenAI usage object, and decodes them."""

from typing import Final

from msgspec import Struct

from gateway.core.conversation import EMPTY, Json
from gateway.core.events import UsageReport
from gateway.dialects.usage import token_counts
from gateway.wires.token_count import token_count


class Usage(Struct, frozen=True):
    """Token counts; `dragoman.usage` says how reliable they are."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


_COUNTS: Final = frozenset(Usage.__struct_fields__)


def usage_object(usage: UsageReport) -> dict[str, Json]:
    """Returns the three counts, then the backend's other fields."""
    prompt, completion, total = token_counts(usage)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **usage.extra}


def decode_usage(usage: dict[str, Json]) -> UsageReport:
    """Returns the counts, with the other fields that are not null. Missing, null and impossible counts become None."""
    return UsageReport(
        token_count(usage.get("prompt_tokens")),
        token_count(usage.get("completion_tokens")),
        token_count(usage.get("total_tokens")),
        False,
        {name: value for name, value in usage.items() if name not in _COUNTS and value is not None} or EMPTY,
    )
