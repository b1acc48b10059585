"""A backend compresses unrequested: streams arrive event by event, errors keep their status, a cut response fails."""

import asyncio
import json
import random
import zlib
from collections.abc import Callable
from typing import Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.server.upstream.http1.content_coding import ContentDecoder
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.server.backend import END, Connection, answer, chunk, faulty_backend
from tests.server.conftest import settings_for

CHAT: Final = "adapters.openai_chat.backend:OpenAIChatAdapter"
JSON: Final = b"content-type: application/json"
TEXT: Final = b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
FINISH: Final = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
WHOLE: Final = json.dumps(
    {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}
).encode()
WBITS: Final = {b"gzip": 31, b"deflate": 15, b"GZIP": 31}


def native(base_url: str) -> dict[str, Json]:
    entry: Json = {"adapter": CHAT, "base_url": base_url}
    return {**settings_for(base_url), "backends": {"plain": entry}}


def stream_head(coding: bytes) -> bytes:
    lines = (b"HTTP/1.1 200 OK", b"content-type: text/event-stream", b"transfer-encoding: chunked")
    return b"\r\n".join((*lines, b"content-encoding: " + coding)) + b"\r\n\r\n"


async def asked(reply: bytes, ask: Callable[[RunningGateway], "asyncio.Future[httpx.Response]"]) -> httpx.Response:
    async def script(connection: Connection) -> None:
        await connection.send(reply)

    async with faulty_backend(script) as backend, running_gateway(native(backend.base_url)) as gateway:
        return await ask(gateway)


def whole(gateway: RunningGateway) -> "asyncio.Future[httpx.Response]":
    return asyncio.ensure_future(gateway.chat())


def streamed(gateway: RunningGateway) -> "asyncio.Future[httpx.Response]":
    return asyncio.ensure_future(gateway.chat(stream=True))


@pytest.mark.parametrize("coding", WBITS)
async def test_a_compressed_stream_reaches_the_client_event_by_event(
    coding: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "gateway")
    seen = asyncio.Event()

    async def script(connection: Connection) -> None:
        packer = zlib.compressobj(wbits=WBITS[coding])
        await connection.send(stream_head(coding))
        for event in (TEXT % b"one", TEXT % b"two" + FINISH):
            await connection.send(chunk(packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)))
            await seen.wait()
        await connection.send(chunk(packer.flush()) + END)

    async with faulty_backend(script) as backend, running_gateway(native(backend.base_url)) as gateway:
        request = {**hello(), "stream": True}
        async with (
            asyncio.timeout(20),
            gateway.client.stream("POST", "/v1/chat/completions", json=request) as response,
        ):
            pieces = response.aiter_text()
            text = await anext(pieces)
            assert '"one"' in text and "two" not in text
            seen.set()
            text += "".join([piece async for piece in pieces])
    assert '"two"' in text and text.endswith("data: [DONE]\n\n")
    assert "x-dragoman-changes" not in response.headers
    assert sum("RESPONSE_COMPRESSED" in line for line in caplog.messages) == 1


@pytest.mark.parametrize("coding", WBITS)
async def test_a_compressed_whole_answer_is_read(coding: bytes) -> None:
    packed = zlib.compress(WHOLE, wbits=WBITS[coding])
    response = await asked(answer("200 OK", packed, JSON, b"content-encoding: " + coding), whole)
    assert response.json()["choices"][0]["message"]["content"] == "Hello"


@pytest.mark.parametrize("coding", [b"gzip", b"deflate"])
@pytest.mark.parametrize("missing", [1, 4, 8])
async def test_an_answer_whose_compressed_bytes_end_too_early_is_truncated(coding: bytes, missing: int) -> None:
    """Though every byte of the answer may have come, and its framing is complete."""
    if coding == b"deflate" and missing == 8:
        missing = 3
    packed = zlib.compress(WHOLE, wbits=WBITS[coding])[:-missing]
    response = await asked(answer("200 OK", packed, JSON, b"content-encoding: " + coding), whole)
    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_stream_truncated")
    packed = zlib.compress(TEXT % b"one", wbits=WBITS[coding])[:-missing]
    response = await asked(stream_head(coding) + chunk(packed) + END, streamed)
    assert '"one"' in response.text and "[DONE]" not in response.text
    assert '"upstream_stream_truncated"' in response.text


async def test_a_bomb_behind_the_first_text_ends_the_stream() -> None:
    packer = zlib.compressobj(wbits=31)
    begun = packer.compress(TEXT % b"one") + packer.flush(zlib.Z_SYNC_FLUSH)
    bomb = packer.compress(b": \n\n" * 2**23) + packer.flush()

    seen = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.send(stream_head(b"gzip") + chunk(begun))
        # In one read with the bomb the first text would not come before it.
        await seen.wait()
        await connection.send(chunk(bomb) + END)

    async with faulty_backend(script) as backend, running_gateway(native(backend.base_url)) as gateway:
        request = {**hello(), "stream": True}
        async with (
            asyncio.timeout(20),
            gateway.client.stream("POST", "/v1/chat/completions", json=request) as response,
        ):
            pieces = response.aiter_text()
            text = ""
            while '"one"' not in text:
                text += await anext(pieces)
            seen.set()
            text += "".join([piece async for piece in pieces])
    assert '"upstream_response_too_large"' in text


@pytest.mark.parametrize("coding", [b"gzip", b"br", b"gzip, br"])
async def test_a_compressed_error_is_still_that_error(coding: bytes) -> None:
    """Its words are lost only where the coding cannot be read."""
    said = json.dumps({"error": {"message": "Slow down, please.", "code": "rate_limit_exceeded"}}).encode()
    packed = zlib.compress(said, wbits=31) if coding == b"gzip" else b"\x8b\x00\x80" * 9
    reply = answer("429 Too Many", packed, JSON, b"retry-after: 7", b"content-encoding: " + coding)
    response = await asked(reply, whole)
    assert (response.status_code, response.headers["retry-after"]) == (429, "7")
    assert ("Slow down, please." in response.text) == (coding == b"gzip")


async def test_a_connection_is_used_again_behind_a_compressed_answer() -> None:
    used: set[Connection] = set()

    async def script(connection: Connection) -> None:
        used.add(connection)
        packed = zlib.compress(WHOLE, wbits=31)
        await connection.send(answer("200 OK", packed, JSON, b"content-encoding: gzip"))

    async with faulty_backend(script) as backend, running_gateway(native(backend.base_url)) as gateway:
        for _ in range(3):
            assert (await gateway.chat()).status_code == 200
    assert len(used) == 1


async def test_the_backend_waits_while_its_bytes_are_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """More comes in than is read: it must stay with the backend, and not in a memory of ours."""
    held: list[int] = []

    class Watched(ContentDecoder):
        def feed(self, data: bytes = b"") -> bytes:
            found = super().feed(data)
            held.append(len(self._rest))
            return found

    monkeypatch.setattr("gateway.server.upstream.backend_response.ContentDecoder", Watched)
    comments = b"".join(b": %s\n\n" % random.Random(number).randbytes(500).hex().encode() for number in range(6000))
    packed = zlib.compress(TEXT % b"one" + comments + FINISH, wbits=31)
    assert len(packed) > 3 * 2**20
    response = await asked(stream_head(b"gzip") + chunk(packed) + END, streamed)
    assert '"one"' in response.text and response.text.endswith("data: [DONE]\n\n")
    assert len(held) > 50 and max(held) < 2**20


async def test_what_was_decoded_before_a_fault_reaches_the_client_first() -> None:
    """Also where a first read is cut for the sake of its first events."""
    texts = b"".join(TEXT % b"%d " % number for number in range(100))
    packed = zlib.compress(texts, wbits=31)
    response = await asked(stream_head(b"gzip") + chunk(packed + b"garbage") + END, streamed)
    assert '"99 "' in response.text
    assert '"upstream_stream_truncated"' in response.text and "[DONE]" not in response.text
