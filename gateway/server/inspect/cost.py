"""Says what a request costs by the price of its model."""

from typing import Final

import msgspec

from gateway.core.events import UsageReport
from gateway.dialects.usage import usage_part
from gateway.server.inspect.summary import Cost
from gateway.settings import Price

_MILLION: Final = 1_000_000


class TokenCounts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The tokens of a request so far as they are known; `cached` are those of the prompt that the provider read from
    its cache, and `estimated`: the backend did not count them."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    estimated: bool = False


def token_counts(usage: UsageReport) -> TokenCounts:
    """Returns the tokens of a report."""
    cached = usage_part(usage, "cached_tokens") if usage.extra else None
    return TokenCounts(usage.prompt_tokens, usage.completion_tokens, cached, usage.estimated)


def cost_of(tokens: TokenCounts | None, price: Price | None) -> Cost | None:
    """Returns the cost; None where the model has no price, or the tokens are not known."""
    if price is None or tokens is None or tokens.prompt is None or tokens.completion is None:
        return None
    cached = min(tokens.cached or 0, tokens.prompt)
    for_cached = price.input if price.cached_input is None else price.cached_input
    amount = (tokens.prompt - cached) * price.input + cached * for_cached + tokens.completion * price.output
    return Cost(round(amount / _MILLION, 9), price.currency, tokens.estimated)
