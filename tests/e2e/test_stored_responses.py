"""The unchanged official OpenAI SDK continues, reads and deletes stored responses, against every wire."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any, Final

import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from gateway.testing.gateway import running_gateway
from tests.e2e.dialect_wires import CHAT, WIRES, Wire, WireGateway, wire_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEATHER: Final[Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}
QUESTION: Final = "Think. Weather in Rome and Paris?"
LONG: Final = "Tell me a long story about a gateway"

wires = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[WireGateway]:
    async with wire_gateway() as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(gateway: WireGateway) -> AsyncIterator[AsyncOpenAI]:
    base_url = f"{gateway.gateway.base_url}/v1"
    async with AsyncOpenAI(base_url=base_url, api_key="unused", max_retries=0) as opened:
        yield opened


def sent_to(gateway: WireGateway, wire: Wire) -> str:
    """The newest request that the backend has received, as text."""
    return json.dumps(gateway.backend(wire).requests[-1].summary, ensure_ascii=False)


async def answered(client: AsyncOpenAI, streams: bool, **fields: Any) -> Any:
    """A whole response, or the last one of a stream, whose events all have its id and say that it is stored."""
    if not streams:
        return await client.responses.create(**fields)
    async with client.responses.stream(**fields) as stream:
        async for event in stream:
            if (made := getattr(event, "response", None)) is not None:
                assert made.store is True
                identity = made.id
        final = await stream.get_final_response()
    assert final.id == identity
    return final


@wires
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
async def test_calls_and_results_are_chained(client: AsyncOpenAI, wire: Wire, streams: bool) -> None:
    tools = [WEATHER]
    asked = await answered(client, streams, model=wire.name, input=QUESTION, tools=tools)
    calls = [item for item in asked.output if item.type == "function_call"]
    assert [json.loads(call.arguments) for call in calls] == [{"city": "Rome"}, {"city": "Paris"}]
    outputs: list[Any] = [
        {"type": "function_call_output", "call_id": call.call_id, "output": f"{n} degrees"}
        for n, call in enumerate(calls)
    ]
    told = await answered(
        client, streams, model=wire.name, input=outputs[::-1], tools=tools, previous_response_id=asked.id
    )
    assert "0 degrees" in told.output_text and "1 degrees" in told.output_text
    assert (told.previous_response_id, told.store) == (asked.id, True)
    read = await client.responses.retrieve(told.id)
    assert (read.output_text, read.usage, read.id) == (told.output_text, told.usage, told.id)
    assert [item.id for item in read.output] == [item.id for item in told.output]
    items = await client.responses.input_items.list(told.id, order="asc", limit=100)
    kinds = [item.type for item in items.data if item.type != "reasoning"]
    assert kinds[:1] == ["message"] and kinds[-2:] == ["function_call_output"] * 2
    assert kinds.count("function_call") == 2


@wires
async def test_a_backend_gets_what_the_whole_history_would_be(
    client: AsyncOpenAI, gateway: WireGateway, wire: Wire
) -> None:
    first = await client.responses.create(model=wire.name, input=QUESTION, tools=[WEATHER], instructions="Be brief.")
    outputs: list[Any] = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "warm"}
        for item in first.output
        if item.type == "function_call"
    ]
    second = await client.responses.create(
        model=wire.name, input=outputs, tools=[WEATHER], previous_response_id=first.id
    )
    await client.responses.create(model=wire.name, input="And tomorrow?", previous_response_id=second.id)
    chained = sent_to(gateway, wire)
    history: list[Any] = [{"role": "user", "content": QUESTION}, *first.output, *outputs, *second.output]
    items: list[Any] = [item if isinstance(item, dict) else item.model_dump(exclude_none=True) for item in history]
    items.append({"role": "user", "content": "And tomorrow?"})
    await client.responses.create(model=wire.name, input=items)
    assert json.loads(sent_to(gateway, wire)) == json.loads(chained)
    assert "Be brief." not in chained, "instructions are those of each request"
    assert first.id not in chained and second.id not in chained, "a backend gets no id of the gateway"


async def test_a_backend_of_the_dialect_stores_nothing(client: AsyncOpenAI, gateway: WireGateway) -> None:
    wire = next(wire for wire in WIRES if wire.demo == "responses")
    await client.responses.create(model=wire.name, input="Hello", store=True)
    assert '"store": false' in sent_to(gateway, wire)


async def test_references_are_resolved(client: AsyncOpenAI, gateway: WireGateway) -> None:
    first = await client.responses.create(model=CHAT.name, input="Say hello")
    (item,) = [item for item in first.output if item.type == "message"]
    items: list[Any] = [
        {"role": "user", "content": "Say hello"},
        {"type": "item_reference", "id": item.id},
        {"role": "user", "content": "Again"},
    ]
    await client.responses.create(model=CHAT.name, input=items)
    assert json.dumps(first.output_text) in sent_to(gateway, CHAT)


async def test_pages_of_input_items(client: AsyncOpenAI) -> None:
    items: list[Any] = [{"role": "user", "content": str(n)} for n in range(45)]
    response = await client.responses.create(model=CHAT.name, input=items)
    seen: list[str] = []
    async for item in client.responses.input_items.list(response.id, limit=7, order="asc"):
        assert item.type == "message"
        seen.append(item.content[0].text)  # type: ignore[union-attr]  # every part of them is text
    assert seen == [str(n) for n in range(45)]


async def test_a_deleted_response_is_gone(client: AsyncOpenAI) -> None:
    first = await client.responses.create(model=CHAT.name, input="Hello")
    second = await client.responses.create(model=CHAT.name, input="More", previous_response_id=first.id)
    await client.responses.delete(first.id)
    for gone in (
        client.responses.retrieve(first.id),
        client.responses.delete(first.id),
        client.responses.input_items.list(first.id),
        client.responses.input_items.list(second.id),
    ):
        with pytest.raises(openai.NotFoundError) as missing:
            await gone
        assert missing.value.code == "response_not_found"
    for identity in (first.id, second.id):
        with pytest.raises(openai.BadRequestError) as broken:
            await client.responses.create(model=CHAT.name, input="And?", previous_response_id=identity)
        assert broken.value.code == "previous_response_not_found"
    assert (await client.responses.retrieve(second.id)).id == second.id


async def test_a_request_that_wants_no_store_leaves_nothing(client: AsyncOpenAI, gateway: WireGateway) -> None:
    store = gateway.gateway.app.gateway_state.store
    before = await store.stats()
    response = await client.responses.create(model=CHAT.name, input="Hello", store=False)
    off = {"x-dragoman-state": "off"}
    refused = await client.responses.create(model=CHAT.name, input="Hello", extra_headers=off)
    assert (response.to_dict()["store"], refused.to_dict()["store"]) == (False, False)
    assert await store.stats() == before
    stored = await client.responses.create(model=CHAT.name, input="Hello")
    assert await store.stats() != before, "the counts see what is stored"
    with pytest.raises(openai.BadRequestError):
        await client.responses.create(model=CHAT.name, input="More", previous_response_id=stored.id, extra_headers=off)


@wires
async def test_a_failed_response_is_not_stored(client: AsyncOpenAI, gateway: WireGateway, wire: Wire) -> None:
    body = {"model": wire.name, "input": f"{LONG} {wire.fault('late')}", "stream": True}
    sent = await gateway.gateway.client.post("/v1/responses", json=body)
    events = [json.loads(line[6:]) for line in sent.text.splitlines() if line.startswith("data: ")]
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["store"] is False
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(events[-1]["response"]["id"])


async def test_a_cancelled_response_is_not_stored(client: AsyncOpenAI) -> None:
    identity = ""
    async with client.responses.stream(model=CHAT.name, input=f"{LONG} {CHAT.fault('stall')}") as stream:
        async for event in stream:
            if event.type == "response.created":
                identity = event.response.id
            if event.type == "response.output_text.delta":
                break
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(identity)


async def test_an_incomplete_response_is_stored(client: AsyncOpenAI) -> None:
    response = await client.responses.create(model=CHAT.name, input=LONG, max_output_tokens=16)
    assert response.status == "incomplete"
    assert (await client.responses.retrieve(response.id)).status == "incomplete"


async def test_tokens_are_counted_with_the_stored_history(client: AsyncOpenAI) -> None:
    first = await client.responses.create(model=CHAT.name, input="Hello " * 200)
    short = await client.responses.input_tokens.count(model=CHAT.name, input="More")
    whole = await client.responses.input_tokens.count(model=CHAT.name, input="More", previous_response_id=first.id)
    assert whole.input_tokens > short.input_tokens + 100


async def test_explain_shows_what_stands_before_the_request(client: AsyncOpenAI, gateway: WireGateway) -> None:
    first = await client.responses.create(model=CHAT.name, input="Remember the ostrich")
    body = {"model": CHAT.name, "input": "Which bird?", "previous_response_id": first.id}
    explained = await gateway.gateway.client.post("/v1/explain?dialect=openai_responses", json=body)
    told = explained.json()
    assert [message["role"] for message in told["stored"]] == ["user", "assistant"]
    assert told["indexes"]["wire"] == [-2, -1, 0]
    unknown = await gateway.gateway.client.post(
        "/v1/explain?dialect=openai_responses", json={**body, "previous_response_id": "resp_x"}
    )
    assert unknown.json()["error"]["code"] == "previous_response_not_found"


@pytest.mark.full
async def test_every_immediate_follow_up_finds_its_response(gateway: WireGateway) -> None:
    async def chain(length: int) -> None:
        previous: str | None = None
        for number in range(length):
            body = {"model": CHAT.name, "input": "Hi", "stream": number % 2 == 1, "previous_response_id": previous}
            sent = await gateway.gateway.client.post("/v1/responses", json=body)
            assert sent.status_code == 200, sent.text
            found = re.search(r"resp_\w+", sent.text)
            assert found is not None
            previous = found[0]

    await asyncio.gather(*(chain(26) for _ in range(20)))


async def test_the_response_of_another_key_is_an_unknown_one(tmp_path: Any) -> None:
    (tmp_path / "keys").write_text("one:key-one\ntwo:key-two\n")
    async with wire_gateway() as behind:
        settings: dict[str, Any] = {
            "server": {"api_keys_file": str(tmp_path / "keys")},
            "backends": {"b": {"adapter": "openai_chat", "base_url": behind.backend(CHAT).base_url}},
            "models": {"m": {"backend": "b", "name": "demo-chat"}},
        }
        async with running_gateway(settings) as gateway:
            one, two = ({"authorization": f"Bearer key-{name}"} for name in ("one", "two"))
            made = await gateway.client.post("/v1/responses", json={"model": "m", "input": "Hello"}, headers=one)
            leaked = made.json()["id"]
            unknown = leaked[:-6] + "000000"
            for method, path, body in (
                ("POST", "/v1/responses", {"model": "m", "input": "x", "previous_response_id": "ID"}),
                ("POST", "/v1/responses", {"model": "m", "input": [{"type": "item_reference", "id": "msg_ID"}]}),
                ("GET", "/v1/responses/ID", None),
                ("DELETE", "/v1/responses/ID", None),
                ("GET", "/v1/responses/ID/input_items", None),
            ):
                shown = []
                for identity in (leaked, unknown):
                    text = json.dumps(body).replace("msg_ID", f"msg_{identity[5:]}00").replace("ID", identity)
                    sent = await gateway.client.request(
                        method,
                        path.replace("ID", identity),
                        content=None if body is None else text,
                        headers={**two, "content-type": "application/json"},
                    )
                    assert sent.status_code in (400, 404)
                    shown.append((sent.status_code, sent.text.replace(identity, "")))
                assert shown[0] == shown[1]
            read = await gateway.client.get(f"/v1/responses/{leaked}", headers=one)
            assert read.status_code == 200, "nothing of it was deleted"
