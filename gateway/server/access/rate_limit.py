"""Counts the usage of each API key and refuses a request that exceeds the key's limits.

The `RateLimitStore` decides where the usage is kept: in this process, or in a file that the workers share.
"""

import math
from typing import Final, Literal, Protocol, TypeAlias

import msgspec

from gateway.core.errors import GatewayError
from gateway.settings import KeySettings

MINUTE: Final = 60.0

# The limit that a request exceeds: its name in the settings.
Limited: TypeAlias = Literal["concurrent_streams", "requests_per_minute"]


class KeyUsage(msgspec.Struct, frozen=True):
    """The usage of one key: the number of running requests, and when the next one is due at an even pace (monotonic
    clock)."""

    running: int = 0
    due: float = -math.inf


class RateLimitStore(Protocol):
    """Counts the running and the admitted requests of each key. Keys without limits cost only memory.

    `failures` counts the failed accesses to a shared store."""

    failures: int

    def limit(self, key: str, limits: KeySettings) -> None:
        """Sets the limits of a key; running requests continue and count."""

    def acquire(self, key: str, now: float) -> None:
        """Counts one more request of a key whose limits are known. Raises GatewayError 429."""

    def release(self, key: str) -> None:
        """Counts the end of one of the key's requests."""

    def settle(self, now: float) -> None:
        """Repeats the reads and writes that have failed; called about once a second."""

    def close(self) -> None:
        """Closes the store: no request is running any more."""


class MemoryRateLimits:
    """Rate limits in the memory of the only serving process."""

    failures = 0

    def __init__(self) -> None:
        self.limits: dict[str, KeySettings] = {}
        self.usage: dict[str, KeyUsage] = {}

    def limit(self, key: str, limits: KeySettings) -> None:
        """See `RateLimitStore`."""
        self.limits[key] = limits
        self.usage.setdefault(key, KeyUsage())

    def acquire(self, key: str, now: float) -> None:
        """See `RateLimitStore`."""
        self.usage[key] = count_request(self.usage[key], self.limits[key], now)

    def release(self, key: str) -> None:
        """See `RateLimitStore`."""
        usage = self.usage[key]
        self.usage[key] = KeyUsage(usage.running - 1, usage.due)

    def settle(self, now: float) -> None:
        """Does nothing: no access is ever pending."""

    def close(self) -> None:
        """Does nothing: there is no resource to close."""


def count_request(usage: KeyUsage, limits: KeySettings, now: float) -> KeyUsage:
    """Returns the usage with one more request. Raises GatewayError 429."""
    if limits.concurrent_streams is not None and usage.running >= limits.concurrent_streams:
        raise limit_error("concurrent_streams", 1)
    due = usage.due
    if limits.requests_per_minute is not None:
        due = _next_due(due, limits.requests_per_minute, now)
    return KeyUsage(usage.running + 1, due)


def _next_due(due: float, per_minute: int, now: float) -> float:
    """Allows a burst, then an even pace: the generic cell rate algorithm (GCRA), which needs only one number."""
    gap = MINUTE / per_minute
    wait = due - (MINUTE - gap) - now
    if wait > 0:
        raise limit_error("requests_per_minute", wait)
    return max(due, now) + gap


def limit_error(limit: Limited, wait: float) -> GatewayError:
    """Returns the error for a request that exceeds a limit; one may be admitted in `wait` seconds."""
    return GatewayError(
        f"This API key has reached its limit {limit}.",
        status=429,
        kind="rate_limit",
        code="rate_limit_exceeded",
        headers={"retry-after": str(math.ceil(wait))},
    )
