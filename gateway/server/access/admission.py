"""Admits a request or refuses it at once; requests never wait in a hidden queue.

Only running requests count, and only a caller's own requests count against its limits: no failed request and no failing
backend causes the refusal of another request.
"""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Protocol

import msgspec

from gateway.core.errors import GatewayError, InvalidRequest
from gateway.core.requirements import Requirement
from gateway.server.access.api_keys import DEFAULT_CLIENT
from gateway.server.access.rate_limit import RateLimits
from gateway.settings import KeySettings

RETRY: Final = {"retry-after": "1"}
_UNLIMITED: Final = KeySettings()


class ConcurrencyLimit:
    """Limits the number of requests that run at once (None: unlimited). Use as a context manager, which checks
    first."""

    __slots__ = ("_full", "most", "taken")

    def __init__(self, most: int | None, full: Callable[[], GatewayError]) -> None:
        self.most = most
        self.taken = 0
        self._full = full

    def check(self) -> None:
        """Raises the error that `full` returns when the limit is reached."""
        if self.most is not None and self.taken >= self.most:
            raise self._full()

    def __enter__(self) -> None:
        if self.most is not None:
            self.check()
        self.taken += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.taken -= 1


class SharedLimits(Protocol):
    """Joins the counts of this process to those of others."""

    async def confirm(self, key: str) -> None:
        """Asks about a request that this process has counted already. Raises GatewayError 429 when all processes
        together exceed a limit."""
        ...

    def release(self, key: str) -> None:
        """Reports the end of a request that this process has counted already."""
        ...

    def tick(self, now: float) -> None:
        """Does the work that is due about once a second."""
        ...

    async def aclose(self) -> None:
        """States that no request is running any more."""
        ...


class Admission:
    """Request checks and limits of the hot route. `limits` counts the usage of each key; `shared`, if not None, joins
    it to the counts of other processes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._slots = ConcurrencyLimit(
            None, lambda: _full("The gateway", "as many requests as server.max_requests allows")
        )
        self._settings: Mapping[str, KeySettings] = {}
        self._known: dict[str, KeySettings] = {}
        self.limits = RateLimits()
        self.shared: SharedLimits | None = None
        # Whether any key has requirements.
        self.requires = False

    def change(self, most: int | None, settings: Mapping[str, KeySettings]) -> None:
        """Applies other limits, from the next request on."""
        self._slots.most = most
        self._settings = settings
        self.requires = any(entry.require for entry in settings.values())
        for key in self._known:
            self._limit(key)

    def admit(self, key: str) -> "Permit":
        """Returns the permit for one request."""
        if key not in self._known:
            self._limit(key)
        return Permit(key, self._clock(), self._slots, self.limits, self.shared)

    def tick(self) -> None:
        """Does the work that is due about once a second."""
        if self.shared is not None:
            self.shared.tick(self._clock())

    def check_model(self, key: str, model: str) -> None:
        """Raises InvalidRequest 403 for a model that the caller's key does not allow."""
        models = (self._known.get(key) or self._entry(key)).models
        if models is not None and model not in models:
            raise InvalidRequest(
                f"This API key may not use the model {model[:200]!r}.",
                status=403,
                code="model_not_allowed",
                param="model",
            )

    def check_without_model(self, key: str) -> None:
        """Raises InvalidRequest 403 for a request that names no model, of a key that may use some models alone."""
        if self._entry(key).models is not None:
            raise InvalidRequest(
                "This API key may use some models only, so that its requests must name one.",
                status=403,
                code="model_not_allowed",
                param="model",
            )

    def allows(self, key: str, model: str) -> bool:
        """Returns whether the caller's key allows the model."""
        models = self._entry(key).models
        return models is None or model in models

    def required(self, key: str) -> Sequence[Requirement]:
        """Returns what no request of the caller's key may lose."""
        return self._entry(key).require

    def _limit(self, key: str) -> None:
        entry = self._entry(key)
        if self._known.get(key) != entry:
            self._known[key] = entry
            self.limits.limit(key, entry)

    def _entry(self, key: str) -> KeySettings:
        return self._settings.get(key) or self._settings.get(DEFAULT_CLIENT) or _UNLIMITED


class Permit(msgspec.Struct, frozen=True):
    """Permit for one request of a key. Use as a context manager; raises GatewayError 503 when the gateway's concurrency
    limit is reached, 429 when the caller exceeds its own limits. Where processes share their counts, `Admission.shared`
    must confirm it within."""

    key: str
    now: float
    slots: ConcurrencyLimit
    limits: RateLimits
    shared: SharedLimits | None

    def __enter__(self) -> None:
        if self.slots.most is not None:
            self.slots.check()
        self.limits.acquire(self.key, self.now)
        self.slots.taken += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.slots.taken -= 1
        self.limits.release(self.key)
        if self.shared is not None:
            self.shared.release(self.key)


def backend_concurrency(name: str, most: int | None) -> ConcurrencyLimit:
    """Returns the concurrency limit of one backend."""
    return ConcurrencyLimit(
        most, lambda: _full(f"The backend {name!r}", "as many requests as its max_concurrent allows")
    )


def _full(who: str, what: str) -> GatewayError:
    return GatewayError(f"{who} is serving {what}. Try again soon.", status=503, code="overloaded", headers=RETRY)
