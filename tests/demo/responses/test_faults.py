import json

import httpx
import pytest

from gateway.demo import serve_demo
from gateway.demo.responses.faults import FAULTS

COMPLETED = "event: response.completed\n"
ENDS = ("event: response.completed\n", "event: response.failed\n", "event: response.incomplete\n")


async def send(marker: str, *, stream: bool = True) -> httpx.Response:
    body = {"model": "m", "input": f"count to ten [[demo:{marker}]]", "stream": stream}
    async with serve_demo("responses") as backend, httpx.AsyncClient() as client:
        return await client.post(f"{backend.base_url}/responses", json=body)


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
    ("marker", "holds", "ends"),
    [
        ("error_first", '"code":"server_error"', (0, 1, 0)),
        ("overloaded", '"code":"server_is_overloaded"', (0, 1, 0)),
        ("error_frame", "event: error\n", (0, 1, 0)),
        ("failed code=slow_down", '"code":"slow_down"', (0, 1, 0)),
        ("content_filter", '"reason":"content_filter"', (0, 0, 1)),
        ("truncated after=5", '"delta":"1,"', (0, 0, 0)),
        ("cut_mid_event", "event: response.completed", (1, 0, 0)),
        ("bad_json", 'data: {"type": "brok\n\n', (1, 0, 0)),
        ("bad_shape", '["not", "an", "event"]', (1, 0, 0)),
        ("unended_item", '"text":"1, 2, 3, 4, 5, 6, 7, 8, 9, 10"', (1, 0, 0)),
        ("lost_call", '"call_id":"call_lost"', (1, 0, 0)),
        ("wrong_done", '"text":"Something else."', (1, 0, 0)),
        ("done_only", '"text":"1, 2, 3, 4, 5, 6, 7, 8, 9, 10"', (1, 0, 0)),
        ("last_only", '"text":"1, 2, 3, 4, 5, 6, 7, 8, 9, 10"', (1, 0, 0)),
        ("double_finish", COMPLETED, (2, 0, 0)),
        ("late", '"delta":" (late)"', (1, 0, 0)),
        ("no_usage", '"usage":null', (1, 0, 0)),
        ("unknown_fields", '"x_demo":{"kept":true}', (1, 0, 0)),
        ("unknown_event", "event: response.x_demo.progress\n", (1, 0, 0)),
        ("unknown_item", '"type":"web_search_call"', (1, 0, 0)),
        ("comments", ": still here …\n\n", (1, 0, 0)),
        ("slow ms=1", '"delta":" 10"', (1, 0, 0)),
        ("bytewise chunk=50", '"delta":" 10"', (1, 0, 0)),
        ("huge_event mb=0.1", "x" * 100_000, (1, 0, 0)),
        ("stall seconds=0.01", '"delta":" 10"', (1, 0, 0)),
        ("stall_first seconds=0.01", '"delta":" 10"', (1, 0, 0)),
        ("stall_headers seconds=0.01", '"delta":" 10"', (1, 0, 0)),
    ],
)
async def test_streams_with_a_fault(marker: str, holds: str, ends: tuple[int, int, int]) -> None:
    wire = (await send(marker)).text
    assert holds in wire
    assert tuple(wire.count(end.rstrip("\n") if marker == "cut_mid_event" else end) for end in ENDS) == ends


async def test_pieces_may_be_missing() -> None:
    assert ".delta" not in (await send("done_only")).text
    assert "output_index" not in (await send("last_only")).text


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
    assert (await send("slow ms=1", stream=False)).json()["status"] == "completed"


async def test_an_unknown_fault_is_refused_with_those_there_are() -> None:
    answer = await send("nothing")
    assert answer.status_code == 400
    assert all(name in answer.json()["error"]["message"] for name in FAULTS)
