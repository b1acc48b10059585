"""Defines the faults of any wire that streams events: each needs only the events of the regular answer, as bytes."""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from gateway.demo.player.demo_fault import DemoFault, Options
from gateway.demo.player.playback import Cut, Part, Response, Wait

Answer = TypeVar("Answer")

_JSON: Final = {"content-type": "application/json"}


class StreamFaults(Generic[Answer]):
    """The faults of one wire. `frames` returns the events of the whole answer; `after` is the default number of events
    before a fault in the middle."""

    def __init__(self, frames: Callable[[Answer], list[bytes]], after: int) -> None:
        self._frames = frames
        self._after = after

    def faults(self) -> dict[str, DemoFault[Answer]]:
        """Return the faults by name."""
        after = f"after={self._after}"
        first = "before the first event"
        return {
            "html": DemoFault("a web page instead of a response: code=200", _html, "page"),
            "empty": DemoFault("200 without a body: type=application/json", _empty, "hollow"),
            "redirect": DemoFault("302 to another address", _redirect, "redirect"),
            "truncated": DemoFault(f"a well-formed end before the last event: {after}", self._truncated, "no_finish"),
            "cut_mid_event": DemoFault(f"a well-formed end inside an event: {after}", self._cut_mid_event, "truncated"),
            "disconnect": DemoFault(f"the connection breaks: {after}, how=fin|reset", self._disconnect, "truncated"),
            "disconnect_first": DemoFault(
                f"the connection breaks {first}: how=fin|reset", self._disconnect_first, "truncated"
            ),
            "stall": DemoFault(f"silence in the middle: {after}, seconds=3600", self._stall, "stall"),
            "stall_first": DemoFault(f"silence {first}: seconds=3600", self._stall_first, "stall"),
            "stall_headers": DemoFault("silence instead of a status: seconds=3600", self._stall_headers, "no_head"),
            "slow": DemoFault("a pause between events: ms=50", self._slow),
            "held_open": DemoFault("a complete response on a connection that stays open", self._held_open, "held"),
            "bytewise": DemoFault("the stream in small writes: chunk=1", self._bytewise, "split"),
        }

    def begun(self, answer: Answer, options: Options) -> list[bytes]:
        """Return the events before a fault in the middle."""
        return self._frames(answer)[: self._position(options)]

    def rest(self, answer: Answer, options: Options) -> list[bytes]:
        """Return the events after a fault in the middle."""
        return self._frames(answer)[self._position(options) :]

    def around(self, answer: Answer, options: Options, *parts: Part) -> Response:
        """Return the answer with these parts in its middle."""
        return Response((*self.begun(answer, options), *parts, *self.rest(answer, options)))

    def _position(self, options: Options) -> int:
        return int(options.get("after", self._after))

    def _truncated(self, answer: Answer, options: Options) -> Response:
        return Response((*self.begun(answer, options), Cut("end")))

    def _cut_mid_event(self, answer: Answer, options: Options) -> Response:
        return Response((*self.begun(answer, options), self._frames(answer)[-1][:25], Cut("end")))

    def _disconnect(self, answer: Answer, options: Options) -> Response:
        return Response((*self.begun(answer, options), _break(options)))

    def _disconnect_first(self, answer: Answer, options: Options) -> Response:
        return Response((_break(options),))

    def _stall(self, answer: Answer, options: Options) -> Response:
        return self.around(answer, options, Wait(_seconds(options)))

    def _stall_first(self, answer: Answer, options: Options) -> Response:
        return Response((Wait(_seconds(options)), *self._frames(answer)))

    def _stall_headers(self, answer: Answer, options: Options) -> Response:
        return Response(self._frames(answer), hold=_seconds(options))

    def _slow(self, answer: Answer, options: Options) -> Response:
        wait = Wait(float(options.get("ms", "50")) / 1000)
        return Response(tuple(part for found in self._frames(answer) for part in (found, wait)))

    def _held_open(self, answer: Answer, options: Options) -> Response:
        return Response((*self._frames(answer), Wait()))

    def _bytewise(self, answer: Answer, options: Options) -> Response:
        size = max(1, int(options.get("chunk", "1")))
        wire = b"".join(self._frames(answer))
        return Response(tuple(wire[at : at + size] for at in range(0, len(wire), size)))


class SSEFaults(StreamFaults[Answer]):
    """The faults of a wire whose events are server-sent events of JSON."""

    def faults(self) -> dict[str, DemoFault[Answer]]:
        """Return the faults by name."""
        after = f"after={self._after}"
        return {
            **super().faults(),
            "bad_json": DemoFault(f"an event with invalid JSON: {after}", self._bad_json, "malformed"),
            "comments": DemoFault("comment lines between events", self._comments, "comments"),
        }

    def _bad_json(self, answer: Answer, options: Options) -> Response:
        return self.around(answer, options, b'data: {"type": "brok\n\n')

    def _comments(self, answer: Answer, options: Options) -> Response:
        comment = b": still here \xe2\x80\xa6\n\n"
        return Response(tuple(part for found in self._frames(answer) for part in (comment, found)))


def as_object(fault: Response, body: bytes) -> Response:
    """Convert the fault for a client that did not request a stream: what happens to the stream happens to the one
    object."""
    if dict(fault.headers).get("content-type") != "text/event-stream":
        return fault
    events = [part for part in _parts(fault) if not isinstance(part, bytes)]
    whole = not any(isinstance(event, Cut) for event in events)
    half = len(body) // 2
    return Response((body[:half], *events, body[half:] if whole else b""), 200, _JSON, fault.hold)


def _parts(fault: Response) -> Iterable[Part]:
    return fault.parts


def _html(_: object, options: Options) -> Response:
    page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
    return Response((page,), int(options.get("code", "200")), {"content-type": "text/html"})


def _empty(_: object, options: Options) -> Response:
    return Response((), 200, {"content-type": options.get("type", "application/json")})


def _redirect(_: object, options: Options) -> Response:
    return Response((), 302, {"location": "http://127.0.0.1:9/stolen", "content-type": "application/octet-stream"})


def _break(options: Options) -> Cut:
    return Cut("reset" if options.get("how") == "reset" else "fin")


def _seconds(options: Options) -> float:
    return float(options.get("seconds", "3600"))
