"""A recording, served as a fake backend to a real gateway, gives the clients what they got."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, cast

import httpx
import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.demo.player.playback import Cut, Part, Wait
from gateway.demo.settings import DEMO_SETTINGS
from gateway.recording.lines import BytesLine, HeadLine, RecordingError, data_of
from gateway.recording.playback import recorded_response, serve_recording
from gateway.recording.recording import Interaction, Recording
from gateway.server.inspect.folder import new_recording
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.recording.samples import golden_recordings

DEMO = cast("dict[str, dict[str, dict[str, Json]]]", DEMO_SETTINGS)
ALWAYS: Mapping[str, Json] = {"contents": "always"}


async def recorded(bodies: Sequence[Mapping[str, Json]], settings: Mapping[str, Json]) -> tuple[Interaction, ...]:
    async with running_gateway({**settings, "inspector": dict(ALWAYS)}) as gateway:
        return await asked(gateway, bodies)


async def asked(gateway: RunningGateway, bodies: Sequence[Mapping[str, Json]]) -> tuple[Interaction, ...]:
    inspector = gateway.app.gateway_state.inspector
    assert inspector is not None
    found = []
    for body in bodies:
        answer = await gateway.chat(**body)
        found.append((await inspector.contents(answer.headers["x-request-id"])).interaction)
    return tuple(found)


class Result(NamedTuple):
    """What came of a request, without its times and ids. How many reads there are is up to the kernel."""

    end: tuple[int, str, str | None] | None
    response: bytes
    notices: list[tuple[str, int | None]]


def results(interactions: Sequence[Interaction]) -> list[Result]:
    return [
        Result(
            None if one.end is None else (one.end.status, one.end.code, one.end.cut),
            b"".join(read.data.content for read in one.reads),
            [(notice.rule, notice.index) for notice in one.notices],
        )
        for one in interactions
    ]


def question(text: str = "Say hello.", **fields: Json) -> dict[str, Json]:
    return {"messages": [{"role": "user", "content": text}], **fields}


@pytest.mark.parametrize("model", [*DEMO["models"]])
async def test_a_replayed_backend_is_recorded_as_it_was(model: str) -> None:
    entry = DEMO["backends"][model]
    bodies = [question(model=model), question(model=model, stream=True)]
    first = await recorded(bodies, cast("dict[str, Json]", DEMO_SETTINGS))
    async with serve_recording(new_recording(first), speed=0) as playing:
        replayed: Json = {**entry, "base_url": playing.base_url}
        settings: dict[str, Json] = {
            **cast("dict[str, Json]", DEMO_SETTINGS),
            "backends": {model: replayed},
            "models": {model: DEMO["models"][model]},
        }
        second = await recorded(bodies, settings)
        assert playing.matcher.unused == () and playing.misses == []
    assert [one.end for one in results(first)] == [(200, "", None)] * 2 and all(one.response for one in results(first))
    assert results(second) == results(first)


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("truncated after=2", 200, "upstream_stream_truncated"),
        ("disconnect after=2 how=fin", 200, "upstream_stream_truncated"),
        ("disconnect after=1 how=reset", 502, "upstream_stream_truncated"),
        ("bad_json after=1", 502, "upstream_invalid_event"),
        ("status code=429", 429, "rate_limit_exceeded"),
    ],
)
async def test_a_fault_is_replayed(fault: str, status: int, code: str) -> None:
    bodies = [question(f"[[demo:{fault}]]", model="demo-chat", stream=True)]
    first = await recorded(bodies, cast("dict[str, Json]", DEMO_SETTINGS))
    async with serve_recording(new_recording(first), speed=0) as playing:
        settings: dict[str, Json] = {
            "backends": {"demo-chat": {"adapter": "openai_chat", "base_url": playing.base_url}},
            "models": {"demo-chat": {"backend": "demo-chat"}},
        }
        second = await recorded(bodies, settings)
    for one in (*first, *second):
        assert one.end is not None and (one.end.status, one.end.code) == (status, code)
    assert [one.end for one in results(second)] == [one.end for one in results(first)]


async def test_clients_get_what_clients_got() -> None:
    body = question(model="demo-chat", stream=True)
    async with running_gateway({**cast("dict[str, Json]", DEMO_SETTINGS), "inspector": dict(ALWAYS)}) as gateway:
        (one,) = await asked(gateway, [body])
    async with serve_recording(new_recording([one]), "openai", speed=0) as playing, httpx.AsyncClient() as client:
        answer = await client.post(f"{playing.base_url}/v1/chat/completions", json=body)
        assert answer.content == b"".join(write.data.content for write in one.writes)
        assert answer.headers["content-type"].startswith("text/event-stream")
        missed = await client.post(f"{playing.base_url}/v1/chat/completions", json=body)
        assert missed.status_code == 404 and "given already" in missed.json()["error"]["message"]
        assert [miss.used for miss in playing.misses] == [True] and len(playing.requests) == 2


def pauses(interaction: Interaction, speed: float) -> list[float]:
    response = recorded_response(interaction, "backend", speed)
    assert response is not None
    return [round(part.seconds, 6) for part in response.parts if isinstance(part, Wait)]


async def test_the_pauses_are_those_of_the_recording() -> None:
    (one,) = await recorded([question(model="demo-chat", stream=True)], cast("dict[str, Json]", DEMO_SETTINGS))
    head = one.head
    assert head is not None
    steps = [
        msgspec.structs.replace(head, t=100),
        *(BytesLine(1, "backend", t, data_of(b"x")) for t in (100, 350, 340, 1350)),
    ]
    timed = msgspec.structs.replace(one, steps=tuple(steps))
    assert pauses(timed, 1) == [0.25, 1.0]
    assert pauses(timed, 2) == [0.125, 0.5]
    assert pauses(timed, 0) == []


@pytest.mark.parametrize(("cut", "last"), [("fin", Cut("fin")), ("reset", Cut("reset")), ("timeout", Wait())])
async def test_a_response_that_was_cut_ends_in_the_same_way(
    cut: Literal["fin", "reset", "timeout"], last: Part
) -> None:
    (one,) = await recorded([question(model="demo-chat")], cast("dict[str, Json]", DEMO_SETTINGS))
    assert one.end is not None
    ended = msgspec.structs.replace(one, end=msgspec.structs.replace(one.end, cut=cut))
    response = recorded_response(ended, "backend", 0)
    assert response is not None and [*response.parts][-1] == last


@pytest.mark.parametrize("how", ["truncated", "reset"])
async def test_a_response_can_be_broken_on_purpose(how: str) -> None:
    body = question(model="demo-chat", stream=True)
    first = await recorded([body], cast("dict[str, Json]", DEMO_SETTINGS))
    async with serve_recording(new_recording(first), speed=0) as playing:
        playing.fail(how, after=1)
        settings: dict[str, Json] = {
            "backends": {"demo-chat": {"adapter": "openai_chat", "base_url": playing.base_url}},
            "models": {"demo-chat": {"backend": "demo-chat"}},
        }
        (one,) = await recorded([body], settings)
        assert one.end is not None and one.end.code == "upstream_stream_truncated"
        with pytest.raises(ValueError, match="truncated, reset or stall"):
            playing.fail("somehow")


async def test_a_recording_without_responses_is_not_served() -> None:
    with pytest.raises(RecordingError, match="no response"):
        async with serve_recording(Recording()):
            pass


async def test_a_status_that_is_none_is_not_served() -> None:
    (one,) = golden_recordings()[0].interactions()
    steps = tuple(msgspec.structs.replace(step, status=0) if isinstance(step, HeadLine) else step for step in one.steps)
    recording = Recording().with_interactions([msgspec.structs.replace(one, steps=steps)])
    with pytest.raises(RecordingError, match="request 1 has the status 0"):
        async with serve_recording(recording):
            pass


async def test_two_versions_of_http_are_not_served_together() -> None:
    bodies = [question(model="demo-chat"), question(model="demo-grpc")]
    found = await recorded(bodies, cast("dict[str, Json]", DEMO_SETTINGS))
    with pytest.raises(RecordingError, match="HTTP/2"):
        async with serve_recording(new_recording(found)):
            pass


async def test_an_unanswered_connection_breaks_again() -> None:
    (one,) = await recorded([question(model="demo-chat")], cast("dict[str, Json]", DEMO_SETTINGS))

    lost = msgspec.structs.replace(one, steps=())
    async with serve_recording(new_recording([lost])) as playing, httpx.AsyncClient() as client:
        assert lost.sent is not None and lost.sent.body is not None
        with pytest.raises(httpx.TransportError):
            await client.post(f"{playing.base_url}{lost.sent.path}", content=lost.sent.body.content)
        await asyncio.sleep(0)
