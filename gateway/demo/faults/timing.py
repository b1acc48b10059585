"""Lists the faults in the time at which a response comes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from gateway.demo.faults.editing import Options, around, is_stream, number, of_streams, pieces, with_parts
from gateway.demo.faults.fault import ALL_WIRES, API_WIRES, IN_THE_MIDDLE, Fault, edited
from gateway.demo.player.playback import Part, Response, Wait

_SECONDS: Final = {"seconds": "3600"}
_FIRST_BYTE_S: Final = 0.7
# How long a model takes for a piece that a proxy collects.
_WRITTEN_S: Final = 0.015
# The pieces of a stream come apart: it does not look collected, and takes long enough to be left.
_PIECE_S: Final = 0.01

# How long a model takes for a byte of an answer, and how long a proxy waits for one.
_BYTE_S: Final = 0.0001
_CUT_S: Final = 0.5
_TIMED_OUT: Final = Response((b"<h1>504 Gateway Time-out</h1>",), 504, {"content-type": "text/html"})


def _buffered(response: Response, _: Options) -> Response:
    """Sends a stream in one write, after the time in which a model writes it."""
    parts = tuple(response.parts)
    return msgspec.structs.replace(with_parts(response, _joined(parts)), hold=len(parts) * _WRITTEN_S)


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    """Joins the bytes between the other parts."""
    held = b""
    for part in parts:
        if isinstance(part, bytes):
            held += part
        else:
            yield from (held, part)
            held = b""
    yield held


def _late(response: Response, _: Options) -> Response:
    return msgspec.structs.replace(paced(response), hold=_FIRST_BYTE_S)


def paced(response: Response) -> Response:
    """Waits between the pieces, and not behind the last one, so that no client has left before the end is sent."""
    return with_parts(response, list(_apart(response.parts))[1:])


def _apart(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        yield from (Wait(_PIECE_S), part)


def _silence_cut(response: Response, _: Options) -> Response:
    """Sends a whole answer after the time in which a model writes it, or a proxy's error where that is too long."""
    if is_stream(response):
        return response
    written = sum(len(part) for part in response.parts if isinstance(part, bytes)) * _BYTE_S
    if written < _CUT_S:
        return msgspec.structs.replace(response, hold=written)
    return msgspec.structs.replace(_TIMED_OUT, hold=_CUT_S)


def _stall(response: Response, options: Options) -> Response:
    return around(response, options, Wait(number(options, "seconds")))


def _stall_first(response: Response, options: Options) -> Response:
    return with_parts(response, (Wait(number(options, "seconds")), *response.parts))


def _stall_headers(response: Response, options: Options) -> Response:
    return msgspec.structs.replace(response, hold=number(options, "seconds"))


def _held_open(response: Response, options: Options) -> Response:
    return with_parts(response, (*response.parts, Wait()))


def _slow(response: Response, options: Options) -> Response:
    wait = Wait(number(options, "ms") / 1000)
    return with_parts(response, (part for found in pieces(response) for part in (found, wait)))


def _bytewise(response: Response, options: Options) -> Response:
    size = max(1, int(options["chunk"]))
    wire = b"".join(part for part in response.parts if isinstance(part, bytes))
    return with_parts(response, (wire[at : at + size] for at in range(0, len(wire), size)))


TIMING: Final[Mapping[str, Fault[object]]] = {
    "stall": edited("silence in the middle", "stall", _stall, {**IN_THE_MIDDLE, **_SECONDS}),
    "stall_first": edited("silence before the first event", "stall", _stall_first, _SECONDS),
    "stall_headers": edited("silence instead of a status", "no_head", _stall_headers, _SECONDS),
    "slow": edited("a pause between events", "", _slow, {"ms": "50"}),
    "held_open": edited("a complete response on a connection that stays open", "held", _held_open, {}),
    "bytewise": edited("the stream in small writes", "split", _bytewise, {"chunk": "1"}),
    "buffered": Fault(
        f"a stream comes at once, after {_WRITTEN_S} s for each piece, as behind a proxy that buffers",
        wires=ALL_WIRES,
        edits=of_streams(_buffered),
    ),
    "silence_cut": Fault(
        f"it answers 504 where a model writes a whole answer for more than {_CUT_S} s, as a proxy that ends silence",
        wires=API_WIRES,
        edits=_silence_cut,
    ),
    "slow_first_byte": Fault(f"the first byte comes after {_FIRST_BYTE_S} s", wires=ALL_WIRES, edits=_late),
}
