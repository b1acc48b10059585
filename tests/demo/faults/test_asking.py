"""A marker in a message and an address ask one catalogue: both get the same response."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import httpx
import pytest
from starlette.requests import Request
from starlette.types import Message

from adapters.proto.demo.backend import METHOD
from gateway.demo.faults.catalogue import FAULTS
from gateway.demo.faults.fault import JSON_WIRES, Fault
from gateway.demo.faults.playing import Faults
from gateway.demo.player.endpoint import Endpoint
from gateway.demo.player.playback import Cut, Frames, Part, Response
from gateway.demo.player.recorder import Recorder
from gateway.demo.serve import KINDS, serve_demo
from tests.demo.faults.requests import body_of
from tests.demo.http2_client import asked
from tests.demo.wires import question
from tests.tiers import sample

CASES: Final = [(name, kind) for kind, faults in FAULTS.items() for name in faults]
MARKED: Final = [(name, kind) for name, kind in CASES if FAULTS[kind][name].serves is None]
REGULAR: Final[Fault[object]] = Fault("none")
_PATHS: Final = {"agent": "/ai/multi-agent", "grpc": METHOD}
_HEADERS: Final[Mapping[str, str]] = {"anthropic-version": "x", "te": "trailers"}
_MEDIA_TYPES: Final = {"agent": "application/x-protobuf", "grpc": "application/grpc+proto"}


def body(kind: str, text: str) -> bytes:
    match kind:
        case "agent":
            return question(text).SerializeToString()
        case "grpc":
            return asked(text)
        case _:
            return json.dumps({"stream": True, **body_of(kind, text)}).encode()


async def response(kind: str, faults: Faults, text: str) -> Response:
    """The response of a backend's handler to a streamed request."""
    endpoint, *_ = [
        route.endpoint
        for route in KINDS[kind].routes(Recorder(), faults)
        if isinstance(route.endpoint, Endpoint) and route.methods == {"POST"} and _is_asked(kind, route.path)
    ]

    async def receive() -> Message:
        return {"type": "http.request", "body": body(kind, text), "more_body": False}

    headers = {**_HEADERS, "content-type": _MEDIA_TYPES.get(kind, "application/json")}
    scope: Any = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"alt=sse",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "path_params": {"call": "m:streamGenerateContent"},
    }
    if kind == "agent":
        scope.update(path_params={}, query_string=b"")
    return await endpoint.handler(Request(scope, receive))


def _is_asked(kind: str, path: str) -> bool:
    return path == _PATHS[kind] if kind in _PATHS else kind in JSON_WIRES


def seen(played: Response) -> tuple[object, ...]:
    """All that a client can tell of a response. Frames of HTTP/2 are those of the first stream."""
    parts = [_shown(part) for part in played.parts]
    return (parts, played.status, dict(played.headers), played.hold, played.delay, played.trailers)


def _shown(part: Part) -> object:
    return part.write(1) if isinstance(part, Frames) else part


def without_drafts(played: tuple[object, ...]) -> str:
    """A response without the number by which a model that ignores its seed tells its answers apart."""
    return re.sub(r"\d+\)", ")", str(played))


@sample("kind", lambda name, kind: FAULTS[kind][name].kind)
@pytest.mark.parametrize(("name", "kind"), MARKED)
async def test_a_marker_and_an_address_get_the_same_response(name: str, kind: str) -> None:
    # The texts are equal, so that ids and token counts are: the marker's name stands for no fault beside an address.
    text, others = f"count to ten [[demo:{name}]]", {**FAULTS[kind], name: REGULAR}
    sound = seen(await response(kind, Faults(others), text))
    marked = seen(await response(kind, Faults(FAULTS[kind]), text))
    addressed = seen(await response(kind, Faults(others, FAULTS[kind][name]), text))
    assert without_drafts(marked) == without_drafts(addressed)
    assert marked != sound or not FAULTS[kind][name].kind


@pytest.mark.parametrize(("name", "kind"), sorted(set(CASES) - set(MARKED)))
async def test_what_one_message_cannot_ask_for_has_an_address_alone(name: str, kind: str) -> None:
    refused = await response(kind, Faults(FAULTS[kind]), f"count to ten [[demo:{name}]]")
    words = " ".join([*map(str, refused.parts), *refused.headers.values()])
    assert "no fault" in words.replace("%20", " ") and (refused.status == 400) is (kind != "grpc")


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ("stall secs=1", "the fault has no option 'secs'; its options: after, seconds"),
        ("empty code=1", "the fault has no option 'code'; its options: type"),
        ("redirect code=1", "the fault has no option 'code'; its options: none"),
        ("stall seconds=long", "invalid option: could not convert string to float: 'long'"),
        ("huge_event mb=inf", "invalid option: mb=inf is not a number from 0 to 1024"),
        ("huge_event mb=1e300", "invalid option: mb=1e300 is not a number from 0 to 1024"),
        ("truncated after=-1", "invalid option: after=-1 is not a number from 0 to 1e+06"),
        ("stall seconds=nan", "invalid option: seconds=nan is not a number from 0 to 1e+06"),
        ("status code=99", "invalid option: 99 is not a response status"),
    ],
)
@pytest.mark.parametrize("kind", JSON_WIRES)
async def test_an_option_that_cannot_be_is_refused(kind: str, marker: str, says: str) -> None:
    refused = await response(kind, Faults(FAULTS[kind]), f"count to ten [[demo:{marker}]]")
    (part,) = refused.parts
    assert isinstance(part, bytes) and refused.status == 400 and says in part.decode()


async def test_a_backend_with_a_fault_plays_that_of_a_message_too() -> None:
    both = Faults(FAULTS["chat"], FAULTS["chat"]["null_fields"])
    played = await response("chat", both, "count to ten [[demo:truncated after=2]]")
    *events, end = played.parts
    assert (len(events), end) == (2, Cut("end"))
    assert all(isinstance(event, bytes) and b'"refusal":null' in event for event in events)


COUNTS: Final = {
    "messages": ("/v1/messages/count_tokens", "input_tokens"),
    "responses": ("/responses/input_tokens", "input_tokens"),
    "gemini": ("/models/m:countTokens", "totalTokens"),
}


@pytest.mark.parametrize(("defect", "counted"), [(None, True), ("error_first", True), ("error_in_200", False)])
@pytest.mark.parametrize("kind", COUNTS)
async def test_a_count_of_tokens_is_edited_and_no_answer_is_played(
    kind: str, defect: str | None, counted: bool
) -> None:
    path, field = COUNTS[kind]
    asked = body_of(kind, "count to ten [[demo:status]]")
    asked.pop("max_tokens", None)
    async with serve_demo(kind, defect=defect) as backend, httpx.AsyncClient(trust_env=False) as client:
        response = await client.post(backend.base_url + path, json=asked, headers=_HEADERS)
    assert response.status_code == 200 and (field in response.json()) is counted
