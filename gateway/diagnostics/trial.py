"""Tries a backend's entry without the backend: the bytes of a response become events, each with its place in them. For
a terminal, the request is shown as lines and bytes, the response as events with their offsets.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from gateway.adapter import BackendRequest
from gateway.core.errors import BackendError
from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.exchange import Exchange

_BYTES_A_LINE: Final = 16


class Arrival(msgspec.Struct, frozen=True):
    """The events that one byte completed. `offset` counts the bytes up to and with it."""

    offset: int
    events: tuple[Event, ...]


class Trial(msgspec.Struct, frozen=True):
    """The events of a response. `error` is the failure that ended it, and `unread` counts the bytes behind a complete
    one."""

    arrivals: tuple[Arrival, ...]
    error: BackendError | None = None
    unread: int = 0


def try_response(exchange: Exchange, body: bytes, trailers: Mapping[str, str]) -> Trial:
    """Returns the trial of a response with status 200, its body read byte by byte. The names of trailers are lower
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


def request_text(request: BackendRequest) -> str:
    """Returns the head of the request, and the dump of its body: offset, bytes, characters."""
    headers = [f"  {name}: {value}" for name, value in request.headers.items()]
    lines = [f"request: {request.method} {request.path}", *headers, "", f"body: {len(request.body)} bytes"]
    return "\n".join([*lines, *_dump(request.body)]) + "\n"


def _dump(data: bytes) -> Iterator[str]:
    for begin in range(0, len(data), _BYTES_A_LINE):
        part = data[begin : begin + _BYTES_A_LINE]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield f"  {begin:06x}  {part.hex(' '):<{_BYTES_A_LINE * 3}} {shown}"


def response_text(trial: Trial) -> str:
    """Returns one line for each event, behind the count of the bytes that it needed, and the error that ended the
    response."""
    lines = ["response:"]
    for arrival in trial.arrivals:
        offsets = [f"{arrival.offset:>8}", *[" " * 8] * len(arrival.events)]
        lines += [f"{offset}  {_event(event)}" for offset, event in zip(offsets, arrival.events, strict=False)]
    if trial.error is not None:
        lines.append(f"   error  {trial.error.status} {trial.error.code}: {trial.error.message}")
    if trial.unread:
        lines.append(f"  {trial.unread} bytes behind the end were not read")
    return "\n".join(lines) + "\n"


def _event(event: Event) -> str:
    """Returns the name of an event and those of its fields that say something."""
    if isinstance(event, Notice):
        return f"Notice {event.level} {event.rule}: {event.detail}"
    values = ((name, getattr(event, name)) for name in event.__struct_fields__)
    fields = [
        f"{name}={msgspec.json.encode(value).decode()}"
        for name, value in values
        if value is not None and value is not False and value != {}
    ]
    return " ".join([type(event).__name__, *fields])
