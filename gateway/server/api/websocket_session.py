"""Serves the events of one WebSocket: each that asks for an answer is the request of a POST, which goes the way of all
requests through the middleware, and whose answer is written as texts.

What is limited here is what one connection may hold; what a client may ask for is limited as for every request.
"""

import asyncio
import time
from collections import deque
from typing import Final, assert_never

from starlette.types import ASGIApp, Message, Receive, Scope

from gateway.core.errors import GatewayError, InvalidRequest
from gateway.dialect import RequestHead
from gateway.dialects.steering import RefusedSteer, SteerEvent
from gateway.dialects.websocket import CreateEvent, IgnoredEvent, RefusedEvent, WebSocketDialect
from gateway.server.access.admission import RETRY
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.websocket_request import WebSocketRequest, request_headers
from gateway.server.api.websocket_steering import ConnectionSteering
from gateway.server.http.websocket_writer import WebSocket
from gateway.server.log.logger import LOGGER
from gateway.server.log.request_id import request_id

MOST_LANES: Final = 8
MOST_WAITING: Final = 16
# Without a running answer and without a byte of the client.
IDLE_S: Final = 120.0
LIFE_S: Final = 60 * 60.0
# An event that is larger is read in a thread.
LARGE: Final = 128 * 1024

# RFC 6455, section 7.4.1.
GOING_AWAY: Final = 1001
UNSUPPORTED: Final = 1003
POLICY: Final = 1008
TOO_BIG: Final = 1009


class Lane:
    """The events of one lane: those that wait, behind the one that is served by the task. `request` is that one, once
    it is prepared."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.request: WebSocketRequest | None = None
        self.waiting: deque[CreateEvent] = deque()
        self.task: asyncio.Task[None] | None = None


class WebSocketSession:
    """One open WebSocket of a client with this key. It ends when either side closes it: after `LIFE_S`, after `IDLE_S`
    without anything, and when the gateway stops, each time once its running answers are complete."""

    def __init__(
        self,
        state: GatewayState,
        app: ASGIApp,
        scope: Scope,
        dialect: WebSocketDialect,
        head: RequestHead,
        key: str,
    ) -> None:
        self._state = state
        self._app = app
        self._dialect = dialect
        self._head = head
        self._key = key
        self._path: str = scope["path"]
        self._headers = request_headers(scope["headers"])
        self._websocket: WebSocket = scope["state"]["websocket"]
        self._memory = state.connection_memories.open()
        self._steering = ConnectionSteering(dialect.steering, self._websocket, state.max_body)
        self._lanes: dict[str | None, Lane] = {}
        self._stopping = False
        self._expired = False
        self._left = False
        self._free_at = time.monotonic()
        self._timers: list[asyncio.TimerHandle] = []

    async def run(self, receive: Receive) -> None:
        """Serves the client's events until the connection is closed."""
        loop = asyncio.get_running_loop()
        self._state.websockets.add(self)
        self._timers = [loop.call_later(LIFE_S, self._expire), loop.call_later(IDLE_S, self._look)]
        try:
            while (message := await receive())["type"] == "websocket.receive":
                await self._take(message)
        finally:
            self._state.websockets.discard(self)
            for timer in self._timers:
                timer.cancel()
            await self._leave()
            self._state.connection_memories.close(self._memory)

    def drain(self) -> None:
        """Serves nothing more: what waits is refused as any request is then."""
        self._stopping = True
        self._settle()

    async def _take(self, message: Message) -> None:
        if (violation := message.get("violation")) is not None:
            self._end(_violated(*violation), *violation)
            return
        text = message.get("text")
        if text is None:
            self._end(InvalidRequest("Messages must be text."), UNSUPPORTED, "Messages must be text.")
            return
        read = self._dialect.read_event
        event = await asyncio.to_thread(read, text) if len(text) >= LARGE else read(text)
        match event:
            case CreateEvent():
                self._create(event)
            case SteerEvent():
                await self._steer(event)
            case RefusedEvent():
                self._refuse(event.error, event.lane)
            case RefusedSteer():
                self._steering.reject(event)
                await self._websocket.flow.drain()
            case IgnoredEvent():
                pass
            case _:
                assert_never(event)

    def _create(self, event: CreateEvent) -> None:
        """Serves an event, or lets it wait for those before it in its lane."""
        if (refusal := self._key_refusal()) is not None:
            self._end(refusal, POLICY, "The API key is not valid any more.")
            return
        lane = self._lanes.get(event.lane)
        if self._expired:
            self._refuse(_lived(), event.lane)
        elif (full := self._full(lane, event)) is not None:
            self._refuse(full, event.lane)
        elif lane is not None:
            lane.waiting.append(event)
        else:
            lane = self._lanes[event.lane] = Lane(event.lane)
            lane.task = asyncio.create_task(self._serve(lane, event))

    async def _steer(self, event: SteerEvent) -> None:
        """Steers a running answer. No more is read while the client is slow: each event is answered."""
        if (refusal := self._key_refusal()) is not None:
            self._end(refusal, POLICY, "The API key is not valid any more.")
            return
        await self._steering.take(event)
        await self._websocket.flow.drain()

    def _refusal(self) -> GatewayError | None:
        """Returns why no further request is served."""
        return _lived() if self._expired else self._key_refusal()

    def _key_refusal(self) -> InvalidRequest | None:
        """Returns why the client is not served any more: its key was removed, or is another client's now."""
        try:
            name = self._state.keys.check(self._head, self._dialect.key_places)
        except InvalidRequest as error:
            return error
        if name == self._key:
            return None
        return InvalidRequest("This API key belongs to another client now.", status=401, code="invalid_api_key")

    def _full(self, lane: Lane | None, event: CreateEvent) -> GatewayError | None:
        """Returns the error of a connection that holds as much as one may."""
        if lane is None:
            return _too_many(f"{MOST_LANES} lanes") if len(self._lanes) >= MOST_LANES else None
        waiting = [other for one in self._lanes.values() for other in one.waiting]
        if len(waiting) >= MOST_WAITING:
            return _too_many(f"{MOST_WAITING} waiting requests")
        if sum(len(other.body) for other in waiting) + len(event.body) > self._state.max_body:
            return _too_many("waiting requests as large as server.max_body_mb allows one to be")
        return None

    async def _serve(self, lane: Lane, event: CreateEvent) -> None:
        """Serves an event of a lane, and then what waits in it, one after the other."""
        try:
            await self._answer(lane, event)
            while lane.waiting:
                await self._answer(lane, lane.waiting.popleft())
        finally:
            del self._lanes[lane.name]
            self._free_at = time.monotonic()
            self._settle()

    async def _answer(self, lane: Lane, event: CreateEvent) -> None:
        """Serves an event. What follows its answer by itself comes before what waits."""
        answer = await self._steering.request(event, event.lane)
        if self._left:
            return
        parts = (self._dialect, self._websocket, self._steering, answer, self._key, self._memory, event.continues)
        lane.request = WebSocketRequest(*parts)
        await lane.request.serve(self._app, self._path, self._headers)
        if steers := self._steering.conclude(answer):
            successor = await self._steering.follow(answer, steers, self._refusal)
            if successor is not None and not self._left:
                lane.waiting.appendleft(successor)

    async def _leave(self) -> None:
        """Ends what is running: the client has disconnected."""
        self._left = True
        running = list(self._lanes.values())
        for lane in running:
            lane.waiting.clear()
            if lane.request is not None:
                lane.request.lose()
        if tasks := [lane.task for lane in running if lane.task is not None]:
            await asyncio.wait(tasks)

    def _settle(self) -> None:
        """Closes the connection where it is due and nothing is running."""
        if self._lanes:
            return
        if self._stopping:
            self._close(GOING_AWAY, "The gateway is shutting down.")
        elif self._expired:
            self._end(_lived(), GOING_AWAY, "The connection has been open for as long as one may be.")

    def _expire(self) -> None:
        self._expired = True
        self._settle()

    def _look(self) -> None:
        """Closes a connection over which nothing has come for `IDLE_S`, or looks again when that may be."""
        due = max(self._free_at, self._websocket.heard_at) + IDLE_S
        now = time.monotonic()
        if self._lanes:
            due = now + IDLE_S
        elif due <= now:
            self._close(GOING_AWAY, f"Nothing was sent for {IDLE_S:g} seconds.")
            return
        self._timers[1] = asyncio.get_running_loop().call_at(asyncio.get_running_loop().time() + due - now, self._look)

    def _refuse(self, error: GatewayError, lane: str | None) -> None:
        """Tells the client of an event that is not served; it is no request, and counts as none."""
        given = request_id(None)
        LOGGER.info("refused an event of a WebSocket: %s", error.code, extra={"request_id": given})
        answer = self._dialect.encode_error(error, given)
        answer = answer._replace(headers={**answer.headers, "x-request-id": given})
        self._websocket.write((self._dialect.error_text(answer, lane),))

    def _end(self, error: GatewayError, code: int, reason: str) -> None:
        """Closes the connection with an error, behind what goes back."""
        self._steering.abandon(str(error))
        self._refuse(error, None)
        self._close(code, reason)

    def _close(self, code: int, reason: str) -> None:
        """Closes the connection. Nothing stays in it that is the client's."""
        self._steering.abandon(reason)
        self._websocket.close(code, reason)


def _violated(code: int, reason: str) -> InvalidRequest:
    """Returns the error of what is no message: with the status and code that it has over HTTP."""
    if code == TOO_BIG:
        return InvalidRequest(reason, status=413, code="request_too_large")
    return InvalidRequest(reason)


def _too_many(what: str) -> GatewayError:
    message = f"This WebSocket has {what}, which is the most. Wait for an answer, or open another one."
    return GatewayError(message, status=503, code="overloaded", headers=RETRY)


def _lived() -> InvalidRequest:
    return InvalidRequest(
        f"This WebSocket has been open for {LIFE_S / 60:g} minutes, which is the most. Open another one to go on.",
        code="websocket_connection_limit_reached",
    )
