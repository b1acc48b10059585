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
    number,
    of_streams,
    pieces,
    with_parts,
)
from gateway.demo.faults.fault import ALL_WIRES, API_WIRES, JSON_WIRES, Fault
from gateway.demo.player.playback import Cut, Response, Wait, json_answer

_AFTER: Final = {"after": "3"}
# No event says anything in its first bytes.
_CUT_BYTES: Final = 25
_HOW: Final = {"how": "fin"}
_OR_RESET: Final = " (how=reset: by a reset)"
_SECONDS: Final = {"seconds": "3600"}
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


def _fault(about: str, kind: str, edit: Edit, options: Options, wires: tuple[str, ...] = ALL_WIRES) -> Fault[object]:
    return Fault(about, kind, wires, options, edits=edit)


RESPONSES: Final[Mapping[str, Fault[object]]] = {
    "html": _fault("a web page instead of a response", "page", _html, {"code": "200"}),
    "empty": _fault("200 without a body", "hollow", _empty, {"type": "application/json"}),
    "redirect": _fault("302 to another address", "redirect", _redirect, {}),
    "truncated": _fault("a well-formed end before the last event", "no_finish", _truncated, _AFTER),
    "cut_mid_event": _fault("a well-formed end inside an event", "truncated", _cut_mid_event, _AFTER),
    "disconnect": _fault(f"the connection breaks{_OR_RESET}", "truncated", _disconnect, {**_AFTER, **_HOW}),
    "disconnect_first": _fault(
        f"the connection breaks before the first event{_OR_RESET}", "truncated", _disconnect_first, _HOW
    ),
    "stream_cut": _fault("the connection closes in the middle of a stream", "truncated", _in_half(Cut("fin")), {}),
    "stream_reset": _fault(
        "the connection is reset in the middle of a stream", "truncated", _in_half(Cut("reset")), {}
    ),
    "stall": _fault("silence in the middle", "stall", _stall, {**_AFTER, **_SECONDS}),
    "stall_first": _fault("silence before the first event", "stall", _stall_first, _SECONDS),
    "stall_headers": _fault("silence instead of a status", "no_head", _stall_headers, _SECONDS),
    "slow": _fault("a pause between events", "", _slow, {"ms": "50"}),
    "held_open": _fault("a complete response on a connection that stays open", "held", _held_open, {}),
    "bytewise": _fault("the stream in small writes", "split", _bytewise, {"chunk": "1"}),
    "bad_json": _fault("an event with invalid JSON", "malformed", of_streams(_bad_json), _AFTER, JSON_WIRES),
    "comments": _fault("comment lines between events", "comments", of_streams(_comments), {}, JSON_WIRES),
    "error_in_200": _fault("200 with an error object", "error_event", _error, {}, JSON_WIRES),
    "wrong_content_type": _fault("an answer of the type text/plain", "page", _media_type, {}, (*JSON_WIRES, "agent")),
    "no_usage": _fault("an answer without token counts", "", each_json(_without_usage), {}, API_WIRES),
    "unknown_fields": _fault("an answer with unknown fields", "unknown", each_json(_unknown_fields), {}, JSON_WIRES),
}
