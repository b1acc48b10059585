"""A provider that compacts by itself gets the request of a client of its own API, and what it makes goes back to it
alone; for the profile of another provider the gateway compacts."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import pytest

from gateway.core.conversation import Conversation, Json
from gateway.core.provider_state import label_of
from gateway.core.sealed_compaction import MARK
from gateway.history.own_state import UNREADABLE
from gateway.server.api.compacting import compacts_itself
from gateway.server.upstream.backends import Backends
from gateway.settings import parse_settings
from gateway.testing.faulty import Connection, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway

USER: Final[dict[str, Json]] = {"type": "message", "role": "user", "content": "Fix the ledger."}
TRIGGER: Final[dict[str, Json]] = {"type": "compaction_trigger"}
ITEM: Final[dict[str, Json]] = {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAA-opaque"}
RESPONSE: Final[dict[str, Json]] = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m",
    "output": [ITEM],
    "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12},
}
BLOCK: Final[dict[str, Json]] = {"type": "compaction", "content": "A summary.", "signature": "sig"}
MESSAGE: Final[dict[str, Json]] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [BLOCK],
    "stop_reason": "compaction",
    "stop_sequence": None,
    "usage": {"input_tokens": 10, "output_tokens": 2},
}
CHAT: Final[dict[str, Json]] = {
    "id": "c",
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Noted."}, "finish_reason": "stop"}],
}
ANSWERS: Final[dict[str, Json]] = {
    "/count_tokens": {"input_tokens": 3},
    "/responses": RESPONSE,
    "/messages": MESSAGE,
    "/chat/completions": CHAT,
}


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[RunningGateway, list[tuple[str, dict[str, Any]]]]]:
    asked: list[tuple[str, dict[str, Any]]] = []

    async def script(connection: Connection) -> None:
        path = connection.head.split(b" ")[1].decode()
        asked.append((path, json.loads(connection.body)))
        body = next(found for end, found in ANSWERS.items() if path.endswith(end))
        await connection.send(answer("200 OK", json.dumps(body).encode(), b"content-type: application/json"))

    async with faulty_backend(script) as backend:
        adapters = ("openai_responses", "anthropic_messages", "openai_chat")
        settings: dict[str, Json] = {
            "backends": {name: {"adapter": name, "base_url": backend.base_url} for name in adapters},
            "models": {
                "openai_responses": {"backend": "openai_responses", "profile": "openai"},
                "anthropic_messages": {"backend": "anthropic_messages", "profile": "anthropic"},
                "openai_chat": {"backend": "openai_chat"},
                "local": {"backend": "openai_responses", "profile": "vllm"},
                "responses at an unknown host": {"backend": "openai_responses"},
                "messages at an unknown host": {"backend": "anthropic_messages"},
                "messages": {"backend": "anthropic_messages", "profile": "minimax"},
            },
        }
        async with running_gateway(settings) as gateway:
            yield gateway, asked


async def post(gateway: RunningGateway, path: str, **body: Any) -> httpx.Response:
    response = await gateway.client.post(path, json=body, headers={"anthropic-version": "2023-06-01"})
    assert response.status_code == 200, response.text
    return response


async def test_openai_gets_the_trigger_and_its_item_goes_back_to_it_alone() -> None:
    async with serving() as (gateway, asked):
        made = (await post(gateway, "/v1/responses", model="openai_responses", input=[USER, TRIGGER])).json()
        assert asked[-1][1]["input"] == [USER, TRIGGER]
        [item] = made["output"]
        state = item["encrypted_content"]
        assert label_of(state) and state.endswith("gAAAA-opaque")
        await post(gateway, "/v1/responses", model="openai_responses", input=[USER, item])
        assert asked[-1][1]["input"] == [USER, ITEM]
        await post(gateway, "/v1/responses", model="openai_chat", input=[USER, item])
        assert [message["content"] for message in asked[-1][1]["messages"]] == ["Fix the ledger.", UNREADABLE]


async def test_openai_compacts_for_the_older_request_too() -> None:
    async with serving() as (gateway, asked):
        made = (await post(gateway, "/v1/responses/compact", model="openai_responses", input=[USER])).json()
        assert asked[-1][1]["input"] == [USER, TRIGGER]
        assert made["object"] == "response.compaction" and made["usage"]["total_tokens"] == 12
        assert [item["type"] for item in made["output"]] == ["message", "compaction"]


async def test_anthropic_gets_the_field_and_its_block_passes() -> None:
    async with serving() as (gateway, asked):
        fields = {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        asked_for = {"type": "summarize"}
        made = (await post(gateway, "/v1/messages", model="anthropic_messages", compaction=asked_for, **fields)).json()
        assert asked[-1][1]["compaction"] == asked_for
        assert (made["content"], made["stop_reason"]) == ([BLOCK], "compaction")


@pytest.mark.parametrize("model", ["local", "responses at an unknown host"])
async def test_the_gateway_compacts_for_another_provider_of_the_api(model: str) -> None:
    async with serving() as (gateway, asked):
        made = (await post(gateway, "/v1/responses", model=model, input=[USER, TRIGGER])).json()
        assert [item["type"] for item in made["output"]] == ["compaction"]
        assert made["output"][0]["encrypted_content"].startswith(MARK)
        assert all(TRIGGER not in body["input"] for _, body in asked)


@pytest.mark.parametrize("model", ["openai_responses", "anthropic_messages", "openai_chat"])
async def test_a_compaction_of_the_gateway_is_text_for_each_of_them(model: str) -> None:
    async with serving() as (gateway, asked):
        made = (await post(gateway, "/v1/responses/compact", model="local", input=[USER])).json()
        given = [*made["output"], {"type": "message", "role": "user", "content": "Go on."}]
        await post(gateway, "/v1/responses", model=model, input=given)
        sent = json.dumps(asked[-1][1])
        assert MARK not in sent and "stands instead" in sent and "Go on." in sent


EDIT: Final[dict[str, Json]] = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50}}
OTHER: Final[dict[str, Json]] = {"type": "clear_tool_uses_20250919"}
LONG: Final[list[dict[str, Json]]] = [
    {"role": "user", "content": "Fix the ledger. " * 50},
    {"role": "assistant", "content": "Which one?"},
    {"role": "user", "content": "That of May."},
]


@pytest.mark.parametrize("model", ["messages", "messages at an unknown host"])
@pytest.mark.parametrize("above", [50, 100_000])
async def test_the_edit_goes_to_no_backend_that_is_not_known_to_compact(model: str, above: int) -> None:
    async with serving() as (gateway, asked):
        trigger: Json = {"type": "input_tokens", "value": above}
        for others in ([], [OTHER]):
            edits: Json = {"edits": [*others, {**EDIT, "trigger": trigger}]}
            fields = {"max_tokens": 9, "messages": LONG, "context_management": edits}
            await post(gateway, "/v1/messages", model=model, **fields)
            assert asked[-1][1].get("context_management") == ({"edits": others} if others else None)


async def test_the_edit_is_neither_counted_nor_explained_for_such_a_backend() -> None:
    async with serving() as (gateway, asked):
        fields = {"model": "messages", "messages": LONG, "context_management": {"edits": [EDIT]}}
        assert (await post(gateway, "/v1/messages/count_tokens", **fields)).json() == {"input_tokens": 3}
        assert "context_management" not in asked[-1][1]
        shown = await post(gateway, "/v1/explain?dialect=anthropic_messages", max_tokens=9, **fields)
        assert "Fix the ledger" in shown.text
        assert "compact_20260112" not in shown.text


async def test_the_edit_goes_to_the_provider_that_knows_it() -> None:
    async with serving() as (gateway, asked):
        fields = {"max_tokens": 9, "messages": LONG, "context_management": {"edits": [EDIT]}}
        await post(gateway, "/v1/messages", model="anthropic_messages", **fields)
        assert len(asked) == 1 and asked[0][1]["context_management"] == {"edits": [EDIT]}


@pytest.mark.parametrize(
    ("adapter", "host", "dialect", "profile", "itself"),
    [
        ("openai_responses", "https://api.openai.com/v1", "openai_responses", None, True),
        ("openai_responses", "https://a.openai.azure.com/openai/v1", "openai_responses", None, True),
        ("openai_responses", "https://api.openai.com/v1", "anthropic_messages", None, False),
        ("openai_responses", "https://llm.example.com/v1", "openai_responses", None, False),
        ("openai_responses", "https://llm.example.com/v1", "openai_responses", "openai", True),
        ("anthropic_messages", "https://api.anthropic.com", "anthropic_messages", None, True),
        ("anthropic_messages", "https://api.minimax.io/anthropic", "anthropic_messages", None, False),
    ],
)
def test_what_is_known_to_compact_by_itself(
    adapter: str, host: str, dialect: str, profile: str | None, itself: bool
) -> None:
    model = {"backend": "b"} if profile is None else {"backend": "b", "profile": profile}
    settings = {"backends": {"b": {"adapter": adapter, "base_url": host}}, "models": {"m": model}}
    route, backend = Backends(parse_settings(json.dumps(settings))).route("m")
    assert compacts_itself(Conversation((), dialect=dialect), route, backend) is itself


@pytest.mark.parametrize(
    ("model", "gets"), [("openai_responses", True), ("local", False), ("responses at an unknown host", False)]
)
async def test_openai_alone_compacts_beside_an_answer(model: str, gets: bool) -> None:
    async with serving() as (gateway, asked):
        entries: Json = [{"type": "compaction", "compact_threshold": 1000}, {"type": "other"}]
        body = {"model": model, "input": [USER], "context_management": entries}
        answered = await gateway.client.post("/v1/responses", json=body, headers={"x-dragoman-explain": "1"})
        assert asked[-1][1].get("context_management") == (entries if gets else [{"type": "other"}])
        told = [one for one in answered.json()["dragoman"]["diagnostics"] if one["rule"] == "FIELD_NOT_SENT"]
        assert len(told) == (0 if gets else 1)
