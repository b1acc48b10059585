"""Serves the requests of a client's connection one after the other and closes it at its deadline.

The class takes the place of uvicorn's protocol: uvicorn's server passes it its configuration and state, counts it and
shuts it down.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Final

from starlette.types import Scope
from uvicorn.config import Config
from uvicorn.protocols.utils import get_local_addr, get_remote_addr
from uvicorn.server import ServerState

from gateway.server.http.client_connection_state import BUSY, CLIENT_TRANSITIONS, IDLE, IN_HEAD, ClientState
from gateway.server.http.flow_control import FlowControl
from gateway.server.http.response_writer import ResponseWriter
from gateway.server.http.write_timeout import WriteTimeout

# The timers of the event loop count milliseconds.
_TICK_S: Final = 0.001


class ClientConnection(asyncio.Protocol):
    """The part of a connection that does not depend on how its requests are parsed.

    One deadline suffices: it is set while a head is awaited and during the idle time between two requests. Moving it
    costs one assignment, since the timer reads the deadline only when it expires."""

    header_timeout_s: float = 10

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
        # The type of uvicorn's set names its own protocols; this server has no others than these.
        self.connections: set[ClientConnection] = server_state.connections  # type: ignore[assignment]  # of uvicorn's own
        self.loop = _loop or asyncio.get_running_loop()
        self.on_lost: Callable[[], None] | None = None
        self.state = ClientState.HEAD
        # The request that is being served, and the one that was parsed last, which may wait behind it.
        self.served: ResponseWriter | None = None
        self.latest: ResponseWriter | None = None
        self.due = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._waiting: deque[tuple[ResponseWriter, Scope]] = deque()

    # asyncio gives a protocol of streams a Transport; the stub names the base of all transports.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP: always a Transport
        self.connections.add(self)
        self.transport = transport
        self.flow = FlowControl(transport)
        self.server = get_local_addr(transport)
        self.client = get_remote_addr(transport)
        self._write_timeout = WriteTimeout(transport, self.write_timeout_s())
        self.expect(self.header_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self.state = CLIENT_TRANSITIONS[self.state]["lost"]
        self.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._write_timeout.end()
        if self.on_lost is not None:
            self.on_lost()
        for writer in (self.served, self.latest):
            if writer is not None:
                writer.request_body.end()
        self.flow.resume_writing()
        # They refer to this connection, and would wait for the garbage collector.
        self.served = self.latest = None
        self._waiting.clear()

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._write_timeout.begin()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._write_timeout.end()

    @staticmethod
    def write_timeout_s() -> float:
        """Returns the seconds for which a client of a new connection may read nothing."""
        return 60

    def begin(self, writer: ResponseWriter, scope: Scope) -> None:
        """Begins another request, whose head is complete. Its task begins when all bytes read so far are parsed."""
        waits = self.state in BUSY
        self.state = CLIENT_TRANSITIONS[self.state]["request"]
        self.latest = writer
        if waits:
            self.flow.holds_requests = True
            self.flow.pause_reading()
            self._waiting.append((writer, scope))
        else:
            self._serve(writer, scope)

    def answered(self) -> None:
        """Records that a response is complete; the next request may begin."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self._waiting:
            self._serve(*self._waiting.popleft())
            # What is read may be the rest of this one's body, and thousands of further requests.
            self.flow.holds_requests = bool(self._waiting)
            self.flow.resume_reading()
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        self.state = CLIENT_TRANSITIONS[self.state]["answered"]
        if self.state is IDLE:
            self.expect(self.timeout_keep_alive)

    def shutdown(self) -> None:
        """Accepts no more requests; uvicorn calls it when the server stops."""
        if self.state in BUSY and self.latest is not None:
            self.latest.keep_alive = False
        else:
            self.transport.close()

    def cut(self) -> None:
        """Closes the connection now; unsent bytes are lost."""
        # asyncio's own transports fail when they are aborted after they have closed by themselves.
        if self.state is not ClientState.CLOSED:
            self.transport.abort()

    def expect(self, seconds: float) -> None:
        """Sets the deadline to this many seconds from now."""
        self.due = self.loop.time() + seconds
        if self.due < self._timer_at:
            self._arm()

    def _serve(self, writer: ResponseWriter, scope: Scope) -> None:
        self.served = writer
        task = self.loop.create_task(self.app(scope, writer.request_body.receive, writer.send))
        self.server_state.tasks.add(task)
        task.add_done_callback(writer.conclude)

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
            # Bytes in the send buffer may still arrive; the write timeout covers a client that reads nothing.
            return
        if self.state not in IN_HEAD:
            self.transport.close()
        elif self.state is ClientState.PIPELINED:
            # A slow request must not interrupt the response before it.
            self.expect(self.header_timeout_s)
        else:
            self.transport.abort()
