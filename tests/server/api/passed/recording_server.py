"""A server of embeddings, pictures and speech on a real socket, which records what it gets to the byte."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway

KEY: Final = "backend-key-77aa"
KEY_ENV: Final = "TEST_PASSED_BACKEND_KEY"
CLIENT_KEY: Final = "client-key-31cc"
KEYS_ENV: Final = "TEST_PASSED_KEYS"
AUDIO: Final = bytes(range(256)) * 40

ROUTES: Final[Mapping[str, str]] = {
    "POST /v1/embeddings": "/embeddings",
    "POST /v1/moderations": "/moderations",
    "POST /v1/images/generations": "/images/generations",
    "POST /v1/images/edits": "/images/edits",
    "POST /v1/audio/speech": "/audio/speech",
    "POST /v1/audio/transcriptions": "/audio/transcriptions",
    "POST /v1/rerank": "/../v2/rerank?version=1",
    "GET /v1/audio/voices": "/audio/voices",
}
WITHOUT_MODEL: Final = ("POST /v1/moderations", "GET /v1/audio/voices")


class Recorded(msgspec.Struct, frozen=True):
    """One request. Header names are lower case; `framing` is how its body was sent."""

    line: str
    headers: dict[str, str]
    body: bytes
    complete: bool

    @property
    def framing(self) -> str:
        return "chunks" if "transfer-encoding" in self.headers else "length"


class RecordingServer:
    """`seen` are the requests, `open` counts the connections. `answer` replaces what it answers."""

    def __init__(self) -> None:
        self.seen: list[Recorded] = []
        self.base_url = ""
        self.opened = 0
        self.answer: Callable[[Recorded], bytes] | None = None
        # Called with the head of a request, before its body is read; True: it has answered.
        self.early: Callable[[str, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]] | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head.strip().split("\r\n")
        headers: dict[str, str] = {}
        for one in rest:
            name, _, value = one.partition(": ")
            assert name not in headers, f"two headers {name}"
            headers[name.lower()] = value
        if self.early is not None and await self.early(line, reader, writer):
            return False
        body = b""
        try:
            async for piece in _pieces(headers, reader):
                body += piece
        except (ConnectionError, asyncio.IncompleteReadError):
            self.seen.append(Recorded(line, headers, body, complete=False))
            raise
        recorded = Recorded(line, headers, body, complete=True)
        self.seen.append(recorded)
        writer.write((self.answer or _answer)(recorded))
        await writer.drain()
        return True


async def _pieces(headers: Mapping[str, str], reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    if "transfer-encoding" not in headers:
        left = int(headers.get("content-length", "0"))
        while left:
            piece = await reader.read(min(left, 65536))
            if not piece:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(piece)
            yield piece
        return
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)


def _answer(request: Recorded) -> bytes:
    path = request.line.split(" ")[1]
    if path == "/v1/audio/speech":
        return respond(AUDIO, "audio/mpeg")
    answers: dict[str, Json] = {
        "/v1/embeddings": {
            "object": "list",
            "model": "inner",
            "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -0.25]}],
            "usage": {"prompt_tokens": 3, "total_tokens": 3},
        },
        "/v1/moderations": {"id": "modr-1", "model": "omni", "results": []},
        "/v1/images/generations": {"created": 1, "data": [{"b64_json": "AAAA"}]},
        "/v1/images/edits": {"created": 1, "data": [{"b64_json": "BBBB"}]},
        "/v1/audio/transcriptions": {"text": "Hello"},
        "/v2/rerank?version=1": {"results": []},
        "/v1/audio/voices": {"voices": ["alloy"]},
    }
    return respond(json.dumps(answers[path]).encode())


def respond(body: bytes, media_type: str = "application/json", status: str = "200 OK", *headers: str) -> bytes:
    """A whole response."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {media_type}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def recording_server() -> AsyncIterator[RecordingServer]:
    """Serves until the block ends."""
    server = RecordingServer()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.base_url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()


def settings_for(recording: RecordingServer, **entry: Json) -> dict[str, Json]:
    """Settings with the model `embed`, which the server knows as `inner`, and `big`, which it knows by that name; `m`
    is a model of a backend that has no such routes. `entry` are further keys of its backend."""
    backend: dict[str, Json] = {
        "adapter": "openai_chat",
        "base_url": f"{recording.base_url}/v1",
        "api_key_env": KEY_ENV,
        "routes": dict(ROUTES),
        "routes_without_model": list(WITHOUT_MODEL),
        **entry,
    }
    return {
        "server": {"api_keys_env": KEYS_ENV},
        "backends": {"audio": backend, "plain": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:1"}},
        "models": {
            "embed": {"backend": "audio", "name": "inner"},
            "big": {"backend": "audio"},
            "m": {"backend": "plain"},
        },
    }


@asynccontextmanager
async def passing_gateway(backend: RecordingServer, **sections: Json) -> AsyncIterator[RunningGateway]:
    """A gateway before the server; its client has a key."""
    async with running_gateway({**settings_for(backend), **sections}) as gateway:
        gateway.client.headers["authorization"] = f"Bearer {CLIENT_KEY}"
        yield gateway
