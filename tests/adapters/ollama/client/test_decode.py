from typing import Any, Final

import pytest

from adapters.ollama.client.dialect import OllamaDialect
from gateway.core.conversation import (
    Block,
    Conversation,
    Image,
    JsonObject,
    OtherTool,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.dialect import ClientRequest, RequestHead
from gateway.dialects.document import Document, read_document
from gateway.history.prepare import prepare

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE: Final = Image(f"data:image/png;base64,{PNG}", item=0)
CALL: Final = {"function": {"name": "f", "arguments": {"n": 1}}}


def request(path: str, **fields: Any) -> ClientRequest:
    return OllamaDialect().decode(Document({"model": "m", **fields}), RequestHead(path))


def chat(*messages: Any, **fields: Any) -> Conversation:
    return request("/api/chat", messages=list(messages), **fields).conversation


def generate(**fields: Any) -> Conversation:
    return request("/api/generate", **fields).conversation


WELL_FORMED: Final[dict[str, tuple[dict[str, Any], str, tuple[Block, ...]]]] = {
    "text": ({"role": "user", "content": "x"}, "user", (Text("x"),)),
    "a role in capitals": ({"role": "System", "content": "x"}, "system", (Text("x"),)),
    "empty text": ({"role": "user", "content": ""}, "user", (Text(""),)),
    "an image": ({"role": "user", "content": "x", "images": [PNG]}, "user", (Text("x"), IMAGE)),
    "an image alone": ({"role": "user", "content": "", "images": [PNG]}, "user", (IMAGE,)),
    "an image in lines": ({"role": "user", "images": [f"{PNG[:40]}\n{PNG[40:]}"]}, "user", (IMAGE,)),
    "thinking": (
        {"role": "assistant", "content": "x", "thinking": "hm"},
        "assistant",
        (Reasoning("hm"), Text("x")),
    ),
    "no images": ({"role": "user", "content": "x", "images": None}, "user", (Text("x"),)),
    "a call with an id": (
        {"role": "assistant", "content": "", "tool_calls": [{"id": "k", **CALL}]},
        "assistant",
        (ToolCall("k", "f", '{"n":1}', item=0),),
    ),
    "a call without an id": (
        {"role": "assistant", "tool_calls": [CALL]},
        "assistant",
        (ToolCall("call_function_0", "f", '{"n":1}', id_derived=True, item=0),),
    ),
    "arguments as text": (
        {"role": "assistant", "tool_calls": [{"id": "k", "function": {"name": "f", "arguments": "{broken"}}]},
        "assistant",
        (ToolCall("k", "f", "{broken", item=0),),
    ),
    "a call without arguments": (
        {"role": "assistant", "tool_calls": [{"id": "k", "type": "function", "function": {"name": "f", "index": 0}}]},
        "assistant",
        (ToolCall("k", "f", "{}", item=0),),
    ),
    "no calls": ({"role": "assistant", "content": "x", "tool_calls": []}, "assistant", (Text("x"),)),
    "a result with an id": (
        {"role": "tool", "tool_call_id": "k", "content": "r"},
        "tool",
        (ToolResult("k", (Text("r"),)),),
    ),
    "a result with an image": (
        {"role": "tool", "tool_call_id": "k", "content": "r", "images": [PNG]},
        "tool",
        (ToolResult("k", (IMAGE, Text("r"))),),
    ),
}


@pytest.mark.parametrize("name", WELL_FORMED)
def test_a_message_is_a_turn(name: str) -> None:
    message, role, blocks = WELL_FORMED[name]
    conversation = chat(message)
    (turn,) = conversation.turns
    assert (turn.role, turn.blocks, turn.index) == (role, blocks, 0)
    assert not conversation.faults and not turn.extra


BROKEN: Final[dict[str, tuple[Any, str, str]]] = {
    "no object": ("hi", "NOT_OBJECT", "messages[0]"),
    "no role": ({"content": "x"}, "ROLE_TYPE", "messages[0].role"),
    "a role of tomorrow": ({"role": "narrator", "content": "x"}, "ROLE_UNKNOWN", "messages[0].role"),
    "no content": ({"role": "user"}, "CONTENT_MISSING", "messages[0].content"),
    "content in parts": ({"role": "user", "content": [{"type": "text"}]}, "CONTENT_TYPE", "messages[0].content"),
    "calls that are text": (
        {"role": "assistant", "content": "x", "tool_calls": "f"},
        "CALLS_TYPE",
        "messages[0].tool_calls",
    ),
    "a call that is text": (
        {"role": "assistant", "content": "x", "tool_calls": ["f"]},
        "CALL_TYPE",
        "messages[0].tool_calls[0]",
    ),
    "a call without a function": (
        {"role": "assistant", "tool_calls": [{"id": "k"}]},
        "CALL_TYPE",
        "messages[0].tool_calls[0].function",
    ),
    "a function that is a word": (
        {"role": "assistant", "tool_calls": [{"id": "k", "function": "look"}]},
        "CALL_TYPE",
        "messages[0].tool_calls[0].function",
    ),
    "a function without a name": (
        {"role": "assistant", "tool_calls": [{"id": "k", "function": {"arguments": {}}}]},
        "CALL_NAME",
        "messages[0].tool_calls[0].function.name",
    ),
    "arguments in a list": (
        {"role": "assistant", "tool_calls": [{"id": "k", "function": {"name": "f", "arguments": [1]}}]},
        "CALL_ARGS_TYPE",
        "messages[0].tool_calls[0].function.arguments",
    ),
    "a result of nothing": ({"role": "tool", "content": "r"}, "TOOL_ID_MISSING", "messages[0].tool_name"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_message_is_repaired_and_named(name: str) -> None:
    message, rule, param = BROKEN[name]
    assert (rule, param) in {(fault.rule, fault.param) for fault in chat(message).faults}


def test_a_function_that_is_a_word_is_its_name() -> None:
    [turn] = chat({"role": "assistant", "tool_calls": [{"id": "k", "function": "look"}]}).turns
    assert [call.name for call in turn.calls] == ["look"]


def test_a_field_that_only_one_role_may_hold_decides_an_unknown_role() -> None:
    calling, answering = chat(
        {"role": "x", "content": "", "tool_calls": [CALL]}, {"role": "y", "tool_name": "f", "content": "r"}
    ).turns
    assert (calling.role, answering.role) == ("assistant", "tool")


def test_results_without_ids_answer_the_calls_of_their_functions_in_order() -> None:
    calls: list[Any] = [{"function": {"name": name, "arguments": {}}} for name in ("f", "g", "f")]
    results = [{"role": "tool", "tool_name": name, "content": name} for name in ("g", "f", "f")]
    conversation = chat({"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": calls}, *results)
    ids = [call.id for call in conversation.turns[1].calls]
    assert ids == ["call_function_1", "call_function_1_1", "call_function_1_2"]
    assert [turn.results[0].call_id for turn in conversation.turns[2:]] == [ids[1], ids[0], ids[2]]
    assert [turn.name for turn in conversation.turns[2:]] == ["g", "f", "f"]
    rules = {notice.rule for notice in prepare(conversation, Policy(repair="strict")).notices}
    assert rules == {"TOOL_RESULT_EXTRACTED"}, "a sound history is repaired"


def test_a_result_that_names_a_function_answers_a_call_with_an_id() -> None:
    conversation = chat(
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [{"id": "k", **CALL}]},
        {"role": "tool", "tool_name": "f", "content": "r"},
    )
    assert conversation.turns[2].results[0].call_id == "k"
    assert not conversation.faults


def test_a_growing_history_keeps_its_ids() -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [CALL]}]
    longer = [*messages, {"role": "tool", "tool_name": "f", "content": "r"}, {"role": "user", "content": "y"}]
    assert chat(*messages).turns[1] == chat(*longer).turns[1]


def test_unknown_fields_of_a_message_are_kept_to_be_reported() -> None:
    (turn,) = chat({"role": "assistant", "content": "x", "thinking": 3, "mood": "good", "name": None}).turns
    assert turn.extra == {"thinking": 3, "mood": "good"}


def test_tools() -> None:
    schema: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}}
    function = {"name": "f", "description": "One.", "parameters": schema, "strict": True}
    conversation = chat(
        {"role": "user", "content": "x"}, tools=[{"type": "function", "function": function}, {"type": "search"}]
    )
    assert conversation.tools == (ToolSpec("f", "One.", schema, extra={"function": {"strict": True}}),)
    assert conversation.other_tools == (OtherTool("search"),)


def test_options() -> None:
    options = {"temperature": 0.5, "top_p": 0.9, "seed": 7.0, "num_predict": 64.0, "stop": ["x"], "repeat_penalty": 1.1}
    conversation = chat({"role": "user", "content": "x"}, options=options)
    assert conversation.sampling == Sampling(0.5, 0.9, 64, ("x",), 7)
    assert conversation.params == {
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "max_tokens": 64,
        "stop": ["x"],
        "repetition_penalty": 1.1,
    }


@pytest.mark.parametrize("limit", [0, -1, -2])
def test_a_limit_below_one_is_none(limit: int) -> None:
    conversation = chat({"role": "user", "content": "x"}, options={"num_predict": limit})
    assert conversation.sampling.max_tokens is None and "max_tokens" not in conversation.params


SCHEMA: Final = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("form", "canonical"),
    [
        ("json", {"type": "json_object"}),
        (SCHEMA, {"type": "json_schema", "json_schema": {"schema": SCHEMA}}),
        ("", None),
        ({}, None),
        (None, None),
    ],
)
def test_the_format_of_an_answer(form: Any, canonical: Any) -> None:
    assert chat({"role": "user", "content": "x"}, format=form).params.get("response_format") == canonical


@pytest.mark.parametrize(
    ("think", "effort", "reads"),
    [
        (None, None, {"calls", "reasoning"}),
        (True, "medium", {"calls", "reasoning"}),
        ("low", "low", {"calls", "reasoning"}),
        ("max", "max", {"calls", "reasoning"}),
        (False, None, {"calls"}),
    ],
)
def test_thinking(think: Any, effort: str | None, reads: set[str]) -> None:
    conversation = chat({"role": "user", "content": "x"}, think=think)
    assert conversation.params.get("reasoning_effort") == effort
    assert conversation.reads == reads


@pytest.mark.parametrize(
    ("stream", "streams"), [({}, True), ({"stream": None}, True), ({"stream": True}, True), ({"stream": False}, False)]
)
def test_an_answer_streams_unless_the_client_declines(stream: dict[str, Any], streams: bool) -> None:
    for conversation in (chat({"role": "user", "content": "x"}, **stream), generate(prompt="x", **stream)):
        assert (conversation.stream, conversation.include_usage) == (streams, True)


@pytest.mark.parametrize(
    ("path", "fields", "reason"),
    [
        ("/api/chat", {}, "load"),
        ("/api/chat", {"messages": []}, "load"),
        ("/api/chat", {"messages": None, "keep_alive": "5m"}, "load"),
        ("/api/chat", {"messages": [], "keep_alive": 0}, "unload"),
        ("/api/chat", {"messages": [], "keep_alive": "0s"}, "unload"),
        ("/api/generate", {}, "load"),
        ("/api/generate", {"prompt": "", "system": "x"}, "load"),
        ("/api/generate", {"keep_alive": "10m"}, "load"),
        ("/api/generate", {"keep_alive": 0.0}, "unload"),
        ("/api/generate", {"keep_alive": -1}, "load"),
    ],
)
def test_a_request_that_asks_nothing_needs_no_model(path: str, fields: dict[str, Any], reason: str) -> None:
    asked = request(path, **fields)
    assert (asked.generates, asked.echo["done_reason"]) == (False, reason)


def test_a_prompt_is_a_conversation() -> None:
    asked = request("/api/generate", prompt="What?", system="Be brief.", images=[PNG])
    system, user = asked.conversation.turns
    assert (system.role, system.blocks, system.index) == ("system", (Text("Be brief."),), None)
    assert (user.role, user.blocks, user.index) == ("user", (Text("What?"), IMAGE), 0)
    assert asked.generates and asked.echo == {"field": "response"}


def test_a_saved_request_is_told_by_its_fields() -> None:
    assert request("", prompt="x").echo == {"field": "response"}
    assert request("", messages=[{"role": "user", "content": "x"}]).echo == {"field": "message"}


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/api/chat", {"model": " "}, "model"),
        ("/api/chat", {"messages": "x"}, "messages"),
        ("/api/chat", {"messages": [{"role": "user", "images": "x"}]}, "messages[0].images"),
        ("/api/chat", {"messages": [{"role": "user", "images": [PNG, "§"]}]}, "messages[0].images[1]"),
        ("/api/chat", {"messages": [{"role": "user", "images": ["aGVsbG8="]}]}, "messages[0].images[0]"),
        ("/api/chat", {"messages": [{"role": "user", "images": [3]}]}, "messages[0].images[0]"),
        ("/api/chat", {"messages": [{"role": "user", "images": [""]}]}, "messages[0].images[0]"),
        ("/api/chat", {"messages": [{"role": "user", "images": ["https://x/y.png"]}]}, "messages[0].images[0]"),
        ("/api/chat", {"format": "yaml"}, "format"),
        ("/api/chat", {"format": 3}, "format"),
        ("/api/chat", {"think": "hard"}, "think"),
        ("/api/chat", {"options": {"stop": "x"}}, "options.stop"),
        ("/api/chat", {"options": {"seed": 1.5}}, "options.seed"),
        ("/api/chat", {"options": 3}, "options"),
        ("/api/chat", {"tools": [{"type": "function"}]}, "tools[0].function"),
        ("/api/chat", {"tools": [{"function": {}}]}, "tools[0].function.name"),
        ("/api/chat", {"stream": "yes"}, "stream"),
        ("/api/generate", {"images": ["x"]}, "images[0]"),
        ("/api/generate", {"prompt": ["x"]}, "prompt"),
    ],
)
def test_a_wrong_field_is_named_as_the_client_knows_it(path: str, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        request(path, **fields)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_half_a_character_is_a_fault() -> None:
    document = read_document(b'{"model":"m","messages":[{"role":"user","content":"\\ud83d"}]}')
    (fault,) = OllamaDialect().decode(document, RequestHead("/api/chat")).conversation.faults
    assert (fault.rule, fault.param) == ("TEXT_UNICODE", "messages")
    document = read_document(b'{"model":"m","prompt":"\\ud83d"}')
    (fault,) = OllamaDialect().decode(document, RequestHead("/api/generate")).conversation.faults
    assert (fault.rule, fault.param) == ("TEXT_UNICODE", "prompt")
