"""A local server whose model makes more calls over its text wire than over chat completions: the doctor suggests it."""

import json
from typing import Any

import pytest

from gateway.diagnostics.doctor.finding import Suggestion
from tests.server.backend import Connection, Script, answer, faulty_backend
from tests.server.doctor.examined import examined, findings
from tests.server.doctor.test_odd_answers import JSON, calls, completion, stream

ONLY = ("D22", "D23")
WIRE = ("backends", "b-text")


def llama(chat_calls: bool, text_calls: bool) -> Script:
    """A llama.cpp server: whether its model calls tools over chat completions, and over one text."""

    async def script(connection: Connection) -> None:
        path = connection.head.split(b" ")[1].decode()
        if not connection.body:
            body: Any = {"data": [{"id": "inner"}]} if path == "/v1/models" else {"default_generation_settings": {}}
            status = "200 OK" if path in ("/v1/models", "/props") else "404 Not Found"
            return await connection.send(answer(status, json.dumps(body).encode(), JSON))
        asked = json.loads(connection.body)
        if path == "/completion":
            said = _text(asked["prompt"], text_calls)
            return await connection.send(answer("200 OK", said, b"content-type: text/event-stream"))
        chosen = asked.get("tool_choice")
        name = chosen["function"]["name"] if isinstance(chosen, dict) else "get_weather"
        if chat_calls and asked.get("tools") and chosen != "none":
            return await connection.send(calls(name))
        await connection.send(stream() if asked.get("stream") else completion())

    return script


def _text(prompt: str, calls_tools: bool) -> bytes:
    name = "get_time" if "get_time" in prompt else "get_weather"
    call = f'<tool_call>\n{{"name": "{name}", "arguments": {{"city": "Paris"}}}}\n</tool_call>'
    said = {"content": call if calls_tools else "It is sunny.", "stop": False}
    last = {"content": "", "stop": True, "stop_type": "eos", "tokens_predicted": 9, "tokens_evaluated": 9}
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in (said, last))


async def test_the_wire_with_more_calls_is_suggested_for_the_model() -> None:
    async with faulty_backend(llama(chat_calls=False, text_calls=True)) as backend:
        section = (await examined("chat", f"{backend.base_url}/v1", only=ONLY, model="inner")).section
    finding = findings(section)["D268"]
    assert finding.verdict == "todo" and "0 of 3 calls over chat completions, 3 over the text wire" in finding.detail
    entry = {"adapter": "text", "wire": "llama_cpp", "base_url": backend.base_url, "headers": {"connection": "close"}}
    assert Suggestion(WIRE, entry) in section.suggestions
    assert Suggestion(("models", "m", "backend"), "b-text") in section.suggestions


@pytest.mark.parametrize(("chat", "text", "verdict"), [(False, False, "ok"), (True, True, None)])
async def test_nothing_is_suggested_without_more_calls(chat: bool, text: bool, verdict: str | None) -> None:
    async with faulty_backend(llama(chat, text)) as backend:
        section = (await examined("chat", f"{backend.base_url}/v1", only=ONLY, model="inner")).section
    found = findings(section).get("D268")
    assert (None if found is None else found.verdict) == verdict
    assert WIRE not in {one.path for one in section.suggestions}


@pytest.mark.parametrize("entry", [{"headers": {"x": "y"}}, {"api_key_env": "DOCTOR_TEXT_KEY"}])
async def test_a_server_with_a_credential_is_not_asked(entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTOR_TEXT_KEY", "k")
    async with faulty_backend(llama(chat_calls=False, text_calls=True)) as backend:
        section = (await examined("chat", f"{backend.base_url}/v1", only=ONLY, model="inner", entry=entry)).section
    assert "D268" not in findings(section)
