"""Who asks, and how much is running -> let in now or sent away at once; nobody waits in a hidden queue.

Only what is running counts, and only a caller's own requests against its limits: no failure of one request, and of no
backend, ever refuses another.
"""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final

from gateway.errors import GatewayError, InvalidRequest
from gateway.server.keys import ANYBODY
from gateway.server.store import MemoryStore, Store
from gateway.settings import KeySettings

RETRY: Final = {"retry-after": "1"}
_UNLIMITED: Final = KeySettings()


class Slots:
    """So many at once (None: any number). Use as a context manager, which checks first."""

    __slots__ = ("_full", "most", "taken")

    def __init__(self, most: int | None, full: Callable[[], GatewayError]) -> None:
        self.most = most
        self.taken = 0
        self._full = full

    def check(self) -> None:
        """Raises what `full` makes when none is free."""
        if self.most is not None and self.taken >= self.most:
            raise self._full()

    def __enter__(self) -> None:
        self.check()
        self.taken += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.taken -= 1


class Admission:
    """The door to the hot route. `store` keeps what each key uses."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._slots = Slots(None, lambda: _full("The gateway", "as many requests as server.max_requests allows"))
        self._settings: Mapping[str, KeySettings] = {}
        self._known: dict[str, KeySettings] = {}
        self.store: Store = MemoryStore()

    def change(self, most: int | None, settings: Mapping[str, KeySettings]) -> None:
        """Other limits, from the next request on."""
        self._slots.most = most
        self._settings = settings
        for key in self._known:
            self._limit(key)

    def admit(self, key: str) -> "Place":
        """A place for one request."""
        if key not in self._known:
            self._limit(key)
        return Place(self._slots, self.store, key, self._clock())

    def settle(self) -> None:
        """What has to be done about once a second."""
        self.store.settle(self._clock())

    def check_model(self, key: str, model: str) -> None:
        """Raises InvalidRequest 403 for a model that is not the caller's."""
        models = self._entry(key).models
        if models is not None and model not in models:
            raise InvalidRequest(
                f"The model {model[:200]!r} is not among those of this API key.",
                status=403,
                code="model_not_allowed",
                param="model",
            )

    def allows(self, key: str, model: str) -> bool:
        """Whether the model is one of the caller's."""
        models = self._entry(key).models
        return models is None or model in models

    def _limit(self, key: str) -> None:
        entry = self._entry(key)
        if self._known.get(key) != entry:
            self._known[key] = entry
            self.store.limit(key, entry)

    def _entry(self, key: str) -> KeySettings:
        return self._settings.get(key) or self._settings.get(ANYBODY) or _UNLIMITED


class Place:
    """Room for one request of a key. Use as a context manager; raises GatewayError 503 when all places are taken, 429
    beyond the caller's own."""

    __slots__ = ("_key", "_now", "_slots", "_store")

    def __init__(self, slots: Slots, store: Store, key: str, now: float) -> None:
        self._slots = slots
        self._store = store
        self._key = key
        self._now = now

    def __enter__(self) -> None:
        self._slots.check()
        self._store.take(self._key, self._now)
        self._slots.taken += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._slots.taken -= 1
        self._store.give_back(self._key)


def backend_slots(name: str, most: int | None) -> Slots:
    """The places of one backend."""
    return Slots(most, lambda: _full(f"The backend {name!r}", "as many requests as its max_concurrent allows"))


def _full(who: str, what: str) -> GatewayError:
    return GatewayError(f"{who} is serving {what}. Try again soon.", status=503, code="overloaded", headers=RETRY)
