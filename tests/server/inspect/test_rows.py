"""What the row of a request shows, of real requests: its client, its words, its tools, its times and its outcome."""

import json
from collections.abc import Mapping
from typing import Any, Final

from gateway.core.conversation import Json
from gateway.inspector.recorded_requests import RecordedRequests
from gateway.recording.recording import read_recording
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.recording.redact.canaries import CANARIES, core_of
from tests.server.api.inspect.test_routes import ADMIN, settings

CODEX: Final = "codex_cli_rs/0.169.0 (Ubuntu 26.04; x86_64)"
SAID: Final = "Repair the parser of dates"
LOOP: Final[list[Json]] = [
    {"role": "user", "content": [{"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"}]},
    {"role": "user", "content": SAID},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "done"},
]


async def ask(gateway: RunningGateway, messages: list[Json], agent: str = CODEX, **fields: Json) -> str:
    body = {"model": "demo-chat", "messages": messages, **fields}
    answer = await gateway.client.post("/v1/chat/completions", json=body, headers={"user-agent": agent})
    return answer.headers["x-request-id"]


async def listed(gateway: RunningGateway, **query: Any) -> list[dict[str, Any]]:
    answer = await gateway.client.get("/inspect/api/requests", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["requests"]
    return found


async def test_a_row_says_what_was_asked_by_whom_and_what_became_of_it() -> None:
    async with running_gateway(settings()) as gateway:
        await ask(gateway, LOOP, stream=True)
        (row,) = await listed(gateway, reveal=1)
        assert row["asked"] == {"words": SAID, "results": ["read_file"]}
        assert (row["client"], row["dialect"], row["backend"]) == ("Codex 0.169.0", "openai_chat", "demo-chat")
        assert row["outcome"] == "answered" and 0 < row["first_ms"] <= row["ms"]
        await ask(gateway, [{"role": "user", "content": "Hello [[demo:truncated after=2]]"}], stream=True)
        assert (await listed(gateway))[0]["outcome"] == "answer broke off"
        for terms, count in (("client:codex*", 2), ("client:curl*", 0), ("first:>60000", 0), ("-first:>60000", 2)):
            assert len(await listed(gateway, filter=terms)) == count


async def test_a_refused_request_says_what_it_asked() -> None:
    async with running_gateway(settings()) as gateway:
        await ask(gateway, LOOP, model="no-such-model")
        (row,) = await listed(gateway, reveal=1)
        assert row["asked"]["words"] == SAID and row["outcome"] == "unknown model" and row["first_ms"] is None
        await gateway.client.post("/v1/chat/completions", content=b"{no json")
        assert (await listed(gateway))[0]["asked"]["words"] == ""


async def test_its_words_are_replaced_until_they_are_revealed() -> None:
    async with running_gateway(settings()) as gateway:
        request_id = await ask(gateway, LOOP)
        (row,) = await listed(gateway)
        hidden = row["asked"]["words"]
        assert len(hidden) == len(SAID) and not set(hidden.lower().split()) & {"repair", "parser", "dates"}
        # Of one run alike everywhere; the names of tools stay.
        assert (await listed(gateway))[0]["asked"] == row["asked"] and row["asked"]["results"] == ["read_file"]
        detail = (await gateway.client.get(f"/inspect/api/requests/{request_id}")).json()
        assert detail["summary"]["asked"] == row["asked"]
        detail = (await gateway.client.get(f"/inspect/api/requests/{request_id}?reveal=1")).json()
        assert detail["summary"]["asked"]["words"] == SAID


async def test_nor_does_the_stream_tell_them() -> None:
    async with running_gateway(settings()) as gateway:
        await ask(gateway, LOOP)
        for query, shown in (("after=1", False), ("after=1&reveal=1", True)):
            async with gateway.client.stream("GET", f"/inspect/api/stream?{query}") as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("data:"):
                        words = json.loads(line[5:])["asked"]["words"]
                        assert (words == SAID) is shown and len(words) == len(SAID)
                        break


async def test_nor_do_the_sessions() -> None:
    async with running_gateway(settings()) as gateway:
        await ask(gateway, LOOP)
        for query, shown in (("", False), ("?reveal=1", True)):
            (session,) = (await gateway.client.get(f"/inspect/api/sessions{query}")).json()["sessions"]
            assert session["client"] == "Codex 0.169.0" and len(session["words"]) == len(SAID)
            assert [session["words"] == SAID, session["agents"][0]["words"] == SAID] == [shown, shown]


async def test_where_words_are_not_shown_nobody_gets_them() -> None:
    async with running_gateway(settings(reveal=False)) as gateway:
        request_id = await ask(gateway, LOOP)
        for path in ("requests", "stream", "sessions", f"requests/{request_id}"):
            answer = await gateway.client.get(f"/inspect/api/{path}?reveal=1")
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_revealed"), path


async def test_words_are_contents_and_names_are_not() -> None:
    async with running_gateway(settings(contents="never")) as gateway:
        await ask(gateway, LOOP)
        (row,) = await listed(gateway, reveal=1)
        assert row["asked"] == {"words": "", "results": []}
        assert (row["client"], row["outcome"]) == ("Codex 0.169.0", "answered") and row["first_ms"] > 0


def canaried(secret: str) -> list[Json]:
    call: Json = {"id": "call_1", "type": "function", "function": {"name": secret, "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": secret},
        {"role": "user", "content": f"Use {secret}"},
    ]


async def test_no_row_has_a_secret() -> None:
    async with running_gateway(settings()) as gateway:
        for secret in CANARIES.values():
            await ask(gateway, canaried(secret), secret.split("\n")[0])
        for query in ("", "&reveal=1"):
            text = (await gateway.client.get(f"/inspect/api/requests?limit=100{query}")).text
            assert len(json.loads(text)["requests"]) == len(CANARIES)
            assert [one for one in map(core_of, CANARIES.values()) if one in text] == []


async def test_nor_one_of_the_gateways_own(monkeypatch: Any) -> None:
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "admin-secret")
    monkeypatch.setenv("MINE", "backend-credential-17")
    entry: Json = {"adapter": "openai_chat", "base_url": "demo:chat", "api_key_env": "MINE"}
    own: Mapping[str, Json] = {
        **settings(enabled="on"),
        "backends": {"b": entry},
        "models": {"demo-chat": {"backend": "b"}},
    }
    async with running_gateway(own) as gateway:
        for secret in ("backend-credential-17", "admin-secret"):
            await ask(gateway, [{"role": "user", "content": f"Say {secret}"}], secret)
        answer = await gateway.client.get("/inspect/api/requests?reveal=1", headers=ADMIN)
        assert len(answer.json()["requests"]) == 2 and "Say " in answer.text
        assert "backend-credential" not in answer.text and "admin-secret" not in answer.text


async def test_a_recording_shows_the_same_rows() -> None:
    async with running_gateway(settings()) as gateway:
        request_id = await ask(gateway, LOOP, stream=True)
        exported = await gateway.client.get(f"/inspect/api/export?id={request_id}&redact=none")
        (row,) = await listed(gateway, reveal=1)
    (shown,) = (
        await RecordedRequests(read_recording(exported.json()["content"].encode())).listed("", None, 9)
    ).requests
    assert (shown.client, shown.outcome) == (row["client"], row["outcome"])
    assert (shown.asked.words, list(shown.asked.results)) == (SAID, ["read_file"])
    assert shown.first_ms is not None and 0 < shown.first_ms <= shown.ms
