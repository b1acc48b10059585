import json
from typing import Any, Final

import httpx
import pytest

from adapters.anthropic_messages.demo.thinking import redact, sign
from gateway.core.conversation import Json
from gateway.demo.serve import DemoBackend, serve_demo
from tests.adapters.anthropic_messages.demo.events import HEADERS, events_of, folded

TOOLS: Final[list[Json]] = [
    {
        "name": "get_weather",
        "description": "The weather of a city",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]
WEATHER: Final[dict[str, Json]] = {"type": "tool_reference", "name": "get_weather"}
USER: Final[dict[str, Json]] = {"role": "user", "content": "What's the weather in Paris and Rome?"}
THINKING: Final[Json] = {"type": "enabled", "budget_tokens": 1024}


async def post(backend: DemoBackend, *messages: Json, **fields: Json) -> httpx.Response:
    body: Json = {"model": "m", "max_tokens": 2000, "messages": [*messages], **fields}
    async with httpx.AsyncClient() as client:
        return await client.post(f"{backend.base_url}/v1/messages", json=body, headers=HEADERS)


async def ask(backend: DemoBackend, *messages: Json, **fields: Json) -> Any:  # Any: read as JSON
    response = await post(backend, *messages, **fields)
    assert response.status_code == 200, response.text
    return response.json()


def results(message: Any) -> dict[str, Json]:
    """The message with a result for each call of a response."""
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "sunny"} for call in calls],
    }


async def test_a_tool_loop_with_thinking_runs() -> None:
    async with serve_demo("messages") as backend:
        first = await ask(backend, USER, tools=TOOLS, thinking=THINKING)
        assert [block["type"] for block in first["content"]] == ["thinking", "tool_use", "tool_use"]
        assert [block.get("input") for block in first["content"][1:]] == [{"city": "Paris"}, {"city": "Rome"}]
        assert first["stop_reason"] == "tool_use"
        said: Json = {"role": "assistant", "content": first["content"]}
        second = await ask(backend, USER, said, results(first), tools=TOOLS, thinking=THINKING)
    assert second["stop_reason"] == "end_turn"
    assert second["content"][-1]["text"] == (
        "Here is what I found:\n1. get_weather says: sunny\n2. get_weather says: sunny"
    )


async def test_directives_change_what_the_model_may_call() -> None:
    defined: Json = {"type": "tool_definition", "definition": TOOLS[0]}
    quick: Json = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    added: Json = {"role": "system", "content": [{"type": "tool_addition", "tool": defined}]}
    removed: Json = {"role": "system", "content": [{"type": "tool_removal", "tool": WEATHER}]}
    async with serve_demo("messages") as backend:
        offered = await ask(backend, USER, added, quick)
        gone = await ask(backend, USER, removed, tools=TOOLS)
        back = await ask(backend, USER, removed, {"role": "assistant", "content": "Hm."}, USER, added, tools=TOOLS)
    assert [answer["stop_reason"] for answer in (offered, gone, back)] == ["tool_use", "end_turn", "tool_use"]


async def test_the_stream_adds_up_to_the_answer() -> None:
    async with serve_demo("messages") as backend:
        whole = await ask(backend, USER, tools=TOOLS, thinking=THINKING)
        streamed = await post(backend, USER, tools=TOOLS, thinking=THINKING, stream=True)
    assert streamed.headers["content-type"] == "text/event-stream"
    assert {**folded(events_of(streamed.content)), "id": whole["id"]} == whole


async def test_the_model_thinks_on_request_unless_thinking_is_disabled() -> None:
    think: Json = {"role": "user", "content": "Think: what is 2 plus 2?"}
    hello: Json = {"role": "user", "content": "Hello"}
    async with serve_demo("messages") as backend:
        answers = [
            await ask(backend, think),
            await ask(backend, hello, thinking={"type": "adaptive"}),
            await ask(backend, think, thinking={"type": "disabled"}),
            await ask(backend, hello),
        ]
    kinds = [[block["type"] for block in answer["content"]] for answer in answers]
    assert kinds == [["thinking", "text"], ["thinking", "text"], ["text"], ["text"]]


async def test_sampling_limits_are_kept() -> None:
    count: Json = {"role": "user", "content": [{"type": "text", "text": "count to ten"}]}
    async with serve_demo("messages") as backend:
        short = await ask(backend, count, max_tokens=3)
        stopped = await ask(backend, count, stop_sequences=["6", "4"])
        nothing = await ask(backend, count, stop_sequences=["1"])
    assert (short["content"][0]["text"], short["stop_reason"]) == ("1, 2, 3,", "max_tokens")
    assert (stopped["content"][0]["text"], stopped["stop_reason"]) == ("1, 2, 3, ", "stop_sequence")
    assert stopped["stop_sequence"] == "4"
    assert nothing["content"] == []


async def test_a_schema_shapes_the_answer_and_usage_counts_it() -> None:
    schema: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    config: Json = {"format": {"type": "json_schema", "schema": schema}}
    async with serve_demo("messages") as backend:
        typed = await ask(backend, {"role": "user", "content": "3 days in Oslo"}, output_config=config)
        usage = (await ask(backend, {"role": "user", "content": "count to three"}, system="Be brief."))["usage"]
    assert json.loads(typed["content"][0]["text"]) == {"city": "Oslo"}
    assert (usage["input_tokens"], usage["output_tokens"]) == (5, 3)


async def test_tool_choice_reaches_the_script() -> None:
    async with serve_demo("messages") as backend:
        none = await ask(backend, USER, tools=TOOLS, tool_choice={"type": "none"})
        hello: Json = {"role": "user", "content": "Hello"}
        forced = await ask(backend, hello, tools=TOOLS, tool_choice={"type": "any"})
        named = await ask(backend, hello, tools=TOOLS, tool_choice={"type": "tool", "name": "get_weather"})
        single = await ask(backend, USER, tools=TOOLS, tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    assert [block["type"] for block in none["content"]] == ["text"]
    assert forced["stop_reason"] == named["stop_reason"] == "tool_use"
    assert [block["type"] for block in single["content"]] == ["text", "tool_use"]


def called(*ids: str) -> dict[str, Json]:
    calls: list[Json] = [{"type": "tool_use", "id": each, "name": "f", "input": {}} for each in ids]
    return {"role": "assistant", "content": calls}


def answered(*ids: str, text: str = "") -> dict[str, Json]:
    blocks: list[Json] = [{"type": "tool_result", "tool_use_id": each, "content": "x"} for each in ids]
    if text:
        blocks.append({"type": "text", "text": text})
    return {"role": "user", "content": blocks}


RESULT: Final[Json] = {"type": "tool_result", "tool_use_id": "a", "content": "x"}


def thought(thinking: str, signature: str) -> dict[str, Json]:
    block: Json = {"type": "thinking", "thinking": thinking, "signature": signature}
    return {"role": "assistant", "content": [block, {"type": "text", "text": "x"}]}


REFUSED: Final[dict[str, tuple[list[Json], dict[str, Json]]]] = {
    "messages: at least one": ([], {}),
    "messages.0.role": ([{"role": "tool", "content": "x"}], {}),
    "messages.0.content: must be": ([{"role": "user", "content": []}], {}),
    "messages.0.content.0.type": ([{"role": "user", "content": [{"type": "smell"}]}], {}),
    "messages.0.content.0.image.source": ([{"role": "user", "content": [{"type": "image"}]}], {}),
    "messages.0: text content blocks": ([{"role": "user", "content": ""}], {}),
    "model": ([USER], {"model": None}),
    "max_tokens": ([USER], {"max_tokens": 0}),
    "stop_sequences": ([USER], {"stop_sequences": ["\n"]}),
    "tools.0.name": ([USER], {"tools": [{"name": "a b", "input_schema": {"type": "object"}}]}),
    "tools.0.custom.input_schema": ([USER], {"tools": [{"name": "a", "input_schema": {}}]}),
    "tool_choice": ([USER], {"tool_choice": {"type": "any"}}),
    "messages: final assistant content": ([USER, {"role": "assistant", "content": "so "}], {}),
    "messages.1: `tool_use` ids were found without": ([USER, called("a")], {}),
    "messages.1: `tool_use` ids were found without `tool_result`": ([USER, called("a", "b"), answered("a")], {}),
    "messages.0: unexpected `tool_use_id`": ([answered("a")], {}),
    "messages.2: each tool_use must have": ([USER, called("a"), answered("a", "a")], {}),
    "messages.2: `tool_result` blocks must precede": (
        [USER, called("a"), {"role": "user", "content": [{"type": "text", "text": "x"}, RESULT]}],
        {},
    ),
    "messages.1: the id of": ([USER, called("a.b"), answered("a.b")], {}),
    "messages.3: `tool_use` ids must be unique": ([USER, called("a"), answered("a"), called("a"), answered("a")], {}),
    "messages.1.content.0: Invalid `signature`": ([USER, thought("hm", sign("other"))], {}),
    "messages.1.content.0: Invalid `data`": (
        [USER, {"role": "assistant", "content": [{"type": "redacted_thinking", "data": redact("hm") + "!"}]}],
        {},
    ),
    "thinking.enabled.budget_tokens": ([USER], {"thinking": {"type": "enabled", "budget_tokens": 1000}}),
    "`max_tokens` must be greater": ([USER], {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
    "messages.1.content.0.type: Expected `thinking`": ([USER, called("a"), answered("a")], {"thinking": THINKING}),
    "messages.1.content.0: `tool_removal` is only": (
        [USER, {"role": "user", "content": [{"type": "tool_removal", "tool": WEATHER}]}],
        {"tools": TOOLS},
    ),
    "messages.1.content.0.tool.name": (
        [USER, {"role": "system", "content": [{"type": "tool_addition", "tool": WEATHER}]}],
        {},
    ),
    "`temperature` may only": ([USER], {"thinking": {"type": "adaptive"}, "temperature": 0}),
    "Thinking may not be enabled": (
        [USER],
        {"thinking": {"type": "adaptive"}, "tools": TOOLS, "tool_choice": {"type": "any"}},
    ),
}


@pytest.mark.parametrize("begins", REFUSED)
async def test_what_breaks_a_rule_is_refused(begins: str) -> None:
    messages, fields = REFUSED[begins]
    async with serve_demo("messages") as backend:
        response = await post(backend, *messages, **fields)
    error = response.json()["error"]
    assert (response.status_code, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith(begins)


async def test_a_history_that_keeps_the_rules_is_accepted() -> None:
    redacted: Json = {"role": "assistant", "content": [{"type": "redacted_thinking", "data": redact("hm")}]}
    system: Json = {"role": "system", "content": "Be brief."}
    calls = called("a")
    history: list[Json] = [
        USER,
        thought("hm", sign("hm")),
        system,
        USER,
        redacted,
        USER,
        calls,
        answered("a", text="Go on."),
    ]
    async with serve_demo("messages") as backend:
        assert (await ask(backend, *history))["stop_reason"] == "end_turn"


async def test_the_version_is_required_and_a_body_must_be_an_object() -> None:
    async with serve_demo("messages") as backend, httpx.AsyncClient() as client:
        url = f"{backend.base_url}/v1/messages"
        unversioned = await client.post(url, json={})
        broken = [await client.post(url, content=body, headers=HEADERS) for body in (b"{", b"[]", b"\xff")]
        (first, *_) = backend.requests
    assert "anthropic-version" in unversioned.json()["error"]["message"]
    assert [response.status_code for response in (unversioned, *broken)] == [400] * 4
    assert first.path == "/v1/messages"


async def test_the_models_are_listed() -> None:
    async with serve_demo("messages") as backend, httpx.AsyncClient() as client:
        models = (await client.get(f"{backend.base_url}/v1/models")).json()
    assert [model["id"] for model in models["data"]] == ["demo-messages"]
