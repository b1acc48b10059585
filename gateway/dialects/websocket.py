"""Defines what a dialect adds to the contract whose clients send requests over a WebSocket, too.

Each event of the client is a text. One that asks for an answer is the request that the client would otherwise post, and
is served as that: its answer is the same stream, whose events are sent as texts, without the frame of server-sent
events. A connection has lanes, which the client names: the answers of one lane follow one another, those of several
lanes are made at the same time.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from gateway.core.errors import GatewayError
from gateway.dialect import ErrorAnswer
from gateway.dialects.stateful import StatefulDialect
from gateway.dialects.steering import RefusedSteer, SteerEvent, SteeringDialect


class CreateEvent(msgspec.Struct, frozen=True):
    """Asks for an answer: the `body` of the same request as it is posted, and its lane; None: the one without a name.

    `continues` is the entry of the answer that it continues (None: of none). Where the request fails before its answer
    begins, the connection forgets that entry."""

    body: bytes
    lane: str | None = None
    continues: str | None = None


class RefusedEvent(msgspec.Struct, frozen=True):
    """An event that cannot be served."""

    error: GatewayError
    lane: str | None = None


class IgnoredEvent(msgspec.Struct, frozen=True):
    """An event that needs no answer."""


ClientEvent: TypeAlias = CreateEvent | SteerEvent | RefusedSteer | RefusedEvent | IgnoredEvent


@runtime_checkable
class WebSocketDialect(StatefulDialect, Protocol):
    """Extends a dialect whose answers may be stored: a connection remembers also those that are not."""

    @property
    def steering(self) -> SteeringDialect: ...

    def read_event(self, text: str) -> ClientEvent:
        """Returns what a client's event asks for."""
        ...

    def event_texts(self, lane: str | None) -> Callable[[bytes], list[bytes]]:
        """Returns what finds the events of an answer in this lane among bytes of its stream, which are whole events
        and keep-alives; the latter are none."""
        ...

    def with_headers(self, text: bytes, headers: Mapping[str, str]) -> bytes:
        """Returns the first event of an answer with the headers that over HTTP stand before it."""
        ...

    def error_text(self, answer: ErrorAnswer, lane: str | None) -> bytes:
        """Returns the event of a request that failed before its answer began, with the headers of the error."""
        ...
