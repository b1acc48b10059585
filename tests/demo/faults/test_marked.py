"""Tests the faults that the demo backends of all wires with JSON requests have."""

import asyncio
import json

import httpx
import pytest

from gateway.demo.serve import serve_demo
from tests.demo.faults.marked import REQUESTS, ask, send

each_kind = pytest.mark.parametrize("kind", REQUESTS)


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
@pytest.mark.parametrize("kind", ["chat", "responses"])
async def test_error_statuses_of_openai(kind: str, marker: str, status: int, code: str | None, stream: bool) -> None:
    answer = await send(kind, marker, stream=stream)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@each_kind
async def test_a_status_may_say_when_to_come_back(kind: str) -> None:
    assert (await send(kind, "status code=429 retry_after=7")).headers["retry-after"] == "7"
    assert "retry-after" not in (await send(kind, "status")).headers


@each_kind
async def test_answers_that_are_no_answers(kind: str) -> None:
    page, empty, moved, broken = [await send(kind, name) for name in ("html", "empty", "redirect", "bad_utf8")]
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html")
    assert (empty.status_code, empty.content) == (200, b"")
    assert (moved.status_code, moved.headers["location"]) == (302, "http://127.0.0.1:9/stolen")
    assert b"(\xff)" in broken.content


@pytest.mark.parametrize(
    "marker", ["disconnect", "disconnect how=reset", "disconnect_first", "disconnect_first how=reset"]
)
@pytest.mark.parametrize("stream", [True, False])
@each_kind
async def test_broken_connections(kind: str, marker: str, stream: bool) -> None:
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        await send(kind, marker, stream=stream)


@each_kind
async def test_one_object_can_be_cut_too(kind: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        (await send(kind, "truncated", stream=False)).json()


@pytest.mark.parametrize("marker", ["stall", "stall_first", "stall_headers", "held_open", "slow ms=500"])
@each_kind
async def test_a_client_that_leaves_is_counted(kind: str, marker: str) -> None:
    async with serve_demo(kind) as backend:
        with pytest.raises(httpx.ReadTimeout):
            await asyncio.wait_for(ask(backend, marker, patience=0.1), 8)
        await asyncio.wait_for(backend.idle(), 8)
        assert backend.aborted == 1
