"""What is kept of a request that fails while nobody watches: enough to see what happened, within bounds, and nothing
of whom nothing may be remembered."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.recording.recording import read_recording
from gateway.server.inspect.failed_request import FIRST
from gateway.server.inspect.recent_requests import RecentRequests
from gateway.server.telemetry.request_context import Outcome, RequestContext, RequestObserver
from gateway.testing.faulty import HEAD, Connection, FaultyBackend, Script, answer, chunk, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway

SAID: Final = "Weltraumbahnhof Baikonur"
WORDS: Final = "Your plan allows 3 requests a minute"
ORPHAN: Final[Json] = {"role": "tool", "tool_call_id": "c_9", "content": "verloren"}
REFUSAL: Final = json.dumps({"error": {"message": WORDS, "type": "x"}}).encode()
PARTS: Final = ("messages", "received", "sent", "answer")


async def refusing(connection: Connection) -> None:
    await connection.send(answer("429 Too Many Requests", REFUSAL))


async def answering(connection: Connection) -> None:
    text = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    choice = {"index": 0, "message": {"role": "assistant", "content": "Ja."}, "finish_reason": "stop"}
    body = json.dumps({**text, "choices": [choice]}).encode()
    await connection.send(answer("200 OK", body, b"content-type: application/json"))


async def breaking(connection: Connection) -> None:
    """A stream that says something, and then that it failed."""
    delta = {"index": 0, "delta": {"content": "Erst das. "}, "finish_reason": None}
    said = json.dumps({"id": "c", "choices": [delta]}).encode()
    await connection.send(HEAD, chunk(b"data: " + said + b"\n\n"))
    await asyncio.sleep(0.05)
    await connection.send(chunk(b"data: " + json.dumps({"error": {"message": WORDS, "code": 500}}).encode() + b"\n\n"))
    await connection.gone()


async def hanging_up(connection: Connection) -> None:
    delta = {"index": 0, "delta": {"content": "Erst das. "}, "finish_reason": None}
    await connection.send(HEAD, chunk(b"data: " + json.dumps({"id": "c", "choices": [delta]}).encode() + b"\n\n"))
    connection.reset()


@asynccontextmanager
async def served(
    script: Script, *, inspector: Mapping[str, Json] | None = None, **settings: Json
) -> AsyncIterator[tuple[RunningGateway, FaultyBackend]]:
    """A gateway of whose requests nobody watches one."""
    async with faulty_backend(script) as backend:
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url}
        own: dict[str, Json] = {
            "server": {"api_keys_env": None},
            "backends": {"b": entry},
            "models": {"m": {"backend": "b"}},
            "inspector": dict(inspector or {}),
            **settings,
        }
        async with running_gateway(own) as gateway:
            yield gateway, backend


async def failed(gateway: RunningGateway, text: str = SAID, **more: Any) -> str:
    """Returns the id of a request with a history that is repaired, and this text."""
    messages: Json = [{"role": "user", "content": "Hallo"}, ORPHAN, {"role": "user", "content": text}]
    body = {"model": "m", "messages": messages, **more.pop("body", {})}
    response = await gateway.client.post("/v1/chat/completions", json=body, **more)
    assert response.status_code >= 400 or "error" in response.text
    return response.headers["x-request-id"]


async def shown(gateway: RunningGateway, path: str, **query: Any) -> dict[str, Any]:
    response = await gateway.client.get(f"/inspect/api/requests/{path}", params=query)
    assert response.status_code == 200, response.text
    return cast("dict[str, Any]", response.json())


def recent_of(gateway: RunningGateway) -> RecentRequests:
    inspector = gateway.app.gateway_state.inspector
    assert inspector is not None
    return inspector.recent


class Ended(RequestObserver):
    """The requests that have ended."""

    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []
        self.any = asyncio.Event()

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        self.contexts.append(context)
        self.any.set()


def ended_of(gateway: RunningGateway) -> Ended:
    ended, state = Ended(), gateway.app.gateway_state
    state.observers = state.observers.joined(ended)
    return ended


async def test_a_refused_request_is_shown_later_as_if_somebody_had_watched() -> None:
    async with served(refusing) as (gateway, backend):
        request_id = await failed(gateway)
        found = await shown(gateway, request_id)
        assert found["summary"]["contents"] == "kept" and found["absent"] is None
        assert found["headline"] == "The backend b refused the request with the status 429."
        assert found["error"]["backend_words"] == WORDS and found["error"]["cause"] and found["error"]["advice"]
        assert "TOOL_ORPHAN" in [notice["rule"] for notice in found["notices"]]
        assert found["checks"] and all(check["same"] for check in found["checks"]), found["checks"]
        marks = [found["marks"][name] for name in ("read", "prepared", "head", "end")]
        assert None not in marks and marks == sorted(marks) and marks[0] > 0
        sides = await shown(gateway, f"{request_id}/answer", reveal=1)
        assert [read["text"] for read in sides["reads"]] == [REFUSAL.decode()]
        assert WORDS in "".join(part["text"] for part in sides["chunks"])
        assert SAID in (await shown(gateway, f"{request_id}/received", reveal=1))["views"]["json"]
        sent = (await shown(gateway, f"{request_id}/sent", reveal=1))["views"]["json"]
        assert json.loads(sent) == json.loads(backend.seen[-1][1])
        assert (await shown(gateway, f"{request_id}/messages"))["total"] == 3


async def test_it_equals_what_is_kept_while_somebody_watches() -> None:
    exported: list[Any] = []
    for contents in ("watched", "always"):
        async with served(refusing, inspector={"contents": contents}) as (gateway, _):
            ids = {"id": await failed(gateway), "redact": "none"}
            response = await gateway.client.get("/inspect/api/export", params=ids)
            (one,) = read_recording(response.json()["content"].encode()).interactions()
            assert one.end is not None and one.sent is not None and one.client_head is not None
            said = [json.loads(line.data.content) for line in (*one.reads, *one.writes)]
            exported.append((one.body, one.sent.body, one.notices, one.end.code, one.end.failure, said))
    assert exported[0] == exported[1]


async def test_no_word_is_shown_until_it_is_revealed() -> None:
    async with served(refusing) as (gateway, _):
        for text in (SAID, f"{SAID} " * 4000):
            request_id = await failed(gateway, text)
            for part in ("received", "answer"):
                assert "Baikonur" not in json.dumps(await shown(gateway, f"{request_id}/{part}")), part
            assert "Baikonur" in json.dumps(await shown(gateway, f"{request_id}/received", reveal=1))


async def test_of_a_large_request_the_beginning_is_kept() -> None:
    async with served(refusing, inspector={"send": True}) as (gateway, backend):
        text = f"{SAID} " * 10_000
        request_id = await failed(gateway, text)
        found = await shown(gateway, request_id)
        size = len(text) + 100
        assert (
            found["summary"]["bytes"] < 2 * FIRST and found["bodies"] == ["received", "answer"] and not found["stages"]
        )
        assert "the first" in found["absent"] and found["error"]["backend_words"] == WORDS
        assert "TOOL_ORPHAN" in [notice["rule"] for notice in found["notices"]]
        received = await shown(gateway, f"{request_id}/received", reveal=1)
        assert received["cut"] and received["bytes"] > size
        (hello, orphan, last) = json.loads(received["views"]["json"])["messages"]
        assert hello["content"] == "Hallo" and orphan == ORPHAN
        assert text.startswith(last["content"]) and FIRST - 1000 < len(last["content"]) <= FIRST
        hidden = json.loads((await shown(gateway, f"{request_id}/received"))["views"]["json"])
        assert [one["role"] for one in hidden["messages"]] == ["user", "tool", "user"]
        assert [read["bytes"] for read in (await shown(gateway, f"{request_id}/answer"))["reads"]] == [len(REFUSAL)]
        response = await gateway.client.post(f"/inspect/api/requests/{request_id}/send", json={})
        assert response.status_code == 404 and "nobody watched" in response.text and len(backend.seen) == 1


async def test_a_secret_at_the_cut_stays_out(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "Qz7-canary_" + "Vw9x" * 30
    monkeypatch.setenv("CANARY_KEY", secret)
    async with faulty_backend(refusing) as backend:
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url, "api_key_env": "CANARY_KEY"}
        own: dict[str, Json] = {
            "server": {"api_keys_env": None},
            "backends": {"b": entry},
            "models": {"m": {"backend": "b"}},
        }
        async with running_gateway(own) as gateway:
            for before in (FIRST - 200, FIRST - 130, FIRST - 80):
                request_id = await failed(gateway, "a " * (before // 2) + secret + " b" * 3000)
                for level in ({}, {"reveal": 1}):
                    kept = json.dumps(await shown(gateway, f"{request_id}/received", **level))
                    assert secret[:11] not in kept and secret[-12:] not in kept
                exported = await gateway.client.get("/inspect/api/export", params={"id": request_id, "redact": "none"})
                assert exported.status_code == 200 and secret[:11] not in exported.text


@pytest.mark.parametrize(("script", "cut"), [(breaking, None), (hanging_up, "fin")], ids=["error", "reset"])
async def test_of_a_broken_stream_the_last_bytes_are_kept(script: Script, cut: str | None) -> None:
    async with served(script) as (gateway, _):
        request_id = await failed(gateway, body={"stream": True})
        found = await shown(gateway, request_id)
        assert found["error"]["cut"] == cut and found["error"]["cause"], found["error"]
        assert "were not kept: nobody watched" in found["absent"] and found["stages"]
        assert all(check["same"] for check in found["checks"]), found["checks"]
        assert None not in (found["marks"]["head"], found["marks"]["first"])
        sides = await shown(gateway, f"{request_id}/answer", reveal=1)
        assert sides["missing"] > 0
        assert [WORDS in read["text"] for read in sides["reads"]] == ([] if cut else [True])
        # The last thing that the client got: the error.
        assert found["error"]["code"] in sides["chunks"][-1]["text"]


@pytest.mark.parametrize("how", ["key", "every key", "header", "never"])
async def test_nothing_is_kept_of_whom_nothing_may_be_remembered(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRONT_KEYS", "k-front,k-back")
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "admin-secret")
    more: dict[str, dict[str, Json]] = {
        "key": {"keys": {"env-1": {"state": "off"}}},
        "every key": {"keys": {"*": {"state": "off"}}},
        "never": {"inspector": {"contents": "never"}},
    }
    headers = {"authorization": "Bearer k-front", **({"x-dragoman-state": "off"} if how == "header" else {})}
    settings: dict[str, Any] = {"server": {"api_keys_env": "FRONT_KEYS"}, **more.get(how, {})}
    async with served(refusing, **settings) as (gateway, _):
        request_id = await failed(gateway, headers=headers)
        gateway.client.headers["authorization"] = "Bearer admin-secret"
        found = await shown(gateway, request_id)
        assert found["summary"]["contents"] == "never_kept" and found["summary"]["bytes"] == 0
        # What the code means is not the client's.
        assert found["error"]["code"] == "rate_limit_exceeded" and found["error"]["cause"]
        assert SAID not in json.dumps(found) and WORDS not in json.dumps(found)
        for part in PARTS:
            response = await gateway.client.get(f"/inspect/api/requests/{request_id}/{part}", params={"reveal": 1})
            assert response.status_code == 404, part
        if how == "key":
            gateway.client.headers["authorization"] = "Bearer k-back"
            other = await failed(gateway)
            gateway.client.headers["authorization"] = "Bearer admin-secret"
            assert (await shown(gateway, other))["summary"]["contents"] == "kept"


async def test_nothing_is_kept_of_a_request_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has no key could else drive out what is kept of others."""
    monkeypatch.setenv("FRONT_KEYS", "k-front")
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "admin-secret")
    async with served(refusing, server={"api_keys_env": "FRONT_KEYS"}) as (gateway, _):
        request_id = await failed(gateway, headers={"authorization": "Bearer k-wrong"})
        gateway.client.headers["authorization"] = "Bearer admin-secret"
        found = await shown(gateway, request_id)
        assert found["summary"]["contents"] == "never_kept"
        assert (found["error"]["status"], bool(found["error"]["cause"])) == (401, True)


@pytest.mark.parametrize(
    ("content", "code"),
    [(b'{"model": "m", "messages": [', "invalid_json"), (b'{"model": "n", "messages": []}', "model_not_found")],
)
async def test_what_the_gateway_refuses_is_kept(content: bytes, code: str) -> None:
    async with served(refusing) as (gateway, _):
        headers = {"content-type": "application/json"}
        response = await gateway.client.post("/v1/chat/completions", content=content, headers=headers)
        request_id = response.headers["x-request-id"]
        found = await shown(gateway, request_id)
        assert found["error"]["message"] and found["error"]["status"] == response.status_code
        assert found["headline"] == "The gateway refused the request; nothing was sent to a backend."
        sides = await shown(gateway, f"{request_id}/answer", reveal=1)
        assert [part["text"] for part in sides["chunks"]] == [response.text]
        assert (await shown(gateway, f"{request_id}/received", reveal=1))["bytes"] == len(content)


async def test_a_defect_of_the_gateway_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(*_: object) -> None:
        raise RuntimeError("defect")

    async with served(answering) as (gateway, _):
        monkeypatch.setattr("gateway.server.api.endpoint.relay", defect)
        found = await shown(gateway, await failed(gateway))
        assert found["error"]["code"] == "internal_error" and "Internal error" in found["error"]["message"]
        assert found["summary"]["contents"] == "kept"


@pytest.mark.parametrize("contents", ["watched", "always"])
async def test_what_the_gateway_cannot_read_for_a_defect_is_not_read_again(
    contents: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object) -> None:
        raise RuntimeError("defect")

    async with served(answering, inspector={"contents": contents}) as (gateway, _):
        dialect = gateway.app.gateway_state.dialects.find("POST", "/v1/chat/completions").dialect
        monkeypatch.setattr(type(dialect), "decode", defect)
        request_id = await failed(gateway)
        monkeypatch.undo()
        found = await shown(gateway, request_id)
        assert (found["error"]["code"], found["summary"]["contents"]) == ("internal_error", "kept")
        metrics = (await gateway.client.get("/metrics")).text
        assert "internal_error" in metrics


async def test_a_client_that_leaves_is_kept() -> None:
    async def silent(connection: Connection) -> None:
        await connection.gone()

    async with served(silent) as (gateway, backend):
        ended = ended_of(gateway)
        with pytest.raises(httpx.ReadTimeout):
            await failed(gateway, timeout=0.3)
        async with asyncio.timeout(5):
            await ended.any.wait()
        found = await shown(gateway, ended.contexts[0].id)
        assert found["summary"]["code"] == "client_gone" and found["summary"]["contents"] == "kept"
        assert found["headline"] == "The client left before its answer was complete."
        assert found["stages"] and backend.seen


async def test_a_request_that_succeeds_is_not_kept_and_leaves_nothing() -> None:
    async with served(answering) as (gateway, _):
        ended = ended_of(gateway)
        for stream in (False, True):
            response = await gateway.chat(stream=stream)
            assert response.status_code == 200
            (newest, *_) = recent_of(gateway).listed()
            assert newest.contents == "never_kept" and newest.bytes == 0
        assert len(ended.contexts) == 2
        for context in ended.contexts:
            assert (context.head, context.body, context.routed, context.exchange, context.answer) == (None,) * 5


async def test_a_failed_one_leaves_nothing_behind_what_is_kept() -> None:
    async with served(refusing) as (gateway, _):
        ended = ended_of(gateway)
        await failed(gateway)
        (context,) = ended.contexts
        assert (context.body, context.exchange, context.answer, context.error_body) == (None,) * 4


async def test_what_is_kept_stays_within_its_bound() -> None:
    async with served(refusing, inspector={"keep_mb": 0.25}) as (gateway, _):
        for number in range(6):
            await failed(gateway, f"{number} {SAID} " * 5000)
        kept = [one for one in recent_of(gateway).listed() if one.contents == "kept"]
        assert sum(one.bytes for one in kept) <= 2**18 and 0 < len(kept) < 6
        (newest, *_, oldest) = recent_of(gateway).listed()
        assert newest.contents == "kept" and oldest.contents == "evicted"
        assert (await shown(gateway, oldest.id))["error"]["cause"]


async def test_where_nobody_may_look_nothing_is_kept() -> None:
    async with served(refusing, inspector={"enabled": "off", "caches": "always"}) as (gateway, _):
        await failed(gateway)
        (only,) = recent_of(gateway).listed()
        assert only.contents == "never_kept"
