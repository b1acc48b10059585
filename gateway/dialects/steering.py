"""Defines what a dialect adds whose clients steer a running answer over a WebSocket: they queue messages for it, with
which the answer that follows it begins.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from gateway.core.conversation import JsonObject

AnswerStatus: TypeAlias = Literal["completed", "incomplete", "failed"]
SteerErrorCode: TypeAlias = Literal[
    "response_not_found",
    "invalid_input",
    "steering_not_supported",
    "too_many_pending_steers",
    "response_already_completed",
    "response_not_active",
    "successor_creation_failed",
]


class SteerEvent(msgspec.Struct, frozen=True):
    """Steers the answer with this id; `input` is the JSON that the client sent of its messages."""

    answer: str
    input: bytes

    @property
    def size(self) -> int:
        """The bytes that are kept of it."""
        return len(self.input)


class Steer(msgspec.Struct, frozen=True):
    """A steering event that is accepted, below its own id."""

    id: str
    event: SteerEvent


class SteerError(msgspec.Struct, frozen=True):
    """Why the messages of a steering event go back to the client."""

    code: SteerErrorCode
    message: str


class RefusedSteer(msgspec.Struct, frozen=True):
    """A steering event that steers no answer, whatever it names."""

    event: SteerEvent
    error: SteerError


class SteerPlace(msgspec.Struct, frozen=True):
    """The number of an event about steering, and the lane of the answer that is steered."""

    number: int
    lane: str | None = None


class SteeringDialect(Protocol):
    """Reads and writes what is about steering. Texts are the events of an answer, bodies those of requests."""

    def can_steer(self, body: bytes) -> bool:
        """Returns whether the answer to a request may be steered, as far as the request decides that."""
        ...

    def answer_id(self, text: bytes) -> str:
        """Returns the id of an answer from its first event; empty: it has none."""
        ...

    def answer_status(self, text: bytes) -> AnswerStatus:
        """Returns how an answer ended, from its last event. One without an end has failed."""
        ...

    def owed(self, text: bytes) -> Sequence[JsonObject]:
        """Returns the results that the client of an answer which has ended has to send, from its last event: as the
        client sends them but for what they say."""
        ...

    def opened_item(self, fields: JsonObject) -> tuple[object, bool] | None:
        """Returns the item that a backend's own event begins (true) or ends; None for any other event, and for one of a
        text, which may end anywhere."""
        ...

    def continued(self, body: bytes) -> str:
        """Returns the id of the answer that a request continues; empty: none."""
        ...

    def successor(self, body: bytes, answer: str, steers: Sequence[Steer]) -> bytes:
        """Returns the request that continues the answer to another one, with its settings and these messages."""
        ...

    def with_steers(self, body: bytes, steers: Sequence[Steer]) -> bytes:
        """Returns the request with these messages before its own."""
        ...

    def accepted(self, steer: Steer, place: SteerPlace) -> bytes: ...

    def pending(self, steer: Steer, owed: Sequence[JsonObject], place: SteerPlace) -> bytes: ...

    def failed(self, event: SteerEvent, error: SteerError, place: SteerPlace, steer: str | None = None) -> bytes:
        """Returns the event that gives the input of a steering event back; `steer` is its id once it was accepted."""
        ...

    def error_message(self, body: bytes) -> str:
        """Returns what the body of an error says."""
        ...
