"""Interactions are continued, read and deleted over sockets, against every wire, by the key that made them alone."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from gateway.testing.gateway import running_gateway
from tests.e2e.dialect_wires import CHAT, WIRES, Wire, WireGateway, wire_gateway
from tests.tiers import sample

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEATHER: Final[Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
QUESTION: Final = "Think. Weather in Rome and Paris?"
PATHS: Final = ("/v1beta/interactions", "/v1/interactions")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[WireGateway]:
    async with wire_gateway() as opened:
        yield opened


async def answered(gateway: WireGateway, path: str, streams: bool, **fields: Any) -> Any:
    """A whole interaction, or that of a stream, read back."""
    sent = await gateway.gateway.client.post(path, json={**fields, "stream": streams})
    assert sent.status_code == 200, sent.text
    if not streams:
        return sent.json()
    frames = sent.text.split("\n\n")
    assert frames[-2:] == ["event: done\ndata: [DONE]", ""]
    ended = json.loads(frames[-3].partition("\ndata: ")[2])["interaction"]
    assert ended["store"] is True
    read = (await gateway.gateway.client.get(f"{path}/{ended['id']}")).json()
    assert {name: read[name] for name in ended} == ended
    return read


@sample()
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_calls_and_results_are_chained(gateway: WireGateway, wire: Wire, streams: bool, path: str) -> None:
    asked = {"model": wire.name, "tools": [WEATHER]}
    first = await answered(gateway, path, streams, input=QUESTION, **asked)
    calls = [step for step in first["steps"] if step["type"] == "function_call"]
    assert first["status"] == "requires_action"
    assert [call["arguments"] for call in calls] == [{"city": "Rome"}, {"city": "Paris"}]
    results = [
        {"type": "function_result", "call_id": call["id"], "name": call["name"], "result": f"{n} degrees"}
        for n, call in enumerate(calls)
    ]
    told = await answered(gateway, path, streams, input=results, previous_interaction_id=first["id"], **asked)
    assert told["previous_interaction_id"] == first["id"]
    (said,) = [step["content"][0]["text"] for step in told["steps"] if step["type"] == "model_output"]
    assert "0 degrees" in said and "1 degrees" in said
    sent = json.dumps(gateway.backend(wire).requests[-1].summary, ensure_ascii=False)
    assert QUESTION in sent


async def test_an_interaction_that_is_not_to_be_stored_is_not(gateway: WireGateway) -> None:
    made = await gateway.gateway.client.post(PATHS[0], json={"model": "chat", "input": "Hello", "store": False})
    assert made.json()["store"] is False
    assert (await gateway.gateway.client.get(f"{PATHS[0]}/{made.json()['id']}")).status_code == 404


async def test_the_interaction_of_another_key_is_an_unknown_one(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("one:key-one\ntwo:key-two\n")
    async with wire_gateway() as behind:
        settings: dict[str, Any] = {
            "server": {"api_keys_file": str(tmp_path / "keys")},
            "backends": {"b": {"adapter": "openai_chat", "base_url": behind.backend(CHAT).base_url}},
            "models": {"m": {"backend": "b", "name": "demo-chat"}},
        }
        async with running_gateway(settings) as gateway:
            one, two = ({"x-goog-api-key": f"key-{name}"} for name in ("one", "two"))
            made = await gateway.client.post(PATHS[0], json={"model": "m", "input": "Hello"}, headers=one)
            leaked = made.json()["id"]
            unknown = leaked[:-6] + "000000"
            for method, path, body in (
                ("POST", PATHS[0], {"model": "m", "input": "x", "previous_interaction_id": "ID"}),
                ("POST", PATHS[0], {"model": "m", "input": "x", "previous_interaction_id": "ID", "stream": True}),
                ("GET", f"{PATHS[0]}/ID", None),
                ("GET", f"{PATHS[1]}/ID?include_input=true", None),
                ("DELETE", f"{PATHS[0]}/ID", None),
                ("POST", f"{PATHS[0]}/ID/cancel", None),
            ):
                shown = []
                for identity in (leaked, unknown):
                    sent = await gateway.client.request(
                        method,
                        path.replace("ID", identity),
                        content=None if body is None else json.dumps(body).replace('"ID"', f'"{identity}"'),
                        headers={**two, "content-type": "application/json"},
                    )
                    assert sent.status_code in (400, 404)
                    headers = {name: value for name, value in sent.headers.items() if name != "x-request-id"}
                    shown.append((sent.status_code, headers.keys(), sent.text.replace(identity, "")))
                assert shown[0] == shown[1]
            assert (await gateway.client.get(f"{PATHS[0]}/{leaked}", headers=one)).status_code == 200


async def test_the_ids_of_two_apis_do_not_meet(gateway: WireGateway) -> None:
    response = await gateway.gateway.client.post("/v1/responses", json={"model": "chat", "input": "Hello"})
    made = await gateway.gateway.client.post(PATHS[0], json={"model": "chat", "input": "Hello"})
    for path in (f"{PATHS[0]}/{response.json()['id']}", f"/v1/responses/{made.json()['id']}"):
        assert (await gateway.gateway.client.get(path)).status_code == 404
