"""Guards a store: limits the operations at once, ends each at its deadline, stops asking a failing store until a ping
in the background has succeeded, and counts all of it.

So a store that is slow, down, full or wrong costs a request at most its deadline, and after three failures nothing. A
gateway that is busy is no such store: neither its lag nor the wait for a turn counts as time of the store, and failures
of operations that were under way together are one failure.

Only the time of the store counts. While the event loop is busy with other work, a reply may wait in its socket; so the
time is counted in steps, and one that the loop reaches late counts as one. Between two steps the loop reads its
sockets: a deadline never passes before the loop has looked for the reply as often as the deadline has steps.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, Literal, TypeAlias, TypeVar

from gateway.server.log.logger import LOGGER
from gateway.server.state.store import Space, StoreUnavailable
from gateway.server.telemetry.metrics import Metrics

MOST_FAILURES: Final = 3
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0

STEP_S: Final = 0.001

PING_S: Final = 1.0
# Minimum time between two warnings about a failing store.
QUIET_S: Final = 60.0

# `-`: the operation has no space.
AnySpace: TypeAlias = Space | Literal["-"]
T = TypeVar("T")


class Circuit:
    """Closed while the store works; `MOST_FAILURES` failures in a row open it. `failures` counts all of them."""

    def __init__(self) -> None:
        self.open = False
        self.failures = 0
        self._in_a_row = 0
        self._pause_s = FIRST_PAUSE_S

    def succeed(self) -> None:
        """An operation or a ping has succeeded."""
        self.open = False
        self._in_a_row = 0
        self._pause_s = FIRST_PAUSE_S

    def fail(self, failures: int) -> bool:
        """An operation has failed, which began when there had been so many `failures`. Those that were under way
        together have failed once. Returns whether this has opened the circuit."""
        if failures != self.failures:
            return False
        self.failures += 1
        self._in_a_row += 1
        opens = not self.open and self._in_a_row >= MOST_FAILURES
        self.open |= opens
        return opens

    def next_pause(self) -> float:
        """Returns the seconds to wait before the next ping."""
        pause, self._pause_s = self._pause_s, min(2 * self._pause_s, LONGEST_PAUSE_S)
        return pause


class _Wait:
    """One wait: its limit, since when, and whether each answer of the store begins its time anew."""

    __slots__ = ("in_line", "limit", "since", "within_s")

    def __init__(self, limit: asyncio.Timeout, since: float, within_s: float, in_line: bool) -> None:
        self.limit = limit
        self.since = since
        self.within_s = within_s
        self.in_line = in_line


class StoreClock:
    """`now` grows only while something waits: seconds, in whole steps."""

    def __init__(self) -> None:
        self.now = 0.0
        self._answered = 0.0
        self._waits: set[_Wait] = set()
        self._ticked = 0.0
        self._ticks = False

    @asynccontextmanager
    async def limit(self, within_s: float, in_line: bool = False) -> AsyncIterator[None]:
        """Ends the block after `within_s` seconds of the store's time. One that waits `in_line` behind other operations
        is ended when none of them has had an answer for so long. Raises TimeoutError."""
        async with asyncio.timeout(None) as limit:
            wait = _Wait(limit, self.now, within_s, in_line)
            self._waits.add(wait)
            if not self._ticks:
                self._ticks = True
                self._schedule()
            try:
                yield
            finally:
                self._waits.discard(wait)

    def answered(self) -> None:
        """The store has answered an operation."""
        self._answered = self.now

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._ticked = loop.time()
        loop.call_later(STEP_S, self._tick)

    def _tick(self) -> None:
        now = asyncio.get_running_loop().time()
        self.now += min(now - self._ticked, STEP_S)
        late = [wait for wait in self._waits if self.now - self._began(wait) >= wait.within_s]
        self._waits.difference_update(late)
        for wait in late:
            wait.limit.reschedule(now)
        self._ticks = bool(self._waits)
        if self._ticks:
            self._schedule()

    def _began(self, wait: _Wait) -> float:
        return max(wait.since, self._answered) if wait.in_line else wait.since


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
        """Returns the answer of the store within `within_s` seconds of its time. An operation that waits for its turn
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
