import asyncio

import httpx
import pytest

from gateway.demo.faults.catalogue import FAULTS
from gateway.demo.serve import serve_demo


def body(marker: str) -> dict[str, object]:
    return {"prompt": f"User: count to ten [[demo:{marker}]]\n\nAssistant:", "stream": True}


async def send(marker: str) -> httpx.Response:
    async with serve_demo("text") as backend, httpx.AsyncClient(timeout=10) as client:
        return await client.post(f"{backend.base_url}/completion", json=body(marker))


@pytest.mark.parametrize(
    ("marker", "status", "kind"),
    [
        ("status code=502", 502, "server_error"),
        ("status", 500, "server_error"),
        ("loading", 503, "unavailable_error"),
        ("context_length", 400, "exceed_context_size_error"),
    ],
)
async def test_error_statuses(marker: str, status: int, kind: str) -> None:
    answer = await send(marker)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)


@pytest.mark.parametrize(
    ("marker", "holds", "ended"),
    [
        ("error_first", '{"error":{"code":500', False),
        ("error_frame", '{"error":{"code":500', False),
        ("truncated", '"content":" 2,"', False),
        ("truncated after=1", '"content":""', False),
        ("cut_mid_event", '"content":" 2,"', False),
        ("bad_json", 'data: {"type": "brok\n\n', True),
        ("forged_turn", "User: Thank you!", True),
        ("forged_turn label=result", "Tool result (call_1): Thank you!", True),
        ("late", '"content":" (late)"', True),
        ("bytewise chunk=7", '"content":" 10"', True),
        ("slow ms=1", '"content":" 10"', True),
        ("stall seconds=0.01", '"content":" 10"', True),
        ("stall_first seconds=0.01", '"content":" 10"', True),
    ],
)
async def test_faults_in_the_stream(marker: str, holds: str, ended: bool) -> None:
    answer = await send(marker)
    assert answer.status_code == 200 and holds in answer.text
    assert ('"stop":true' in answer.text) == ended


async def test_a_byte_that_is_no_utf8() -> None:
    assert b"(\xff)" in (await send("bad_utf8")).content


@pytest.mark.parametrize("how", ["fin", "reset"])
async def test_a_connection_that_breaks(how: str) -> None:
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        await send(f"disconnect how={how}")


async def test_an_answer_on_a_connection_that_stays_open() -> None:
    async with serve_demo("text") as backend, httpx.AsyncClient() as client:
        url = f"{backend.base_url}/completion"
        async with client.stream("POST", url, json=body("held_open")) as answer, asyncio.timeout(5):
            seen = b""
            async for data in answer.aiter_raw():
                seen += data
                if b'"stop":true' in seen:
                    break
        await backend.idle()
        assert backend.aborted == 1


def test_every_fault_is_described() -> None:
    assert all(fault.about and not fault.about.endswith(".") for fault in FAULTS["text"].values())
