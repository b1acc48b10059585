"""Secrets that clients and backends say aloud, in every place of a request, are in nothing that others read: the
inspector, recordings, the log, the events, the metrics, the spans. The gateway's own are in no answer either."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.recording.export import EXPORTS
from gateway.server.log.logger import logging_to
from gateway.settings import LogSettings
from gateway.testing.faulty import END, HEAD, Connection, answer, chunk, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.recording.redact.canaries import CANARIES, core_of
from tests.server.conftest import PATIENT
from tests.server.telemetry.tracing.collector import Collector, collector_running

OWN: Final = {
    "DRAGOMAN_ADMIN_KEY": "outlet-admin-5f1e",
    "TEST_OUTLET_CLIENT": "outlet-client-93ab",
    "TEST_OUTLET_BACKEND": "outlet-backend-17c0",
}
HEADER: Final = "outlet-header-77d2"
CLIENT: Final = {"authorization": f"Bearer {OWN['TEST_OUTLET_CLIENT']}"}
ADMIN: Final = {"authorization": f"Bearer {OWN['DRAGOMAN_ADMIN_KEY']}"}
# Some of the secrets at once, one a line.
SAID: Final = tuple("\n".join([*CANARIES.values()][at::4]) for at in range(4))
# What must stand nowhere: the gateway's own secrets, and those of others by what no redaction may leave of them.
OWN_SECRETS: Final = (*OWN.values(), HEADER)
SECRETS: Final = (*OWN_SECRETS, *sorted({core_of(canary) for canary in CANARIES.values()}))
# What a person reads without secrets: proof that the outlets were read while the requests were there.
PLAIN: Final = "outlet_tool"


def _said(canary: str) -> Json:
    """A conversation that has the secret in every place."""
    call: Json = {
        "id": "call_1",
        "type": "function",
        "function": {"name": PLAIN, "arguments": json.dumps({"command": canary, "env": {"token": canary}})},
    }
    lost: Json = {"role": "tool", "tool_call_id": f"call_9 {canary}", "content": canary}
    return [
        {"role": "system", "content": f"Keep {canary} for yourself."},
        {"role": "user", "content": [{"type": "text", "text": f"Use {canary}.\nAnd {canary}"}]},
        {"role": "assistant", "content": canary, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": json.dumps({"stdout": canary})},
        lost,
        {"role": "user", "content": canary, "name": "somebody"},
    ]


def _request(canary: str, stream: bool) -> dict[str, Json]:
    tool: Json = {
        "type": "function",
        "function": {"name": PLAIN, "description": f"Sends {canary}", "parameters": {"type": "object"}},
    }
    own = " ".join(OWN_SECRETS)
    return {
        "model": "m",
        "stream": stream,
        "messages": [*_said(canary), {"role": "user", "content": f"They say {own}."}],  # type: ignore[misc]
        "tools": [tool],
        "user": canary,
        "metadata": {"note": canary},
    }


def _event(document: Json) -> bytes:
    return chunk(b"data: %s\n\n" % json.dumps(document).encode())


def _chunk(**delta: Json) -> bytes:
    return _event({"id": "c", "choices": [{"index": 0, "delta": delta}]})


def _stream(canary: str) -> Iterator[bytes]:
    """An answer that says the secret whole, in pieces, in its reasoning, a call and its names."""
    yield HEAD
    yield _event({"id": canary, "model": canary, "choices": [{"index": 0, "delta": {"role": "assistant"}}]})
    for text in ("Your key is ", canary[:7], canary[7:15], canary[15:], f" and {canary} "):
        yield _chunk(content=text)
    yield _chunk(reasoning_content=canary)
    arguments = json.dumps({"command": canary})
    function: Json = {"name": PLAIN, "arguments": arguments[:20]}
    yield _chunk(tool_calls=[{"index": 0, "id": "call_2", "type": "function", "function": function}])
    yield _chunk(tool_calls=[{"index": 0, "function": {"arguments": arguments[20:]}}])
    yield _event({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": f"because {canary}"}]})
    yield chunk(b"data: [DONE]\n\n")
    yield END


def _refusal(canary: str) -> bytes:
    error = {"message": f"Not with {canary}, {HEADER}", "type": canary, "code": OWN["TEST_OUTLET_BACKEND"]}
    body = json.dumps({"error": error}).encode()
    one_line = canary.replace("\n", " ").encode()
    return answer("400 Bad Request", body, b"content-type: application/json", b"x-said: " + one_line)


class _Backend:
    """Says the secret of its turn, or refuses with it."""

    def __init__(self) -> None:
        self.canary = ""
        self.refuses = False

    async def __call__(self, connection: Connection) -> None:
        await connection.send(*([_refusal(self.canary)] if self.refuses else _stream(self.canary)))


def _settings(backend_url: str, collector: Collector, folder: Path) -> dict[str, Json]:
    entry: Json = {
        "adapter": "openai_chat",
        "base_url": backend_url,
        "api_key_env": "TEST_OUTLET_BACKEND",
        "headers": {"x-more": HEADER},
        "timeouts": dict(PATIENT),
    }
    return {
        "server": {"api_keys_env": "TEST_OUTLET_CLIENT"},
        "tracing": {"endpoint": collector.url},
        "inspector": {"enabled": "on", "contents": "always", "record": str(folder)},
        "backends": {"b": entry},
        "models": {"m": {"backend": "b"}},
    }


class _Outlets(msgspec.Struct, frozen=True):
    """A gateway that everybody reads."""

    gateway: RunningGateway
    backend: _Backend
    collector: Collector
    folder: Path
    log: Path
    answers: list[str]

    async def plant(self) -> None:
        """Every secret in a whole answer, in a stream and in a refusal."""
        for canary in SAID:
            for stream, refuses in ((True, False), (False, True)):
                self.backend.canary, self.backend.refuses = canary, refuses
                one_line = canary.replace("\n", " ")
                response = await self.gateway.client.post(
                    "/v1/chat/completions",
                    params={"key": one_line},
                    json=_request(canary, stream),
                    headers={**CLIENT, "user-agent": one_line, "cookie": f"session={one_line}", "x-api-key": one_line},
                )
                assert response.status_code == (400 if refuses else 200), response.text
                self.answers.append(f"{dict(response.headers)} {response.text}")

    async def confuse(self) -> None:
        """Every secret of one word as the name of a model, in a path and as the id of a request."""
        for canary in [canary for canary in CANARIES.values() if len(canary.split()) == 1]:
            for path, model, head in (
                ("/v1/chat/completions", canary, {}),
                (f"/v1beta/models/{canary}:generateContent", "m", {}),
                (f"/v1/{canary}", "m", {}),
                ("/v1/models/none", "m", {"x-request-id": canary}),
            ):
                response = await self.gateway.client.post(
                    path,
                    json={**_request("nothing", False), "model": model},
                    headers={**CLIENT, **head},
                )
                # A name with ?key= is the key of a Gemini client.
                assert response.status_code in (400, 401, 404, 405), response.text
                self.answers.append(f"{dict(response.headers)} {response.text}")

    async def inspected(self) -> dict[str, str]:
        """What the inspector's routes say, by their addresses."""
        listed = await self._inspect("requests?limit=1000")
        found = {"requests": listed}
        for one in json.loads(listed)["requests"]:
            if one["backend"] == "-":  # refused before anything was sent
                found[one["id"]] = await self._inspect(f"requests/{one['id']}")
                continue
            for path in _routes(one["id"]):
                found[path] = await self._inspect(path)
            body = {"id": one["id"], "max_history_messages": 2}
            response = await self.gateway.client.post("/inspect/api/explain", json=body, headers=ADMIN)
            assert response.status_code == 200, response.text[:300]
            found[f"explain {one['id']}"] = response.text
        return found

    async def _inspect(self, path: str) -> str:
        response = await self.gateway.client.get(f"/inspect/api/{path}", headers=ADMIN)
        if path.startswith("requests/") and "/diff" in path and response.status_code == 404:
            return response.text  # the first of its conversation
        assert response.status_code == 200, f"{path}: {response.text[:300]}"
        return response.text


def _routes(request_id: str) -> Iterator[str]:
    yield f"requests/{request_id}"
    for part in ("messages", "sent", "answer", "diff"):
        yield f"requests/{request_id}/{part}"
        yield f"requests/{request_id}/{part}?reveal=1"
    for form in EXPORTS:
        yield f"export?id={request_id}&as={form}&redact=none"
    for level in ("shape", "full"):
        yield f"export?id={request_id}&redact={level}"


@asynccontextmanager
async def _outlets(monkeypatch: pytest.MonkeyPatch, folder: Path) -> AsyncIterator[_Outlets]:
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    script = _Backend()
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(script))
        collector = await stack.enter_async_context(collector_running())
        log, recorded = folder / "gateway.log", folder / "recorded"
        settings = _settings(backend.base_url, collector, recorded)
        gateway = await stack.enter_async_context(running_gateway(settings))
        stack.enter_context(logging_to(LogSettings("debug", str(log)), gateway.app.gateway_state.redact))
        yield _Outlets(gateway, script, collector, recorded, log, [])


async def _until(stream: httpx.Response, line: str, times: int) -> str:
    """What a stream of events says until it has said a line so often."""
    told: list[str] = []
    async for said in stream.aiter_lines():
        told.append(said)
        if told.count(line) == times:
            break
    return "\n".join(told)


def _leaks(heard: str, secrets: tuple[str, ...] = SECRETS) -> list[str]:
    return [secret for secret in secrets if secret in heard]


@pytest.mark.full
async def test_what_clients_and_backends_say_stays_with_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    heard: dict[str, str] = {}
    async with _outlets(monkeypatch, tmp_path) as outlets:
        client = outlets.gateway.client
        async with (
            client.stream("GET", "/v1/events", headers=CLIENT) as events,
            client.stream("GET", "/inspect/api/stream", headers=ADMIN) as changes,
        ):
            await outlets.plant()
            heard["changes"] = await _until(changes, "event: ended", len(outlets.answers))
            await outlets.confuse()
            heard["events"] = await _until(events, "event: request", len(outlets.answers))
        heard |= await outlets.inspected()
        heard["metrics"] = (await client.get("/metrics", headers=CLIENT)).text
        explained = await client.post("/v1/explain", json=_request("nothing", False), headers=CLIENT)
        assert explained.status_code == 200
    heard["log"] = outlets.log.read_text()
    heard |= {path.name: path.read_text() for path in outlets.folder.iterdir()}
    heard["spans"] = "\n".join(map(str, outlets.collector.spans()))
    assert {outlet: leaks for outlet, text in heard.items() if (leaks := _leaks(text))} == {}
    assert len(heard) > 2 * len(SAID) * 5
    shown = ("as=", "/messages", "/sent")
    assert all(PLAIN in text for outlet, text in heard.items() if any(part in outlet for part in shown))
    # An answer has what its own client and its backend said, but nothing of the gateway's.
    assert {text[:2000] for text in outlets.answers if _leaks(text, OWN_SECRETS)} == set()
