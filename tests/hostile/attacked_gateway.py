"""Runs the gateway for the hostile tests: real adapters, keys on both sides, and the check of its responses."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.hostile.wire import Answer, Hostile, HostileSocket, answers, said
from tests.server.backend import END, HEAD, Connection, FaultyBackend, events, faulty_backend
from tests.server.conftest import PATIENT
from tests.server.websocket_client import Socket, connected

CLIENT_KEY: Final = "client-canary-5f1e"
BACKEND_KEY: Final = "backend-canary-93ab"
KEYS_ENV: Final = "TEST_HOSTILE_KEYS"
BACKEND_KEY_ENV: Final = "TEST_HOSTILE_BACKEND_KEY"
MAX_BODY: Final = 200_000
_AUTHORIZED: Final = f"authorization: Bearer {CLIENT_KEY}"
WARP: Final = "adapters.warp.backend:WarpAdapter"
CHAT: Final = "adapters.openai_chat.backend:OpenAIChatAdapter"


class AttackedGateway:
    """`gateway` before `backend`, which answers well and counts what reaches it."""

    def __init__(self, gateway: RunningGateway, backend: FaultyBackend) -> None:
        self.gateway = gateway
        self.backend = backend
        backends = gateway.app.gateway_state.backends
        addresses = [backends.route(model)[1].base_url for model in ("m", "g", "agent", "chat")]
        self.secrets = (CLIENT_KEY, BACKEND_KEY, *(address.removeprefix("http://") for address in addresses))

    async def attack(self, requests: Iterable[Hostile], at_once: int = 16) -> dict[str, str]:
        """What is wrong with the answers to these requests, by name; and with the gateway after them."""
        room = asyncio.Semaphore(at_once)

        async def one(request: Hostile) -> str:
            async with room:
                return self.judge(request, await said(self.gateway, request.sent))

        table = list(requests)
        assert len({request.name for request in table}) == len(table)
        verdicts = await asyncio.gather(*map(one, table))
        wrong = {request.name: verdict for request, verdict in zip(table, verdicts, strict=True) if verdict}
        return wrong | await self.health()

    async def attack_sockets(self, sockets: Iterable[HostileSocket], at_once: int = 16) -> dict[str, str]:
        """What is wrong with what comes back over these WebSockets, by name; and with the gateway after them."""
        room = asyncio.Semaphore(at_once)

        async def one(hostile: HostileSocket) -> str:
            async with room, connected(self.gateway, _AUTHORIZED, deflate=hostile.deflate) as socket:
                return await self._judge_socket(hostile, socket)

        table = list(sockets)
        assert len({hostile.name for hostile in table}) == len(table)
        verdicts = await asyncio.gather(*map(one, table))
        wrong = {hostile.name: verdict for hostile, verdict in zip(table, verdicts, strict=True) if verdict}
        return wrong | await self.health()

    async def _judge_socket(self, hostile: HostileSocket, socket: Socket) -> str:
        socket.write(hostile.sent)
        codes: list[str] = []
        async for event in socket.events():
            if event["type"] not in ("error", "response.steer.failed"):
                return f"an event {event}"
            if "error" in event["type"] and not (400 <= event["status"] < 500 and event["headers"]["x-request-id"]):
                return f"an odd error: {event}"
            if shown := [secret for secret in (*self.secrets, "Traceback", 'File "') if secret in json.dumps(event)]:
                return f"it shows {shown}"
            codes.append(event["error"]["code"])
            if len(codes) == len(hostile.codes) and hostile.closed == 1000:
                socket.close()
        wrong = sorted(codes) != sorted(hostile.codes) or socket.code != hostile.closed
        return f"closed with {socket.code} {socket.reason!r} behind {codes}" if wrong else ""

    def judge(self, request: Hostile, received: bytes) -> str:
        """What is wrong with the answer to this request; empty: nothing."""
        try:
            (answer,) = answers(received)
        except ValueError as error:
            return f"{error}: {received[:120]!r}"
        if answer.status not in request.statuses:
            return f"status {answer.status}: {answer.body[:200]!r}"
        for secret in (*self.secrets, "Traceback", 'File "'):
            if secret in received.decode("latin-1"):
                return f"it shows {secret!r}"
        if grants := [name for name in answer.headers if name.startswith("access-control-")]:
            return f"it grants {grants}"
        return _judge_error(answer, request.code) if answer.status >= 400 else ""

    async def health(self) -> dict[str, str]:
        """Whether the gateway still serves as on its first day."""
        response = await self.gateway.chat()
        running = self.gateway.app.gateway_state.scheduler.size
        if response.status_code != 200 or running:
            return {"afterwards": f"status {response.status_code}, {running} requests still running"}
        return {}


def _judge_error(answer: Answer, code: str | None) -> str:
    try:
        body = json.loads(answer.body)
        error = body["error"]
        if isinstance(error, str):
            # Ollama's: only text, with the facts for programs beside it.
            fields = (error, "invalid_request_error", body["param"], body["code"])
        elif "status" in error:
            # Google's: the same facts are details of their own types.
            facts = {name: value for detail in error["details"] for name, value in detail.items()}
            places = facts.get("fieldViolations", [{"field": None}])
            fields = (error["message"], "invalid_request_error", places[0]["field"], facts["reason"])
        else:
            fields = (error["message"], error["type"], error["param"], error["code"])
    except (ValueError, KeyError, TypeError):
        return f"no error object: {answer.body[:200]!r}"
    if not fields[0] or fields[1] not in ("invalid_request_error", "server_error"):
        return f"an odd error object: {fields}"
    if not answer.headers.get("x-request-id"):
        return "no x-request-id"
    return "" if code in (None, fields[3]) else f"code {fields[3]}: {fields[0]}"


async def _well(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hello", "finish"), END)


def _settings(base_url: str, server: dict[str, Json]) -> dict[str, Json]:
    return {
        "server": {"api_keys_env": KEYS_ENV, "max_body_mb": MAX_BODY / 2**20, **server},
        "log": {"level": "debug", "bodies": True},
        "backends": {
            "plain": {
                "adapter": "tests.server.plain:PlainAdapter",
                "base_url": base_url,
                "api_key_env": BACKEND_KEY_ENV,
                "timeouts": dict(PATIENT),
            },
            # The tables are about requests: a short answer is enough.
            "grpc": {
                "adapter": "proto",
                "preset": "demo",
                "max_tokens": 1,
                "base_url": "demo:grpc",
                "api_key_env": BACKEND_KEY_ENV,
            },
            "agent": {"adapter": WARP, "base_url": "demo:agent", "api_key_env": BACKEND_KEY_ENV},
            "chat": {
                "adapter": CHAT,
                "base_url": "demo:chat",
                "api_key_env": BACKEND_KEY_ENV,
                "routes": {"POST /v1/audio/transcriptions": "/audio/transcriptions", "POST /v1/moderations": "/scores"},
                "routes_without_model": ["POST /v1/moderations"],
            },
        },
        "models": {
            "m": {"backend": "plain"},
            "strict": {"backend": "plain", "repair": "strict"},
            "g": {"backend": "grpc"},
            "agent": {"backend": "agent"},
            "chat": {"backend": "chat"},
        },
    }


@asynccontextmanager
async def attacked_gateway(monkeypatch: pytest.MonkeyPatch, **server: Json) -> AsyncIterator[AttackedGateway]:
    """A gateway that needs a key; its client has one."""
    monkeypatch.setenv(KEYS_ENV, CLIENT_KEY)
    monkeypatch.setenv(BACKEND_KEY_ENV, BACKEND_KEY)
    async with contextlib.AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(_well))
        gateway = await stack.enter_async_context(running_gateway(_settings(backend.base_url, dict(server))))
        gateway.client.headers["authorization"] = f"Bearer {CLIENT_KEY}"
        yield AttackedGateway(gateway, backend)


def request(
    body: bytes = json.dumps(hello()).encode(),
    *more: bytes,
    path: bytes = b"/v1/chat/completions",
    method: bytes = b"POST",
    key: str = CLIENT_KEY,
    media_type: bytes = b"application/json",
) -> bytes:
    """A request without a fault, but for what is changed here; it asks for the connection to be closed."""
    lines = [
        b"%s %s HTTP/1.1" % (method, path),
        b"host: localhost",
        b"connection: close",
        b"authorization: Bearer %s" % key.encode(),
        b"content-type: %s" % media_type,
        b"content-length: %d" % len(body),
        *more,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
