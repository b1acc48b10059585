"""Counts the usage of API keys together with other processes, and alone while the shared store fails.

Each process always keeps its own counts, too. They suffice to refuse requests, so that a flood of one caller's requests
asks the store little; and they hold while the store cannot be used. A failing store then neither refuses a request nor
lifts a limit. What was admitted without it is counted there as soon as it answers again, once.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Final

from gateway.core.errors import GatewayError
from gateway.server.access.rate_limit import MINUTE, KeyUsage, RateLimits, refusal
from gateway.server.state.guard import Guard
from gateway.server.state.limit_store import NONE_UNCONFIRMED, LimitStore, Unconfirmed
from gateway.server.state.store import StoreUnavailable
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import KeySettings

LOSS: Final = "each worker counts the limits of API keys by itself"
# Statements are repeated so often. A server forgets a process that has not made one for 10 s.
REPEAT_S: Final = 3.0


class _Asking:
    """A request that waits for the store's answer. `left`: its client does not want it any more."""

    __slots__ = ("admitted", "answer", "left")

    def __init__(self) -> None:
        self.admitted = False
        self.left = False
        self.answer: asyncio.Future[GatewayError | None] = asyncio.get_running_loop().create_future()

    @property
    def has_waited_enough(self) -> bool:
        """Whether it was served before there was an answer."""
        return self.answer.cancelled() and not self.left


class _Key:
    """A key as this process shares it: the requests that wait (`asking`: until the next call of the store), how many
    wait in all, the number of running requests that the store knows (None: unknown), those that were admitted
    since it last answered (`unconfirmed`), of which so many are `counting`, and the task that exchanges the numbers of
    this key with the store."""

    __slots__ = ("asking", "counting", "stated", "task", "unconfirmed", "waiting")

    def __init__(self) -> None:
        self.asking: list[_Asking] = []
        self.waiting = 0
        self.stated: int | None = 0
        self.unconfirmed = 0
        self.counting = 0
        self.task: asyncio.Task[None] | None = None


class SharedRateLimits:
    """Joins the counts of this process (`own`) to a store. A request waits for `deadline_s()` seconds of the store's
    time."""

    def __init__(
        self,
        store: LimitStore,
        own: RateLimits,
        deadline_s: Callable[[], float],
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._own = own
        self._deadline_s = deadline_s
        self._clock = clock
        self._guard = Guard(store.name, store.at_once, store.ping, LOSS, metrics)
        self._keys: dict[str, _Key] = {}
        self._repeated = float("-inf")

    async def confirm(self, key: str) -> None:
        """Asks the store for a request that this process has counted already. Raises GatewayError 429 when all
        processes together exceed a limit. Keys without limits ask nothing."""
        if not _limited(self._own.limits[key]):
            return
        shared = self._keys.setdefault(key, _Key())
        asking = _Asking()
        shared.asking.append(asking)
        shared.waiting += 1
        self._begin(key, shared)
        refused = None
        try:
            async with self._guard.clock.limit(self._deadline_s()):
                refused = await asking.answer
        except TimeoutError:
            # It is counted by this process alone, until the store answers. It may just have answered.
            refused = None if asking.answer.cancelled() else asking.answer.result()
        except asyncio.CancelledError:
            asking.left = True
            raise
        finally:
            if not asking.admitted:
                shared.waiting -= 1
        if refused is not None:
            raise refused

    def release(self, key: str) -> None:
        """Reports to the store, later, that a request has ended, which this process has counted already."""
        shared = self._keys.get(key)
        if shared is not None and shared.stated != self._running(key, shared):
            self._begin(key, shared)

    def tick(self, now: float) -> None:
        """States what is not stated yet, and repeats all statements from time to time; called about once a second."""
        repeats = now - self._repeated >= REPEAT_S
        if repeats:
            self._repeated = now
        for key, limits in self._own.limits.items():
            if key not in self._keys and limits.concurrent_streams is None:
                continue
            shared = self._keys.setdefault(key, _Key())
            if repeats and shared.stated:
                shared.stated = None
            if self._is_unstated(key, shared):
                self._begin(key, shared)

    async def aclose(self) -> None:
        """States that no request is running any more, and closes the store."""
        tasks = [shared.task for shared in self._keys.values() if shared.task is not None]
        if tasks:
            await asyncio.wait(tasks)
        running = [key for key, shared in self._keys.items() if shared.stated != 0]
        if running:
            with contextlib.suppress(StoreUnavailable):
                await self._guard.run(
                    "state", "-", lambda: self._store.state_running(dict.fromkeys(running, 0)), self._deadline_s()
                )
        await self._guard.aclose()
        await self._store.aclose()

    def _running(self, key: str, shared: _Key) -> int:
        """Returns the number of running requests to state: none where their number has no limit."""
        return 0 if self._own.limits[key].concurrent_streams is None else self._own.usage[key].running - shared.waiting

    def _is_unstated(self, key: str, shared: _Key) -> bool:
        return shared.unconfirmed > 0 or shared.stated != self._running(key, shared)

    def _begin(self, key: str, shared: _Key) -> None:
        if shared.task is None:
            shared.task = asyncio.create_task(self._talk(key, shared))

    async def _talk(self, key: str, shared: _Key) -> None:
        """Asks for all that wait, in one call at a time, and states the rest; so the numbers reach the store in their
        order. After a failure, `tick` begins again within a second."""
        works = True
        try:
            while shared.asking or (works and self._is_unstated(key, shared)):
                try:
                    await (self._ask(key, shared) if shared.asking or shared.unconfirmed else self._state(key, shared))
                except StoreUnavailable:
                    works = False
                    shared.stated = None
        finally:
            shared.task = None

    async def _ask(self, key: str, shared: _Key) -> None:
        asking, shared.asking = shared.asking, []
        limits, running = self._own.limits[key], self._running(key, shared)
        unconfirmed = self._unconfirmed(key, shared)
        try:
            granted = await self._guard.run(
                "take",
                "-",
                lambda: self._store.take(key, limits, running, len(asking), unconfirmed),
                self._deadline_s(),
            )
        except StoreUnavailable:
            _admit(shared, asking)
            self._count_unconfirmed(key, shared, sum(not one.left for one in asking))
            raise
        self._guard.count("take", "-", "done")
        if limits.concurrent_streams is not None and granted.admitted:
            shared.stated = running + granted.admitted
        shared.unconfirmed = shared.counting = 0
        if limits.requests_per_minute is not None:
            self._own.usage[key] = KeyUsage(self._own.usage[key].running, self._clock() + granted.due_s)
        _admit(shared, asking[: granted.admitted])
        for other in asking[granted.admitted :]:
            if granted.refused is not None and not other.answer.done():
                other.answer.set_result(refusal(granted.refused, limits, granted.due_s))
        self._count_unconfirmed(key, shared, sum(other.has_waited_enough for other in asking[granted.admitted :]))

    def _unconfirmed(self, key: str, shared: _Key) -> Unconfirmed:
        """Returns the report to the store of requests that it has not counted. Those after which the process was
        idle count no longer."""
        due_s = self._due_s(key, shared)
        if not shared.unconfirmed:
            return NONE_UNCONFIRMED
        return Unconfirmed(shared.unconfirmed, shared.counting if due_s > 0 else 0, due_s)

    def _count_unconfirmed(self, key: str, shared: _Key, requests: int) -> None:
        """Takes note of requests that were admitted without the store."""
        per_minute = self._own.limits[key].requests_per_minute
        if requests and per_minute is not None:
            was_idle = self._due_s(key, shared) <= requests * MINUTE / per_minute
            shared.counting = requests if was_idle else shared.counting + requests
            shared.unconfirmed += requests

    def _due_s(self, key: str, shared: _Key) -> float:
        """Returns in how many seconds the next request would be due by the own count, without those that wait."""
        per_minute = self._own.limits[key].requests_per_minute
        if per_minute is None:
            return 0
        return max(0, self._own.usage[key].due - shared.waiting * MINUTE / per_minute - self._clock())

    async def _state(self, key: str, shared: _Key) -> None:
        running = self._running(key, shared)
        await self._guard.run("state", "-", lambda: self._store.state_running({key: running}), self._deadline_s())
        self._guard.count("state", "-", "done")
        shared.stated = running


def _admit(shared: _Key, asking: Sequence[_Asking]) -> None:
    for one in asking:
        # Others have left meanwhile.
        if not one.answer.done():
            one.admitted = True
            shared.waiting -= 1
            one.answer.set_result(None)


def _limited(limits: KeySettings) -> bool:
    return limits.requests_per_minute is not None or limits.concurrent_streams is not None
