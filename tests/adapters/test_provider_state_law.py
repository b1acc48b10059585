"""The opaque state of a provider is sent to that provider alone, whichever client returns it and in which block."""

import json
from collections.abc import Mapping
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapter import Adapter
from gateway.core.conversation import (
    EMPTY,
    Conversation,
    Json,
    JsonObject,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.registry import ADAPTERS, DIALECTS, load_adapter, load_dialect
from gateway.settings import BackendSettings
from tests.adapters.proto.backend.mappings import REQUIRED_OPTIONS

CANARIES: Final[Mapping[str, bytes]] = {
    provider: f"state-of-{provider}".encode() for provider in ("anthropic", "openai", "google")
}
# Each field with state has its provider's canary for its value.
STATES: Final[tuple[tuple[str, JsonObject], ...]] = (
    ("anthropic", {"signature": "state-of-anthropic"}),
    ("anthropic", {"data": "state-of-anthropic"}),
    ("openai", {"id": "rs_1", "encrypted_content": "state-of-openai"}),
    ("google", {"thought_signature": "state-of-google"}),
)
# The providers whose state the wire of an adapter carries.
CARRIED: Final[Mapping[str, frozenset[str]]] = {
    "anthropic_messages": frozenset({"anthropic"}),
    "gemini": frozenset({"google"}),
    "openai_chat": frozenset({"google"}),
    "openai_responses": frozenset({"openai"}),
    "proto": frozenset(),
    "text": frozenset(),
    "warp": frozenset(),
}
LOADED: Final[Mapping[str, Adapter]] = {
    name: load_adapter(
        name, BackendSettings(adapter=name, base_url="http://host", options=REQUIRED_OPTIONS.get(name, {})), 1 << 20
    )
    for name in ADAPTERS
}
# Without the fields of a chat message, which a chat backend receives as the client wrote them.
PAIRS: Final = [
    (name, dialect) for name in ADAPTERS for dialect in DIALECTS if (name, dialect) != ("openai_chat", "openai_chat")
]


def foreign(name: str, conversation: Conversation) -> set[str]:
    """The providers of which the backend of this adapter receives state that is not its own."""
    body = Exchange(LOADED[name], conversation, Policy()).request.body
    return {provider for provider, canary in CANARIES.items() if canary in body} - CARRIED[name]


COUNTS: Final = st.integers(0, 2)


@st.composite
def extras(draw: st.DrawFn) -> JsonObject:
    """The state of any providers, below their names."""
    drawn = draw(st.lists(st.sampled_from(STATES), max_size=3))
    return {"extra_content": {provider: dict(state) for provider, state in drawn}} if drawn else EMPTY


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Questions, thoughts, calls and results; a turn, its reasoning and its calls each have state of any providers."""
    turns = [Turn("user", (Text("go"),), index=0)]
    for number in range(draw(st.integers(1, 3))):
        thoughts = [Reasoning(draw(st.sampled_from(["", "hm"])), extra=draw(extras())) for _ in range(draw(COUNTS))]
        calls = [ToolCall(f"k{number}{call}", "f", "{}", draw(extras())) for call in range(draw(COUNTS))]
        said = [Text("so", draw(extras()))]
        turns.append(Turn("assistant", (*thoughts, *said, *calls), index=len(turns), extra=draw(extras())))
        for call in calls:
            turns.append(Turn("tool", (ToolResult(call.id, (Text("7"),)),), index=len(turns)))
        turns.append(Turn("user", (Text("and?"),), index=len(turns)))
    return Conversation(tuple(turns), (ToolSpec("f"),))


def test_the_law_knows_every_adapter() -> None:
    assert CARRIED.keys() == ADAPTERS.keys()


@given(conversations())
def test_no_provider_receives_the_state_of_another(drawn: Conversation) -> None:
    for name, dialect in PAIRS:
        conversation = msgspec.structs.replace(drawn, dialect=dialect)
        assert foreign(name, conversation) == set(), f"the backend {name}, from a client of {dialect}"


@pytest.mark.parametrize(
    ("name", "provider", "state"),
    [(name, *state) for name, carried in CARRIED.items() for state in STATES if state[0] in carried],
)
def test_a_provider_receives_its_own_state(name: str, provider: str, state: JsonObject) -> None:
    extra: JsonObject = {"extra_content": {provider: dict(state)}}
    blocks = (Reasoning("hm", extra=extra), ToolCall("k", "f", "{}", extra if provider == "google" else EMPTY))
    result = Turn("tool", (ToolResult("k", (Text("7"),)),))
    turns = (Turn("user", (Text("go"),)), Turn("assistant", blocks), result)
    conversation = Conversation(turns, (ToolSpec("f"),), dialect="ollama")
    assert CANARIES[provider] in Exchange(LOADED[name], conversation, Policy()).request.body


ANYONES: Final[Json] = {provider: dict(state) for provider, state in STATES}
FUNCTION: Final[dict[str, Json]] = {"name": "f", "arguments": "{}"}
# A request of each dialect whose history has state, as its clients send it back.
REQUESTS: Final[Mapping[str, tuple[str, JsonObject]]] = {
    "anthropic_messages": (
        "/v1/messages",
        {
            "model": "m",
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "go"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "state-of-anthropic"},
                        {"type": "redacted_thinking", "data": "state-of-anthropic"},
                        {"type": "tool_use", "id": "k", "name": "f", "input": {}},
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "k", "content": "7"}]},
            ],
        },
    ),
    "openai_responses": (
        "/v1/responses",
        {
            "model": "m",
            "input": [
                {"role": "user", "content": "go"},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "state-of-openai"},
                {"type": "function_call", "call_id": "k", **FUNCTION},
                {"type": "function_call_output", "call_id": "k", "output": "7"},
            ],
        },
    ),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "go"}]},
                {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True, "thoughtSignature": "state-of-google"},
                        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "state-of-google"},
                    ],
                },
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"x": 7}}}]},
            ]
        },
    ),
    "openai_chat": (
        "/v1/chat/completions",
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "go"},
                {
                    "role": "assistant",
                    "reasoning_content": "hm",
                    "extra_content": ANYONES,
                    "tool_calls": [{"id": "k", "type": "function", "function": FUNCTION, "extra_content": ANYONES}],
                },
                {"role": "tool", "tool_call_id": "k", "content": "7"},
            ],
        },
    ),
}


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.parametrize("dialect", REQUESTS)
def test_the_state_that_a_client_returns_reaches_its_provider_alone(dialect: str, name: str) -> None:
    path, body = REQUESTS[dialect]
    written = json.dumps(body).encode()
    asked = load_dialect(dialect).decode(read_document(written), RequestHead(path)).conversation
    if dialect == LOADED[name].capabilities.passthrough:
        expected = {provider for provider, canary in CANARIES.items() if canary in written} - CARRIED[name]
    else:
        expected = set()
    assert foreign(name, asked) == expected
