import json
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.openai_chat.client.decode import decode
from adapters.openai_chat.client.turns import read_turns
from gateway.core.conversation import (
    Block,
    Conversation,
    File,
    Image,
    Json,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from gateway.dialects.faults import Faults


def decoded(*messages: Json) -> Conversation:
    return decode(json.dumps({"model": "m", "messages": list(messages)}).encode())


def call(**fields: Json) -> dict[str, Json]:
    return {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, **fields}


WELL_FORMED: dict[str, tuple[dict[str, Json], tuple[Block, ...]]] = {
    "text": ({"role": "user", "content": "x"}, (Text("x"),)),
    "empty text": ({"role": "user", "content": ""}, (Text(""),)),
    "parts": (
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "input_text", "text": "y"}]},
        (Text("x"), Text("y", {"type": "input_text"})),
    ),
    "a part with more": (
        {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "e"}}]},
        (Text("x", {"cache_control": {"type": "e"}}),),
    ),
    "an image": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "detail": "low"}, "x": 1}]},
        (Image("u", {"x": 1, "detail": "low"}),),
    ),
    "a file": (
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]},
        (File("file", {"type": "file", "file": {"file_id": "f"}}),),
    ),
    "a part of tomorrow": (
        {"role": "user", "content": [{"type": "smell"}]},
        (File("smell", {"type": "smell"}),),
    ),
    "a refusal": (
        {"role": "assistant", "content": None, "refusal": "No."},
        (Text("No.", {"type": "refusal"}),),
    ),
    "a refusal as a part": (
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        (Text("No.", {"type": "refusal"}),),
    ),
    "a call without content": ({"role": "assistant", "tool_calls": [call()]}, (ToolCall("a", "f", "{}"),)),
    "a call beside null": (
        {"role": "assistant", "content": None, "tool_calls": [call()]},
        (ToolCall("a", "f", "{}"),),
    ),
    "a call beside empty text": (
        {"role": "assistant", "content": "", "tool_calls": [call()]},
        (Text(""), ToolCall("a", "f", "{}")),
    ),
    "a call with more": (
        {"role": "assistant", "content": "x", "tool_calls": [call(extra_content={"g": 1}, index=0)]},
        (Text("x"), ToolCall("a", "f", "{}", {"extra_content": {"g": 1}})),
    ),
    "a function with more": (
        {"role": "assistant", "tool_calls": [call(function={"name": "f", "arguments": "{}", "strict": True})]},
        (ToolCall("a", "f", "{}", {"function": {"strict": True}}),),
    ),
    "a custom call": (
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "c", "input": "i"}}]},
        (ToolCall("a", "c", '{"input":"i"}', {"type": "custom"}),),
    ),
    "a flat custom call": (
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "name": "p", "input": "hi"}]},
        (ToolCall("a", "p", '{"input":"hi"}', {"type": "custom"}),),
    ),
    "broken arguments": (
        {"role": "assistant", "tool_calls": [call(function={"name": "f", "arguments": "{"})]},
        (ToolCall("a", "f", "{"),),
    ),
    "reasoning": (
        {"role": "assistant", "content": "x", "reasoning_content": "", "reasoning": "r"},
        (Reasoning(""), Reasoning("r", "reasoning"), Text("x")),
    ),
    "a result": ({"role": "tool", "tool_call_id": "a", "content": "x"}, (ToolResult("a", (Text("x"),)),)),
    "a result in parts": (
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x"}]},
        (ToolResult("a", (Text("x"),)),),
    ),
    "no calls as null": ({"role": "assistant", "content": "x", "tool_calls": None}, (Text("x"),)),
    "an audio answer": ({"role": "assistant", "content": None, "audio": {"id": "a"}}, ()),
}


@pytest.mark.parametrize("case", WELL_FORMED)
def test_a_well_formed_message_keeps_its_source(case: str) -> None:
    message, blocks = WELL_FORMED[case]
    conversation = decoded(message)
    (turn,) = conversation.turns
    assert (turn.role, turn.blocks, turn.index) == (message["role"], blocks, 0)
    assert turn.source is not None and turn.source.in_dialect("openai_chat") == message
    assert conversation.faults == ()


MENDED: dict[str, tuple[Json, str, str, str, tuple[Block, ...]]] = {
    "an unknown role": ({"role": "bot", "content": "x"}, "ROLE_UNKNOWN", "messages[0].role", "user", (Text("x"),)),
    "an unknown role that calls": (
        {"role": "model", "tool_calls": [call()]},
        "ROLE_UNKNOWN",
        "messages[0].role",
        "assistant",
        (ToolCall("a", "f", "{}"),),
    ),
    "an unknown role that answers": (
        {"role": "result", "tool_call_id": "a", "content": "x"},
        "ROLE_UNKNOWN",
        "messages[0].role",
        "tool",
        (ToolResult("a", (Text("x"),)),),
    ),
    "no content": ({"role": "user"}, "CONTENT_MISSING", "messages[0].content", "user", ()),
    "null from an assistant": (
        {"role": "assistant", "content": None},
        "CONTENT_MISSING",
        "messages[0].content",
        "assistant",
        (),
    ),
    "null from a tool": (
        {"role": "tool", "tool_call_id": "a", "content": None},
        "CONTENT_MISSING",
        "messages[0].content",
        "tool",
        (ToolResult("a", ()),),
    ),
    "an object as content": (
        {"role": "tool", "tool_call_id": "a", "content": {"ok": True}},
        "CONTENT_TYPE",
        "messages[0].content",
        "tool",
        (ToolResult("a", (Text('{"ok":true}'),)),),
    ),
    "one part as content": (
        {"role": "user", "content": {"type": "text", "text": "x"}},
        "CONTENT_TYPE",
        "messages[0].content",
        "user",
        (Text("x"),),
    ),
    "no parts": ({"role": "user", "content": []}, "CONTENT_EMPTY_ARRAY", "messages[0].content", "user", ()),
    "text among parts": (
        {"role": "user", "content": ["x"]},
        "PART_TYPE",
        "messages[0].content[0]",
        "user",
        (Text("x"),),
    ),
    "a part without a type": (
        {"role": "user", "content": [{"text": "x"}]},
        "PART_TYPE",
        "messages[0].content[0]",
        "user",
        (Text("x"),),
    ),
    "a text part without text": (
        {"role": "user", "content": [{"type": "text", "text": None}]},
        "PART_TYPE",
        "messages[0].content[0]",
        "user",
        (Text(""),),
    ),
    "a part whose type is no text": (
        {"role": "user", "content": [{"type": ["text"], "x": 1}]},
        "PART_TYPE",
        "messages[0].content[0]",
        "user",
        (Text('{"type":["text"],"x":1}'),),
    ),
    "an image as text": (
        {"role": "user", "content": [{"type": "image_url", "image_url": "u"}]},
        "PART_TYPE",
        "messages[0].content[0]",
        "user",
        (Image("u"),),
    ),
    "a number among parts": (
        {"role": "user", "content": [7]},
        "PART_TYPE",
        "messages[0].content[0]",
        "user",
        (Text("7"),),
    ),
    "one call as an object": (
        {"role": "assistant", "tool_calls": call()},
        "CALLS_TYPE",
        "messages[0].tool_calls",
        "assistant",
        (ToolCall("a", "f", "{}"),),
    ),
    "calls as text": (
        {"role": "assistant", "content": "x", "tool_calls": "f()"},
        "CALLS_TYPE",
        "messages[0].tool_calls",
        "assistant",
        (Text("x"),),
    ),
    "an empty array of calls": (
        {"role": "assistant", "content": "x", "tool_calls": []},
        "CALLS_EMPTY",
        "messages[0].tool_calls",
        "assistant",
        (Text("x"),),
    ),
    "a call as text": (
        {"role": "assistant", "content": "x", "tool_calls": ["f"]},
        "CALL_TYPE",
        "messages[0].tool_calls[0]",
        "assistant",
        (Text("x"),),
    ),
    "a call without a type": (
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]},
        "CALL_TYPE",
        "messages[0].tool_calls[0].type",
        "assistant",
        (ToolCall("a", "f", "{}"),),
    ),
    "a flat call": (
        {"role": "assistant", "tool_calls": [{"id": "a", "name": "f", "arguments": "{}", "x": 1}]},
        "CALL_TYPE",
        "messages[0].tool_calls[0].type",
        "assistant",
        (ToolCall("a", "f", "{}", {"x": 1}),),
    ),
    "a call without an id": (
        {"role": "assistant", "tool_calls": [call(id=None)]},
        "CALL_ID_MISSING",
        "messages[0].tool_calls[0].id",
        "assistant",
        (ToolCall("", "f", "{}"),),
    ),
    "a call with a number for an id": (
        {"role": "assistant", "tool_calls": [call(id=7)]},
        "CALL_ID_MISSING",
        "messages[0].tool_calls[0].id",
        "assistant",
        (ToolCall("7", "f", "{}"),),
    ),
    "a call without a name": (
        {"role": "assistant", "tool_calls": [call(function={"arguments": "{}"})]},
        "CALL_NAME",
        "messages[0].tool_calls[0].function.name",
        "assistant",
        (ToolCall("a", "unknown", "{}"),),
    ),
    "a call whose function is a word": (
        {"role": "assistant", "tool_calls": [{**call(function="look"), "arguments": '{"n": 1}'}]},
        "CALL_TYPE",
        "messages[0].tool_calls[0].function",
        "assistant",
        (ToolCall("a", "look", '{"n": 1}'),),
    ),
    "a custom call whose tool is a word": (
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": "patch", "input": "hi", "x": 1}]},
        "CALL_TYPE",
        "messages[0].tool_calls[0].custom",
        "assistant",
        (ToolCall("a", "patch", '{"input":"hi"}', {"x": 1, "type": "custom"}),),
    ),
    "a custom call without input": (
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "c"}}]},
        "CALL_ARGS_TYPE",
        "messages[0].tool_calls[0].custom.input",
        "assistant",
        (ToolCall("a", "c", '{"input":""}', {"type": "custom"}),),
    ),
    "a custom call with an object": (
        {
            "role": "assistant",
            "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "c", "input": {"a": 1}}}],
        },
        "CALL_ARGS_TYPE",
        "messages[0].tool_calls[0].custom.input",
        "assistant",
        (ToolCall("a", "c", '{"input":"{\\"a\\":1}"}', {"type": "custom"}),),
    ),
    "a deprecated call as text": (
        {"role": "assistant", "content": "x", "function_call": "auto"},
        "CALL_TYPE",
        "messages[0].function_call",
        "assistant",
        (Text("x"),),
    ),
    "a deprecated call without a name": (
        {"role": "assistant", "content": None, "function_call": {"arguments": "{}"}},
        "CALL_NAME",
        "messages[0].function_call.name",
        "assistant",
        (ToolCall("call_function_0", "unknown", "{}", id_derived=True),),
    ),
    "a deprecated call beside calls": (
        {"role": "assistant", "tool_calls": [call()], "function_call": {"name": "g", "arguments": "{}", "x": 1}},
        "CALL_FORMS_MIXED",
        "messages[0].function_call",
        "assistant",
        (
            ToolCall("a", "f", "{}"),
            ToolCall("call_function_0", "g", "{}", {"function": {"x": 1}}, id_derived=True),
        ),
    ),
    "a call in both forms": (
        {"role": "assistant", "tool_calls": [call()], "function_call": {"name": "f", "arguments": "{}"}},
        "CALL_FORMS_MIXED",
        "messages[0].function_call",
        "assistant",
        (ToolCall("a", "f", "{}"),),
    ),
    "a function message without a name": (
        {"role": "function", "content": "x"},
        "TOOL_ID_MISSING",
        "messages[0].name",
        "tool",
        (ToolResult("", (Text("x"),)),),
    ),
    "arguments as an object": (
        {"role": "assistant", "tool_calls": [call(function={"name": "f", "arguments": {"x": "é"}})]},
        "CALL_ARGS_TYPE",
        "messages[0].tool_calls[0].function.arguments",
        "assistant",
        (ToolCall("a", "f", '{"x":"é"}'),),
    ),
    "arguments as an array": (
        {"role": "assistant", "tool_calls": [call(function={"name": "f", "arguments": [1]})]},
        "CALL_ARGS_TYPE",
        "messages[0].tool_calls[0].function.arguments",
        "assistant",
        (ToolCall("a", "f", "[1]"),),
    ),
    "no arguments": (
        {"role": "assistant", "tool_calls": [call(function={"name": "f"})]},
        "CALL_ARGS_TYPE",
        "messages[0].tool_calls[0].function.arguments",
        "assistant",
        (ToolCall("a", "f", "{}"),),
    ),
    "a result without an id": (
        {"role": "tool", "content": "x"},
        "TOOL_ID_MISSING",
        "messages[0].tool_call_id",
        "tool",
        (ToolResult("", (Text("x"),)),),
    ),
    "a result with a number for an id": (
        {"role": "tool", "tool_call_id": 7, "content": "x"},
        "TOOL_ID_MISSING",
        "messages[0].tool_call_id",
        "tool",
        (ToolResult("", (Text("x"),)),),
    ),
}


@pytest.mark.parametrize("case", MENDED)
def test_a_broken_message_is_mended_and_named(case: str) -> None:
    message, rule, param, role, blocks = MENDED[case]
    conversation = decoded(message)
    assert [(fault.rule, fault.index, fault.param) for fault in conversation.faults] == [(rule, 0, param)]
    assert all(fault.detail and fault.advice for fault in conversation.faults)
    (turn,) = conversation.turns
    assert (turn.role, turn.blocks, turn.index) == (role, blocks, 0)


@pytest.mark.parametrize("message", [None, "hi", 7, True, ["hi"]])
def test_what_is_no_object_becomes_no_turn_and_indices_stay_the_clients(message: Json) -> None:
    conversation = decoded(message, {"role": "user", "content": "x"})
    assert [turn.index for turn in conversation.turns] == [1]
    faults = [(fault.rule, fault.index, fault.param) for fault in conversation.faults]
    assert faults == [("NOT_OBJECT", 0, "messages[0]")]


@pytest.mark.parametrize("role", [{}, {"role": None}, {"role": 7}, {"role": ["user"]}, {"role": {"x": "user"}}])
def test_a_role_that_is_no_text_is_named(role: dict[str, Json]) -> None:
    conversation = decoded({**role, "content": "x"})
    faults = [(fault.rule, fault.index, fault.param) for fault in conversation.faults]
    assert faults == [("ROLE_TYPE", 0, "messages[0].role")]


def test_every_message_keeps_its_source_for_whoever_sends_it_as_it_is() -> None:
    messages: list[Json] = [{"role": "user", "content": "x"}, {"role": "user"}, {"role": "bot", "content": ["y"]}]
    sources = [turn.source for turn in decoded(*messages).turns]
    assert [source.in_dialect("openai_chat") for source in sources if source is not None] == messages


def test_names_and_unknown_fields_are_kept_and_nulls_are_not() -> None:
    message: dict[str, Json] = {"role": "user", "content": "x", "name": "bo", "mood": {"good": True}, "nothing": None}
    source = Source("openai_chat", message)
    assert decoded(message).turns == (Turn("user", (Text("x"),), "bo", 0, {"mood": {"good": True}}, source),)


@pytest.mark.parametrize(
    ("message", "listed", "unread"),
    [
        ({"role": "user", "content": "x"}, False, set()),
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, True, set()),
        ({"role": "tool", "content": [{"type": "text", "text": "x"}], "tool_call_id": "a"}, True, set()),
        ({"role": "function", "content": "x", "name": "f"}, False, set()),
        ({"role": "assistant", "content": [], "logprobs": None}, True, {"logprobs"}),
        ({"role": "assistant", "content": None, "tool_calls": [call(), call(index=0)]}, False, {"content", "index"}),
    ],
)
def test_a_source_says_what_its_turn_does_not(message: Json, listed: bool, unread: set[str]) -> None:
    source = decoded(message).turns[0].source
    assert source is not None
    assert source.listed is listed and source.unread == frozenset(unread)


@pytest.mark.parametrize(("field", "name", "extra"), [("name", "bo", {}), ("mood", None, {"mood": "bo"})])
def test_a_message_of_two_fields_without_a_role_loses_neither(
    field: str, name: str | None, extra: dict[str, Json]
) -> None:
    (turn,) = decoded({"content": "x", field: "bo"}).turns
    assert (turn.role, turn.blocks, turn.name, turn.extra) == ("user", (Text("x"),), name, extra)


def test_known_fields_of_an_odd_type_are_kept_as_unknown_ones() -> None:
    (turn,) = decoded({"role": "assistant", "content": "x", "name": 7, "reasoning": {"r": 1}}).turns
    assert (turn.name, turn.extra) == (None, {"name": 7, "reasoning": {"r": 1}})


def test_the_deprecated_function_roles_are_calls_and_results_with_derived_ids() -> None:
    legacy: Json = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    conversation = decoded(
        legacy,
        {"role": "function", "name": "f", "content": "one"},
        legacy,
        {"role": "function", "name": "f", "content": "two"},
        {"role": "function", "name": "f", "content": "none asked"},
    )
    assert conversation.faults == ()
    assert [turn.role for turn in conversation.turns] == ["assistant", "tool", "assistant", "tool", "tool"]
    assert [call.id for turn in conversation.turns for call in turn.calls] == ["call_function_0", "call_function_2"]
    answered = [result.call_id for turn in conversation.turns for result in turn.results]
    assert answered == ["call_function_0", "call_function_2", "call_function_4"]


def test_arguments_of_the_deprecated_call_are_text_too() -> None:
    conversation = decoded({"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": {"x": 1}}})
    assert [fault.rule for fault in conversation.faults] == ["CALL_ARGS_TYPE"]
    assert conversation.turns[0].calls[0].arguments == '{"x":1}'


@pytest.mark.parametrize("lost", ["id", "type"])
def test_unknown_fields_of_a_call_survive_what_it_lost(lost: str) -> None:
    whole = call(extra_content={"g": 1})
    assert isinstance(whole, dict)
    broken: Json = {key: value for key, value in whole.items() if key != lost}
    (turn,) = decoded({"role": "assistant", "content": "", "tool_calls": [broken]}).turns
    assert turn.calls[0].extra == {"extra_content": {"g": 1}}


@pytest.mark.parametrize(
    ("messages", "places", "rest"),
    [
        (
            [{"role": "user", "content": [1] * 1000}],
            [f"messages[0].content[{n}]" for n in range(101)],
            "900 more content parts are malformed",
        ),
        (
            [{"role": "assistant", "content": "x", "tool_calls": [1] * 1000}],
            [f"messages[0].tool_calls[{n}]" for n in range(101)],
            "900 more tool calls are not objects",
        ),
        (
            [{"role": "user", "content": "x"}, *[1] * 1000],
            [f"messages[{n}]" for n in range(1, 102)],
            "900 more messages are not objects",
        ),
    ],
    ids=["parts", "calls", "messages"],
)
def test_of_many_equal_faults_the_first_are_told_one_by_one(messages: list[Json], places: list[str], rest: str) -> None:
    """A separate report of each fault would take a hundred times the memory of the body."""
    faults = decoded(*messages).faults
    assert [fault.param for fault in faults] == places
    assert rest in faults[-1].detail
    assert not any("more" in fault.detail for fault in faults[:-1])


WORD = st.sampled_from(["a", "f", "", " ", "{}"])
FUNCTION = st.fixed_dictionaries({"name": WORD}, optional={"arguments": WORD | st.none(), "x": WORD})
CALL = st.fixed_dictionaries(
    {"type": st.sampled_from(["function", "custom"])},
    optional={"id": WORD | st.integers(0, 3), "function": FUNCTION | WORD, "custom": FUNCTION, "index": st.just(0)},
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["assistant", "tool", "user", "other"])},
    optional={
        "content": WORD | st.none() | st.just([{"type": "text", "text": "x"}]),
        "tool_calls": st.lists(CALL | WORD, max_size=2) | st.none(),
        "tool_call_id": WORD | st.integers(0, 3),
        "name": WORD,
    },
)


@given(st.lists(MESSAGE, max_size=4))
def test_law_a_message_of_the_usual_form_is_read_as_any_other(messages: list[Json]) -> None:
    faults, other_faults = Faults(), Faults()
    read = read_turns(messages, faults)
    with patch("adapters.openai_chat.client.turns._plain_turn", lambda message, index: None):
        others = read_turns(messages, other_faults)
    assert (read, faults.found) == (others, other_faults.found)
