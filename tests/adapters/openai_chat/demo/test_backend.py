import json
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionMessage

from adapters.warp.demo.scenarios import TOOLS
from gateway.core.conversation import Json
from gateway.demo.serve import DemoBackend, serve_demo
from tests.server.media.scene import picture

USER = {"role": "user", "content": "What's the weather in Paris and Rome?"}


def client_of(backend: DemoBackend) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=backend.base_url, api_key="none", max_retries=0)


async def ask(backend: DemoBackend, *messages: object, **fields: object) -> dict[str, Any]:
    async with httpx.AsyncClient() as client:
        body = {"model": "demo-chat", "messages": messages, **fields}
        answer = await client.post(f"{backend.base_url}/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def calls_of(message: ChatCompletionMessage) -> list[tuple[str, str, str]]:
    return [
        (call.id, call.function.name, call.function.arguments)
        for call in message.tool_calls or ()
        if call.type == "function"
    ]


async def refusal(backend: DemoBackend, *messages: object) -> dict[str, Any]:
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{backend.base_url}/chat/completions", json={"messages": messages})
    assert answer.status_code == 400
    error: dict[str, Any] = answer.json()["error"]
    return error


async def test_the_official_client_runs_a_tool_loop() -> None:
    async with serve_demo("chat") as backend, client_of(backend) as client:
        messages: list[Any] = [USER]
        first = await client.chat.completions.create(model="demo-chat", messages=messages, tools=list[Any](TOOLS))
        said = first.choices[0].message
        assert first.choices[0].finish_reason == "tool_calls" and said.tool_calls
        calls = [call.function for call in said.tool_calls if call.type == "function"]
        assert [json.loads(call.arguments) for call in calls] == [{"city": "Paris"}, {"city": "Rome"}]
        messages.append(said.model_dump())
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in said.tool_calls]
        second = await client.chat.completions.create(model="demo-chat", messages=messages, tools=list[Any](TOOLS))
    assert second.choices[0].finish_reason == "stop"
    assert second.choices[0].message.content == (
        "Here is what I found:\n1. get_weather says: sunny\n2. get_weather says: sunny"
    )


async def test_the_stream_adds_up_to_the_answer() -> None:
    fields: dict[str, Any] = {
        "model": "demo-chat",
        "messages": [USER],
        "tools": list(TOOLS),
        "reasoning_effort": "high",
    }
    async with serve_demo("chat") as backend, client_of(backend) as client:
        whole = await client.chat.completions.create(**fields)
        async with client.chat.completions.stream(**fields, stream_options={"include_usage": True}) as stream:
            chunks = [event.chunk async for event in stream if event.type == "chunk"]
            folded = await stream.get_final_completion()
    mine, theirs = folded.choices[0], whole.choices[0]
    assert (mine.finish_reason, mine.message.content or None) == (theirs.finish_reason, theirs.message.content)
    assert calls_of(mine.message) == calls_of(theirs.message) != []
    reasoning = "".join(
        (choice.delta.model_extra or {}).get("reasoning_content", "") for chunk in chunks for choice in chunk.choices
    )
    assert reasoning == (theirs.message.model_extra or {})["reasoning_content"] != ""
    assert folded.usage == whole.usage
    assert chunks[-1].choices == [] and chunks[-1].usage is not None


async def test_the_raw_stream_has_one_finish_one_done_and_usage_only_when_asked() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "stream": True}
    async with serve_demo("chat") as backend, httpx.AsyncClient() as client:
        answer = await client.post(f"{backend.base_url}/chat/completions", json=body)
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    chunks = [json.loads(line) for line in lines[:-1]]
    assert answer.headers["content-type"] == "text/event-stream"
    assert lines[-1] == "[DONE]" and "usage" not in answer.text
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert len({chunk["id"] for chunk in chunks}) == 1


async def test_sampling_limits_are_kept() -> None:
    count = {"role": "user", "content": "count to ten"}
    async with serve_demo("chat") as backend:
        short = (await ask(backend, count, max_tokens=3))["choices"][0]
        also = (await ask(backend, count, max_completion_tokens=2))["choices"][0]
        stopped = (await ask(backend, count, stop=["4", "6"]))["choices"][0]
        one = (await ask(backend, count, stop="3"))["choices"][0]
        never = (await ask(backend, count, stop=""))["choices"][0]
    assert (short["message"]["content"], short["finish_reason"]) == ("1, 2, 3,", "length")
    assert also["message"]["content"] == "1, 2,"
    assert (stopped["message"]["content"], stopped["finish_reason"]) == ("1, 2, 3, ", "stop")
    assert one["message"]["content"] == "1, 2, "
    assert never["message"]["content"].endswith("10")


async def test_usage_counts_the_prompt_and_the_answer() -> None:
    async with serve_demo("chat") as backend:
        usage = (await ask(backend, {"role": "user", "content": "count to three"}))["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (3, 3, 6)


async def test_response_formats_shape_the_answer() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}}
    named = {"name": "x", "schema": {**schema, "required": ["city", "n"]}}
    user = {"role": "user", "content": "3 days in Oslo"}
    async with serve_demo("chat") as backend:
        typed = await ask(backend, user, response_format={"type": "json_schema", "json_schema": named})
        free = await ask(backend, user, response_format={"type": "json_object"})
    assert json.loads(typed["choices"][0]["message"]["content"]) == {"city": "Oslo", "n": 3}
    assert list(json.loads(free["choices"][0]["message"]["content"])) == ["answer"]


async def test_a_picture_is_described_by_its_type_and_size() -> None:
    parts: list[Json] = [{"type": "text", "text": "Describe the picture."}, picture(width=3)]
    quoted: list[Json] = [{"type": "text", "text": 'say "one"'}, picture()]
    async with serve_demo("chat") as backend:
        said = await ask(backend, {"role": "user", "content": parts})
        one = await ask(backend, {"role": "user", "content": quoted})
    assert said["choices"][0]["message"]["content"] == "The picture is PNG of 3 by 2 pixels."
    assert one["choices"][0]["message"]["content"] == "one"


async def test_text_may_come_in_parts_and_an_answer_may_be_empty() -> None:
    parts = [{"type": "text", "text": 'say "one"'}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    async with serve_demo("chat") as backend:
        said = await ask(backend, {"role": "user", "content": parts})
        empty = await ask(backend, {"role": "user", "content": 'say "one"'}, stop="o")
    assert said["choices"][0]["message"]["content"] == "one"
    assert empty["choices"][0]["message"]["content"] == ""


async def test_tool_choice_reaches_the_script() -> None:
    async with serve_demo("chat") as backend:
        none = await ask(backend, USER, tools=TOOLS, tool_choice="none")
        named = await ask(backend, USER, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "Execute"}})
        single = await ask(backend, USER, tools=TOOLS, parallel_tool_calls=False)
    assert "tool_calls" not in none["choices"][0]["message"]
    assert [call["function"]["name"] for call in named["choices"][0]["message"]["tool_calls"]] == ["Execute"]
    assert len(single["choices"][0]["message"]["tool_calls"]) == 1


CALL = {"id": "k1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([], "messages"),
        ([{"role": "wizard", "content": "x"}], "messages[0].role"),
        (["text"], "messages[0].role"),
        ([USER, CALLED], "messages[1].tool_calls"),
        ([USER, CALLED, USER], "messages[1].tool_calls"),
        ([USER, {"role": "tool", "tool_call_id": "k1", "content": "x"}], "messages[1].tool_call_id"),
        ([USER, CALLED, {"role": "tool", "tool_call_id": "k2", "content": "x"}], "messages[2].tool_call_id"),
    ],
)
async def test_a_history_that_breaks_the_protocol_is_refused(messages: list[object], param: str) -> None:
    async with serve_demo("chat") as backend:
        assert (await refusal(backend, *messages))["param"] == param


async def test_what_is_no_json_object_is_refused() -> None:
    async with serve_demo("chat") as backend, httpx.AsyncClient() as client:
        for body in (b"{", b"[]", b"\xff"):
            answer = await client.post(f"{backend.base_url}/chat/completions", content=body)
            assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
        shown = (await client.get(f"{backend.base_url.removesuffix('/v1')}/__demo/requests")).json()
    assert [request["summary"] for request in shown["requests"]] == [None, [], None]


@pytest.mark.parametrize("field", [{"n": 2}, {"logprobs": True}])
async def test_what_the_model_cannot_do_is_refused_not_ignored(field: dict[str, object]) -> None:
    async with serve_demo("chat") as backend, httpx.AsyncClient() as client:
        answer = await client.post(f"{backend.base_url}/chat/completions", json={"messages": [USER], **field})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, next(iter(field)))


async def test_models_and_recorded_requests() -> None:
    async with serve_demo("chat") as backend, httpx.AsyncClient() as client:
        models = (await client.get(f"{backend.base_url}/models")).json()
        await ask(backend, USER, x_own_field={"kept": True})
        shown = (await client.get(f"{backend.base_url.removesuffix('/v1')}/__demo/requests")).json()
        (recorded,) = backend.requests
    assert models["data"][0]["id"] == "demo-chat"
    assert shown["requests"][0]["summary"]["x_own_field"] == {"kept": True}
    assert json.loads(bytes.fromhex(recorded.body_hex)) == recorded.summary
    assert (shown["active"], shown["aborted"]) == (0, 0)


async def test_a_tool_without_a_name_is_never_called() -> None:
    nameless = {"type": "function", "function": {"name": ""}}
    async with serve_demo("chat") as backend:
        for choice in ("auto", "required"):
            said = await ask(backend, {"role": "user", "content": "Hello"}, tools=[nameless], tool_choice=choice)
            assert not said["choices"][0]["message"].get("tool_calls")
