"""Enforces deadlines, client disconnects and keep-alive comments of all running requests from one timer, and writes the
time that a backend has left as a header.

Each request sets the deadline of its present wait; the timer checks all requests ten times a second, so that a streamed
chunk costs two assignments and no timer of its own. All times are `time.monotonic()`.

Sources of the header: gRPC, "gRPC over HTTP2" (`grpc-timeout`); Connect protocol reference (`connect-timeout-ms`).
"""

import asyncio
import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

from gateway.adapter import TimeoutHeader
from gateway.core.errors import BackendTimeout, GatewayError, InvalidRequest

TICK_S: Final = 0.1

# `grpc-timeout` has at most eight digits and a unit, `connect-timeout-ms` at most ten digits.
_MOST_GRPC: Final = 10**8 - 1
_MOST_CONNECT: Final = 10**10 - 1


class ClientDisconnected(Exception):
    """Raised when the client has disconnected or no longer reads. No response can be sent."""


def first_byte_timeout() -> Exception:
    return BackendTimeout("The backend did not begin to respond in time (timeouts.first_byte).")


def idle_timeout() -> Exception:
    return BackendTimeout("The backend sent nothing for too long (timeouts.idle).")


def total_timeout() -> Exception:
    return BackendTimeout("The backend did not finish in time (timeouts.total).")


def body_timeout() -> Exception:
    return InvalidRequest(
        "The request's body did not arrive in time.",
        status=408,
        code="request_timeout",
        headers={"connection": "close"},
    )


class Deadlines:
    """The deadlines of one running request. Use as a context manager in the request's own task; an interruption leaves
    it as an exception in place of the cancellation.

    `due` is the deadline of the present wait and `late` makes the exception for it; at `quiet_due` the client should
    receive a keep-alive comment.
    """

    __slots__ = ("_scheduler", "_task", "due", "late", "on_quiet", "quiet_due", "reason", "total_due")

    def __init__(
        self,
        scheduler: "DeadlineScheduler",
        task: "asyncio.Task[None] | None",
        due: float = math.inf,
        late: Callable[[], Exception] = first_byte_timeout,
    ) -> None:
        self._scheduler = scheduler
        self._task = task
        self.reason: Exception | None = None
        self.due = due
        self.late = late
        self.total_due = math.inf
        self.quiet_due = math.inf
        self.on_quiet: Callable[[], None] | None = None

    def expect(self, due: float, late: Callable[[], Exception]) -> None:
        """Sets the deadline and the exception of the present wait."""
        self.due = due
        self.late = late

    def interrupt(self, reason: Exception) -> None:
        """Ends the request with this exception. Only the first interruption counts; but that of a wait, which may be
        taken back, gives way to one of another kind."""
        if self.reason is None and self._task is not None:
            self.reason = reason
            self._task.cancel()
        elif isinstance(self.reason, BackendTimeout) and not isinstance(reason, BackendTimeout):
            self.reason = reason

    def resume(self) -> BackendTimeout | None:
        """Takes back an interruption by the deadline of the present wait, so that the request may go on, and returns
        its reason. None: something else has ended the request, or its whole time is over."""
        reason, task = self.reason, self._task
        if not isinstance(reason, BackendTimeout) or task is None or task.cancelling() != 1:
            return None
        if time.monotonic() >= self.total_due:
            return None
        task.uncancel()
        self.reason = None
        self.expect(math.inf, total_timeout)
        return reason

    def check(self, now: float) -> None:
        """Interrupts an overdue request, or calls its `on_quiet`."""
        if now >= self.due:
            self.interrupt(self.late())
        elif now >= self.total_due:
            self.interrupt(total_timeout())
        elif now >= self.quiet_due and self.on_quiet is not None:
            self.on_quiet()

    def __enter__(self) -> "Deadlines":
        self._scheduler.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._scheduler.running.discard(self)
        if self.reason is None or self._task is None:
            return
        self._task.uncancel()
        # Any other exception came first, and is the one to report to the client.
        if error is None or isinstance(error, asyncio.CancelledError):
            raise self.reason from None


class DeadlineScheduler:
    """The timer of all `running` requests. It stops while there are none."""

    def __init__(self, tick: float = TICK_S) -> None:
        self._tick = tick
        self.running: set[Deadlines] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def deadlines(self, due: float = math.inf, late: Callable[[], Exception] = first_byte_timeout) -> Deadlines:
        """Returns the deadlines of the running task, with that of its first wait."""
        if self._loop is None:
            # Cached: each look-up of the running loop asks the kernel for the process id.
            self._loop = asyncio.get_running_loop()
        return Deadlines(self, asyncio.current_task(self._loop), due, late)

    def add(self, deadlines: Deadlines) -> None:
        self.running.add(deadlines)
        if self._timer is None:
            self._arm()

    def discard(self, deadlines: Deadlines) -> None:
        self.running.discard(deadlines)

    def interrupt_all(self, make: Callable[[], GatewayError]) -> None:
        """Ends every running request."""
        for deadlines in tuple(self.running):
            deadlines.interrupt(make())

    @property
    def size(self) -> int:
        """The number of running requests."""
        return len(self.running)

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._tick, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now = time.monotonic()
        for deadlines in tuple(self.running):
            deadlines.check(now)
        if self.running:
            self._arm()


def timeout_header(name: TimeoutHeader, seconds: float) -> tuple[str, str]:
    """Returns the header that grants so much time, rounded up: the gateway's own deadline passes first."""
    milliseconds = max(1, math.ceil(seconds * 1000))
    if name == "connect-timeout-ms":
        return name, str(min(milliseconds, _MOST_CONNECT))
    if milliseconds <= _MOST_GRPC:
        return name, f"{milliseconds}m"
    return name, f"{min(math.ceil(seconds), _MOST_GRPC)}S"
