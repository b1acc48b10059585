"""What a wire cannot take is left out, emulated or refused in the same way for the clients of every API."""

import json
from typing import Any, Final

import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import GatewayError
from gateway.core.events import Finish
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.registry import load_dialect
from gateway.testing.events import fold
from tests.adapters.anthropic_messages.backend import wires as messages
from tests.adapters.gemini.backend import wires as gemini

_MAX: Final = 1 << 20
WIRES: Final[dict[str, Adapter]] = {
    "openai_chat": OpenAIChatAdapter(OpenAIChatOptions(), _MAX),
    "openai_responses": OpenAIResponsesAdapter(OpenAIResponsesOptions(), _MAX),
    "anthropic_messages": AnthropicMessagesAdapter(AnthropicMessagesOptions(), _MAX),
    "gemini": GeminiAdapter(GeminiOptions(), _MAX),
}
_PATHS: Final = {"gemini": "/v1beta/models/m:generateContent"}
_ASKED: Final[Json] = [{"role": "user", "content": "hi"}]
_CONTENTS: Final[Json] = [{"role": "user", "parts": [{"text": "hi"}]}]


def _decoded(client: str, body: Json) -> Conversation:
    document = read_document(json.dumps(body).encode())
    return load_dialect(client).decode(document, RequestHead(_PATHS.get(client, "/"))).conversation


def _pairs(clients: dict[str, Any], *wires: str) -> list[tuple[str, str]]:
    return [(client, wire) for client in clients for wire in wires if client != wire]


# Six sequences and a blank one, of which Gemini takes five and Anthropic no blank one.
_STOPS: Final[Json] = ["S1", "S2", " ", "S3", "S4", "S5", "S6"]
STOPPED: Final[dict[str, dict[str, Json]]] = {
    "openai_chat": {"model": "m", "messages": _ASKED, "stop": _STOPS},
    "anthropic_messages": {"model": "m", "max_tokens": 9, "messages": _ASKED, "stop_sequences": _STOPS},
    "gemini": {"contents": _CONTENTS, "generationConfig": {"stopSequences": _STOPS}},
    "ollama": {"model": "m", "messages": _ASKED, "options": {"stop": _STOPS}},
    "openai_completions": {"model": "m", "prompt": "hi", "stop": _STOPS},
}


@pytest.mark.parametrize(("client", "wire"), _pairs(STOPPED, "anthropic_messages", "gemini"))
def test_stop_sequences_that_a_provider_refuses_are_watched_for(client: str, wire: str) -> None:
    exchange = Exchange(WIRES[wire], _decoded(client, STOPPED[client]), Policy())
    body = json.loads(exchange.request.body)
    if wire == "gemini":
        assert len(body["generationConfig"]["stopSequences"]) == 5
        answer = json.dumps(gemini.chunk(gemini.text("oneS6two"), finish="STOP")).encode()
    else:
        assert all(one.strip() for one in body["stop_sequences"]) and len(body["stop_sequences"]) == 6
        answer = messages.message({"type": "text", "text": "one two"})
    events = [*exchange.feed(answer), *exchange.close()]
    assert fold(events).text == "one"
    assert [event.stop_sequence for event in events if isinstance(event, Finish)] == ["S6" if wire == "gemini" else " "]


_SCHEMA: Final[dict[str, Json]] = {"type": "object", "properties": {}}
ONE_CALL: Final[dict[str, dict[str, Json]]] = {
    "openai_chat": {
        "model": "m",
        "messages": _ASKED,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": _SCHEMA}}],
        "parallel_tool_calls": False,
    },
    "openai_responses": {
        "model": "m",
        "input": "hi",
        "store": False,
        "tools": [{"type": "function", "name": "f", "parameters": _SCHEMA}],
        "parallel_tool_calls": False,
    },
    "anthropic_messages": {
        "model": "m",
        "max_tokens": 9,
        "messages": _ASKED,
        "tools": [{"name": "f", "input_schema": _SCHEMA}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    },
}


@pytest.mark.parametrize("client", ONE_CALL)
def test_one_call_only_is_kept_where_the_wire_has_no_field_for_it(client: str) -> None:
    exchange = Exchange(WIRES["gemini"], _decoded(client, ONE_CALL[client]), Policy())
    calls = [gemini.call("f", {"n": n}) for n in range(2)]
    events = exchange.feed(json.dumps(gemini.chunk(*calls, finish="STOP")).encode())
    events = [*events, *exchange.close()]
    assert len(fold(events).calls) == 1
    assert [event.rule for event in events if isinstance(event, Notice)].count("SECOND_CALL_DROPPED") == 1


# Requests of which nothing is left that a model could answer.
EMPTY: Final[dict[str, list[dict[str, Json]]]] = {
    "openai_chat": [
        {"model": "m", "messages": [{"role": "system", "content": "Be brief."}]},
        {"model": "m", "messages": [{"role": "user", "content": ""}]},
    ],
    "openai_responses": [
        {"model": "m", "store": False, "input": [{"role": "developer", "content": "Be brief."}]},
        {"model": "m", "store": False, "input": [{"role": "user", "content": ""}]},
    ],
    "anthropic_messages": [
        {"model": "m", "max_tokens": 9, "system": "Be brief.", "messages": []},
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": ""}]},
    ],
    "gemini": [
        {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": []},
        {"contents": [{"role": "user", "parts": [{"text": ""}]}]},
    ],
    "ollama": [{"model": "m", "messages": [{"role": "system", "content": "Be brief."}]}],
}


@pytest.mark.parametrize(("client", "wire"), _pairs(EMPTY, "anthropic_messages", "gemini"))
def test_a_request_without_a_message_is_refused_where_the_wire_takes_none(client: str, wire: str) -> None:
    for body in EMPTY[client]:
        with pytest.raises(GatewayError) as caught:
            Exchange(WIRES[wire], _decoded(client, body), Policy())
        assert (caught.value.status, caught.value.kind) == (400, "invalid_request")


# A turn of the model of which nothing but its thoughts is left.
THOUGHTS: Final[dict[str, dict[str, Json]]] = {
    "anthropic_messages": {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
            {"role": "user", "content": "two"},
        ],
    },
    "openai_responses": {
        "model": "m",
        "store": False,
        "input": [
            {"role": "user", "content": "one"},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"role": "user", "content": "two"},
        ],
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "one"}]},
            {"role": "model", "parts": [{"text": "hm", "thought": True}]},
            {"role": "user", "parts": [{"text": "two"}]},
        ]
    },
}


@pytest.mark.parametrize(("client", "wire"), _pairs(THOUGHTS, *WIRES))
def test_a_turn_of_thoughts_alone_never_becomes_one_without_content(client: str, wire: str) -> None:
    body = json.loads(Exchange(WIRES[wire], _decoded(client, THOUGHTS[client]), Policy()).request.body)
    text = json.dumps(body)
    assert '"one"' in text and '"two"' in text
    assert '"parts": []' not in text and '"content": []' not in text and '"text": ""' not in text
    for message in body.get("messages", ()):
        assert message.get("content") or message.get("reasoning_content"), message
