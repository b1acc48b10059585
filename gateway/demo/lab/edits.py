"""Lists what only the laboratory plays on several wires, and what the faults of one wire there share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Final, TypeVar

from gateway.core.conversation import Json, JsonObject
from gateway.demo.faults.editing import Event, Options, each_json, of_streams, pieces, with_parts
from gateway.demo.faults.fault import API_WIRES, Fault, edited
from gateway.demo.player.playback import Response

_BOM: Final = b"\xef\xbb\xbf"
_IDS: Final = ("id", "responseId")
_LARGE: Final = 2**20
_HOLDERS: Final = ("message", "response")

Found = TypeVar("Found", bound=JsonObject)


def cut_short(text: Sequence[str]) -> tuple[str, ...]:
    """Returns the first half of a text in pieces."""
    return tuple(text[: len(text) // 2])


def interleaved(events: Iterable[Found], place: Callable[[Found], Json]) -> Iterator[Found]:
    """Yields the events of a stream, those of its parts in turns: `place` tells the part of an event, and None for one
    that begins or ends the stream."""
    found = list(events)
    places = list(dict.fromkeys(at for event in found if (at := place(event)) is not None))
    first = next(at for at, event in enumerate(found) if place(event) is not None)
    last = max(at for at, event in enumerate(found) if place(event) is not None)
    parts = [[event for event in found if place(event) == at] for at in places]
    turns = (event for turn in zip_longest(*parts) for event in turn if event is not None)
    yield from chain(found[:first], turns, found[last + 1 :])


def _crlf(response: Response, _: Options) -> Response:
    return with_parts(
        response, (part.replace(b"\n", b"\r\n") if isinstance(part, bytes) else part for part in response.parts)
    )


def _marked(response: Response, _: Options) -> Response:
    first, *others = pieces(response)
    return with_parts(response, (_BOM + first if isinstance(first, bytes) else first, *others))


def _without_ids(event: Event) -> Event:
    """Returns an event with null as the id of the answer, in it or in the object that says what the answer is."""
    nulls: Event = {name: None for name in _IDS if name in event}
    inner: Event = {
        name: {**value, "id": None} for name, value in event.items() if name in _HOLDERS and isinstance(value, dict)
    }
    return {**event, **nulls, **inner}


def _large(response: Response, options: Options) -> Response:
    """Adds an unknown field of a megabyte to the first event."""
    first = True

    def grown(event: Event) -> Event:
        nonlocal first
        grows, first = first, False
        return {**event, "x_lab": "x" * _LARGE} if grows else event

    return each_json(grown)(response, options)


LAB_EDITS: Final[Mapping[str, Fault[object]]] = {
    "crlf": edited("lines that end with CR LF", "", of_streams(_crlf), {}, API_WIRES),
    "byte_order_mark": edited("a byte order mark before the first event", "", of_streams(_marked), {}, API_WIRES),
    "large_event": edited("a field of a megabyte in the first event", "", _large, {}, API_WIRES),
    "null_ids": edited("the id of the answer is null", "", each_json(_without_ids), {}, API_WIRES),
}
