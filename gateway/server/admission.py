"""Who asks, and how much is running -> let in now or sent away at once; nobody waits in a hidden queue.

Only what is running counts, and only a caller's own requests against its limits: no failure of one request, and of no
backend, ever refuses another.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Final

from gateway.errors import GatewayError, InvalidRequest
from gateway.server.keys import ANYBODY
from gateway.settings import KeySettings

RETRY: Final = {"retry-after": "1"}


class Slots:
    """So many at once (None: any number). Use as a context manager; raises what `full` makes when none is free."""

    __slots__ = ("_full", "most", "taken")

    def __init__(self, most: int | None, full: Callable[[], GatewayError]) -> None:
        self.most = most
        self.taken = 0
        self._full = full

    def __enter__(self) -> None:
        if self.most is not None and self.taken >= self.most:
            raise self._full()
        self.taken += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.taken -= 1


class Rate:
    """So many a minute: that many at once, then evenly. Generic cell rate algorithm: one number is all it keeps."""

    __slots__ = ("_due", "_gap", "_grace")

    def __init__(self, per_minute: int) -> None:
        self._gap = 60 / per_minute
        self._grace = 60 - self._gap
        self._due = -math.inf

    def take(self, now: float) -> float:
        """0 when one more is allowed, else the seconds until it will be."""
        wait = self._due - self._grace - now
        if wait > 0:
            return wait
        self._due = max(self._due, now) + self._gap
        return 0


class Allowance:
    """What one caller may do, and how much of it is in use."""

    def __init__(self, settings: KeySettings) -> None:
        self.slots = Slots(None, _too_many)
        self.change(settings)

    def change(self, settings: KeySettings) -> None:
        """Other limits; what is running goes on and counts."""
        self.settings = settings
        self.slots.most = settings.concurrent_streams
        self._rate = Rate(settings.requests_per_minute) if settings.requests_per_minute else None

    def take(self, now: float) -> None:
        """One more request. Raises GatewayError 429."""
        wait = self._rate.take(now) if self._rate else 0
        if wait > 0:
            raise _too_fast(wait)

    def allows(self, model: str) -> bool:
        """Whether the model is one of the caller's."""
        return self.settings.models is None or model in self.settings.models


class Admission:
    """The door to the hot route."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._slots = Slots(None, lambda: _full("The gateway", "as many requests as server.max_requests allows"))
        self._settings: Mapping[str, KeySettings] = {}
        self._allowances: dict[str, Allowance] = {}

    def change(self, most: int | None, settings: Mapping[str, KeySettings]) -> None:
        """Other limits, from the next request on."""
        self._slots.most = most
        self._settings = settings
        for name, allowance in self._allowances.items():
            if allowance.settings != (changed := self._entry(name)):
                allowance.change(changed)

    @contextmanager
    def admit(self, key: str) -> Iterator[None]:
        """Hold a place for one request. Raises GatewayError 503 when all are taken, 429 beyond the caller's own."""
        allowance = self.allowance(key)
        with self._slots, allowance.slots:
            allowance.take(self._clock())
            yield

    def check_model(self, key: str, model: str) -> None:
        """Raises InvalidRequest 403 for a model that is not the caller's."""
        if not self.allowance(key).allows(model):
            raise InvalidRequest(
                f"The model {model[:200]!r} is not among those of this API key.",
                status=403,
                code="model_not_allowed",
                param="model",
            )

    def allowance(self, key: str) -> Allowance:
        """What the caller of this name may do."""
        found = self._allowances.get(key)
        if found is None:
            found = self._allowances[key] = Allowance(self._entry(key))
        return found

    def _entry(self, key: str) -> KeySettings:
        return self._settings.get(key) or self._settings.get(ANYBODY) or KeySettings()


def backend_slots(name: str, most: int | None) -> Slots:
    """The places of one backend."""
    return Slots(most, lambda: _full(f"The backend {name!r}", "as many requests as its max_concurrent allows"))


def _full(who: str, what: str) -> GatewayError:
    return GatewayError(f"{who} is serving {what}. Try again soon.", status=503, code="overloaded", headers=RETRY)


def _too_many() -> GatewayError:
    return _limited("As many requests are running as concurrent_streams of this API key allows.", 1)


def _too_fast(wait: float) -> GatewayError:
    return _limited("The requests_per_minute of this API key are used up.", wait)


def _limited(message: str, wait: float) -> GatewayError:
    return GatewayError(
        message,
        status=429,
        type="rate_limit_error",
        code="rate_limit_exceeded",
        headers={"retry-after": str(math.ceil(wait))},
    )
