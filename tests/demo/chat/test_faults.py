import asyncio
import json

import httpx
import pytest

from gateway.demo import DemoBackend, serve_demo
from gateway.demo.chat.faults import FAULTS


def body(marker: str, *, stream: bool = True) -> dict[str, object]:
    return {
        "model": "m",
        "messages": [{"role": "user", "content": f"count to ten [[demo:{marker}]]"}],
        "stream": stream,
    }


async def send(marker: str, *, stream: bool = True) -> httpx.Response:
    async with serve_demo("chat") as backend, httpx.AsyncClient() as client:
        return await client.post(f"{backend.base_url}/chat/completions", json=body(marker, stream=stream))


def finishes(wire: str) -> int:
    return wire.count('"finish_reason":"stop"')


@pytest.mark.parametrize(
    ("marker", "status", "code"),
    [
        ("status code=503", 503, None),
        ("status code=429 error_code=slow_down", 429, "slow_down"),
        ("quota", 429, "insufficient_quota"),
        ("context_length", 400, "context_length_exceeded"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_error_statuses(marker: str, status: int, code: str | None, stream: bool) -> None:
    answer = await send(marker, stream=stream)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


async def test_a_status_may_say_when_to_come_back() -> None:
    assert (await send("status code=429 retry_after=7")).headers["retry-after"] == "7"
    assert "retry-after" not in (await send("status")).headers


@pytest.mark.parametrize(
    ("marker", "holds", "finished", "done"),
    [
        ("error_first", '"code":"overloaded"', 0, True),
        ("error_frame", '"code":"model_error"', 0, False),
        ("truncated", '"content":" 2,"', 0, False),
        ("cut_mid_event", '"content":" 2,"', 0, False),
        ("bad_json", 'data: {"type": "brok\n\n', 1, True),
        ("bad_shape", '["not", "a", "chunk"]', 1, True),
        ("no_finish", '"content":" 10"', 0, True),
        ("no_done", '"content":" 10"', 1, False),
        ("double_finish", '"content":" (late)"', 2, True),
        ("usage_total", '"usage":{"total_tokens":15}', 1, True),
        ("unknown_fields", '"x_demo":{"kept":true}', 1, True),
        ("comments", ": still here …\n\n", 1, True),
        ("slow ms=1", '"content":" 10"', 1, True),
        ("bytewise chunk=5", '"content":" 10"', 1, True),
        ("huge_event mb=0.1", "x" * 100_000, 1, True),
        ("stall seconds=0.01", '"content":" 10"', 1, True),
        ("stall_first seconds=0.01", '"content":" 10"', 1, True),
        ("stall_headers seconds=0.01", '"content":" 10"', 1, True),
    ],
)
async def test_streams_with_a_fault(marker: str, holds: str, finished: int, done: bool) -> None:
    wire = (await send(marker)).text
    assert holds in wire
    assert finishes(wire) == finished
    assert wire.endswith("data: [DONE]\n\n") == done


async def test_answers_that_are_no_answers() -> None:
    page, empty, moved, broken = [await send(name) for name in ("html", "empty", "redirect", "bad_utf8")]
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html")
    assert (empty.status_code, empty.content) == (200, b"")
    assert (moved.status_code, moved.headers["location"]) == (302, "http://127.0.0.1:9/stolen")
    assert b"(\xff)" in broken.content


@pytest.mark.parametrize(
    "marker", ["disconnect", "disconnect how=reset", "disconnect_first", "disconnect_first how=reset"]
)
@pytest.mark.parametrize("stream", [True, False])
async def test_broken_connections(marker: str, stream: bool) -> None:
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        await send(marker, stream=stream)


async def test_one_object_can_be_cut_too() -> None:
    with pytest.raises(json.JSONDecodeError):
        (await send("truncated", stream=False)).json()
    assert (await send("slow ms=1", stream=False)).json()["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("marker", ["stall", "stall_first", "stall_headers", "held_open", "slow ms=500"])
async def test_a_client_that_leaves_is_counted(marker: str) -> None:
    async with serve_demo("chat") as backend:
        with pytest.raises(httpx.ReadTimeout):
            await asyncio.wait_for(_impatient(backend, marker), 8)
        await asyncio.wait_for(backend.idle(), 8)
        assert backend.aborted == 1


async def _impatient(backend: DemoBackend, marker: str) -> None:
    async with httpx.AsyncClient(timeout=0.1) as client:
        await client.post(f"{backend.base_url}/chat/completions", json=body(marker))


async def test_an_unknown_fault_is_refused_with_those_there_are() -> None:
    answer = await send("nothing")
    assert answer.status_code == 400
    assert all(name in answer.json()["error"]["message"] for name in FAULTS)


def test_every_fault_says_what_it_does() -> None:
    assert all(fault.about for fault in FAULTS.values())
