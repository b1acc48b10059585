"""What is kept of the answer in which a request fails while nobody watches: all that says why, and no part of a
secret, wherever the bytes are cut."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.server.upstream.backend_response import ERROR_BODY_CAP
from gateway.testing.faulty import END, HEAD, Connection, Script, answer, chunk, faulty_backend, head
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.test_hidden_rounds import NAMES, SEARCHING, serving, tools
from tests.server.inspect.test_failed_requests import SAID, WORDS, breaking, failed, refusing, served, shown

SECRET: Final = "Qz7-canary_" + "Vw9x" * 30
CLIENT_KEY: Final = "k-canary-of-the-client"
SHAPED: Final = "sk-proj-canary00canary00canary00"
BROKEN: Final = b"data: " + json.dumps({"error": {"message": WORDS, "code": 500}}).encode() + b"\n\n"
SPOKEN: Final = b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "Erst das. "}}]}\n\n'


@asynccontextmanager
async def with_secret(script: Script, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningGateway]:
    """A gateway whose clients have the key CLIENT_KEY, and its backend the key SECRET."""
    monkeypatch.setenv("CANARY_KEY", SECRET)
    monkeypatch.setenv("FRONT_KEYS", CLIENT_KEY)
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "admin-secret")
    async with faulty_backend(script) as backend:
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url, "api_key_env": "CANARY_KEY"}
        own: dict[str, Json] = {
            "server": {"api_keys_env": "FRONT_KEYS"},
            "backends": {"b": entry},
            "models": {"m": {"backend": "b"}},
        }
        async with running_gateway(own) as gateway:
            gateway.client.headers["authorization"] = "Bearer admin-secret"
            yield gateway


async def everything(gateway: RunningGateway, request_id: str) -> str:
    """All that the inspector says of a request."""
    said: list[str] = []
    for part in ("", "/messages", "/received", "/sent", "/answer"):
        for query in ({}, {"reveal": 1}):
            response = await gateway.client.get(f"/inspect/api/requests/{request_id}{part}", params=query)
            assert response.status_code in (200, 404), response.text
            said.append(response.text)
    for level in ("none", "shape", "full"):
        ids = {"id": request_id, "redact": level}
        response = await gateway.client.get("/inspect/api/export", params=ids)
        assert response.status_code == 200, response.text
        said.append(response.text)
    return "\n".join(said)


def refusing_with(body: bytes, *, more: int = 0) -> Script:
    """A refusal, of whose body so many bytes never come."""

    async def script(connection: Connection) -> None:
        await connection.send(
            b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: %d\r\n\r\n" % (len(body) + more) + body
        )
        if more:
            connection.reset()

    return script


def long_refusal(before: int) -> bytes:
    """An error whose secret stands behind so many bytes of it."""
    begun = b'{"error": {"message": "'
    return begun + b"a " * ((before - len(begun)) // 2) + SECRET.encode() + b" b" * 3000 + b'"}}'


async def half_a_key(connection: Connection) -> None:
    """A stream whose first read has an error, and half of a key."""
    await connection.send(HEAD, chunk(BROKEN + b": " + SECRET[:60].encode()))
    await connection.gone()


CUTS: Final[dict[str, Script]] = {
    **{f"cap-{less}": refusing_with(long_refusal(ERROR_BODY_CAP - less)) for less in (30, 60, 115)},
    "truncated": refusing_with(b'{"error": {"message": "wrong key ' + SECRET[:60].encode(), more=99),
    "stream": half_a_key,
}


@pytest.mark.parametrize("cut", CUTS)
async def test_a_secret_at_the_end_of_what_came_stays_out(cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_secret(CUTS[cut], monkeypatch) as gateway:
        headers = {"authorization": f"Bearer {CLIENT_KEY}"}
        request_id = await failed(gateway, body={"stream": cut == "stream"}, headers=headers)
        said = await everything(gateway, request_id)
        assert SECRET[:11] not in said
        found = await shown(gateway, request_id)
        assert found["bodies"] == ["received", "sent", "answer"]
        assert all(check["same"] for check in found["checks"]), found["checks"]


@pytest.mark.parametrize("size", [1, 5000], ids=["small", "large"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_no_secret_is_in_anything_that_is_kept(size: int, stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    words = f"Key {SECRET} of {CLIENT_KEY} and {SHAPED} is wrong"
    echo = json.dumps({"error": {"message": words, "code": 500}}).encode()

    async def echoing(connection: Connection) -> None:
        if stream:
            await connection.send(HEAD, chunk(SPOKEN), chunk(b"data: " + echo + b"\n\n"))
            await connection.gone()
        else:
            header = f"x-echo: {SECRET}".encode()
            await connection.send(answer("400 Bad Request", echo, b"content-type: application/json", header))

    async with with_secret(echoing, monkeypatch) as gateway:
        text = f"{SECRET} {CLIENT_KEY} {SHAPED} {SAID} " * size
        headers = {"authorization": f"Bearer {CLIENT_KEY}"}
        request_id = await failed(gateway, text, body={"stream": stream, "user": SHAPED}, headers=headers)
        assert (await shown(gateway, request_id))["summary"]["contents"] == "kept"
        said = await everything(gateway, request_id)
        assert "Baikonur" in said
        assert SECRET[:11] not in said and CLIENT_KEY not in said and SHAPED[:14] not in said


async def in_pieces(connection: Connection) -> None:
    """A whole answer that is an error, whose end comes apart."""
    body = BROKEN.removeprefix(b"data: ").strip()
    for piece in (head("application/json") + chunk(body[:20]), chunk(body[20:]), END):
        await connection.send(piece)
        await asyncio.sleep(0.05)


async def event_in_pieces(connection: Connection) -> None:
    """A stream that says something, and then in two pieces that it failed."""
    for piece in (HEAD + chunk(SPOKEN), chunk(BROKEN[:40]), chunk(BROKEN[40:])):
        await connection.send(piece)
        await asyncio.sleep(0.05)
    await connection.gone()


@pytest.mark.parametrize(("script", "stream"), [(in_pieces, False), (event_in_pieces, True)], ids=["whole", "stream"])
async def test_an_error_that_comes_in_pieces_is_kept_whole(script: Script, stream: bool) -> None:
    async with served(script) as (gateway, _):
        request_id = await failed(gateway, body={"stream": stream})
        sides = await shown(gateway, f"{request_id}/answer", reveal=1)
        (read,) = sides["reads"]
        assert WORDS in read["text"]
        assert (sides["missing"] > 0) is stream
        if not stream:
            assert json.loads(read["text"])["error"]["message"] == WORDS


@pytest.mark.parametrize("contents", ["watched", "always"])
async def test_a_refusal_without_a_body_is_no_broken_connection(contents: str) -> None:
    async with served(refusing_with(b""), inspector={"contents": contents}) as (gateway, _):
        found = await shown(gateway, await failed(gateway))
        assert found["error"]["cut"] is None and found["error"]["cause"]
        assert all(check["same"] for check in found["checks"]), found["checks"]


@pytest.mark.parametrize("contents", ["watched", "always"])
@pytest.mark.parametrize("script", [refusing, breaking], ids=["whole", "stream"])
async def test_an_error_that_quotes_its_notices_is_made_again(script: Script, contents: str) -> None:
    async with served(script, inspector={"contents": contents}) as (gateway, _):
        headers = {"x-dragoman-explain": "1"}
        request_id = await failed(gateway, headers=headers, body={"stream": script is breaking})
        found = await shown(gateway, request_id)
        assert found["checks"] and all(check["same"] for check in found["checks"]), found["checks"]
        response = await gateway.client.get("/inspect/api/export", params={"id": request_id})
        assert response.status_code == 200 and response.json()["differences"] == []


HOSTILE: Final[dict[str, bytes]] = {
    "deep": b'{"model": "m", "messages": ' + b"[" * 3000,
    # It can be read, and hardly be written again.
    "nearly too deep": b'{"model": "m", "messages": ' + b"[" * 990 + b"]" * 990 + b"}",
    "too deep for its beginning": b"[" * 100_000,
    "no UTF-8": b'{"model": "\xff\xfe session_id"',
    "half a surrogate pair": b'{"model": "m", "messages": [{"role": "user", "content": "\\ud800"}]}',
    "zeros": b"\0" * 70_000,
    "escapes": b'{"model": "m", "messages": [], "x": "' + b"\\" * 70_000 + b'"}',
    "empty": b"",
}


@pytest.mark.parametrize("form", HOSTILE)
async def test_a_hostile_body_is_kept_and_shown(form: str) -> None:
    async with served(refusing) as (gateway, _):
        headers = {"content-type": "application/json"}
        response = await gateway.client.post("/v1/chat/completions", content=HOSTILE[form], headers=headers)
        assert 400 <= response.status_code < 500
        request_id = response.headers["x-request-id"]
        found = await shown(gateway, request_id)
        assert found["summary"]["contents"] == "kept" and found["error"]["message"]
        for part in ("received", "answer"):
            for query in ({}, {"reveal": 1}):
                await shown(gateway, f"{request_id}/{part}", **query)
        for level in ("none", "shape", "full"):
            ids: dict[str, Any] = {"id": request_id, "redact": level}
            assert (await gateway.client.get("/inspect/api/export", params=ids)).status_code == 200


async def test_a_body_that_is_refused_for_its_size_is_explained() -> None:
    async with served(refusing, server={"api_keys_env": None, "max_body_mb": 0.01}) as (gateway, backend):
        request_id = await failed(gateway, "x " * 20_000)
        found = await shown(gateway, request_id)
        assert (found["error"]["status"], found["error"]["code"]) == (413, "request_too_large")
        assert found["error"]["message"] and found["bodies"] == ["answer"] and not backend.seen
        (written,) = (await shown(gateway, f"{request_id}/answer", reveal=1))["chunks"]
        assert "request_too_large" in written["text"]


async def test_of_hidden_rounds_the_one_that_fails_is_kept() -> None:
    async with serving(SEARCHING[1:]) as (gateway, backend):
        first = backend.script

        async def refuse(connection: Connection) -> None:
            await (first(connection) if len(backend.seen) == 1 else refusing(connection))

        backend.script = refuse
        response = await gateway.chat(tools=tools(*NAMES), stream=True)
        assert response.status_code == 429 and len(backend.seen) == 2
        request_id = response.headers["x-request-id"]
        found = await shown(gateway, request_id)
        assert found["error"]["backend_words"] == WORDS and found["error"]["cut"] is None
        assert all(check["same"] for check in found["checks"]), found["checks"]
        sides = await shown(gateway, f"{request_id}/answer", reveal=1)
        assert [json.loads(read["text"])["error"]["message"] for read in sides["reads"]] == [WORDS]
        assert sides["missing"] > 0
