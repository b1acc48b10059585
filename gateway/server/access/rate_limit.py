"""Counts the usage of each API key and refuses a request that exceeds the key's limits.

Each process counts for itself. Where processes share their counts, `SharedRateLimits` (gateway/server/state) also asks
the shared store, but only for keys that have limits.
"""

import math
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.errors import GatewayError
from gateway.settings import KeySettings

MINUTE: Final = 60.0


class KeyUsage(msgspec.Struct, frozen=True):
    """The usage of one key: the number of running requests, and when the next one is due at an even pace (monotonic
    clock)."""

    running: int = 0
    due: float = -math.inf


# The limit that a request exceeds: its name in the settings.
LimitName: TypeAlias = Literal["requests_per_minute", "concurrent_streams"]


class Grant(msgspec.Struct, frozen=True):
    """How many of some requests at once the limits of a key allow: these are counted. `due_s` is in how
    many seconds the next request is due at an even pace (negative: it is overdue), `refused` the limit that the others
    exceed."""

    admitted: int
    due_s: float
    refused: LimitName | None = None


class RateLimits:
    """The limits and the usage of each key in this process. Keys without limits cost only memory."""

    def __init__(self) -> None:
        self.limits: dict[str, KeySettings] = {}
        self.usage: dict[str, KeyUsage] = {}

    def limit(self, key: str, limits: KeySettings) -> None:
        """Sets the limits of a key; running requests continue and count."""
        self.limits[key] = limits
        self.usage.setdefault(key, KeyUsage())

    def acquire(self, key: str, now: float) -> None:
        """Counts one more request of a key whose limits are known. Raises GatewayError 429."""
        self.usage[key] = count_request(self.usage[key], self.limits[key], now)

    def release(self, key: str) -> None:
        """Counts the end of one of the key's requests."""
        usage = self.usage[key]
        self.usage[key] = KeyUsage(usage.running - 1, usage.due)


def count_request(usage: KeyUsage, limits: KeySettings, now: float) -> KeyUsage:
    """Returns the usage with one more request. Raises GatewayError 429."""
    if limits.concurrent_streams is not None and usage.running >= limits.concurrent_streams:
        raise _limited("concurrent_streams", 1)
    due = usage.due
    if limits.requests_per_minute is not None:
        due = _next_due(due, limits.requests_per_minute, now)
    return KeyUsage(usage.running + 1, due)


def grant(usage: KeyUsage, limits: KeySettings, wanted: int, now: float) -> Grant:
    """Returns how many of the wanted requests the limits allow at once, on top of the usage; as many as `count_request`
    allows one after the other."""
    due = usage.due
    for admitted in range(wanted):
        if limits.concurrent_streams is not None and usage.running + admitted >= limits.concurrent_streams:
            return Grant(admitted, due - now, "concurrent_streams")
        if limits.requests_per_minute is not None:
            if _wait(due, limits.requests_per_minute, now) > 0:
                return Grant(admitted, due - now, "requests_per_minute")
            due = max(due, now) + MINUTE / limits.requests_per_minute
    return Grant(wanted, due - now)


def charge(due: float, per_minute: int, requests: int, own_due: float, now: float) -> float:
    """Returns the due time with requests that were admitted already, by a process whose own count says that its next
    request is due at `own_due`. It was not idle between them. No more than a minute's requests count."""
    return min(max(due + requests * MINUTE / per_minute, own_due), now + MINUTE)


def refusal(limit: LimitName, limits: KeySettings, due_s: float) -> GatewayError:
    """Returns the error for a request that exceeds the limit."""
    if limit == "requests_per_minute" and limits.requests_per_minute is not None:
        return _limited(limit, _wait(due_s, limits.requests_per_minute, 0))
    return _limited(limit, 1)


def _next_due(due: float, per_minute: int, now: float) -> float:
    wait = _wait(due, per_minute, now)
    if wait > 0:
        raise _limited("requests_per_minute", wait)
    return max(due, now) + MINUTE / per_minute


def _wait(due: float, per_minute: int, now: float) -> float:
    """Allows a burst, then an even pace: the generic cell rate algorithm (GCRA), which needs only one number."""
    return due - (MINUTE - MINUTE / per_minute) - now


def _limited(limit: LimitName, wait: float) -> GatewayError:
    return GatewayError(
        f"This API key has reached its limit {limit}.",
        status=429,
        kind="rate_limit",
        code="rate_limit_exceeded",
        headers={"retry-after": str(max(1, math.ceil(wait)))},
    )
