import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import Conversation, Json, NamedTool, OtherTool, Sampling, ToolChoice, ToolSpec
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy

HELLO: Json = [{"role": "user", "content": "Hello"}]


def request(messages: Json = HELLO, **fields: Json) -> bytes:
    return json.dumps({"model": "m", "messages": messages, **fields}).encode()


def refused(body: bytes) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        decode(body)
    return caught.value


@pytest.mark.parametrize(
    ("body", "code", "param", "words"),
    [
        (b"", "invalid_json", None, "truncated"),
        (b'{"model": "m", oops}', "invalid_json", None, "byte 15"),
        (b'{"model": NaN}', "invalid_json", None, "byte 10"),
        (b'{"model": "\xff"}', "invalid_json", None, "not UTF-8 (byte 11)"),
        (b"[" * 100_000, "invalid_json", None, "nested too deep"),
        (b"[" * 65 + b"]" * 65, "invalid_json", None, "deeper than 64"),
        (b'{"temperature": 1e999}', "invalid_json", None, "out of range"),
        (b"[]", "invalid_value", None, "it is an array"),
        (b'"text"', "invalid_value", None, "it is text"),
        (b"null", "invalid_value", None, "it is null"),
        (b"{}", "missing_required_parameter", "messages", "messages is missing"),
        (b'{"messages": [{}]}', "missing_required_parameter", "model", "model is missing"),
        (b'{"messages": {}}', "invalid_type", "messages", "must be an array"),
        (request(model=None), "invalid_type", "model", "must be text; it is null"),
        (request(model=" "), "invalid_value", "model", "must not be empty"),
        (request([]), "empty_array", "messages", "at least one message"),
        (request(stream="yes"), "invalid_type", "stream", "must be true or false; it is text"),
        (request(stream_options=[]), "invalid_type", "stream_options", "must be an object; it is an array"),
        (request(max_tokens="9"), "invalid_type", "max_tokens", "must be a whole number; it is text"),
        (request(max_tokens=1.5), "invalid_type", "max_tokens", "must be a whole number"),
        (request(temperature=True), "invalid_type", "temperature", "must be a number; it is true or false"),
        (request(temperature=10**400), "invalid_value", "temperature", "temperature: number out of range"),
        (request(stop=[1]), "invalid_type", "stop[0]", "must be text; it is a whole number"),
        (request(stop={}), "invalid_type", "stop", "must be text or an array; it is an object"),
        (request(tools={}), "invalid_type", "tools", "must be an array; it is an object"),
        (request(tools=["f"]), "invalid_type", "tools[0]", "must be an object; it is text"),
        (request(tools=[{"type": "function"}]), "missing_required_parameter", "tools[0].function", "missing"),
        (request(tools=[{"function": {}}]), "missing_required_parameter", "tools[0].function.name", "missing"),
        (
            request(tools=[{"function": {"name": "f", "parameters": []}}]),
            "invalid_type",
            "tools[0].function.parameters",
            "must be an object; it is an array",
        ),
        (request(tool_choice=1), "invalid_type", "tool_choice", "must be text or an object"),
        (request(tool_choice="any"), "invalid_value", "tool_choice", "one of auto, none, required"),
        (request(tool_choice={"type": "odd"}), "invalid_value", "tool_choice.function", "has no function name"),
        (request(parallel_tool_calls=0), "invalid_type", "parallel_tool_calls", "must be true or false"),
        (request(seed=2**63), "invalid_value", "seed", "seed is out of range"),
        (request(seed=[]), "invalid_type", "seed", "must be a whole number; it is an array"),
        (request(functions=[{}]), "missing_required_parameter", "functions[0].name", "missing"),
    ],
)
def test_a_wrong_envelope_is_refused_with_its_place(body: bytes, code: str, param: str | None, words: str) -> None:
    error = refused(body)
    assert (error.status, error.code, error.param) == (400, code, param)
    assert words in error.message
    assert "`" not in error.message


@pytest.mark.parametrize(
    ("fields", "sampling"),
    [
        ({}, Sampling()),
        ({"temperature": 1, "top_p": 0.5, "seed": 3}, Sampling(1.0, 0.5, seed=3)),
        ({"max_tokens": 5}, Sampling(max_tokens=5)),
        ({"max_completion_tokens": 6}, Sampling(max_tokens=6)),
        ({"max_tokens": 5, "max_completion_tokens": 6}, Sampling(max_tokens=6)),
        ({"stop": "END"}, Sampling(stop=("END",))),
        ({"stop": ["a", "b", "c", "d", "e"]}, Sampling(stop=("a", "b", "c", "d", "e"))),
        ({"stop": None, "temperature": None, "max_tokens": None}, Sampling()),
    ],
)
def test_sampling(fields: dict[str, Json], sampling: Sampling) -> None:
    assert decode(request(**fields)).sampling == sampling


@pytest.mark.parametrize(
    ("fields", "stream", "include_usage"),
    [
        ({}, False, False),
        ({"stream": None, "stream_options": None}, False, False),
        ({"stream": True}, True, False),
        ({"stream": True, "stream_options": {}}, True, False),
        ({"stream": True, "stream_options": {"include_usage": True, "odd": 1}}, True, True),
    ],
)
def test_streaming(fields: dict[str, Json], stream: bool, include_usage: bool) -> None:
    conversation = decode(request(**fields))
    assert (conversation.stream, conversation.include_usage) == (stream, include_usage)


FUNCTION: Json = {"name": "f", "description": "Finds.", "parameters": {"type": "object"}, "strict": True}
TOOL: dict[str, Json] = {"type": "function", "function": FUNCTION, "cache_control": {"type": "ephemeral"}}


def test_tools_keep_their_unknown_fields_and_other_types_stay_in_the_request() -> None:
    tools: Json = [TOOL, {"type": "web_search", "deep": True}, {"type": "custom", "custom": {"name": "c"}}]
    conversation = decode(request(tools=tools))
    function, custom = conversation.tools
    assert function == ToolSpec("f", "Finds.", {"type": "object"}, True, {"cache_control": {"type": "ephemeral"}})
    assert (custom.name, custom.extra) == ("c", {"type": "custom", "custom": {}})
    assert conversation.other_tools == (OtherTool("web_search"),)
    assert conversation.params == {"model": "m", "tools": tools}


def test_the_deprecated_functions_are_tools() -> None:
    conversation = decode(request(functions=[FUNCTION], function_call={"name": "f"}))
    assert conversation.tools == (ToolSpec("f", "Finds.", {"type": "object"}, True),)
    assert conversation.tool_choice == NamedTool("f")


@pytest.mark.parametrize(
    ("fields", "choice"),
    [
        ({}, "auto"),
        ({"tool_choice": None}, "auto"),
        ({"tool_choice": "none"}, "none"),
        ({"tool_choice": "required"}, "required"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, NamedTool("f")),
        ({"tool_choice": {"type": "custom", "custom": {"name": "c"}}}, NamedTool("c")),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required"}}}, "required"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}}, "auto"),
        ({"function_call": "none"}, "none"),
        ({"tool_choice": "required", "function_call": "none"}, "required"),
    ],
)
def test_the_choice_of_tools(fields: dict[str, Json], choice: ToolChoice) -> None:
    assert decode(request(**fields)).tool_choice == choice


def test_functions_that_are_not_allowed_are_named() -> None:
    tools: Json = [{"type": "function", "function": {"name": name}} for name in "abc"]
    one: Json = [{"type": "function", "function": {"name": "b"}}]
    choice: Json = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": one}}
    (notice,) = decode(request(tools=tools, tool_choice=choice)).notices
    assert (notice.rule, notice.detail) == (
        "TOOL_NOT_ALLOWED",
        "the model is not offered 'a', 'c', which tool_choice.allowed_tools.tools does not name",
    )
    forced: Json = {"type": "function", "function": {"name": "b"}}
    assert decode(request(tools=tools, tool_choice=forced)).notices == ()


def test_every_tool_that_is_left_out_is_named_and_no_other() -> None:
    tools: Json = [
        {"type": "custom", "custom": {"name": "a"}},
        {"type": "function", "function": {"name": "b"}},
        {"type": "x_search", "function": {"name": "c"}},
        {"type": "custom", "custom": {"name": "d"}, "function": {"name": "e"}},
    ]
    choice: Json = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "b"}}]},
    }
    conversation = decode(request(tools=tools, tool_choice=choice))
    assert [tool.name for tool in conversation.tools] == ["b"]
    assert [tool.kind for tool in conversation.other_tools] == ["x_search"]
    assert [(notice.rule, notice.detail) for notice in conversation.notices] == [
        (
            "TOOL_NOT_ALLOWED",
            "the model is not offered 'a', 'd', which tool_choice.allowed_tools.tools does not name",
        )
    ]


def test_functions_of_the_deprecated_field_that_are_not_allowed_are_named() -> None:
    choice: Json = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}
    conversation = decode(request(functions=[{"name": "a"}], tool_choice=choice))
    assert conversation.tools == ()
    assert [notice.rule for notice in conversation.notices] == ["TOOL_NOT_ALLOWED"]


def test_allowed_tools_leave_the_others_out() -> None:
    tools: Json = [{"type": "function", "function": {"name": name}} for name in "fgh"]
    allowed: Json = [{"type": "function", "function": {"name": "g"}}, {"type": "mcp", "server_label": "x"}]
    choice: Json = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": allowed}}
    conversation = decode(request(tools=tools, tool_choice=choice))
    assert [tool.name for tool in conversation.tools] == ["g"]
    assert sent(conversation)["tools"] == tools


def test_a_whole_number_may_be_written_with_a_point() -> None:
    sampling = decode(request(max_tokens=100.0, seed=7.0, temperature=1.0)).sampling
    assert (sampling.max_tokens, sampling.seed, sampling.temperature) == (100, 7, 1.0)
    assert type(sampling.max_tokens) is int
    assert refused(request(max_tokens=100.0, seed=7.5)).param == "seed"


@pytest.mark.parametrize("tools", [{}, "g", 1, None])
def test_a_list_of_allowed_tools_that_is_none_is_refused(tools: Json) -> None:
    error = refused(request(tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}}))
    assert (error.code, error.param) == ("invalid_type", "tool_choice.allowed_tools.tools")


def test_too_many_and_badly_named_tools_are_faults() -> None:
    tools: Json = [{"type": "function", "function": {"name": f"f{n}"}} for n in range(128)]
    assert isinstance(tools, list)
    assert decode(request(tools=tools)).faults == ()
    tools.append({"type": "function", "function": {"name": "no blanks please"}})
    found = [(fault.rule, fault.index, fault.param) for fault in decode(request(tools=tools)).faults]
    assert found == [("TOOLS_COUNT", -1, "tools"), ("TOOLS_NAME", -1, "tools[128].function.name")]


def test_unknown_and_null_fields_are_legal() -> None:
    fields: dict[str, Json] = {"store": False, "metadata": {"a": "b"}, "n": 1, "user": None, "verbosity": "low"}
    assert decode(request(**fields)).params == {"model": "m", **fields}


def test_the_last_of_duplicate_keys_counts() -> None:
    assert decode(b'{"model":"a","model":"b","messages":[{"role":"user","content":"x"}]}').model == "b"


def test_half_an_emoji_does_not_make_a_history_unusable() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"a\\ud83d \\ud83d\\ude00 \\\\ud83d"}]}'
    conversation = decode(body)
    assert conversation.turns[0].text == "a\ufffd \U0001f600 \\ud83d"
    assert [(fault.rule, fault.index) for fault in conversation.faults] == [("TEXT_UNICODE", -1)]


def sent(conversation: Conversation) -> dict[str, Json]:
    request = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20).encode(conversation, Policy())
    sent = json.loads(request.body)
    assert isinstance(sent, dict)
    return sent


VALID: list[Json] = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}}], "name": "bo"},
    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]},
    {"role": "assistant", "content": "", "refusal": None, "annotations": None, "audio": None, "function_call": None},
    {"role": "assistant", "content": None, "refusal": "No."},
    {"role": "assistant", "reasoning_content": "hm", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{broken"}, "extra_content": {"g": 1}},
        {"id": "b", "type": "custom", "custom": {"name": "c", "input": "free"}, "index": 1},
    ]},
    {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "r"}], "name": "f"},
    {"role": "tool", "content": "", "tool_call_id": "b"},
    {"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "function", "name": "f", "content": "old"},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}], "provider_specific_fields": {"x": 1}},
]  # fmt: skip


def test_a_well_formed_request_reaches_a_native_backend_as_it_was() -> None:
    fields: dict[str, Json] = {"temperature": 0.5, "odd": {"deep": [1, 2.5, None, 2**70]}, "tools": [TOOL]}
    conversation = decode(request(VALID, stream=True, **fields))
    assert conversation.faults == ()
    assert sent(conversation) == {"model": "m", "messages": VALID, "stream": True, **fields}


TEXT = st.text(max_size=5)
PART = st.builds(lambda text: {"type": "text", "text": text}, TEXT)
CONTENT = TEXT | st.lists(PART, min_size=1, max_size=3)
CALL = st.builds(
    lambda id, name, arguments: {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}},
    st.sampled_from(["a", "b"]),
    st.sampled_from(["f", "g"]),
    TEXT,
)
MESSAGE = st.one_of(
    st.builds(lambda role, content: {"role": role, "content": content}, st.sampled_from(["system", "user"]), CONTENT),
    st.builds(lambda content, calls: {"role": "assistant", "content": content, "tool_calls": calls},
              st.none() | CONTENT, st.lists(CALL, min_size=1, max_size=2)),
    st.builds(lambda content: {"role": "tool", "tool_call_id": "a", "content": content}, CONTENT),
)  # fmt: skip


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.lists(MESSAGE, min_size=1, max_size=5))
def test_decode_then_encode_is_the_identity_on_valid_messages(messages: list[Json]) -> None:
    conversation = decode(request(messages))
    assert conversation.faults == ()
    assert sent(conversation)["messages"] == messages


VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
NAMES = ("model", "messages", "stream", "tools", "tool_choice", "stop", "role", "content", "tool_calls", "type")
MORE = ("function", "name", "arguments", "id", "tool_call_id", "text", "image_url", "function_call", "refusal")
ODD: st.SearchStrategy[Json] = st.recursive(
    VALUES | st.sampled_from(["user", "assistant", "tool", "function", "text", "image_url"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES + MORE), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(ODD, st.lists(ODD, max_size=4))
def test_any_json_is_a_conversation_or_an_invalid_request(envelope: Json, messages: list[Json]) -> None:
    top = envelope if isinstance(envelope, dict) else {}
    for document in (envelope, {**top, "messages": messages}, {"model": "m", "messages": messages}):
        try:
            conversation = decode(json.dumps(document).encode())
        except InvalidRequest as error:
            assert error.message and error.status == 400
        else:
            assert decode(json.dumps(document).encode()) == conversation
            assert sent(conversation)["model"] == conversation.model


@given(st.binary(max_size=60))
def test_any_bytes_are_an_invalid_request(body: bytes) -> None:
    refused(body)
