"""A backend with a field for `tool_choice` that responds without the required call is told, or an error.

So it is on every wire with such a field, in every dialect that has one, streamed and whole.
"""

import json
from collections.abc import Mapping
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import END, Connection, FaultyBackend, Script, chunk, faulty_backend, head
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.promises.wire_gateway import wire_settings
from tests.promises.wires import WIRES
from tests.tiers import sample

_MESSAGE: Final[dict[str, Json]] = {"id": "m", "type": "message", "role": "assistant", "model": "m"}
_COUNTS: Final[Json] = {"input_tokens": 1, "output_tokens": 1}


def _sse(*events: Json) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def _chat(call: str | None, finish: str = "stop") -> bytes:
    calls: Json = [{"index": 0, "id": "c", "type": "function", "function": {"name": call, "arguments": "{}"}}]
    delta: Json = {"content": "I will not."} if call is None else {"tool_calls": calls}
    return _sse({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}) + b"data: [DONE]\n\n"


def _messages(call: str | None, finish: str = "stop") -> bytes:
    block: Json = {"type": "tool_use", "id": "c", "name": call, "input": {}}
    content: Json = {"type": "text", "text": "I will not."} if call is None else block
    reason = {"stop": "tool_use" if call else "end_turn", "length": "max_tokens"}[finish]
    return json.dumps({**_MESSAGE, "content": [content], "stop_reason": reason, "usage": _COUNTS}).encode()


def _responses(call: str | None, finish: str = "stop") -> bytes:
    text: Json = {"type": "output_text", "text": "I will not.", "annotations": []}
    item: Json = {"type": "message", "id": "i", "status": "completed", "role": "assistant", "content": [text]}
    called: Json = {"type": "function_call", "id": "i", "call_id": "c", "name": call, "arguments": "{}"}
    status = {"stop": "completed", "length": "incomplete"}[finish]
    why: Json = None if finish == "stop" else {"reason": "max_output_tokens"}
    response: Json = {
        "id": "r",
        "object": "response",
        "status": status,
        "output": [item if call is None else called],
        "incomplete_details": why,
    }
    return json.dumps(response).encode()


def _gemini(call: str | None, finish: str = "stop") -> bytes:
    part: Json = {"text": "I will not."} if call is None else {"functionCall": {"name": call, "args": {}}}
    reason = {"stop": "STOP", "length": "MAX_TOKENS"}[finish]
    return _sse({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": reason}]})


SPEAKS: Final = {"native": _chat, "messages": _messages, "responses": _responses, "generate_content": _gemini}
_SCHEMA: Final[dict[str, Json]] = {"type": "object", "properties": {"a": {"type": "string"}}}
_ASKED: Final[Json] = [{"role": "user", "content": "hi"}]
# The path of a dialect, streamed and whole, and requests in which a call of any function is required, and one of `f`.
DIALECTS: Final[Mapping[str, tuple[str, str, dict[str, Json], dict[str, Json], dict[str, Json]]]] = {
    "openai_chat": (
        "/v1/chat/completions",
        "/v1/chat/completions",
        {
            "messages": _ASKED,
            "tools": [{"type": "function", "function": {"name": n, "parameters": _SCHEMA}} for n in ("f", "g")],
        },
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
    ),
    "openai_responses": (
        "/v1/responses",
        "/v1/responses",
        {
            "input": "hi",
            "store": False,
            "tools": [{"type": "function", "name": n, "parameters": _SCHEMA} for n in ("f", "g")],
        },
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "name": "f"}},
    ),
    "anthropic_messages": (
        "/v1/messages",
        "/v1/messages",
        {
            "messages": _ASKED,
            "max_tokens": 9,
            "tools": [{"name": n, "input_schema": _SCHEMA} for n in ("f", "g")],
        },
        {"tool_choice": {"type": "any"}},
        {"tool_choice": {"type": "tool", "name": "f"}},
    ),
    "gemini": (
        "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        "/v1beta/models/{model}:generateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "tools": [{"functionDeclarations": [{"name": n, "parameters": _SCHEMA} for n in ("f", "g")]}],
        },
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}},
    ),
}


def _script(body: bytes) -> Script:
    media_type = "text/event-stream" if body.startswith(b"data: ") else "application/json"

    async def script(connection: Connection) -> None:
        await connection.send(head(media_type), chunk(body), END)

    return script


def _settings(wire: str, backend: FaultyBackend) -> dict[str, Json]:
    settings = wire_settings(WIRES[wire], {"m": backend.base_url})
    return {**settings, "models": {"m": {"backend": "m"}, "strict": {"backend": "m", "forced_tools": "error"}}}


async def _asked(
    gateway: RunningGateway, dialect: str, model: str, choice: str | None, *, stream: bool
) -> tuple[int, str]:
    streamed, whole, body, required, named = DIALECTS[dialect]
    chosen = {None: {}, "required": required, "named": named}[choice]
    path = (streamed if stream else whole).format(model=model)
    fields: dict[str, Json] = {} if dialect == "gemini" else {"model": model, "stream": stream}
    response = await gateway.client.post(path, json={**body, **chosen, **fields}, headers={"x-dragoman-explain": "1"})
    return response.status_code, response.text


@sample()
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("wire", SPEAKS)
async def test_a_choice_that_the_backend_ignores_is_told_or_an_error(wire: str, dialect: str, stream: bool) -> None:
    async with (
        faulty_backend(_script(SPEAKS[wire](None))) as backend,
        running_gateway(_settings(wire, backend)) as gateway,
    ):
        for choice in ("required", "named"):
            status, text = await _asked(gateway, dialect, "m", choice, stream=stream)
            assert (status, "TOOL_CHOICE_IGNORED" in text, "I will not." in text) == (200, True, True), choice
            status, text = await _asked(gateway, dialect, "strict", choice, stream=stream)
            assert ("upstream_invalid_tool_call" in text, "I will not." in text) == (True, False), choice
            assert status == 502 or stream
        status, text = await _asked(gateway, dialect, "strict", None, stream=stream)
        assert (status, "TOOL_CHOICE_IGNORED" in text, "I will not." in text) == (200, False, True)


@pytest.mark.parametrize("wire", SPEAKS)
async def test_another_function_than_the_named_one_is_one_too(wire: str) -> None:
    async with (
        faulty_backend(_script(SPEAKS[wire]("g"))) as backend,
        running_gateway(_settings(wire, backend)) as gateway,
    ):
        for dialect in DIALECTS:
            status, text = await _asked(gateway, dialect, "m", "named", stream=False)
            assert (status, "TOOL_CHOICE_IGNORED" in text) == (200, True), dialect
            status, text = await _asked(gateway, dialect, "strict", "named", stream=False)
            assert (status, "upstream_invalid_tool_call" in text) == (502, True), dialect
            for model in ("m", "strict"):
                status, text = await _asked(gateway, dialect, model, "required", stream=False)
                assert (status, "TOOL_CHOICE_IGNORED" in text) == (200, False), dialect


@pytest.mark.parametrize("wire", SPEAKS)
async def test_a_call_as_required_and_an_answer_that_was_cut_off_are_none(wire: str) -> None:
    for body in (SPEAKS[wire]("f"), SPEAKS[wire](None, "length")):
        async with (
            faulty_backend(_script(body)) as backend,
            running_gateway(_settings(wire, backend)) as gateway,
        ):
            for dialect in DIALECTS:
                for model in ("m", "strict"):
                    status, text = await _asked(gateway, dialect, model, "named", stream=False)
                    assert (status, "TOOL_CHOICE_IGNORED" in text) == (200, False), (dialect, text)
