"""Rewrites the JSON of the responses of a backend: the events of a stream, or one object."""

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec
from starlette.requests import Request

from gateway.core.conversation import Json, JsonObject
from gateway.demo.defects.defect import Defect
from gateway.demo.player.endpoint import Handler
from gateway.demo.player.playback import Part, Response
from gateway.demo.player.recorder import Recorder

Event: TypeAlias = dict[str, Json]
Edit: TypeAlias = Callable[[Response], Response]

# One part of a response that has JSON: an object, or one server-sent event that holds an object.
_PART: Final = re.compile(rb"\A((?:event: [^\n]*\n)?data: )?(\{.*\})(\s*)\Z", re.DOTALL)


def answering(about: str, wires: tuple[str, ...], edit: Edit) -> Defect:
    """Return a defect that edits each regular answer of the model: the responses with status 200 to a POST."""

    def serves(handler: Handler, _: Recorder) -> Handler:
        async def answer(request: Request) -> Response:
            response = await handler(request)
            return edit(response) if request.method == "POST" and response.status == 200 else response

        return answer

    return Defect(about, wires, serves=serves)


def is_stream(response: Response) -> bool:
    """Return whether a response is a stream of events or messages, not one object."""
    return response.headers.get("content-type", "").startswith(("text/event-stream", "application/grpc"))


def with_parts(response: Response, parts: Iterable[Part]) -> Response:
    """Return the response with another body, of unknown length."""
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    return msgspec.structs.replace(response, parts=tuple(parts), headers=headers)


def each_json(edit: Callable[[Event], JsonObject | None]) -> Edit:
    """Return an edit of each JSON object of a response. None removes an event from a stream."""

    def edited(response: Response) -> Response:
        changed = (_edited(part, edit) for part in response.parts)
        return with_parts(response, (part for part in changed if part is not None))

    return edited


def _edited(part: Part, edit: Callable[[Event], JsonObject | None]) -> Part | None:
    found = _PART.match(part) if isinstance(part, bytes) else None
    if found is None:
        return part
    changed = edit(msgspec.json.decode(found[2], type=dict))
    return None if changed is None else (found[1] or b"") + msgspec.json.encode(changed) + found[3]
