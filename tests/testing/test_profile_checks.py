"""Each predicate detects a violation of its field in an otherwise valid request."""

from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.providers.profile import Alphabet, Profile
from gateway.providers.request_rules import ModelRules, Range, RequestRules, StopRules, ThinkingRules
from gateway.providers.tool_rules import ToolRules
from gateway.testing.profile_checks import DEMANDS, Sent, broken_demands

USER: Final[Json] = {"role": "user", "content": "hello"}
RESULT: Final[Json] = {"role": "tool", "tool_call_id": "a", "content": "found"}


def call(**changes: Json) -> dict[str, Json]:
    return {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, **changes}


def calling(**changes: Json) -> dict[str, Json]:
    return {"role": "assistant", "tool_calls": [call()], **changes}


ROUND: Final[list[Json]] = [USER, calling(), RESULT]
TEXTS: Final[Json] = [{"type": "text", "text": "x"}]
ODD: Final = Profile(tool_names=Alphabet(characters="a-z0-9_"))

BROKEN: Final[list[tuple[str, Profile, list[Json]]]] = [
    ("call_id", Profile(call_id=Alphabet(shortest=9)), ROUND),
    ("call_id", Profile(call_id=Alphabet(first="b-z")), ROUND),
    ("reused_ids", Profile(), [*ROUND, *ROUND[1:]]),
    ("reused_ids", Profile(reused_ids="keep"), [USER, calling(tool_calls=[call(id="a_2")])]),
    ("tool_names", ODD, [USER, calling(tool_calls=[call(function={"name": "A", "arguments": "{}"})])]),
    ("tool_names", ODD, [USER, calling(tool_calls=[{"id": "a", "type": "custom", "custom": {"name": "A"}}])]),
    ("tool_names", ODD, [{"role": "assistant", "function_call": {"name": "A", "arguments": "{}"}}]),
    ("tool_names", ODD, [{"role": "function", "name": "A", "content": "x"}]),
    ("arguments", Profile(arguments="object"), ROUND),
    ("arguments", Profile(), [USER, calling(tool_calls=[call(function={"name": "f", "arguments": {}})])]),
    ("content", Profile(content="string"), [{"role": "user", "content": TEXTS}]),
    ("tool_content", Profile(tool_content="string"), [{"role": "tool", "tool_call_id": "a", "content": TEXTS}]),
    ("tool_name", Profile(tool_name="drop"), [{"role": "tool", "tool_call_id": "a", "name": "f", "content": "x"}]),
    ("tool_name", Profile(tool_name="derive"), ROUND),
    (
        "tool_name_field",
        Profile(tool_name="derive", tool_name_field="tool_name"),
        [USER, calling(), {"role": "tool", "tool_call_id": "a", "tool_name": "f", "name": "f", "content": "x"}],
    ),
    ("tool_turns", Profile(tool_turns="text"), [RESULT]),
    ("tool_turns", Profile(tool_turns="text"), [calling()]),
    ("reasoning", Profile(reasoning="drop"), [{"role": "assistant", "content": "x", "reasoning": None}]),
    (
        "reasoning_field",
        Profile(reasoning_field="reasoning"),
        [{"role": "assistant", "content": "x", "reasoning_content": "y"}],
    ),
    ("reasoning_field", Profile(reasoning_field="reasoning"), [{"role": "assistant", "content": "x", "reasoning": 7}]),
    ("reasoning_missing", Profile(reasoning="echo_all_tool_turns", reasoning_missing=""), [*ROUND, USER]),
    ("reasoning_missing", Profile(reasoning="echo_in_tool_loop", reasoning_missing=""), ROUND),
    ("developer", Profile(developer="system"), [{"role": "developer", "content": "x"}]),
    ("system", Profile(system="first"), [USER, {"role": "system", "content": "x"}]),
    ("first_turn", Profile(first_turn="user"), [{"role": "system", "content": "x"}, calling()]),
    ("last_turn", Profile(last_turn="user"), [USER, {"role": "assistant", "content": "x"}]),
    ("alternation", Profile(alternation="strict"), [USER, USER]),
    ("user_after_tool", Profile(user_after_tool="bridge"), [*ROUND, {"role": "system", "content": "x"}, USER]),
    ("choice_fields", Profile(choice_fields="drop"), [{"role": "assistant", "content": "x", "logprobs": None}]),
    ("choice_fields", Profile(choice_fields="drop"), [calling(tool_calls=[call(index=0)])]),
    ("empty_beside_calls", Profile(empty_beside_calls="empty"), ROUND),
    ("empty_beside_calls", Profile(empty_beside_calls="null"), [calling(content="")]),
    ("empty_text", Profile(empty_text="-"), [{"role": "user", "content": " "}]),
    ("empty_text", Profile(empty_text="-"), [{"role": "user", "content": [{"type": "text", "text": ""}]}]),
    (
        "result_media",
        Profile(result_media="user"),
        [USER, calling(), {"role": "tool", "tool_call_id": "k", "content": [{"type": "image_url", "image_url": {}}]}],
    ),
    ("missing_signature", Profile(missing_signature="-"), ROUND),
]


@pytest.mark.parametrize(("field", "profile", "messages"), BROKEN)
def test_a_broken_demand_is_seen(field: str, profile: Profile, messages: list[Json]) -> None:
    asked: list[Json] = list(ROUND)
    broken = broken_demands(Sent({"messages": asked}, {"messages": messages}), profile)
    assert {said.partition(":")[0] for said in broken} == {field}


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [{"type": "function", "function": {"name": "A"}}]},
        {"tools": [{"type": "custom", "custom": {"name": "A"}}]},
        {"functions": [{"name": "A"}]},
        {"function_call": {"name": "A"}},
        {"tool_choice": {"type": "function", "function": {"name": "A"}}},
        {
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "A"}}]},
            }
        },
    ],
)
def test_a_name_is_seen_wherever_a_request_holds_one(fields: dict[str, Json]) -> None:
    assert broken_demands(Sent({}, {"messages": [USER], **fields}), ODD) == [
        "tool_names: 'A' is not a name that the provider accepts"
    ]


@pytest.mark.parametrize("field", ["tools", "functions"])
def test_too_many_tools_are_seen(field: str) -> None:
    listed: list[Json] = [{"name": "f"}, {"name": "f"}]
    assert broken_demands(Sent({}, {"messages": [USER], field: listed}), Profile(max_tools=1)) == [
        f"max_tools: {field} holds too many"
    ]


@pytest.mark.parametrize(
    ("rules", "functions"),
    [
        (ToolRules(parameters="required"), [{"name": "f"}]),
        (ToolRules(root="object"), [{"name": "f", "parameters": {"anyOf": []}}]),
        (ToolRules(root="object"), [{"name": "f", "parameters": {"type": "object", "oneOf": []}}]),
        (ToolRules(nested="complete"), [{"name": "f", "parameters": {"properties": {"a": {"type": "array"}}}}]),
        (ToolRules(nested="complete"), [{"name": "f", "parameters": {"type": "object"}}]),
        (ToolRules(names="unique"), [{"name": "f"}, {"name": "f"}]),
        (ToolRules(most_strict=0), [{"name": "f", "strict": True}]),
    ],
)
def test_a_function_against_the_rules_is_seen(rules: ToolRules, functions: list[Json]) -> None:
    listed: list[Json] = [{"type": "function", "function": function} for function in functions]
    (said,) = broken_demands(Sent({}, {"messages": [USER], "tools": listed}), Profile(tool_rules=rules))
    assert said.startswith("tool_rules: ")
    assert broken_demands(Sent({}, {"messages": [USER], "functions": functions}), Profile(tool_rules=rules)) == [said]


@pytest.mark.parametrize(
    ("rules", "fields"),
    [
        (RequestRules(limit="max_tokens"), {"max_completion_tokens": 5}),
        (RequestRules(renamed={"seed": "random_seed"}), {"seed": 5}),
        (RequestRules(refused=("store",)), {"store": False}),
        (RequestRules(beside={"metadata": "store"}), {"metadata": {}, "store": False}),
        (RequestRules(values={"service_tier": ("auto",)}), {"service_tier": "flex"}),
        (RequestRules(no_tools="absent"), {"tools": []}),
        (RequestRules(no_tools="absent"), {"tool_choice": "auto"}),
        (RequestRules(fixed={"temperature": 1}), {"temperature": 0.5}),
        (RequestRules(ranges={"temperature": Range(0, 1)}), {"temperature": 1.5}),
        (RequestRules(ranges={"max_tokens": Range(1)}), {"max_completion_tokens": 0}),
        (RequestRules(exclusive=(("temperature", "top_p"),)), {"temperature": 1, "top_p": 1}),
        (RequestRules(stops=StopRules(1)), {"stop": ["a", "b"]}),
        (RequestRules(stops=StopRules(blank=False)), {"stop": " "}),
        (RequestRules(stops=StopRules(longest=1)), {"stop": ["\u00e4"]}),
        (RequestRules(choices=("auto",)), {"tool_choice": "required"}),
        (RequestRules(choices=("auto", "required")), {"tool_choice": {"type": "function"}}),
        (RequestRules(choices_while_thinking=("auto",), thinking=ThinkingRules()), {"tool_choice": "required"}),
        (RequestRules(thinking=ThinkingRules(efforts=("low",))), {"reasoning_effort": "high"}),
        (RequestRules(thinking=ThinkingRules(streamed=True, off={"think": False})), {"think": True}),
        (RequestRules(models=(ModelRules("m", refused=("top_p",)),)), {"model": "v/m", "top_p": 1}),
        (RequestRules(models=(ModelRules("m", refused_while_reasoning=("top_p",)),)), {"model": "m", "top_p": 1}),
        (RequestRules(models=(ModelRules("m", fixed_while_reasoning={"top_p": 1}),)), {"model": "m", "top_p": 0.5}),
        (
            RequestRules(models=(ModelRules("m", effort_beside_tools="none"),)),
            {"model": "m", "tools": [{"type": "function", "function": {"name": "f"}}]},
        ),
    ],
)
def test_a_field_against_the_rules_is_seen(rules: RequestRules, fields: dict[str, Json]) -> None:
    (said,) = broken_demands(Sent({}, {"messages": [USER], **fields}), Profile(request_rules=rules))
    assert said.startswith("request_rules: ")


def test_every_demand_has_a_request_that_breaks_it() -> None:
    assert {field for field, _, _ in BROKEN} | {"max_tools", "tool_rules", "request_rules"} == DEMANDS.keys()
