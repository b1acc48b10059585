"""Lists the defects in the form of a response that several wires can have: its media type, its end, its fields."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.demo.defects.defect import ALL_WIRES, API_WIRES, JSON_WIRES, Defect
from gateway.demo.defects.rewriting import Edit, Event, answering, each_json, is_stream, with_parts
from gateway.demo.player.playback import Cut, Response, json_answer

_ERROR: Final[Json] = {"error": {"message": "The model is overloaded.", "type": "server_error", "code": "overloaded"}}
_USAGE: Final = ("usage", "usageMetadata")


def _media_type(response: Response) -> Response:
    return msgspec.structs.replace(response, headers={**response.headers, "content-type": "text/plain"})


def _error(_: Response) -> Response:
    return json_answer(_ERROR)


def _breaks(how: Cut) -> Edit:
    """Return an edit that breaks a stream in its middle; an answer that is one object stays whole."""

    def edit(response: Response) -> Response:
        parts = tuple(response.parts)
        return with_parts(response, (*parts[: len(parts) // 2], how) if is_stream(response) else parts)

    return edit


def _without_usage(event: Event) -> JsonObject | None:
    """Remove the token counts; a chunk that has nothing else is removed as a whole."""
    return None if event.get("choices") == [] else _pruned(event)


def _pruned(event: Event) -> Event:
    kept = {name: value for name, value in event.items() if name not in _USAGE}
    return {name: _pruned(value) if isinstance(value, dict) else value for name, value in kept.items()}


def _unknown_fields(event: Event) -> JsonObject:
    return {**event, "x_demo": {"kept": True}, "provider": "demo"}


RESPONSES: Final[Mapping[str, Defect]] = {
    "error_in_200": answering("it answers 200 with an error object", JSON_WIRES, _error),
    "wrong_content_type": answering("its answers have the type text/plain", (*JSON_WIRES, "agent"), _media_type),
    "stream_cut": answering("it closes the connection in the middle of a stream", ALL_WIRES, _breaks(Cut("fin"))),
    "stream_reset": answering("it resets the connection in the middle of a stream", ALL_WIRES, _breaks(Cut("reset"))),
    "no_usage": answering("its answers have no token counts", API_WIRES, each_json(_without_usage)),
    "unknown_fields": answering("its answers have unknown fields", JSON_WIRES, each_json(_unknown_fields)),
}
