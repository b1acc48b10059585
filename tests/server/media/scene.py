"""A text backend, a chat backend that describes pictures as a script says, and a gateway before both."""

import asyncio
import base64
import json
import struct
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import httpx

from gateway.core.conversation import Json
from gateway.server.media.vision import INSTRUCTION
from gateway.testing.faulty import Connection, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.summaries.scripted import completion, streamed

PATIENCE_S: Final = 30


def png(width: int = 2, height: int = 2, shade: int = 0) -> bytes:
    """Returns a grey PNG of this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes([shade]) * width for _ in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def picture(shade: int = 0, width: int = 2) -> dict[str, Json]:
    """Returns a part of a chat message with a picture."""
    url = "data:image/png;base64," + base64.b64encode(png(width, 2, shade)).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def asking(*parts: Json, text: str = "What is this?") -> list[Json]:
    """Returns a conversation of one message."""
    return [{"role": "user", "content": [{"type": "text", "text": text}, *parts]}]


class Backends:
    """`asked` holds the requests for descriptions, `sent` what the text model got. `describe` makes the answer from the
    number of the request; None: what `fault` says is sent, or nothing. No request is answered while `gate` is not
    set."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.keys: list[bytes] = []
        self.describe: Callable[[int], str | None] = lambda number: f"Picture {number}."
        self.fault = b""
        self.gate = asyncio.Event()
        self.gate.set()
        self.most = self.running = 0
        self.usage = True
        self.finish = "stop"

    async def script(self, connection: Connection) -> None:
        body = json.loads(connection.body)
        if body["model"] != "seeing":
            self.sent.append(body)
            await connection.send(streamed("Noted.") if body.get("stream") else completion("Noted."))
            return
        self.asked.append(body)
        self.keys.append(connection.head)
        number = len(self.asked)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.gate.wait()
            await asyncio.sleep(0.01)
            text = self.describe(number)
            if text is None:
                await connection.send(self.fault) if self.fault else await connection.gone()
            else:
                await connection.send(completion(text, self.finish, 100 if self.usage else None))
        finally:
            self.running -= 1

    async def asked_for(self, number: int) -> None:
        """Waits until so many descriptions were asked for."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.asked) < number:  # noqa: ASYNC110 (several numbers are waited for)
                await asyncio.sleep(0.01)

    @property
    def text(self) -> str:
        """What the text model got last, as JSON."""
        return json.dumps(self.sent[-1], ensure_ascii=False)


class Client:
    """A client of the gateway."""

    def __init__(self, gateway: RunningGateway) -> None:
        self.gateway = gateway

    async def chat(
        self, messages: list[Json], headers: Mapping[str, str] = {}, model: str = "m", **fields: Json
    ) -> httpx.Response:
        """Sends a conversation, and asks for all notices. Returns the response."""
        body = {"model": model, "messages": messages, **fields}
        told = {"x-dragoman-explain": "1", **headers}
        response = await self.gateway.client.post("/v1/chat/completions", json=body, headers=told)
        assert response.status_code == 200, response.text
        return response


def notices(response: httpx.Response) -> list[dict[str, Any]]:
    """Returns the notices of an answer that are about pictures and documents."""
    rules = ("IMAGE_DESCRIBED", "IMAGE_NOT_DESCRIBED", "DOCUMENT_READ", "DOCUMENT_NOT_READ", "PART_NOT_SENT")
    return [one for one in response.json()["dragoman"]["diagnostics"] if one["rule"] in rules]


def rules(response: httpx.Response) -> list[str]:
    """Returns their rules."""
    return [one["rule"] for one in notices(response)]


def settings(base_url: str, **more: Json) -> dict[str, Json]:
    """Returns settings with a text model `m`, and a model `seeing` that describes."""
    return {
        # A busy machine must not look like a slow store.
        "state": {"deadline_ms": 10_000},
        "vision": {"model": "seeing"},
        "backends": {
            "text": {"adapter": "openai_chat", "base_url": base_url},
            "vision": {"adapter": "openai_chat", "base_url": base_url, "headers": {"authorization": "Bearer ours"}},
        },
        "models": {
            "m": {"backend": "text", "images": "describe", "facts": {"images": False}},
            "seeing": {"backend": "vision"},
        },
        **more,
    }


@asynccontextmanager
async def describing_gateway(**more: Json) -> AsyncIterator[tuple[Client, Backends]]:
    """Runs the gateway and its backends. `more` are further settings."""
    backends = Backends()
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(backends.script))
        gateway = await stack.enter_async_context(running_gateway(settings(backend.base_url, **more)))
        yield Client(gateway), backends


def refusal(status: str = "400 Bad Request") -> bytes:
    """Returns an error of the model that describes."""
    body = json.dumps({"error": {"message": "no pictures, please", "type": "invalid_request_error"}}).encode()
    return answer(status, body, b"content-type: application/json")


def is_description_request(body: dict[str, Any]) -> bool:
    """Returns whether a request holds one picture and the fixed instruction, and nothing else."""
    (message,) = body["messages"]
    kinds = [part["type"] for part in message["content"]]
    return message["role"] == "user" and kinds == ["text", "image_url"] and message["content"][0]["text"] == INSTRUCTION
