"""Guards what a store is asked for: so many operations at once, each with a deadline; a failing store is left alone for
a while; and all of it is counted.

So a store that is slow, down, full or wrong costs a request at most its deadline, and after three failures nothing. A
gateway that is busy is no such store: neither its lag nor the wait for a turn counts as time of the store, and what
fails together is one failure.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias, TypeVar

from gateway.server.log.logger import LOGGER
from gateway.server.state.circuit import Circuit
from gateway.server.state.store import Space, StoreUnavailable
from gateway.server.state.store_clock import StoreClock
from gateway.server.telemetry.metrics import Metrics

PING_S: Final = 1.0
# Minimum time between two warnings about a failing store.
QUIET_S: Final = 60.0

# `-`: the operation has no space.
AnySpace: TypeAlias = Space | Literal["-"]
T = TypeVar("T")


class Guard:
    """The guard of one store, which is asked for `at_once` operations at the same time. `ping` waits for a reply of the
    store; `loss` says in a warning what a failure means. `clock` measures how long the store is waited for."""

    def __init__(
        self, name: str, at_once: int, ping: Callable[[], Awaitable[None]], loss: str, metrics: Metrics
    ) -> None:
        self.name = name
        self.clock = StoreClock()
        # Released without a wait: a second cancellation loses no turn.
        self._turns = asyncio.Semaphore(at_once)
        self._ping = ping
        self._loss = loss
        self._metrics = metrics
        self._circuit = Circuit()
        self._reopening: asyncio.Task[None] | None = None
        self._quiet_until = 0.0
        self._warned = False

    async def run(self, op: str, space: AnySpace, call: Callable[[], Awaitable[T]], within_s: float) -> T:
        """Returns what the store answers within `within_s` seconds of its time. An operation that waits for its turn
        fails when those before it have had no answer for so long. Raises StoreUnavailable, at once while the store is
        left alone."""
        began = time.monotonic()
        await self._turn(op, space, within_s)
        failures = self._circuit.failures
        try:
            async with self.clock.limit(within_s):
                result = await call()
        except TimeoutError:
            raise self._slow(op, space, within_s, failures) from None
        except StoreUnavailable as failure:
            self.clock.answered()
            self._fail(op, space, failure, failures)
            raise
        finally:
            self._turns.release()
        self.clock.answered()
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

    async def _turn(self, op: str, space: AnySpace, within_s: float) -> None:
        """Waits until the store may be asked. Raises StoreUnavailable."""
        self._check(op, space)
        if not self._turns.locked():
            await self._turns.acquire()
            return
        failures = self._circuit.failures
        try:
            async with self.clock.limit(within_s, in_line=True):
                await self._turns.acquire()
        except TimeoutError:
            raise self._slow(op, space, within_s, failures) from None
        try:
            self._check(op, space)
        except StoreUnavailable:
            self._turns.release()
            raise

    def _check(self, op: str, space: AnySpace) -> None:
        if self._circuit.open:
            self.count(op, space, "skipped")
            raise StoreUnavailable("down", "it has failed and is not asked until it answers again")

    def _slow(self, op: str, space: AnySpace, within_s: float, failures: int) -> StoreUnavailable:
        failure = StoreUnavailable("slow", f"no reply to {op} within {within_s * 1000:.0f} ms")
        self._fail(op, space, failure, failures)
        return failure

    def _fail(self, op: str, space: AnySpace, failure: StoreUnavailable, failures: int) -> None:
        """Counts the failure of an operation that began after so many `failures`."""
        self.count(op, space, failure.reason)
        self._warn(failure)
        # A full store can be read, and the next write may be smaller.
        if failure.reason == "full" or not self._circuit.fail(failures):
            return
        if self._reopening is None or self._reopening.done():
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
