"""What would have been sent under other rules."""

from typing import Any, cast

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.inspect.test_request_routes import HISTORY, TOOLS, asked, limited, shown, texts
from tests.server.api.inspect.test_routes import settings


async def tried(gateway: RunningGateway, rules: Json, query: str = "?reveal=1") -> httpx.Response:
    return await gateway.client.post(f"/inspect/api/explain{query}", json=rules)


async def rows_of(gateway: RunningGateway, **rules: Json) -> list[dict[str, Any]]:
    answer = await tried(gateway, rules)
    assert answer.status_code == 200, answer.text
    assert answer.json()["refusal"] is None
    return cast("list[dict[str, Any]]", answer.json()["rows"])


async def test_without_other_rules_it_is_what_was_sent() -> None:
    async with running_gateway(limited()) as gateway:
        request_id = await asked(gateway, "demo-agent")
        assert (
            await rows_of(gateway, id=request_id) == (await shown(gateway, f"{request_id}/messages", reveal=1))["rows"]
        )


async def test_other_limits_are_what_explain_says_and_nothing_is_sent() -> None:
    async with running_gateway(limited()) as gateway:
        request_id = await asked(gateway, "demo-chat")
        backend = gateway.app.gateway_state.demo_backends._running["chat"]
        sent = len(backend.requests)
        rows = await rows_of(gateway, id=request_id, max_history_messages=0, max_tool_results=None)
        body: Json = {
            "model": "demo-chat",
            "messages": HISTORY,
            "tools": TOOLS,
            "settings": {"max_history_messages": 0, "max_tool_results": None},
        }
        explained = (await gateway.client.post("/v1/explain", json=body)).json()
        assert texts(rows, "trimmed") == [one.get("content") or "" for one in explained["trimmed"]]
        assert len(texts(rows, "trimmed")) < len(texts(rows, "repaired"))
        assert len(backend.requests) == sent


async def test_words_are_replaced_here_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with running_gateway(limited()) as gateway:
        request_id = await asked(gateway, "demo-chat")
        assert "Kassel" not in (await tried(gateway, {"id": request_id}, "")).text
        assert "shown by the inspector" not in caplog.text
        assert "Kassel" in (await tried(gateway, {"id": request_id})).text
        assert f"the words of the request {request_id} were shown by the inspector" in caplog.text


@pytest.mark.parametrize(
    ("rules", "status", "said"),
    [
        ({"id": "unknown"}, 404, "no request"),
        ({"id": "ID", "profile": "nobody"}, 400, "nobody"),
        ({"id": "ID", "max_tool_results": -1}, 400, "max_tool_results"),
        ({"id": "ID", "max_tool_results": "five"}, 400, "max_tool_results"),
        ({"id": "ID", "profil": "none"}, 400, "profil"),
        ({}, 400, "id"),
    ],
)
async def test_wrong_rules_are_told(rules: dict[str, Json], status: int, said: str) -> None:
    async with running_gateway(settings()) as gateway:
        request_id = await asked(gateway, "demo-chat")
        answer = await tried(gateway, {**rules, **({"id": request_id} if rules.get("id") == "ID" else {})})
        assert answer.status_code == status and said in answer.json()["error"]["message"]
