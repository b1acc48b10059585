"""Lists the faults in a response that several wires can have: edits of the regular response, as bytes."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.demo.faults.editing import (
    Edit,
    Event,
    Options,
    around,
    begun,
    each_json,
    of_streams,
    pieces,
    with_parts,
)
from gateway.demo.faults.fault import API_WIRES, IN_THE_MIDDLE, JSON_WIRES, Fault, edited
from gateway.demo.player.playback import Cut, Response, json_answer

# No event says anything in its first bytes.
_CUT_BYTES: Final = 25
_HOW: Final = {"how": "fin"}
_OR_RESET: Final = " (how=reset: by a reset)"
_USAGE: Final = ("usage", "usageMetadata")
_ERROR: Final[Json] = {"error": {"message": "The model is overloaded.", "type": "server_error", "code": "overloaded"}}
_COMMENT: Final = b": still here \xe2\x80\xa6\n\n"


def _html(_: Response, options: Options) -> Response:
    page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
    return Response((page,), int(options["code"]), {"content-type": "text/html"})


def _empty(_: Response, options: Options) -> Response:
    return Response((), 200, {"content-type": options["type"]})


def _redirect(_: Response, options: Options) -> Response:
    return Response((), 302, {"location": "http://127.0.0.1:9/stolen", "content-type": "application/octet-stream"})


def _truncated(response: Response, options: Options) -> Response:
    return begun(response, options, Cut("end"))


def _cut_mid_event(response: Response, options: Options) -> Response:
    last = next(part for part in reversed(pieces(response)) if isinstance(part, bytes))
    return begun(response, options, last[: min(_CUT_BYTES, len(last) // 2)], Cut("end"))


def _disconnect(response: Response, options: Options) -> Response:
    return begun(response, options, _break(options))


def _disconnect_first(response: Response, options: Options) -> Response:
    return with_parts(response, (_break(options),))


def _in_half(how: Cut) -> Edit:
    """Returns an edit that cuts a stream behind half of its events; an answer that is one object stays whole."""

    def edit(response: Response, _: Options) -> Response:
        parts = tuple(response.parts)
        return with_parts(response, (*parts[: len(parts) // 2], how))

    return of_streams(edit)


def _bad_json(response: Response, options: Options) -> Response:
    return around(response, options, b'data: {"type": "brok\n\n')


def _comments(response: Response, options: Options) -> Response:
    return with_parts(response, (part for found in response.parts for part in (_COMMENT, found)))


def _media_type(response: Response, _: Options) -> Response:
    return msgspec.structs.replace(response, headers={**response.headers, "content-type": "text/plain"})


def _error(_: Response, options: Options) -> Response:
    return json_answer(_ERROR)


def _without_usage(event: Event) -> JsonObject | None:
    """Removes the token counts; a chunk that has nothing else is removed as a whole."""
    return None if event.get("choices") == [] else _pruned(event)


def _pruned(event: Event) -> Event:
    kept = {name: value for name, value in event.items() if name not in _USAGE}
    return {name: _pruned(value) if isinstance(value, dict) else value for name, value in kept.items()}


def _unknown_fields(event: Event) -> JsonObject:
    return {**event, "x_demo": {"kept": True}, "provider": "demo"}


def _break(options: Options) -> Cut:
    return Cut("reset" if options["how"] == "reset" else "fin")


RESPONSES: Final[Mapping[str, Fault[object]]] = {
    "html": edited("a web page instead of a response", "page", _html, {"code": "200"}),
    "empty": edited("200 without a body", "hollow", _empty, {"type": "application/json"}),
    "redirect": edited("302 to another address", "redirect", _redirect, {}),
    "truncated": edited("a well-formed end before the last event", "no_finish", _truncated, IN_THE_MIDDLE),
    "cut_mid_event": edited("a well-formed end inside an event", "truncated", _cut_mid_event, IN_THE_MIDDLE),
    "disconnect": edited(f"the connection breaks{_OR_RESET}", "truncated", _disconnect, {**IN_THE_MIDDLE, **_HOW}),
    "disconnect_first": edited(
        f"the connection breaks before the first event{_OR_RESET}", "truncated", _disconnect_first, _HOW
    ),
    "stream_cut": edited("the connection closes in the middle of a stream", "truncated", _in_half(Cut("fin")), {}),
    "stream_reset": edited(
        "the connection is reset in the middle of a stream", "truncated", _in_half(Cut("reset")), {}
    ),
    "bad_json": edited("an event with invalid JSON", "malformed", of_streams(_bad_json), IN_THE_MIDDLE, JSON_WIRES),
    "comments": edited("comment lines between events", "comments", of_streams(_comments), {}, JSON_WIRES),
    "error_in_200": edited("200 with an error object", "error_event", _error, {}, JSON_WIRES),
    "wrong_content_type": edited("an answer of the type text/plain", "page", _media_type, {}, (*JSON_WIRES, "agent")),
    "no_usage": edited("an answer without token counts", "", each_json(_without_usage), {}, API_WIRES),
    "unknown_fields": edited("an answer with unknown fields", "unknown", each_json(_unknown_fields), {}, JSON_WIRES),
}
