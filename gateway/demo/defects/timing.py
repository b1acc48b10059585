"""Lists the defects of when a backend answers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
from starlette.requests import Request

from gateway.demo.defects.defect import ALL_WIRES, API_WIRES, Defect
from gateway.demo.defects.rewriting import answering, is_stream, with_parts
from gateway.demo.player.endpoint import Handler
from gateway.demo.player.playback import Part, Response, Wait, json_answer
from gateway.demo.player.recorder import Recorder

_FIRST_BYTE_S: Final = 0.7
# How long a model takes for a piece that a proxy collects.
_WRITTEN_S: Final = 0.015
# The pieces of a stream come apart: it does not look collected, and takes long enough to be left.
_PIECE_S: Final = 0.01

# How long a model takes for a byte of an answer, and how long a proxy waits for one.
_BYTE_S: Final = 0.0001
_CUT_S: Final = 0.5
_TIMED_OUT: Final = Response((b"<h1>504 Gateway Time-out</h1>",), 504, {"content-type": "text/html"})


def _buffered(response: Response) -> Response:
    """Send a stream in one write, after the time in which a model writes it."""
    if not is_stream(response):
        return response
    parts = tuple(response.parts)
    return msgspec.structs.replace(with_parts(response, _joined(parts)), hold=len(parts) * _WRITTEN_S)


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    """Join the bytes between the other parts."""
    held = b""
    for part in parts:
        if isinstance(part, bytes):
            held += part
        else:
            yield from (held, part)
            held = b""
    yield held


def _late(response: Response) -> Response:
    return msgspec.structs.replace(_paced(response), hold=_FIRST_BYTE_S)


def _paced(response: Response) -> Response:
    """Wait between the pieces, and not behind the last one, so that no client has left before the end is sent."""
    return with_parts(response, list(_apart(response.parts))[1:])


def _apart(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        yield from (Wait(_PIECE_S), part)


def _keeps_slot(handler: Handler, recorder: Recorder) -> Handler:
    """Answer the request after each one that its client has left with 503, as if that one still had the only slot."""
    refused = 0

    async def answer(request: Request) -> Response:
        nonlocal refused
        if request.method == "POST" and recorder.aborted > refused:
            refused += 1
            return json_answer({"error": {"message": "no slot available", "type": "unavailable_error"}}, 503)
        return _paced(await handler(request))

    return answer


def _silence_cut(response: Response) -> Response:
    """Send a whole answer after the time in which a model writes it, or a proxy's error where that is too long."""
    if is_stream(response):
        return response
    written = sum(len(part) for part in response.parts if isinstance(part, bytes)) * _BYTE_S
    if written < _CUT_S:
        return msgspec.structs.replace(response, hold=written)
    return msgspec.structs.replace(_TIMED_OUT, hold=_CUT_S)


TIMING: Final[Mapping[str, Defect]] = {
    "buffered": answering(
        f"a stream comes at once, after {_WRITTEN_S} s for each piece, as behind a proxy that buffers",
        ALL_WIRES,
        _buffered,
    ),
    "silence_cut": answering(
        f"it answers 504 where a model writes a whole answer for more than {_CUT_S} s, as a proxy that ends silence",
        API_WIRES,
        _silence_cut,
    ),
    "slow_first_byte": answering(f"the first byte comes after {_FIRST_BYTE_S} s", ALL_WIRES, _late),
    "cancel_keeps_slot": Defect(
        "an answer whose client has left still has its slot: the next request gets 503", ALL_WIRES, serves=_keeps_slot
    ),
}
