"""A client's connection -> its requests, answered one after the other, and its end when it is late.

It stands in uvicorn's slot for a protocol: made with its configuration and state, counted and shut down by its server.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Final

from starlette.types import Scope
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.utils import get_local_addr, get_remote_addr
from uvicorn.server import ServerState

from gateway.server.outlet import Outlet
from gateway.server.stall import Stall

# The timers of the event loop count milliseconds.
_TICK_S: Final = 0.001


class ClientConnection(asyncio.Protocol):
    """What is true of a connection however its requests are read.

    One deadline is enough: it is set while a head is awaited, and for the rest between two requests. To move it costs
    an assignment, since the timer looks, when it goes off, where the deadline is by then."""

    head_timeout_s: float = 10
    on_lost: Callable[[], None] | None = None

    # Whether a head has begun, or the first one is awaited.
    in_head = True
    # The request that is being answered, and the one that was read last, which may wait behind it.
    served: Outlet | None = None
    latest: Outlet | None = None
    due = math.inf
    _timer: asyncio.TimerHandle | None = None
    _timer_at = math.inf

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.app = config.loaded_app
        self.app_state = app_state
        self.timeout_keep_alive: float = config.timeout_keep_alive
        self.server_state = server_state
        self.connections: set[ClientConnection] = server_state.connections  # type: ignore[assignment]  # its own only
        self.loop = _loop or asyncio.get_running_loop()
        self._waiting: deque[tuple[Outlet, Scope]] = deque()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        self.connections.add(self)
        self.transport = transport
        self.flow = FlowControl(transport)
        self.server = get_local_addr(transport)
        self.client = get_remote_addr(transport)
        self._stall = Stall(transport, self.write_timeout_s())
        self.expect(self.head_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._stall.end()
        if self.on_lost is not None:
            self.on_lost()
        for outlet in (self.served, self.latest):
            if outlet is not None:
                outlet.intake.end()
        self.flow.resume_writing()
        # They refer to us, and would wait for the collector.
        self.served = self.latest = None
        self._waiting.clear()

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._stall.begin()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._stall.end()

    @staticmethod
    def write_timeout_s() -> float:
        """How long a client of a new connection may take nothing."""
        return 60

    @property
    def serving(self) -> bool:
        """Whether an answer is being made or sent."""
        return self.served is not None and not self.served.intake.over

    def begin(self, outlet: Outlet, scope: Scope) -> None:
        """The head of another request is complete. Its task begins when all that has been read is parsed."""
        waits = self.latest is not None and not self.latest.intake.over
        self.latest = outlet
        if waits:
            self.flow.pause_reading()
            self._waiting.append((outlet, scope))
        else:
            self._serve(outlet, scope)

    def answered(self) -> None:
        """An answer is complete; what comes next may begin."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self._waiting:
            self._serve(*self._waiting.popleft())
        elif not self.in_head:
            self.expect(self.timeout_keep_alive)

    def shutdown(self) -> None:
        """Take no more requests; uvicorn calls it when the server stops."""
        if self.latest is None or self.latest.intake.over:
            self.transport.close()
        else:
            self.latest.keep_alive = False

    def cut(self) -> None:
        """End the connection now; what is not sent is lost."""
        # asyncio's own transports cannot bear it once they have ended by themselves.
        if self in self.connections:
            self.transport.abort()

    def expect(self, seconds: float) -> None:
        """From now on this is how long the client may take."""
        self.due = self.loop.time() + seconds
        if self.due < self._timer_at:
            self._arm()

    def _serve(self, outlet: Outlet, scope: Scope) -> None:
        self.served = outlet
        task = self.loop.create_task(self.app(scope, outlet.intake.receive, outlet.send))
        self.server_state.tasks.add(task)
        task.add_done_callback(outlet.conclude)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self.due
        self._timer = self.loop.call_at(self.due, self._look)

    def _look(self) -> None:
        self._timer = None
        self._timer_at = math.inf
        if self.due <= self.loop.time() + _TICK_S:
            self._late()
        elif self.due < math.inf:
            self._arm()

    def _late(self) -> None:
        self.due = math.inf
        if self.transport.is_closing():
            # What is still on its way may arrive; a client that takes nothing is another matter.
            return
        if not self.in_head:
            self.transport.close()
        elif self.serving:
            # What comes too slowly shall not cost the answer before it.
            self.expect(self.head_timeout_s)
        else:
            self.transport.abort()
