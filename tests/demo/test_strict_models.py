"""A strict demo model refuses a history without the state of its answers, in its provider's words."""

from typing import Any

import httpx
import pytest

from gateway.demo.serve import serve_demo

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = "Weather in Rome?"


async def post(kind: str, path: str, body: dict[str, Any]) -> httpx.Response:
    async with serve_demo(kind) as backend, httpx.AsyncClient(trust_env=False) as client:
        return await client.post(f"{backend.base_url}{path}", json=body)


def chat(**message: Any) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": '{"city": "Rome"}'}
    call = {"id": "c", "type": "function", "function": function}
    return {
        "model": "demo-chat-strict",
        "messages": [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": "", "tool_calls": [call], **message},
            {"role": "tool", "tool_call_id": "c", "content": "sunny"},
        ],
    }


async def test_chat_wants_the_reasoning_of_each_turn_with_calls() -> None:
    refused = await post("chat", "/chat/completions", chat())
    assert refused.status_code == 400
    sentence = "The reasoning_content in the thinking mode must be passed back to the API."
    assert refused.json()["error"]["message"] == sentence
    accepted = await post("chat", "/chat/completions", chat(reasoning_content=""))
    assert accepted.json()["choices"][0]["message"]["reasoning_content"]
    relaxed = await post("chat", "/chat/completions", {**chat(), "model": "demo-chat"})
    assert "reasoning_content" not in relaxed.json()["choices"][0]["message"]


def gemini(**call: Any) -> dict[str, Any]:
    made = {"name": "get_weather", "args": {"city": "Rome"}}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": QUESTION}]},
            {"role": "model", "parts": [{"functionCall": made, **call}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "get_weather", "response": {"output": "sunny"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "get_weather", "parametersJsonSchema": PARAMETERS}]}],
    }


async def test_gemini_wants_the_signature_of_the_first_call_of_each_step() -> None:
    path = "/models/demo-gemini-strict:generateContent"
    refused = await post("gemini", path, gemini())
    assert refused.status_code == 400
    assert "is missing a thought_signature in functionCall parts" in refused.json()["error"]["message"]
    corrupted = await post("gemini", path, gemini(thoughtSignature="1.x"))
    assert corrupted.json()["error"]["message"] == "Corrupted thought signature."
    asked = {**gemini(), "contents": gemini()["contents"][:1]}
    (part,) = [
        part
        for part in (await post("gemini", path, asked)).json()["candidates"][0]["content"]["parts"]
        if "functionCall" in part
    ]
    # Arguments and signature belong together.
    body = gemini(thoughtSignature=part["thoughtSignature"])
    body["contents"][1]["parts"][0]["functionCall"] = part["functionCall"]
    assert (await post("gemini", path, body)).status_code == 200


def responses(*items: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": "demo-responses-strict",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [{"role": "user", "content": QUESTION}, *items],
        "tools": [{"type": "function", "name": "get_weather", "parameters": PARAMETERS}],
    }


async def test_responses_wants_reasoning_before_calls_and_an_item_behind_it() -> None:
    answer = (await post("responses", "/responses", responses())).json()
    reasoning, call = answer["output"]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
    assert (await post("responses", "/responses", responses(reasoning, call, output))).status_code == 200
    alone = await post("responses", "/responses", responses(call, output))
    assert alone.json()["error"]["message"].endswith("was provided without its required 'reasoning' item.")
    last = await post("responses", "/responses", responses(reasoning))
    assert last.json()["error"]["message"].endswith("was provided without its required following item.")


@pytest.mark.parametrize("kind", ["chat", "responses"])
async def test_a_strict_model_is_not_listed(kind: str) -> None:
    async with serve_demo(kind) as backend, httpx.AsyncClient(trust_env=False) as client:
        listed = (await client.get(f"{backend.base_url}/models")).json()["data"]
    assert [model["id"] for model in listed] == [f"demo-{kind}"]
