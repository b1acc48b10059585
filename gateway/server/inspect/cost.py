"""Says what a request costs by the price of its model."""

from typing import Final

from gateway.core.events import UsageReport
from gateway.server.inspect.summary import Cost
from gateway.settings import Price

_MILLION: Final = 1_000_000


def cost_of(usage: UsageReport | None, price: Price | None) -> Cost | None:
    """Returns the cost; None where the model has no price, or the tokens are not known."""
    if price is None or usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    cached = min(cached_tokens(usage) or 0, usage.prompt_tokens)
    for_cached = price.input if price.cached_input is None else price.cached_input
    amount = (usage.prompt_tokens - cached) * price.input + cached * for_cached + usage.completion_tokens * price.output
    return Cost(round(amount / _MILLION, 9), price.currency, usage.estimated)


def cached_tokens(usage: UsageReport) -> int | None:
    """Returns how many tokens of the prompt the provider read from its cache; None where it does not say."""
    details = usage.extra.get("prompt_tokens_details")
    found = details.get("cached_tokens") if isinstance(details, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None
