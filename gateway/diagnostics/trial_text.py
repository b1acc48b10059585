"""Formats a trial for a terminal: the request as lines and bytes, the response as events with their offsets."""

from collections.abc import Iterator
from typing import Final

import msgspec

from gateway.adapter import BackendRequest
from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.diagnostics.trial import Trial

_BYTES_A_LINE: Final = 16


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
