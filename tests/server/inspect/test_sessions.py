"""Requests of real sockets in the sessions that their clients name: listed, grouped, recorded."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.core.session import LONGEST_ID
from gateway.demo.settings import DEMO_SETTINGS
from gateway.inspector.recorded_requests import RecordedRequests, session_of
from gateway.recording.recording import read_recording
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.media.scene import asking, describing_gateway, picture
from tests.server.summaries.test_compaction import client as compacting_client
from tests.server.summaries.test_compaction_blocks import SUMMARIZE, edit, history

ID: Final = "cbf304b6-0358-4668-893d-dd2b3f7c1811"
OTHER: Final = "01a21b15-db72-77f3-ae77-078d49205483"
CLAUDE: Final = "x-claude-code-session-id"
SUB_AGENT: Final = {CLAUDE: ID, "x-claude-code-agent-id": "a02499863f86af87f"}


def settings(**more: Json) -> dict[str, Json]:
    return {**DEMO_SETTINGS, "server": {"api_keys_env": None}, "inspector": {"contents": "always"}, **more}  # type: ignore[dict-item]


async def ask(gateway: RunningGateway, headers: Mapping[str, str], text: str = "Hello", **fields: Json) -> Any:
    body = {"model": "demo-chat", "messages": [{"role": "user", "content": text}], **fields}
    answer = await gateway.client.post("/v1/chat/completions", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


async def looked_at(gateway: RunningGateway, path: str, **query: Any) -> Any:
    answer = await gateway.client.get(f"/inspect/api/{path}", params=query, headers={"authorization": "Bearer admin"})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_requests_are_grouped_by_session_and_agent() -> None:
    async with running_gateway(settings()) as gateway:
        for headers in ({CLAUDE: ID}, SUB_AGENT, {CLAUDE: ID}, {CLAUDE: OTHER}):
            await ask(gateway, headers)
        found = await looked_at(gateway, "sessions")
        assert (found["grouped"], found["matching"]) == (4, 4)
        latest, session = found["sessions"]
        assert (latest["id"], session["id"], session["source"]) == (OTHER, ID, "claude_code")
        assert session["figures"]["requests"] == 3 and session["figures"]["prompt_tokens"] > 0
        (main,) = session["agents"]
        assert (main["id"], main["figures"]["requests"]) == ("", 2)
        assert [(one["id"], one["figures"]["requests"]) for one in main["agents"]] == [("a02499863f86af87f", 1)]
        for terms, count in ((f"session:{ID}", 3), ("session:cbf3* agent:a0*", 1), (f"session:{ID} -agent:?*", 2)):
            assert (await looked_at(gateway, "requests", filter=terms))["matching"] == count
        of_one = await looked_at(gateway, "sessions", filter=f"session:{OTHER}")
        assert [one["id"] for one in of_one["sessions"]] == [OTHER]


async def test_a_client_that_names_none_has_a_session_by_the_beginning_of_its_conversation() -> None:
    begun: list[Json] = [{"role": "user", "content": "What is in README.md?"}]
    gone_on: list[Json] = [
        *begun,
        {"role": "assistant", "content": "A password."},
        {"role": "user", "content": "Which?"},
    ]
    later: list[Json] = [*gone_on, {"role": "assistant", "content": "swordfish"}, {"role": "user", "content": "Why?"}]
    async with running_gateway(settings()) as gateway:
        for messages in (begun, gone_on, later):
            await ask(gateway, {}, messages=messages)
        await ask(gateway, {}, "Another one.")
        found = (await looked_at(gateway, "sessions"))["sessions"]
        assert [(one["source"], one["figures"]["requests"]) for one in found] == [
            ("conversation", 1),
            ("conversation", 3),
        ]


async def test_one_id_of_two_keys_is_two_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_API_KEYS", "key-of-alice,key-of-bob")
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "admin")
    async with running_gateway(settings(server={"api_keys_env": "DRAGOMAN_API_KEYS"})) as gateway:
        for key in ("alice", "bob", "alice"):
            await ask(gateway, {CLAUDE: ID, "authorization": f"Bearer key-of-{key}"})
        found = (await looked_at(gateway, "sessions"))["sessions"]
        assert [(one["key"], one["id"], one["figures"]["requests"]) for one in found] == [
            ("env-1", ID, 2),
            ("env-2", ID, 1),
        ]


async def test_an_id_that_is_none_is_ignored_and_told() -> None:
    async with running_gateway(settings()) as gateway:
        long = "x" * (LONGEST_ID + 1)
        answer = await ask(gateway, {CLAUDE: long, "x-dragoman-explain": "1"})
        (notice,) = [one for one in answer.json()["dragoman"]["diagnostics"] if one["rule"] == "SESSION_IGNORED"]
        assert CLAUDE in notice["detail"] and long not in answer.text
        (session,) = (await looked_at(gateway, "sessions"))["sessions"]
        assert session["source"] == "conversation"
        listed = await looked_at(gateway, "requests", filter="rule:SESSION_IGNORED")
        assert listed["matching"] == 1
        detail = await looked_at(gateway, f"requests/{listed['requests'][0]['id']}")
        assert all(check["same"] for check in detail["checks"]), detail["checks"]


@pytest.mark.parametrize("value", [b'{"turn_id":"\xff"}', b'{"a":' * 5_000], ids=["no text", "nested"])
async def test_a_turn_that_cannot_be_read_fails_no_request(value: bytes) -> None:
    async with running_gateway(settings()) as gateway:
        body = {"model": "demo-chat", "messages": [{"role": "user", "content": "Hello"}]}
        headers = {b"session-id": ID.encode(), b"thread-id": ID.encode(), b"x-codex-turn-metadata": value}
        answer = await gateway.client.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200, answer.text


def told(answer: httpx.Response) -> int:
    return answer.text.count("SESSION_IGNORED")


@pytest.mark.parametrize("stream", [False, True])
async def test_an_id_that_is_ignored_is_told_once_where_the_answer_waits_for_a_picture(stream: bool) -> None:
    headers = {CLAUDE: "x" * 200, "x-dragoman-explain": "1"}
    async with describing_gateway(inspector={"contents": "always"}) as (client, _):
        body = {"model": "m", "messages": asking(picture()), "stream": stream}
        answer = await client.gateway.client.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200 and told(answer) == 1, answer.text
        metrics = (await client.gateway.client.get("/metrics")).text
        assert 'gateway_notices_total{rule="SESSION_IGNORED",stage="state"} 1.0' in metrics


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fields", [{"context_management": edit()}, {"compaction": SUMMARIZE}], ids=["above", "alone"])
async def test_an_id_that_is_ignored_is_told_once_beside_a_compaction(fields: dict[str, Json], stream: bool) -> None:
    headers = {CLAUDE: "x" * 200, "x-dragoman-explain": "1", "anthropic-version": "2023-06-01"}
    async with compacting_client(more={"inspector": {"contents": "always"}}) as one:
        body = {"model": "m", "max_tokens": 99, "messages": history(), "stream": stream, **fields}
        answer = await one.gateway.client.post("/v1/messages", json=body, headers=headers)
        assert answer.status_code == 200 and told(answer) == 1, answer.text
        metrics = (await one.gateway.client.get("/metrics")).text
        assert 'gateway_notices_total{rule="SESSION_IGNORED",stage="state"} 1.0' in metrics


async def test_an_id_that_is_ignored_is_counted_where_no_model_is_asked() -> None:
    async with running_gateway(settings()) as gateway:
        body = {"model": "demo-chat", "stream": False}
        assert (await gateway.client.post("/api/generate", json=body, headers={CLAUDE: "x" * 200})).status_code == 200
        assert (await looked_at(gateway, "requests", filter="rule:SESSION_IGNORED"))["matching"] == 1


async def test_no_metric_is_labelled_with_an_id() -> None:
    async with running_gateway(settings()) as gateway:
        await ask(gateway, {**SUB_AGENT, CLAUDE: ID})
        await ask(gateway, {CLAUDE: "y" * 200})
        metrics = (await gateway.client.get("/metrics")).text
        assert 'rule="SESSION_IGNORED"' in metrics
        assert not any(text in metrics for text in (ID, "a02499863f86af87f", "yyyy", "claude_code"))


@pytest.mark.parametrize("level", ["shape", "full"])
async def test_requests_of_one_session_are_of_one_in_a_redacted_recording(level: str) -> None:
    user = json.dumps({"device_id": "d1", "session_id": ID})
    async with running_gateway(settings()) as gateway:
        sent: list[tuple[dict[str, str], Json]] = [
            ({CLAUDE: ID}, None),
            (SUB_AGENT, {"user_id": user}),
            ({CLAUDE: OTHER}, None),
        ]
        ids = [(await ask(gateway, headers, metadata=said)).headers["x-request-id"] for headers, said in sent]
        found = await looked_at(gateway, "export", id=ids, redact=level)
        assert found["differences"] == [] and found["unchecked"] == 0
        recording = read_recording(found["content"].encode())
        first, second, third = recording.interactions()
        sessions = [session_of(one) for one in (first, second, third)]
        assert all(one is not None and one.source == "claude_code" for one in sessions)
        one, two, other = (session.id for session in sessions if session is not None)
        assert one == two != other and len(one) == len(ID)
        assert ID not in found["content"] and "a02499863f86af87f" not in found["content"]
        if level == "shape":
            assert one in (second.body or b"").decode(), "the same id is the same one wherever it stands"
        shown = await RecordedRequests(recording).listed(f"session:{one}", None, 10)
        assert [one.id for one in shown.requests] == [second.request.id, first.request.id]


async def test_recordings_of_one_seed_replace_an_id_by_the_same() -> None:
    async with running_gateway(settings()) as gateway:
        ids = [(await ask(gateway, {CLAUDE: ID})).headers["x-request-id"] for _ in range(2)]

        async def exported(**query: str) -> list[str]:
            found = [await looked_at(gateway, "export", id=one, **query) for one in ids]
            sessions = [session_of(read_recording(one["content"].encode()).interactions()[0]) for one in found]
            return [session.id for session in sessions if session is not None]

        first, second = await exported(seed="00112233")
        assert first == second != ID
        first, second = await exported()
        assert first != second


async def test_the_session_of_a_request_whose_contents_are_evicted_stays() -> None:
    async with running_gateway(settings(inspector={"contents": "always", "keep_mb": 1})) as gateway:
        await ask(gateway, {CLAUDE: ID})
        for number in range(4):
            await ask(gateway, {CLAUDE: OTHER}, f"{number} " + "word " * 60_000)
        (oldest,) = (await looked_at(gateway, "requests", filter=f"session:{ID}"))["requests"]
        assert oldest["contents"] == "evicted"


async def test_who_does_not_look_has_no_session_read() -> None:
    async with running_gateway(settings(inspector={"contents": "never"})) as gateway:
        answer = await ask(gateway, {CLAUDE: "z" * 200, "x-dragoman-explain": "1"})
        assert "SESSION_IGNORED" not in answer.text
        assert (await looked_at(gateway, "sessions"))["sessions"] == []


async def test_a_live_request_has_its_session() -> None:
    async with running_gateway(settings()) as gateway:
        slow = asyncio.create_task(ask(gateway, {CLAUDE: ID}, "Hello [[demo:slow ms=100]]", stream=True))
        found: list[Any] = []
        while not found:
            assert not slow.done()
            found = (await looked_at(gateway, "requests", filter=f"session:{ID} live:yes"))["requests"]
        await slow
