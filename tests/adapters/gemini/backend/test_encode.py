"""What other dialects ask for as fields and contents of the API, and what of a request of the same API changes."""

import json
from typing import Any

import msgspec
import pytest

from adapters.gemini.backend.adapter import GeminiAdapter, GeminiOptions
from adapters.gemini.client.dialect import GeminiDialect
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
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.core.provider_state import with_provider_state
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
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
        ({"params": {"user": "me"}}, None),
    ],
)
def test_a_canonical_field_has_its_name_in_the_config(fields: dict[str, Any], config: Json) -> None:
    assert body(**fields).get("generationConfig") == config


def thought(params: dict[str, Any], model: str, **options: Any) -> tuple[Any, list[str]]:
    """The `thinkingConfig` without what shows the thoughts, and the rules of the notices."""
    sent = request(Conversation((USER,), model=model, params=params), **options)
    config = json.loads(sent.body).get("generationConfig", {}).get("thinkingConfig")
    return config, [notice.rule for notice in sent.notices]


LEVELS = {"low": "LOW", "medium": "MEDIUM", "high": "HIGH"}
BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}


@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max"])
@pytest.mark.parametrize(
    ("model", "none", "minimal"),
    [
        ("gemini-3-flash-preview", "MINIMAL", "MINIMAL"),
        ("models/gemini-3.5-flash", "MINIMAL", "MINIMAL"),
        ("gemini-3.1-pro-preview", "LOW", "LOW"),
        ("gemini-3.8-flash", "LOW", "LOW"),
        ("m", "LOW", "LOW"),
    ],
)
def test_each_effort_is_a_level_that_the_model_takes_or_is_told(
    effort: str, model: str, none: str, minimal: str
) -> None:
    level = {"none": none, "minimal": minimal, "xhigh": "HIGH", "max": "HIGH"}.get(effort) or LEVELS[effort]
    config, rules = thought({"reasoning_effort": effort}, model)
    assert config == {"thinkingLevel": level, "includeThoughts": effort != "none"}
    assert rules == ([] if level == effort.upper() else ["EFFORT_CHANGED"])


@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max"])
@pytest.mark.parametrize(("model", "least"), [("gemini-2.5-flash", 0), ("google/gemini-2.5-pro", 128)])
def test_each_effort_is_a_budget_that_the_model_takes_or_is_told(effort: str, model: str, least: int) -> None:
    budget = {"none": least, **BUDGETS}.get(effort, 32768 if least else 24576)
    config, rules = thought({"reasoning_effort": effort}, model)
    assert config == {"thinkingBudget": budget, "includeThoughts": effort != "none"}
    told = effort in ("minimal", "xhigh", "max") or (effort == "none" and least)
    assert rules == (["EFFORT_CHANGED"] if told else [])


def test_the_base_model_decides_where_a_name_hides_it() -> None:
    asked = Conversation((USER,), model="mine", params={"reasoning_effort": "max"})
    sent = GeminiAdapter(GeminiOptions(), 1 << 20).encode(asked, Policy(base_model="gemini-2.5-pro"))
    assert json.loads(sent.body)["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 32768
    assert sent.path.startswith("/models/mine:")


def test_a_setting_decides_where_the_name_of_the_model_does_not() -> None:
    config, _ = thought({"reasoning_effort": "high"}, "m", thinking="budget")
    assert config == {"thinkingBudget": 24576, "includeThoughts": True}
    config, _ = thought({"reasoning_effort": "high"}, "gemini-2.5-flash", thinking="level")
    assert config == {"thinkingLevel": "HIGH", "includeThoughts": True}


@pytest.mark.parametrize("effort", ["ultra", 5, {"level": "high"}])
def test_an_unknown_effort_is_not_sent_and_told(effort: Json) -> None:
    assert thought({"reasoning_effort": effort}, "m") == (None, ["EFFORT_NOT_SENT"])


@pytest.mark.parametrize(
    ("thinking", "effort", "config", "rules"),
    [
        ("disabled", None, {"thinkingLevel": "LOW", "includeThoughts": False}, ["EFFORT_CHANGED"]),
        ("disabled", "high", {"thinkingLevel": "LOW", "includeThoughts": False}, ["EFFORT_CHANGED"]),
        ("adaptive", None, {"includeThoughts": True}, []),
        ("adaptive", "high", {"thinkingLevel": "HIGH", "includeThoughts": True}, []),
    ],
)
def test_thinking_of_a_client_is_followed(thinking: str, effort: str | None, config: Json, rules: list[str]) -> None:
    params: dict[str, Any] = {"thinking": {"type": thinking}, "reasoning_effort": effort}
    assert thought(params, "m") == (config, rules)


@pytest.mark.parametrize("thinking", [True, "on", {"budget_tokens": 5}])
def test_thinking_of_no_known_form_is_told(thinking: Json) -> None:
    assert thought({"thinking": thinking}, "m") == (None, ["FIELD_NOT_SENT"])


def test_a_budget_beside_the_type_of_thinking_is_told() -> None:
    params: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 5, "display": "omitted"}}
    assert thought(params, "m") == ({"includeThoughts": True}, ["FIELD_NOT_SENT"])


@pytest.mark.parametrize("model", ["gemini-1.5-pro", "gemini-2.0-flash", "gemma-3-27b-it"])
def test_a_model_that_cannot_think_is_asked_for_no_thoughts(model: str) -> None:
    assert thought({"thinking": {"type": "adaptive"}}, model) == (None, ["EFFORT_NOT_SENT"])
    assert thought({"reasoning_effort": "low"}, model) == (None, ["EFFORT_NOT_SENT"])
    assert thought({"thinking": {"type": "disabled"}}, model) == (None, [])
    assert thought({"reasoning_effort": "none"}, model) == (None, [])


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


def test_empty_text_and_turns_without_content_are_not_sent_and_told() -> None:
    turns = (
        Turn("system", (Text(""),), index=0),
        Turn("user", (Text(""), Text("Hello")), index=1),
        Turn("assistant", (Reasoning("Hm.", extra=with_provider_state("anthropic", {"signature": "s"})),), index=2),
        Turn("assistant", (Text(""), Text("", STATE)), index=3),
        Turn("user", (Text(""),), index=4),
        Turn("user", (Text(" "),), index=5),
    )
    sent = request(Conversation(turns, model="m"))
    assert json.loads(sent.body) == {
        "contents": [
            {"role": "user", "parts": [{"text": "Hello"}]},
            {"role": "model", "parts": [{"text": "", "thoughtSignature": "c2ln"}]},
            {"role": "user", "parts": [{"text": " "}]},
        ]
    }
    assert [(notice.rule, notice.index) for notice in sent.notices] == [
        ("REASONING_NOT_SENT", 2),
        ("EMPTY_TURN_NOT_SENT", 2),
        ("EMPTY_TURN_NOT_SENT", 4),
    ]


@pytest.mark.parametrize("turn", [Turn("system", (Text("Say hi."),)), Turn("user", (Text(""),), index=0)])
def test_a_request_without_a_content_is_refused(turn: Turn) -> None:
    with pytest.raises(InvalidRequest) as refused:
        request(Conversation((turn,), model="m"))
    assert refused.value.param == "messages"


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
