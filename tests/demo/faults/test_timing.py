"""When a backend answers, and what becomes of a client that leaves; and the ends of streams, on each wire."""

import asyncio
import json
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.demo.faults.fault import ALL_WIRES, API_WIRES, JSON_WIRES
from gateway.demo.faults.timing import TIMING
from gateway.demo.serve import serve_demo
from gateway.testing.gateway import RunningGateway
from tests.demo.faults.gateway import SOUND, gateway_of
from tests.demo.faults.requests import body_of, path_of
from tests.demo.faults.requests import post as send
from tests.demo.http2_client import connected
from tests.demo.wires import post, question

BREAKS: Final = ("stream_cut", "stream_reset")
CASES: Final = [
    *[(name, kind) for name, defect in TIMING.items() for kind in defect.wires],
    *[(name, kind) for name in (*BREAKS, "cancel_keeps_slot") for kind in ALL_WIRES],
    ("wrong_content_type", "agent"),
]
COUNT: Final[Json] = {"role": "user", "content": "count to ten"}
_MEDIA: Final = "content-type: application/x-protobuf\r\n"


async def streamed(gateway: RunningGateway, model: str) -> str:
    """A whole stream of the gateway, as text."""
    response = await gateway.chat(model=model, stream=True, messages=[COUNT])
    return response.text


async def writes(kind: str, defect: str | None) -> int:
    """The number of writes, each a chunk of HTTP/1.1, of a stream that the client reads behind its end."""
    async with serve_demo(kind, defect=defect) as backend:
        url = urlsplit(backend.base_url)
        body, path = body_and_path(kind)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        head = f"POST {url.path}{path} HTTP/1.1\r\nhost: x\r\nanthropic-version: x\r\n{_MEDIA}"
        writer.write(f"{head}connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        received = await reader.read(-1)
        writer.close()
    return len(list(_chunks(received.partition(b"\r\n\r\n")[2])))


def _chunks(body: bytes) -> Iterable[bytes]:
    while body:
        size, _, rest = body.partition(b"\r\n")
        if not (length := int(size, 16)):
            return
        yield rest[:length]
        body = rest[length + 2 :]


def body_and_path(kind: str) -> tuple[bytes, str]:
    if kind == "agent":
        return question("count to ten").SerializeToString(), "/ai/multi-agent"
    return json.dumps({**body_of(kind), "stream": True}).encode(), path_of(kind, True)


@pytest.mark.parametrize("kind", [*JSON_WIRES, "agent"])
async def test_a_buffered_stream_is_one_write(kind: str) -> None:
    assert await writes(kind, None) >= 10
    assert await writes(kind, "buffered") == 1


async def test_a_buffered_stream_of_grpc_is_one_write() -> None:
    async with serve_demo("grpc") as backend, connected(backend) as client:
        sound = await client.answer("count to ten")
    async with serve_demo("grpc", defect="buffered") as backend, connected(backend) as client:
        wrong = await client.answer("count to ten")
    assert (sound.text, sound.trailers) == (wrong.text, wrong.trailers)
    # The last frame of data is the empty one that the trailers follow.
    assert sound.writes >= 10 > 2 >= wrong.writes


async def test_an_agents_answer_of_the_wrong_type() -> None:
    for defect, media_type in ((None, "text/event-stream;charset=utf-8"), ("wrong_content_type", "text/plain")):
        async with serve_demo("agent", defect=defect) as backend, httpx.AsyncClient() as client:
            response = await post(client, f"{backend.base_url}/ai/multi-agent", question("Hello"))
        assert (response.status_code, response.headers["content-type"]) == (200, media_type)


@pytest.mark.parametrize("kind", TIMING["silence_cut"].wires)
async def test_only_an_answer_that_is_silent_for_long_is_cut(kind: str) -> None:
    # A Messages request always has a bound.
    long = {**body_of(kind, "count to 2000"), **({"max_tokens": 8000} if kind == "messages" else {})}
    async with serve_demo(kind, defect="silence_cut") as backend:
        short, stream, whole = [
            await send(backend, body, stream=streamed)
            for body, streamed in ((body_of(kind), False), (long, True), (long, False))
        ]
    assert (short.status_code, stream.status_code, whole.status_code) == (200, 200, 504)


async def left(gateway: RunningGateway, model: str) -> None:
    """Leave a stream behind its first bytes, and wait until the backend knows."""
    fields: dict[str, Json] = {"model": model, "stream": True, "messages": [COUNT]}
    async with gateway.client.stream("POST", "/v1/chat/completions", json=fields) as response:
        async for _ in response.aiter_raw():
            break
    async with asyncio.timeout(8):
        while not await _aborted(gateway):  # noqa: ASYNC110 (only its backend knows)
            await asyncio.sleep(0.01)


async def _aborted(gateway: RunningGateway) -> bool:
    shown = (await gateway.client.get("/__demo/requests")).json()
    return any(backend["aborted"] for backend in shown.values())


@pytest.mark.parametrize("kind", ALL_WIRES)
async def test_a_client_of_the_gateway_sees_each_difference(kind: str) -> None:
    async with gateway_of(kind, ["slow_first_byte", "cancel_keeps_slot", *BREAKS]) as gateway:
        began = asyncio.get_running_loop().time()
        sound, cut, reset, late = await asyncio.gather(
            *(streamed(gateway, model) for model in (SOUND, *BREAKS, "slow_first_byte"))
        )
        # A lower bound, which no busy machine breaks.
        assert asyncio.get_running_loop().time() - began > 0.6
        for text, breaks in ((sound, False), (late, False), (cut, True), (reset, True)):
            assert text.endswith("data: [DONE]\n\n") is not breaks and ('"error"' in text) is breaks
        # On these wires the gateway asks for one object where its client does, and what is no stream stays whole.
        whole = [(await gateway.chat(model=model)).status_code for model in BREAKS]
        assert whole == ([200, 200] if kind in API_WIRES else [502, 502])
        await left(gateway, "cancel_keeps_slot")
        answers = [(await gateway.chat(model="cancel_keeps_slot")).status_code for _ in range(2)]
        assert answers == [503, 200]
