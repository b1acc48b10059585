"""What other dialects ask for as fields and contents of the API, and what of a request of the same API changes."""

import json
from typing import Any

import msgspec
import pytest

from adapters.gemini.adapter import GeminiAdapter, GeminiOptions
from gateway.adapter import BackendRequest
from gateway.core.conversation import (
    Conversation,
    Image,
    Json,
    NamedTool,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.policy import Policy
from gateway.core.provider_state import with_provider_state
from gateway.dialects.base import RequestHead
from gateway.dialects.document import Document
from gateway.dialects.gemini.dialect import GeminiDialect
from gateway.testing.adapter_case import MAX_EVENT

USER = Turn("user", (Text("Hello"),), index=0)
STATE = with_provider_state("google", {"thought_signature": "c2ln"})


def request(conversation: Conversation, **options: Any) -> BackendRequest:
    return GeminiAdapter(GeminiOptions(**options), MAX_EVENT).encode(conversation, Policy())


def body(*turns: Turn, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(request(Conversation(turns or (USER,), model="m", **fields)).body)
    return made


@pytest.mark.parametrize(
    ("model", "stream", "path"),
    [
        ("m", False, "/models/m:generateContent"),
        ("models/m", True, "/models/m:streamGenerateContent?alt=sse"),
        ("a b?/c:d", False, "/models/a%20b%3F/c:d:generateContent"),
    ],
)
def test_the_path_names_the_model_and_the_form(model: str, stream: bool, path: str) -> None:
    assert request(Conversation((USER,), model=model, stream=stream)).path == path


@pytest.mark.parametrize(
    ("fields", "config"),
    [
        ({"params": {"temperature": 0.5, "top_p": 0.9, "top_k": 4}}, {"temperature": 0.5, "topP": 0.9, "topK": 4}),
        ({"params": {"seed": 1, "presence_penalty": 1}}, {"seed": 1, "presencePenalty": 1}),
        ({"sampling": Sampling(max_tokens=5, stop=("a",))}, {"maxOutputTokens": 5, "stopSequences": ["a"]}),
        ({"params": {"response_format": {"type": "json_object"}}}, {"responseMimeType": "application/json"}),
        (
            {"params": {"reasoning_effort": "minimal"}},
            {"thinkingConfig": {"thinkingLevel": "MINIMAL", "includeThoughts": True}},
        ),
        (
            {"params": {"reasoning_effort": "none"}},
            {"thinkingConfig": {"thinkingBudget": 0, "includeThoughts": False}},
        ),
        ({"params": {"user": "me"}}, None),
    ],
)
def test_a_canonical_field_has_its_name_in_the_config(fields: dict[str, Any], config: Json) -> None:
    assert body(**fields).get("generationConfig") == config


def test_an_effort_may_be_sent_as_a_budget() -> None:
    asked = Conversation((USER,), model="m", params={"reasoning_effort": "high"})
    config = json.loads(request(asked, thinking="budget").body)["generationConfig"]
    assert config == {"thinkingConfig": {"thinkingBudget": 24576, "includeThoughts": True}}


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", None),
        ("none", {"functionCallingConfig": {"mode": "NONE"}}),
        ("required", {"functionCallingConfig": {"mode": "ANY"}}),
        (NamedTool("f"), {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}),
    ],
)
def test_functions_and_their_choice(choice: Any, config: Json) -> None:
    made = body(tools=(ToolSpec("f", "One.", {"type": "object"}), ToolSpec("g")), tool_choice=choice)
    declared = [{"name": "f", "description": "One.", "parametersJsonSchema": {"type": "object"}}, {"name": "g"}]
    assert made["tools"] == [{"functionDeclarations": declared}]
    assert made.get("toolConfig") == config


def test_results_of_one_batch_stand_in_one_content_with_their_names() -> None:
    calls = (ToolCall("a", "f", '{"n":1}', STATE), ToolCall("b", "g", ""))
    failed = ToolResult("b", (Text("no"),), is_error=True)
    shown = ToolResult("a", (Text("yes"), Image("data:image/png;base64,eA==")))
    contents = body(USER, Turn("assistant", calls), Turn("tool", (shown,)), Turn("tool", (failed,)), USER)["contents"]
    image = {"inlineData": {"mimeType": "image/png", "data": "eA=="}}
    first = {"id": "a", "name": "f", "response": {"output": "yes"}, "parts": [image]}
    second = {"id": "b", "name": "g", "response": {"error": "no"}}
    asked = {"functionCall": {"id": "a", "name": "f", "args": {"n": 1}}, "thoughtSignature": "c2ln"}
    assert contents[1] == {"role": "model", "parts": [asked, {"functionCall": {"id": "b", "name": "g", "args": {}}}]}
    assert contents[2] == {"role": "user", "parts": [{"functionResponse": first}, {"functionResponse": second}]}
    assert contents[3] == contents[0] == {"role": "user", "parts": [{"text": "Hello"}]}


def test_system_turns_are_the_system_instruction() -> None:
    leading = (Turn("system", (Text("A"),), index=0), Turn("developer", (Text("B"),), index=1))
    made = request(Conversation((*leading, USER), model="m"))
    assert json.loads(made.body)["systemInstruction"] == {"parts": [{"text": "A"}, {"text": "B"}]}
    assert made.notices == ()


def test_only_reasoning_of_the_same_provider_is_sent() -> None:
    foreign = Reasoning("x", extra=with_provider_state("anthropic", {"signature": "s"}))
    asked = Conversation(
        (USER, Turn("assistant", (foreign, Reasoning("y", extra=STATE), Text("z")), index=1)), model="m"
    )
    made = request(asked)
    parts = json.loads(made.body)["contents"][1]["parts"]
    assert parts == [{"text": "y", "thought": True, "thoughtSignature": "c2ln"}, {"text": "z"}]
    assert [notice.rule for notice in made.notices] == ["REASONING_NOT_SENT"]


def test_arguments_that_are_no_object_are_sent_as_text_in_one() -> None:
    made = request(Conversation((USER, Turn("assistant", (ToolCall("a", "f", "no"),), index=1)), model="m"))
    call = json.loads(made.body)["contents"][1]["parts"][0]["functionCall"]
    assert call["args"] == {"arguments": "no"} and [notice.rule for notice in made.notices] == ["ARGUMENTS_AS_TEXT"]


def own(fields: dict[str, Json]) -> Conversation:
    return GeminiDialect().decode(Document(fields), RequestHead("/v1beta/models/m:generateContent")).conversation


FIELDS: dict[str, Json] = {
    "contents": [
        {"role": "user", "parts": [{"text": "Hello", "news": 1}], "more": 2},
        {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
        {"parts": [{"functionResponse": {"name": "f", "response": {"any": 1}}}, {"text": "And?"}]},
    ],
    "systemInstruction": {"parts": [{"text": "Be short.", "news": 1}]},
    "tools": [{"functionDeclarations": [{"name": "f", "news": 1}]}, {"googleSearch": {}}],
    "toolConfig": {"retrievalConfig": {"x": 1}},
    "cachedContent": "cachedContents/1",
    "generationConfig": {"responseLogprobs": True, "logprobs": 2, "responseFormat": [{}]},
    "news": {"of": "tomorrow"},
}


def test_a_request_of_the_same_api_goes_out_as_it_came_in() -> None:
    assert json.loads(request(own(FIELDS)).body) == FIELDS


def test_what_a_pass_decides_replaces_what_the_client_wrote() -> None:
    asked = own(FIELDS)
    system, *rest = asked.turns
    changed = msgspec.structs.replace(asked, turns=(system.changed(Text("Be long.")), *rest), tool_choice="none")
    made = json.loads(request(changed).body)
    assert made["systemInstruction"] == {"parts": [{"text": "Be long."}]}
    assert made["toolConfig"] == {"retrievalConfig": {"x": 1}, "functionCallingConfig": {"mode": "NONE"}}
    assert made["contents"] == FIELDS["contents"]


@pytest.mark.parametrize(
    ("asked", "tier", "told"),
    [
        ("auto", None, []),
        ("default", "standard", []),
        ("flex", "flex", []),
        ("priority", "priority", []),
        ("scale", None, ["the backend has no tier for the value 'scale' of service_tier"]),
    ],
)
def test_the_service_tier(asked: str, tier: str | None, told: list[str]) -> None:
    made = request(Conversation((USER,), model="m", params={"service_tier": asked}))
    assert json.loads(made.body).get("serviceTier") == tier
    assert [notice.detail for notice in made.notices] == told
