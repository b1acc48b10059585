"""Guards what a store is asked for: every operation has a deadline, a failing store is left alone for a while, and all
of it is counted.

So a store that is slow, down, full or wrong costs a request at most its deadline, and after three failures nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias, TypeVar

from gateway.server.state.circuit import Circuit
from gateway.server.state.store import Space, StoreUnavailable
from gateway.server.telemetry.log import LOGGER
from gateway.server.telemetry.metrics import Metrics

PING_S: Final = 1.0
# Minimum time between two warnings about a failing store.
QUIET_S: Final = 60.0

# `-`: the operation has no space.
AnySpace: TypeAlias = Space | Literal["-"]
T = TypeVar("T")


class Guard:
    """The guard of one store. `ping` waits for a reply of the store; `loss` says in a warning what a failure means."""

    def __init__(self, name: str, ping: Callable[[], Awaitable[None]], loss: str, metrics: Metrics) -> None:
        self.name = name
        self._ping = ping
        self._loss = loss
        self._metrics = metrics
        self._circuit = Circuit()
        self._reopening: asyncio.Task[None] | None = None
        self._quiet_until = 0.0
        self._warned = False

    async def run(self, op: str, space: AnySpace, call: Callable[[], Awaitable[T]], within_s: float) -> T:
        """Returns what the store answers within `within_s` seconds. Raises StoreUnavailable, at once while the store is
        left alone."""
        if self._circuit.open:
            self.count(op, space, "skipped")
            raise StoreUnavailable("down", "it has failed and is not asked until it answers again")
        began = time.monotonic()
        try:
            async with asyncio.timeout(within_s):
                result = await call()
        except TimeoutError:
            failure = StoreUnavailable("slow", f"no reply to {op} within {within_s * 1000:.0f} ms")
            self._fail(op, space, failure)
            raise failure from None
        except StoreUnavailable as failure:
            self._fail(op, space, failure)
            raise
        self._circuit.succeed()
        self._metrics.state_seconds.observe(time.monotonic() - began, op)
        return result

    def count(self, op: str, space: AnySpace, outcome: str, by: int = 1) -> None:
        """Counts operations in the metrics."""
        if by:
            self._metrics.state_operations.inc(space, op, outcome, by=by)

    async def aclose(self) -> None:
        """Stops asking whether the store answers again."""
        if self._reopening is not None:
            self._reopening.cancel()
            await asyncio.wait((self._reopening,))

    def _fail(self, op: str, space: AnySpace, failure: StoreUnavailable) -> None:
        self.count(op, space, failure.reason)
        self._warn(failure)
        # A full store can be read, and the next write may be smaller.
        if failure.reason != "full" and self._circuit.fail() and (self._reopening is None or self._reopening.done()):
            self._reopening = asyncio.create_task(self._reopen())

    def _warn(self, failure: StoreUnavailable) -> None:
        now = time.monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + QUIET_S
            self._warned = True
            LOGGER.warning("%s (%s); %s", failure, self.name, self._loss)

    async def _reopen(self) -> None:
        """Pings the store until it answers."""
        while self._circuit.open:
            await asyncio.sleep(self._circuit.next_pause())
            try:
                async with asyncio.timeout(PING_S):
                    await self._ping()
            except (StoreUnavailable, TimeoutError):
                continue
            self._circuit.succeed()
        if self._warned:
            self._warned = False
            LOGGER.info("the store answers again (%s)", self.name)
