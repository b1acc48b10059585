"""The functions of a request obey the rules of their provider, in the client's own fields as well, and it is told."""

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.anthropic_messages.client.dialect import AnthropicMessagesDialect
from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.gemini.client.dialect import GeminiDialect
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.dialect import OpenAIChatDialect
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.adapter import Adapter
from gateway.capabilities.offered_tools import fit_tools
from gateway.capabilities.tool_schemas import complete_schema, object_schema
from gateway.core.conversation import Conversation, Json, JsonObject, Text, ToolSpec, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.json_schema import fits
from gateway.core.policy import Policy
from gateway.dialect import Dialect, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.providers.registry import PROFILES
from gateway.providers.tool_rules import ToolRules

LIMIT: Final = 1 << 20
WIRES: Final[dict[str, tuple[Adapter, Policy]]] = {
    "openai_chat": (OpenAIChatAdapter(OpenAIChatOptions(), LIMIT), Policy(profile=PROFILES["openai"])),
    "mistral": (OpenAIChatAdapter(OpenAIChatOptions(), LIMIT), Policy(profile=PROFILES["mistral"])),
    "compatible": (OpenAIChatAdapter(OpenAIChatOptions(), LIMIT), Policy()),
    "openai_responses": (OpenAIResponsesAdapter(OpenAIResponsesOptions(), LIMIT), Policy()),
    "anthropic_messages": (AnthropicMessagesAdapter(AnthropicMessagesOptions(), LIMIT), Policy()),
    "gemini": (GeminiAdapter(GeminiOptions(), LIMIT), Policy()),
}
OBJECT: Final[JsonObject] = {"type": "object"}
BARE: Final[JsonObject] = {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "object"}}}
WHOLE: Final[JsonObject] = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {}}, "b": {"type": "object", "properties": {}}},
}
EITHER: Final[JsonObject] = {
    "anyOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
    ]
}
MERGED: Final[JsonObject] = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}


def _chat(*tools: ToolSpec) -> tuple[Dialect, dict[str, Any]]:
    written = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                **({"parameters": tool.parameters} if tool.parameters else {}),
                **({"strict": True} if tool.strict else {}),
            },
        }
        for tool in tools
    ]
    return OpenAIChatDialect(), {"messages": [{"role": "user", "content": "hi"}], "tools": written}


def _responses(*tools: ToolSpec) -> tuple[Dialect, dict[str, Any]]:
    written = [
        {"type": "function", "name": tool.name, "parameters": tool.parameters or None, "strict": bool(tool.strict)}
        for tool in tools
    ]
    return OpenAIResponsesDialect(), {"input": "hi", "tools": written}


def _messages(*tools: ToolSpec) -> tuple[Dialect, dict[str, Any]]:
    written = [
        {"name": tool.name, "input_schema": tool.parameters or OBJECT, **({"strict": True} if tool.strict else {})}
        for tool in tools
    ]
    asked = {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": written}
    return AnthropicMessagesDialect(), asked


def _gemini(*tools: ToolSpec) -> tuple[Dialect, dict[str, Any]]:
    declared = [
        {"name": tool.name, **({"parametersJsonSchema": tool.parameters} if tool.parameters else {})} for tool in tools
    ]
    return GeminiDialect(), {"contents": [{"parts": [{"text": "hi"}]}], "tools": [{"functionDeclarations": declared}]}


CLIENTS: Final = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic_messages": _messages,
    "gemini": _gemini,
}


def exchange(client: str, wire: str, *tools: ToolSpec) -> Exchange:
    dialect, body = CLIENTS[client](*tools)
    head = RequestHead("/v1beta/models/m:generateContent" if client == "gemini" else "/")
    document = body if client == "gemini" else {"model": "m", **body}
    asked = dialect.decode(read_document(json.dumps(document).encode()), head).conversation
    adapter, policy = WIRES[wire]
    return Exchange(adapter, asked, policy)


def sent(made: Exchange) -> list[dict[str, Any]]:
    """The functions in the body, each as the object that has the name."""
    found: list[dict[str, Any]] = []
    for entry in json.loads(made.request.body)["tools"]:
        found += entry.get("functionDeclarations") or [entry.get("function") or entry]
    return found


def schema_of(function: dict[str, Any]) -> Any:
    return function.get("input_schema") or function.get("parametersJsonSchema") or function.get("parameters")


def rules(made: Exchange) -> list[str]:
    return [notice.rule for notice in made.notices if notice.stage == "profile" and notice.rule.startswith("TOOL")]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses"])
def test_openai_gets_properties_of_each_object_and_items_of_each_array(client: str, wire: str) -> None:
    made = exchange(client, wire, ToolSpec("f", parameters=OBJECT), ToolSpec("g", parameters=BARE))
    assert [schema_of(function) for function in sent(made)] == [{"type": "object", "properties": {}}, WHOLE]
    assert rules(made) == ["TOOL_SCHEMA_CHANGED"]
    fits = exchange(client, wire, ToolSpec("g", parameters=WHOLE))
    assert rules(fits) == [] and schema_of(sent(fits)[0]) == WHOLE


@pytest.mark.parametrize("client", ["openai_chat", "openai_responses", "gemini"])
def test_mistral_gets_parameters_of_each_function(client: str) -> None:
    made = exchange(client, "mistral", ToolSpec("f"))
    assert schema_of(sent(made)[0]) == {"type": "object", "properties": {}}
    assert rules(made) == ["TOOL_SCHEMA_CHANGED"]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_no_combinator_stands_at_the_top_where_the_provider_refuses_it(client: str, wire: str) -> None:
    made = exchange(client, wire, ToolSpec("f", parameters=EITHER))
    assert schema_of(sent(made)[0]) == MERGED
    assert rules(made) == ["TOOL_SCHEMA_CHANGED"]


# The Responses dialect reads functions by their names.
@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages", "gemini"])
@pytest.mark.parametrize("wire", ["anthropic_messages", "gemini"])
def test_a_function_that_is_listed_twice_is_sent_once(client: str, wire: str) -> None:
    tool = ToolSpec("f", parameters=MERGED)
    made = exchange(client, wire, tool, ToolSpec("g", parameters=MERGED), tool)
    assert [function["name"] for function in sent(made)] == ["f", "g"]
    assert rules(made) == ["TOOL_REPEATED"]
    with pytest.raises(InvalidRequest, match="Two different tools are named 'f'"):
        exchange(client, wire, tool, ToolSpec("f", parameters=WHOLE))


@pytest.mark.parametrize("client", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_more_strict_functions_than_the_provider_takes_are_sent_without_it(client: str) -> None:
    tools = [ToolSpec(f"f{number}", parameters=MERGED, strict=True) for number in range(22)]
    made = exchange(client, "anthropic_messages", *tools)
    assert [function.get("strict") for function in sent(made)] == [True] * 20 + [None] * 2
    assert rules(made) == ["TOOL_NOT_STRICT"]
    assert rules(exchange(client, "anthropic_messages", *tools[:20])) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_a_provider_without_rules_gets_what_the_client_wrote(client: str) -> None:
    tool = ToolSpec("f", parameters=EITHER)
    made = exchange(client, "compatible", tool, ToolSpec("g", parameters=EITHER))
    assert [schema_of(function) for function in sent(made)] == [EITHER, EITHER]
    assert rules(made) == []


def test_the_tools_of_a_provider_stay_as_they_are_beside_functions() -> None:
    dialect, body = _messages(ToolSpec("f", parameters=EITHER))
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    body = {"model": "m", **body, "tools": [search, *body["tools"]]}
    asked = dialect.decode(read_document(json.dumps(body).encode()), RequestHead("/")).conversation
    made = Exchange(*_pair("anthropic_messages", asked))
    assert sent(made) == [search, {"name": "f", "input_schema": MERGED}]


def _pair(wire: str, asked: Conversation) -> tuple[Adapter, Conversation, Policy]:
    adapter, policy = WIRES[wire]
    return adapter, asked, policy


def test_a_notice_names_a_few_functions_only() -> None:
    tools = tuple(ToolSpec(f"f{number}", parameters=OBJECT) for number in range(9))
    asked = Conversation((Turn("user", (Text("hi"),)),), tools)
    _, (told,) = fit_tools(asked, ToolRules(nested="complete"))
    assert "tool 'f0', 'f1', 'f2' and 6 more" in told.detail


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["object", "null"]}, {"type": "object"}),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        (
            {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]},
            {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]},
        ),
        (
            {"oneOf": [{"$ref": "#/$defs/x"}, {"type": "null"}], "$defs": {"x": {"properties": {"a": {}}}}},
            {"type": "object", "$defs": {"x": {"properties": {"a": {}}}}, "properties": {"a": {}}},
        ),
        (
            {"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "number"}}}]},
            {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "number"}]}}},
        ),
    ],
)
def test_the_root_of_a_schema_becomes_an_object(schema: JsonObject, expected: JsonObject) -> None:
    assert object_schema(schema) == expected
    assert object_schema(expected) is expected


def test_nested_schemas_are_completed_wherever_they_stand_and_values_are_not() -> None:
    bare: Json = {"type": "array"}
    schema: JsonObject = {
        "type": "object",
        "properties": {"items": bare, "x": {"anyOf": [bare, {"type": "null"}], "default": bare, "enum": [bare]}},
        "additionalProperties": bare,
        "$defs": {"d": {"prefixItems": [bare], "type": "array"}},
    }
    whole: Json = {"type": "array", "items": {}}
    assert complete_schema(schema) == {
        "type": "object",
        "properties": {"items": whole, "x": {"anyOf": [whole, {"type": "null"}], "default": bare, "enum": [bare]}},
        "additionalProperties": whole,
        "$defs": {"d": {"prefixItems": [whole], "type": "array"}},
    }


NAMES: Final = st.sampled_from(["a", "b", "c"])
LEAVES: Final = st.sampled_from([{"type": "string"}, {"type": "number"}, {}])


@st.composite
def object_schemas(draw: st.DrawFn) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": draw(st.dictionaries(NAMES, LEAVES, max_size=3))}
    if draw(st.booleans()):
        schema["required"] = sorted(schema["properties"])[:1]
    return schema


@given(
    object_schemas(),
    st.sampled_from(["anyOf", "oneOf", "allOf"]),
    st.lists(object_schemas(), min_size=1, max_size=3),
    st.dictionaries(NAMES, st.sampled_from(["x", 1]), max_size=3),
)
def test_law_the_arguments_of_a_branch_fit_the_schema_that_is_sent(
    base: dict[str, Any], combinator: str, branches: list[dict[str, Any]], value: dict[str, Json]
) -> None:
    schema = {**base, combinator: branches}
    merged = dict(object_schema(schema))
    assert merged["type"] == "object" and combinator not in merged
    assert object_schema(merged) is merged
    taken = branches if combinator == "allOf" else [branch for branch in branches if fits(value, branch)]
    named = any(value.keys() <= {*base["properties"], *branch["properties"]} for branch in taken)
    if fits(value, schema) and (named or combinator == "allOf"):
        assert fits(value, merged)
    completed = complete_schema(merged)
    assert complete_schema(completed) is completed
