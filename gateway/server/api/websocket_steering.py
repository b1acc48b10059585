"""Takes the steering events of a WebSocket, and says which request follows an answer that was steered.

What is accepted belongs to the gateway until the first event of the answer that has its messages, or until it goes back
to the client, which it does before the gateway closes the connection. Nothing is accepted that the connection could not
hold.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from gateway.core.errors import GatewayError
from gateway.dialects.steering import (
    AnswerStatus,
    RefusedSteer,
    Steer,
    SteerError,
    SteerErrorCode,
    SteerEvent,
    SteeringDialect,
    SteerPlace,
)
from gateway.dialects.websocket import CreateEvent
from gateway.server.api.answer_steering import AnswerSteering
from gateway.server.api.relay import LARGE
from gateway.server.http.websocket_writer import WebSocket
from gateway.server.log.logger import LOGGER

# Of one answer.
MOST_STEERS: Final = 4
# Of so many answers that have ended a connection knows how they did.
MOST_ENDED: Final = 256
# A request that is refused so would be refused again, with the same messages before it.
_FINAL: Final = frozenset({400, 404})


class Successor(CreateEvent, frozen=True):
    """The request that follows an answer which was steered by these events."""

    steers: tuple[Steer, ...] = ()


class ConnectionSteering:
    """The answers of one connection that are or were made, by their ids, and what steers them. `most` is the number of
    bytes of steering events that it keeps."""

    def __init__(self, dialect: SteeringDialect, websocket: WebSocket, most: int) -> None:
        self._dialect = dialect
        self._websocket = websocket
        self._most = most
        self._size = 0
        self._number = 0
        self._running: dict[str, AnswerSteering] = {}
        # Why an answer that has ended cannot be steered, and its lane.
        self._ended: dict[str, tuple[SteerErrorCode, str | None]] = {}
        self._order: deque[str] = deque()
        # What is accepted and in no answer yet, by its id, with its lane.
        self._accepted: dict[str, tuple[Steer, str | None]] = {}
        # What of it waits in a lane for a request of the client, by the answer whose calls are open.
        self._waiting: dict[str, tuple[str | None, Sequence[Steer]]] = {}

    async def request(self, event: CreateEvent, lane: str | None) -> AnswerSteering:
        """Returns the steering of the answer to a request that is about to be served, with its body."""
        if isinstance(event, Successor):
            return AnswerSteering(self._dialect, lane, event.body, event.steers, automatic=True)
        body = event.body
        if not self._waiting:
            return AnswerSteering(self._dialect, lane, body)
        large, continued = len(body) >= LARGE, self._dialect.continued
        found = self._waiting.get(await asyncio.to_thread(continued, body) if large else continued(body))
        if found is None or found[0] != lane:
            return AnswerSteering(self._dialect, lane, body)
        steers, joined = found[1], self._dialect.with_steers
        large = large or _size(steers) >= LARGE
        body = await asyncio.to_thread(joined, body, steers) if large else joined(body, steers)
        return AnswerSteering(self._dialect, lane, body, steers)

    def begin(self, answer: AnswerSteering, text: bytes) -> None:
        """Notes the first event of an answer: the messages that its request began with are part of it."""
        answer.id = self._dialect.answer_id(text)
        self._running[answer.id] = answer
        if answer.began_with:
            self._take_out(answer.began_with)

    async def take(self, event: SteerEvent) -> None:
        """Queues a steering event, or gives its messages back."""
        answer = self._running.get(event.answer)
        if answer is not None and answer.steerable is None:
            body, can_steer = answer.body, self._dialect.can_steer
            large = len(body) >= LARGE
            answer.steerable = await asyncio.to_thread(can_steer, body) if large else can_steer(body)
            # It may have ended meanwhile.
            answer = self._running.get(event.answer)
        if answer is None:
            code, lane = self._ended.get(event.answer, _UNKNOWN)
            self._fail(event, _error(code), lane)
        elif (refusal := self._refusal(answer, event)) is not None:
            self._fail(event, _error(refusal), answer.lane)
        else:
            steer = Steer(f"steer_{secrets.token_hex(12)}", event)
            self._accepted[steer.id] = steer, answer.lane
            self._size += event.size
            self._websocket.write((self._dialect.accepted(steer, self._place(answer.lane)),))
            answer.add(steer)

    def reject(self, refused: RefusedSteer) -> None:
        """Gives the input of an event back that steers nothing."""
        named = refused.event.answer
        answer = self._running.get(named)
        lane = self._ended.get(named, _UNKNOWN)[1] if answer is None else answer.lane
        self._fail(refused.event, refused.error, lane)

    def conclude(self, answer: AnswerSteering) -> Sequence[Steer]:
        """Notes that an answer is over. Returns what steers it and is in no other one yet."""
        if self._running.pop(answer.id, None) is None:
            return ()
        answer.status = self._dialect.answer_status(answer.last)
        self._remember(answer, answer.status)
        return self._kept(answer.queued)

    async def follow(
        self, answer: AnswerSteering, steers: Sequence[Steer], refusal: Callable[[], GatewayError | None]
    ) -> Successor | None:
        """Returns the request that follows a steered answer, which is over, by itself; `refusal` says why none may."""
        if answer.status == "failed":
            self._give_back(steers, "The response failed, so that nothing can follow it.")
            return None
        large = max(len(answer.last), len(answer.body), _size(steers)) >= LARGE
        last, owed = answer.last, self._dialect.owed
        owing = await asyncio.to_thread(owed, last) if large else owed(last)
        # They may have gone back meanwhile.
        steers = self._kept(steers)
        if owing and steers:
            self._waiting[answer.id] = answer.lane, steers
            texts = [self._dialect.pending(steer, owing, self._place(answer.lane)) for steer in steers]
            self._websocket.write(texts)
        elif (refused := refusal()) is not None:
            self._give_back(steers, str(refused))
        elif steers:
            asked, made = (answer.body, answer.id, steers), self._dialect.successor
            body = await asyncio.to_thread(made, *asked) if large else made(*asked)
            return Successor(body, answer.lane, steers=tuple(steers))
        return None

    def refuse(self, answer: AnswerSteering, status: int, body: bytes) -> None:
        """The request of an answer failed with this status and error before it began. Its messages go back where it
        followed by itself, or would be refused again; else they wait for the client's next request."""
        if answer.automatic or (answer.began_with and status in _FINAL):
            self._give_back(answer.began_with, self._dialect.error_message(body))

    def abandon(self, why: str) -> None:
        """Gives back what is in no answer yet: the connection serves nothing more."""
        self._give_back([steer for steer, _ in self._accepted.values()], why)

    def _kept(self, steers: Sequence[Steer]) -> Sequence[Steer]:
        return [steer for steer in steers if steer.id in self._accepted]

    def _take_out(self, steers: Sequence[Steer]) -> list[tuple[Steer, str | None]]:
        """Returns those of the events that are in no answer yet, with their lanes, and keeps them no longer."""
        found = [self._accepted.pop(steer.id) for steer in self._kept(steers)]
        for steer, _ in found:
            self._size -= steer.event.size
            self._waiting.pop(steer.event.answer, None)
        return found

    def _give_back(self, steers: Sequence[Steer], why: str) -> None:
        """Gives messages back for which no answer could be begun."""
        error = SteerError("successor_creation_failed", why)
        for steer, lane in self._take_out(steers):
            self._fail(steer.event, error, lane, steer.id)

    def _refusal(self, answer: AnswerSteering, event: SteerEvent) -> SteerErrorCode | None:
        """Returns why an answer that is running cannot be steered."""
        if not answer.steerable:
            return "steering_not_supported"
        if len(answer.queued) >= MOST_STEERS or self._size + event.size > self._most:
            return "too_many_pending_steers"
        return None

    def _remember(self, answer: AnswerSteering, status: AnswerStatus) -> None:
        ended: SteerErrorCode = "response_already_completed" if status == "completed" else "response_not_active"
        self._ended[answer.id] = ended, answer.lane
        self._order.append(answer.id)
        if len(self._order) > MOST_ENDED:
            del self._ended[self._order.popleft()]

    def _fail(self, event: SteerEvent, error: SteerError, lane: str | None, steer: str | None = None) -> None:
        LOGGER.info("gave the input of a steering event back: %s", error.code)
        self._websocket.write((self._dialect.failed(event, error, self._place(lane), steer),))

    def _place(self, lane: str | None) -> SteerPlace:
        self._number += 1
        return SteerPlace(self._number, lane)


def _size(steers: Sequence[Steer]) -> int:
    return sum([steer.event.size for steer in steers])


def _error(code: SteerErrorCode) -> SteerError:
    return SteerError(code, _MESSAGES[code])


_UNKNOWN: Final[tuple[SteerErrorCode, str | None]] = ("response_not_found", None)
_MESSAGES: Final[dict[SteerErrorCode, str]] = {
    "response_not_found": "This connection has made no response with this id.",
    "steering_not_supported": "A response with context_management, a conversation or background cannot be steered.",
    "too_many_pending_steers": f"{MOST_STEERS} events, or as many bytes as server.max_body_mb, wait already.",
    "response_already_completed": "The response is complete. Send the input with the next response.create.",
    "response_not_active": "The response has ended. Send the input with a response.create, or steer what followed it.",
}
