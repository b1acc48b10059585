import json
from typing import Any

import httpx
import openai
import pytest

from adapters.warp.demo.scenarios import TOOLS as CHAT_TOOLS
from gateway.demo.serve import DemoBackend, serve_demo

USER = {"role": "user", "content": "What's the weather in Paris and Rome?"}
TOOLS: Any = [{"type": "function", **tool["function"]} for tool in json.loads(json.dumps(CHAT_TOOLS))]
THINKS: Any = {"reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}


def client_of(backend: DemoBackend) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=backend.base_url, api_key="none", max_retries=0)


async def send(backend: DemoBackend, **body: object) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.post(f"{backend.base_url}/responses", json={"model": "demo-responses", **body})


async def ask(backend: DemoBackend, *items: object, **fields: object) -> dict[str, Any]:
    answer = await send(backend, input=items, **fields)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def text_of(response: dict[str, Any]) -> str:
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


async def test_the_official_client_runs_a_tool_loop() -> None:
    async with serve_demo("responses") as backend, client_of(backend) as client:
        items: list[Any] = [USER]
        first = await client.responses.create(model="m", input=items, tools=TOOLS, **THINKS)
        calls = [item for item in first.output if item.type == "function_call"]
        assert [json.loads(call.arguments) for call in calls] == [{"city": "Paris"}, {"city": "Rome"}]
        items += [item.model_dump(exclude_none=True) for item in first.output]
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]
        second = await client.responses.create(model="m", input=items, tools=TOOLS, **THINKS)
    assert second.output_text == "Here is what I found:\n1. get_weather says: sunny\n2. get_weather says: sunny"


@pytest.mark.parametrize(
    "fields", [{}, {"tools": TOOLS}, {"tools": TOOLS, **THINKS}, {"reasoning": {"effort": "high"}}]
)
async def test_the_stream_adds_up_to_the_answer(fields: dict[str, Any]) -> None:
    """The helper of the official client checks the order, the indexes and the ids of all events."""
    async with serve_demo("responses") as backend, client_of(backend) as client:
        whole = await client.responses.create(model="m", input=[USER], **fields)  # type: ignore[list-item]  # a plain dict
        async with client.responses.stream(model="m", input=[USER], **fields) as stream:  # type: ignore[list-item]
            async for _ in stream:
                pass
            folded = await stream.get_final_response()
    mine, theirs = ([_content(item) for item in response.output] for response in (folded, whole))
    assert mine == theirs != []
    assert folded.usage == whole.usage


def _content(item: Any) -> dict[str, Any]:
    """An item without what differs in each answer, and without what the client adds."""
    kept = item.model_dump(include={"type", "summary", "content", "name", "call_id", "arguments"}, exclude_none=True)
    for part in kept.get("content", ()):
        part.pop("parsed", None)
    return dict(kept)


async def test_events_are_numbered_and_end_with_the_response() -> None:
    async with serve_demo("responses") as backend:
        wire = (await send(backend, input="hello", stream=True)).text
    events = [json.loads(line.removeprefix("data: ")) for line in wire.split("\n") if line.startswith("data: ")]
    names = [line.removeprefix("event: ") for line in wire.split("\n") if line.startswith("event: ")]
    assert names == [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert (names[0], names[-1]) == ("response.created", "response.completed")


async def test_limits_and_formats() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    async with serve_demo("responses") as backend:
        short = await ask(backend, {"role": "user", "content": "count to ten"}, max_output_tokens=3)
        typed = await ask(
            backend,
            {"role": "user", "content": "3 days in Oslo"},
            text={"format": {"type": "json_schema", "name": "x", "schema": schema}},
        )
        free = await ask(backend, USER, text={"format": {"type": "json_object"}})
    assert (short["status"], short["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert (text_of(short), short["usage"]["output_tokens"]) == ("1, 2, 3,", 3)
    assert json.loads(text_of(typed)) == {"city": "Oslo"}
    assert list(json.loads(text_of(free))) == ["answer"]


async def test_a_custom_tool_gets_text() -> None:
    tool = {"type": "custom", "name": "weather", "description": "weather of a city"}
    async with serve_demo("responses") as backend:
        asked = await ask(backend, {"role": "user", "content": "weather in Rome"}, tools=[tool])
        (call,) = [item for item in asked["output"] if item["type"] == "custom_tool_call"]
        output = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "rain"}
        answered = await ask(backend, {"role": "user", "content": "weather in Rome"}, call, output, tools=[tool])
    assert call["input"] == "weather in Rome"
    assert text_of(answered) == "weather says: rain"


async def test_tool_choice_reaches_the_script() -> None:
    async with serve_demo("responses") as backend:
        none = await ask(backend, USER, tools=TOOLS, tool_choice="none")
        named = await ask(backend, USER, tools=TOOLS, tool_choice={"type": "function", "name": "Execute"})
        single = await ask(backend, USER, tools=TOOLS, parallel_tool_calls=False)
    assert [item["type"] for item in none["output"]] == ["message"]
    assert [item.get("name") for item in named["output"]] == ["Execute"]
    assert [item["type"] for item in single["output"]] == ["message", "function_call"]


CALL = {"type": "function_call", "call_id": "k1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "k1", "output": "x"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}


@pytest.mark.parametrize(
    ("body", "status", "param", "code"),
    [
        ({}, 400, "input", None),
        ({"input": []}, 400, "input", None),
        ({"input": ["text"]}, 400, "input[0]", None),
        ({"input": [{"role": "wizard", "content": "x"}]}, 400, "input[0]", None),
        ({"input": [USER, CALL]}, 400, "input", None),
        ({"input": [USER, OUTPUT]}, 400, "input", None),
        ({"input": [USER, {"type": "item_reference", "id": "x"}]}, 404, "input", None),
        ({"input": [USER, REASONING]}, 404, "input", None),
        ({"input": [USER, {**REASONING, "encrypted_content": "e"}]}, 400, None, "invalid_encrypted_content"),
        ({"input": "x", "previous_response_id": "r"}, 400, "previous_response_id", "previous_response_not_found"),
        ({"input": "x", "background": True}, 400, "background", None),
        ({"input": "x", "top_logprobs": 2}, 400, "top_logprobs", None),
    ],
)
async def test_what_breaks_the_protocol_is_refused(
    body: dict[str, object], status: int, param: str | None, code: str | None
) -> None:
    async with serve_demo("responses") as backend:
        answer = await send(backend, **body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (status, param, code)


async def test_encrypted_reasoning_returns_under_its_own_id_only() -> None:
    async with serve_demo("responses") as backend:
        said = await ask(backend, USER, **THINKS)
        reasoning = said["output"][0]
        moved = await send(backend, input=[USER, {**reasoning, "id": "rs_other"}, USER])
        back = await send(backend, input=[USER, reasoning, USER])
    assert (moved.status_code, moved.json()["error"]["code"]) == (400, "invalid_encrypted_content")
    assert back.status_code == 200


async def test_models_and_recorded_requests() -> None:
    async with serve_demo("responses") as backend, httpx.AsyncClient() as client:
        models = (await client.get(f"{backend.base_url}/models")).json()
        for body in (b"{", b"[]"):
            assert (await client.post(f"{backend.base_url}/responses", content=body)).status_code == 400
        await ask(backend, USER, x_own_field={"kept": True})
        shown = (await client.get(f"{backend.base_url.removesuffix('/v1')}/__demo/requests")).json()
    assert models["data"][0]["id"] == "demo-responses"
    assert [request["summary"] for request in shown["requests"][:2]] == [None, []]
    assert shown["requests"][2]["summary"]["x_own_field"] == {"kept": True}
