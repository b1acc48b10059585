"""Edits responses: the parts of a stream or of one object, and the JSON in them."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.demo.player.playback import Cut, Part, Response

Options: TypeAlias = Mapping[str, str]
Event: TypeAlias = dict[str, Json]
Edit: TypeAlias = Callable[[Response, Options], Response]

# One part of a response that has JSON: an object, or one server-sent event that holds an object.
_MOST: Final = 1e6
_PART: Final = re.compile(rb"\A((?:event: [^\n]*\n)?data: )?(\{.*\})(\s*)\Z", re.DOTALL)


def is_stream(response: Response) -> bool:
    """Returns whether a response is a stream of events or messages, not one object."""
    return response.headers.get("content-type", "").startswith(("text/event-stream", "application/grpc"))


def with_parts(response: Response, parts: Iterable[Part]) -> Response:
    """Returns the response with another body, of unknown length. A body that is cut has no trailers."""
    kept = tuple(parts)
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    trailers = None if any(isinstance(part, Cut) for part in kept) else response.trailers
    return msgspec.structs.replace(response, parts=kept, headers=headers, trailers=trailers)


def pieces(response: Response) -> tuple[Part, ...]:
    """Returns the events of a stream, or the halves of one object."""
    parts = tuple(response.parts)
    if is_stream(response):
        return parts
    body = b"".join(part for part in parts if isinstance(part, bytes))
    return (body[: len(body) // 2], body[len(body) // 2 :])


def begun(response: Response, options: Options, *parts: Part) -> Response:
    """Returns the beginning of the response, `after` events of a stream or half an object, and these parts."""
    return with_parts(response, (*pieces(response)[: _position(response, options)], *parts))


def around(response: Response, options: Options, *parts: Part) -> Response:
    """Returns the response with these parts in its middle, behind `after` events of a stream or half an object."""
    found, at = pieces(response), _position(response, options)
    return with_parts(response, (*found[:at], *parts, *found[at:]))


def of_streams(edit: Edit) -> Edit:
    """Returns an edit that leaves an answer that is one object as it is."""
    return lambda response, options: edit(response, options) if is_stream(response) else response


def each_json(edit: Callable[[Event], JsonObject | None]) -> Edit:
    """Returns an edit of each JSON object of a response. None removes an event from a stream."""

    def edited(response: Response, _: Options) -> Response:
        changed = (_edited(part, edit) for part in response.parts)
        return with_parts(response, (part for part in changed if part is not None))

    return edited


def _position(response: Response, options: Options) -> int:
    return int(number(options, "after", _MOST)) if is_stream(response) else 1


def number(options: Options, name: str, most: float = _MOST) -> float:
    """Returns the value of an option. Raises ValueError for one that is no number from 0 to `most`."""
    value = float(options[name])
    if not 0 <= value <= most:
        raise ValueError(f"{name}={options[name]} is not a number from 0 to {most:g}")
    return value


def _edited(part: Part, edit: Callable[[Event], JsonObject | None]) -> Part | None:
    found = _PART.match(part) if isinstance(part, bytes) else None
    if found is None:
        return part
    changed = edit(msgspec.json.decode(found[2], type=dict))
    return None if changed is None else (found[1] or b"") + msgspec.json.encode(changed) + found[3]
