"""What a budget of an API key counts, in which window of time, and how a request over it is refused.

Everything is counted in whole numbers: tokens, and millionths of a unit of money (micros). Windows are those of UTC:
each minute, each day, each month of the calendar. A request counts in the windows in which it was admitted, however
long it runs.
"""

import math
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from gateway.core.backend_status import NO_RETRY
from gateway.core.errors import GatewayError
from gateway.settings import BudgetSettings, Price

BudgetName: TypeAlias = Literal[
    "tokens_per_minute", "tokens_per_day", "tokens_per_month", "money_per_day", "money_per_month"
]
BUDGETS: Final[tuple[BudgetName, ...]] = get_args(BudgetName)
_MINUTE_S: Final = 60
_MICROS: Final = 1_000_000
# Prices are those of so many tokens.
_PRICED: Final = 1_000_000
# More counts as so much: whatever a backend reports, every store holds it (SQLite has 64 bits, Lua doubles).
MOST: Final = 2**53 - 1


class Window(msgspec.Struct, frozen=True):
    """A window of time: seconds since 1970, `end` not included."""

    start: int
    end: int

    def holds(self, now: float) -> bool:
        """Returns whether a time lies in it."""
        return self.start <= now < self.end


class Budget(msgspec.Struct, frozen=True):
    """A limit of a key: so many tokens, or micros, in each window."""

    name: BudgetName
    limit: int


class Amount(msgspec.Struct, frozen=True):
    """What a request has used, or is expected to use."""

    tokens: int = 0
    micros: int = 0

    def of(self, name: BudgetName) -> int:
        """Returns what the budget counts of it."""
        return self.tokens if name.startswith("tokens") else self.micros


NOTHING: Final = Amount()


def budgets_of(settings: BudgetSettings) -> tuple[Budget, ...]:
    """Returns the limits that are set."""
    found = []
    for name in BUDGETS:
        limit = getattr(settings, name)
        if limit is not None:
            found.append(Budget(name, limit if name.startswith("tokens") else round(limit * _MICROS)))
    return tuple(found)


def window_of(name: BudgetName, now: float) -> Window:
    """Returns the window of a budget at a time, in seconds since 1970."""
    if name == "tokens_per_minute":
        start = int(now // _MINUTE_S) * _MINUTE_S
        return Window(start, start + _MINUTE_S)
    day = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if name.endswith("day"):
        return Window(int(day.timestamp()), int((day + timedelta(days=1)).timestamp()))
    month = day.replace(day=1)
    # The 32nd day lies in the next month, whichever this one is.
    following = (month + timedelta(days=31)).replace(day=1)
    return Window(int(month.timestamp()), int(following.timestamp()))


def amount_of(price: Price | None, prompt: int, completion: int, cached: int = 0) -> Amount:
    """Returns what so many tokens are and cost; `cached` are those of the prompt that the provider read from its cache.
    Parts of a micro count as a whole one. Without a price they cost nothing: no budget of money allows that."""
    tokens = min(prompt + completion, MOST)
    if price is None:
        return Amount(tokens)
    cached = min(cached, prompt)
    for_cached = price.input if price.cached_input is None else price.cached_input
    parts = ((price.input, prompt - cached), (for_cached, cached), (price.output, completion))
    total = sum(round(each * _MICROS) * number for each, number in parts)
    return Amount(tokens, min(-(-total // _PRICED), MOST))


def expected_of(price: Price | None, prompt: int) -> Amount:
    """Returns what a request is expected to use before its answer is there: its prompt, and at least one of all that it
    will use, so that a spent budget refuses it."""
    found = amount_of(price, prompt, 0)
    costs = price is not None and price.output > 0
    return Amount(max(found.tokens, 1), max(found.micros, 1) if costs else found.micros)


def refusal(budget: Budget, window: Window, needed: int, now: float) -> GatewayError:
    """Returns the error for a request of which the rest of a budget does not allow what it needs, until its window
    ends."""
    ends = datetime.fromtimestamp(window.end, UTC)
    said = f"This API key has spent its budget {budget.name}. The next window begins at {ends:%Y-%m-%dT%H:%M:%SZ}."
    if needed > budget.limit:
        said = f"The prompt alone is expected to need more than the whole budget {budget.name} of this API key."
    return GatewayError(
        said,
        status=429,
        kind="rate_limit",
        code="insufficient_quota",
        headers={**NO_RETRY, "retry-after": str(max(1, math.ceil(window.end - now)))},
    )


def unconfirmed(why: str, wait_s: int) -> GatewayError:
    """Returns the error for a request of which nobody can say now whether a budget allows it."""
    return GatewayError(
        f"Whether the budget of this API key allows the request is not known now: {why}. Try again soon.",
        status=503,
        code="budget_unavailable",
        headers={"retry-after": str(wait_s)},
    )
