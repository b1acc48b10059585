"""Takes the steering events of a WebSocket, and says which request follows an answer that was steered.

What is accepted belongs to the gateway until the first event of the answer that has its messages, or until it goes back
to the client. Nothing is accepted that the connection could not hold.
"""

import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from gateway.core.errors import GatewayError
from gateway.dialects.steering import (
    AnswerEnd,
    Steer,
    SteerError,
    SteerErrorCode,
    SteerEvent,
    SteeringDialect,
    SteerPlace,
)
from gateway.dialects.websocket import CreateEvent
from gateway.server.api.answer_steering import AnswerSteering
from gateway.server.http.websocket_writer import WebSocket
from gateway.server.log.logger import LOGGER

# Of one answer.
MOST_STEERS: Final = 4
# Of so many answers that have ended a connection knows how they did.
MOST_ENDED: Final = 256


class Successor(CreateEvent, frozen=True):
    """The request that follows an answer which was steered by these events."""

    steers: tuple[Steer, ...] = ()


class ConnectionSteering:
    """The answers of one connection that are or were made, by their ids, and what steers them. `most` is the number of
    bytes of messages that it queues."""

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
        # What waits in a lane for a request of the client, by the answer whose calls are open.
        self._waiting: dict[str, tuple[str | None, tuple[Steer, ...]]] = {}

    def request(self, event: CreateEvent, lane: str | None) -> AnswerSteering:
        """Returns the steering of the answer to a request that is about to be served, with its body."""
        if isinstance(event, Successor):
            return AnswerSteering(self._dialect, lane, event.body, event.steers, automatic=True)
        waiting = self._waiting.get(self._dialect.continued(event.body)) if self._waiting else None
        if waiting is None or waiting[0] != lane:
            return AnswerSteering(self._dialect, lane, event.body)
        steers = waiting[1]
        return AnswerSteering(self._dialect, lane, self._dialect.with_steers(event.body, steers), steers)

    def begin(self, answer: AnswerSteering, text: bytes) -> None:
        """Notes the first event of an answer: the messages that its request began with are part of it."""
        answer.id = self._dialect.answer_id(text)
        self._running[answer.id] = answer
        for steer in answer.began_with:
            self._size -= len(steer.event.messages)
        if answer.began_with and not answer.automatic:
            self._waiting.pop(answer.began_with[0].event.answer, None)

    def take(self, event: SteerEvent) -> None:
        """Queues a steering event, or gives its messages back."""
        answer = self._running.get(event.answer)
        if answer is None:
            ended, lane = self._ended.get(event.answer, _UNKNOWN)
            self._fail(event, SteerError(ended, _MESSAGES[ended]), lane)
            return
        if (refusal := self._refusal(answer, event)) is not None:
            self._fail(event, SteerError(refusal, _MESSAGES[refusal]), answer.lane)
            return
        steer = Steer(f"steer_{secrets.token_hex(12)}", event)
        self._size += len(event.messages)
        self._websocket.write((self._dialect.accepted(steer, self._place(answer.lane)),))
        answer.add(steer)

    def conclude(self, answer: AnswerSteering, refusal: Callable[[], GatewayError | None]) -> Successor | None:
        """Notes that an answer is over. Returns the request that follows by itself; `refusal` says why none may."""
        if self._running.pop(answer.id, None) is None:
            return None
        end = self._dialect.answer_end(answer.last)
        self._remember(answer, end)
        steers = tuple(answer.queued)
        if not steers:
            return None
        if end.status == "failed":
            self._give_back(answer.lane, steers, "The response failed, so that nothing can follow it.")
        elif end.owed:
            self._waiting[answer.id] = answer.lane, steers
            texts = [self._dialect.pending(steer, end.owed, self._place(answer.lane)) for steer in steers]
            self._websocket.write(texts)
        elif (refused := refusal()) is not None:
            self._give_back(answer.lane, steers, str(refused))
        else:
            return Successor(self._dialect.successor(answer.body, answer.id, steers), answer.lane, steers=steers)
        return None

    def refuse(self, answer: AnswerSteering, body: bytes) -> bool:
        """The request of an answer failed with this error before it began. Returns whether that is told: the messages
        of one that followed by itself go back. Those that a request of the client carried wait for the next one."""
        if answer.automatic:
            self._give_back(answer.lane, answer.began_with, self._dialect.error_message(body))
        return answer.automatic

    def abandon(self, why: str) -> None:
        """Gives back what waits for a request that the connection will not serve."""
        for lane, steers in self._waiting.values():
            self._give_back(lane, steers, why)
        self._waiting.clear()

    def _give_back(self, lane: str | None, steers: Sequence[Steer], why: str) -> None:
        """Gives messages back for which no answer could be begun."""
        error = SteerError("successor_creation_failed", why)
        for steer in steers:
            self._size -= len(steer.event.messages)
            self._fail(steer.event, error, lane, steer.id)

    def _refusal(self, answer: AnswerSteering, event: SteerEvent) -> SteerErrorCode | None:
        """Returns why an answer that is running cannot be steered."""
        if not answer.steerable:
            return "steering_not_supported"
        if len(answer.queued) >= MOST_STEERS or self._size + len(event.messages) > self._most:
            return "too_many_pending_steers"
        return None

    def _remember(self, answer: AnswerSteering, end: AnswerEnd) -> None:
        ended: SteerErrorCode = "response_already_completed" if end.status == "completed" else "response_not_active"
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


_UNKNOWN: Final[tuple[SteerErrorCode, str | None]] = ("response_not_found", None)
_MESSAGES: Final[dict[SteerErrorCode, str]] = {
    "response_not_found": "This connection has made no response with this id.",
    "steering_not_supported": "A response with context_management, a conversation or background cannot be steered.",
    "too_many_pending_steers": f"{MOST_STEERS} events, or as many bytes as server.max_body_mb, wait already.",
    "response_already_completed": "The response is complete. Send the input with the next response.create.",
    "response_not_active": "The response has ended. Send the input with a response.create, or steer what followed it.",
}
