"""Writes agent events as server-sent bytes. The options change the encoding of an event, never its content."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from adapters.warp import multi_agent_pb2 as pb
from gateway.demo.player.playback import Cut, Part, Wait

_NEWLINES: Final = {"lf": b"\n", "crlf": b"\r\n", "cr": b"\r"}
_TRUE: Final = frozenset({"1", "true", "on", "yes"})
_FALSE: Final = frozenset({"0", "false", "off", "no"})


class FramingOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The framing options; the defaults reproduce the wire as it was observed."""

    chunk: int = 0
    delay_ms: int = 0
    padding: bool = True
    alphabet: Literal["urlsafe", "standard", "hex"] = "urlsafe"
    quotes: bool = False
    space: bool = False
    newline: Literal["lf", "crlf", "cr"] = "lf"
    name: bool = True
    lines: int = 1
    comments: bool = False
    batch: int = 1
    done: bool = False


FRAMING_OPTIONS: Final[Mapping[str, str]] = {
    "chunk": "bytes per write (0: one event per write); 1 cuts inside `data:` and inside the UTF-8 of a comment",
    "delay_ms": "pause after each write",
    "padding": "base64 with `=` at the end",
    "alphabet": "urlsafe, standard or hex",
    "quotes": "the data in double quotes",
    "space": "`data: ` instead of `data:`",
    "newline": "lf, crlf or cr",
    "name": "an `event:data` line before the data",
    "lines": "the number of data lines per event",
    "comments": "comment lines between events",
    "batch": "the maximum number of actions per event",
    "done": "a `[DONE]` after the last event",
}


class Raw(msgspec.Struct, frozen=True):
    """The data of an event as raw bytes, instead of an encoded message."""

    data: bytes


class Framed(msgspec.Struct, frozen=True):
    """One event with its own framing options."""

    event: pb.ResponseEvent
    framing: FramingOptions


Frame: TypeAlias = pb.ResponseEvent | Raw | Framed | Wait | Cut


def read_framing_options(options: Mapping[str, str]) -> FramingOptions:
    """Parses text options as framing options. Raises ValueError that names the fault."""
    flags = {"padding", "quotes", "space", "name", "comments", "done"}
    typed = {name: _flag(name, value) if name in flags else value for name, value in options.items()}
    return msgspec.convert(typed, FramingOptions, strict=False)


def write_frames(frames: Iterable[Frame], framing: FramingOptions) -> Iterator[Part]:
    """Yields the parts to be played."""
    for frame in _batched(frames, framing.batch):
        match frame:
            case Wait() | Cut():
                yield frame
            case Raw(data):
                yield from _writes(_event(data, framing), framing)
            case Framed(event, own):
                yield from _writes(_event(_text(event, own), own), framing)
            case pb.ResponseEvent():
                yield from _writes(_event(_text(frame, framing), framing), framing)
    if framing.done:
        yield from _writes(_event(b"[DONE]", FramingOptions(name=False)), framing)


def _flag(name: str, value: str) -> bool:
    if value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise ValueError(f"{name} must be 1 or 0; it is {value!r}")


def _text(event: pb.ResponseEvent, framing: FramingOptions) -> bytes:
    body = event.SerializeToString()
    if framing.alphabet == "hex":
        return body.hex().encode()
    text = base64.urlsafe_b64encode(body) if framing.alphabet == "urlsafe" else base64.b64encode(body)
    return text if framing.padding else text.rstrip(b"=")


def _event(data: bytes, framing: FramingOptions) -> bytes:
    end = _NEWLINES[framing.newline]
    data = b'"' + data + b'"' if framing.quotes else data
    size = max(1, -(-len(data) // max(1, framing.lines)))
    lines = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
    label = b"data: " if framing.space else b"data:"
    head = b"event:data" + end if framing.name else b""
    comment = ": läuft noch …".encode() + end + end if framing.comments else b""
    return comment + head + b"".join(label + line + end for line in lines) + end


def _writes(event: bytes, framing: FramingOptions) -> Iterator[bytes]:
    size = framing.chunk or len(event)
    yield from (event[at : at + size] for at in range(0, len(event), size))


def _batched(frames: Iterable[Frame], size: int) -> Iterator[Frame]:
    """Joins neighbouring action events, up to `size` actions each."""
    held: pb.ResponseEvent | None = None
    for frame in frames:
        joins = size > 1 and isinstance(frame, pb.ResponseEvent) and frame.HasField("client_actions")
        if held is not None and not (joins and len(held.client_actions.actions) < size):
            yield held
            held = None
        if joins and isinstance(frame, pb.ResponseEvent):
            held = pb.ResponseEvent() if held is None else held
            held.client_actions.actions.extend(frame.client_actions.actions)
        else:
            yield frame
    if held is not None:
        yield held
