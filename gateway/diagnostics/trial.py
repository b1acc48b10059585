"""Tries a backend's entry without the backend: the bytes of a response become events, each with its place in them."""

from collections.abc import Iterable, Mapping

import msgspec

from gateway.core.errors import BackendError
from gateway.core.events import Event
from gateway.exchange import Exchange


class Arrival(msgspec.Struct, frozen=True):
    """The events that one byte completed. `offset` counts the bytes up to and with it."""

    offset: int
    events: tuple[Event, ...]


class Trial(msgspec.Struct, frozen=True):
    """What a response became. `error` is the failure that ended it, and `unread` counts the bytes behind a complete
    one."""

    arrivals: tuple[Arrival, ...]
    error: BackendError | None = None
    unread: int = 0


def try_response(exchange: Exchange, body: bytes, trailers: Mapping[str, str]) -> Trial:
    """Returns what a response with status 200 becomes, its body read byte by byte. The names of trailers are lower
    case."""
    arrivals: list[Arrival] = []
    offset = 0

    def add(events: Iterable[Event]) -> None:
        if found := tuple(events):
            arrivals.append(Arrival(offset, found))

    try:
        exchange.on_response_head(200, {"content-type": exchange.request.accepts[0]})
        while offset < len(body) and not exchange.done:
            offset += 1
            add(exchange.feed(body[offset - 1 : offset]))
        add(exchange.close(trailers))
    except BackendError as error:
        add([*error.take_events(), *error.notices])
        return Trial(tuple(arrivals), error)
    return Trial(tuple(arrivals), None, len(body) - offset)
