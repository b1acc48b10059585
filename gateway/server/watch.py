"""Deadlines, departures and silence of all running requests -> interruptions and keep-alive comments, from one timer.

A request that waits says for what; the timer looks at all of them ten times a second, so that a streamed chunk costs
two assignments and no timer of its own. All times are `time.monotonic()`.
"""

import asyncio
import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

from gateway.errors import BackendTimeout, GatewayError, InvalidRequest

TICK_S: Final = 0.1


class ClientGone(Exception):
    """The client has left, or takes nothing any more. Nobody is there to be answered."""


def first_byte_late() -> Exception:
    return BackendTimeout("The backend did not begin to answer in time.")


def idle_late() -> Exception:
    return BackendTimeout("The backend stopped sending.")


def total_late() -> Exception:
    return BackendTimeout("The backend did not finish in time.")


def body_late() -> Exception:
    return InvalidRequest(
        "The request's body did not arrive in time.",
        status=408,
        code="request_timeout",
        headers={"connection": "close"},
    )


class Watch:
    """One running request. Use as a context manager in the request's own task; an interruption leaves it as an
    exception in place of the cancellation.

    `due` is when the present wait is overdue and `late` makes the exception for it; at `quiet_due` the client should
    hear something.
    """

    __slots__ = ("_sweeper", "_task", "due", "late", "on_quiet", "quiet_due", "reason", "total_due")

    def __init__(self, sweeper: "Sweeper", task: "asyncio.Task[None] | None") -> None:
        self._sweeper = sweeper
        self._task = task
        self.reason: Exception | None = None
        self.due = math.inf
        self.late: Callable[[], Exception] = first_byte_late
        self.total_due = math.inf
        self.quiet_due = math.inf
        self.on_quiet: Callable[[], None] | None = None

    def expect(self, due: float, late: Callable[[], Exception]) -> None:
        """From now on this is what is waited for."""
        self.due = due
        self.late = late

    def interrupt(self, reason: Exception) -> None:
        """End the request with this exception. Only the first interruption counts."""
        if self.reason is None and self._task is not None:
            self.reason = reason
            self._task.cancel()

    def check(self, now: float) -> None:
        """Interrupt what is overdue, or let it be heard."""
        if now >= self.due:
            self.interrupt(self.late())
        elif now >= self.total_due:
            self.interrupt(total_late())
        elif now >= self.quiet_due and self.on_quiet is not None:
            self.on_quiet()

    def __enter__(self) -> "Watch":
        self._sweeper.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._sweeper.discard(self)
        if self.reason is None or self._task is None:
            return
        self._task.uncancel()
        # Any other exception has come first, and is what the client shall hear.
        if error is None or isinstance(error, asyncio.CancelledError):
            raise self.reason from None


class Sweeper:
    """The one timer. It rests while nothing is watched."""

    def __init__(self, tick: float = TICK_S) -> None:
        self._tick = tick
        self._watches: set[Watch] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch(self) -> Watch:
        """A watch for the running task."""
        if self._loop is None:
            # Once: to ask for the running loop asks the kernel for the process each time.
            self._loop = asyncio.get_running_loop()
        return Watch(self, asyncio.current_task(self._loop))

    def add(self, watch: Watch) -> None:
        self._watches.add(watch)
        if self._timer is None:
            self._arm()

    def discard(self, watch: Watch) -> None:
        self._watches.discard(watch)

    def interrupt_all(self, make: Callable[[], GatewayError]) -> None:
        """End every running request."""
        for watch in tuple(self._watches):
            watch.interrupt(make())

    @property
    def size(self) -> int:
        """How many requests are running."""
        return len(self._watches)

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._tick, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now = time.monotonic()
        for watch in tuple(self._watches):
            watch.check(now)
        if self._watches:
            self._arm()
