"""What the holders of API keys use, and what they may -> one more request, or the error that refuses it.

Where the use is kept is a matter of the `Store`: in this process, or in a file that the workers share.
"""

import math
from typing import Final, Protocol

import msgspec

from gateway.errors import GatewayError
from gateway.settings import KeySettings

MINUTE: Final = 60.0


class Usage(msgspec.Struct, frozen=True):
    """What one key uses: how many requests run, and when the next one is due at an even pace (monotonic clock)."""

    running: int = 0
    due: float = -math.inf


class Store(Protocol):
    """Counts what is running and what was asked, key by key. Keys without limits cost it nothing but memory.

    `failures` is how often a store that others share could not be asked."""

    failures: int

    def limit(self, key: str, limits: KeySettings) -> None:
        """From now on these limits hold; what is running goes on and counts."""

    def take(self, key: str, now: float) -> None:
        """One more request of a key whose limits are known. Raises GatewayError 429."""

    def give_back(self, key: str) -> None:
        """One of its requests has ended."""

    def settle(self, now: float) -> None:
        """Catch up with what could not be told or asked; called about once a second."""

    def close(self) -> None:
        """Nothing runs any more."""


class MemoryStore:
    """All there is, while one process serves."""

    failures = 0

    def __init__(self) -> None:
        self.limits: dict[str, KeySettings] = {}
        self.usage: dict[str, Usage] = {}

    def limit(self, key: str, limits: KeySettings) -> None:
        """See Store."""
        self.limits[key] = limits
        self.usage.setdefault(key, Usage())

    def take(self, key: str, now: float) -> None:
        """See Store."""
        self.usage[key] = one_more(self.usage[key], self.limits[key], now)

    def give_back(self, key: str) -> None:
        """See Store."""
        usage = self.usage[key]
        self.usage[key] = Usage(usage.running - 1, usage.due)

    def settle(self, now: float) -> None:
        """Nothing is ever owed."""

    def close(self) -> None:
        """Nothing is open."""


def one_more(usage: Usage, limits: KeySettings, now: float) -> Usage:
    """The usage with one more request. Raises GatewayError 429."""
    if limits.concurrent_streams is not None and usage.running >= limits.concurrent_streams:
        raise _limited("As many requests are running as concurrent_streams of this API key allows.", 1)
    due = usage.due
    if limits.requests_per_minute is not None:
        due = _next_due(due, limits.requests_per_minute, now)
    return Usage(usage.running + 1, due)


def _next_due(due: float, per_minute: int, now: float) -> float:
    """So many at once, then evenly: the generic cell rate algorithm, for which one number is enough."""
    gap = MINUTE / per_minute
    wait = due - (MINUTE - gap) - now
    if wait > 0:
        raise _limited("The requests_per_minute of this API key are used up.", wait)
    return max(due, now) + gap


def _limited(message: str, wait: float) -> GatewayError:
    return GatewayError(
        message,
        status=429,
        type="rate_limit_error",
        code="rate_limit_exceeded",
        headers={"retry-after": str(math.ceil(wait))},
    )
