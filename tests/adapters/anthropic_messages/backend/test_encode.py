"""Of a request of another dialect the values reach the backend, in the form that the API requires."""

import json
from typing import Any, Final

import pytest
from hypothesis import given

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.anthropic_messages.demo.request import read_request
from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import (
    Conversation,
    File,
    Image,
    Json,
    JsonObject,
    NamedTool,
    OtherTool,
    Reasoning,
    Sampling,
    Source,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.provider_state import with_provider_state
from gateway.exchange import Exchange
from tests.histories import requests

USER: Final = Turn("user", (Text("Hello"),), index=0)
SIGNED: Final = with_provider_state("anthropic", {"signature": "s"})
OF_GOOGLE: Final = with_provider_state("google", {"thought_signature": "s"})
CALL: Final = ToolCall("a", "look", '{"n": 1}')
RESULT: Final = Turn("tool", (ToolResult("a", (Text("A cat."),)),), index=2)
LOOK: Final = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})


def exchange(conversation: Conversation, **options: Any) -> Exchange:
    adapter = AnthropicMessagesAdapter(AnthropicMessagesOptions(**options), 1 << 20)
    return Exchange(adapter, conversation, Policy())


def sent(*turns: Turn, **fields: Any) -> Any:  # Any: read as JSON
    """The body for a request of these turns, without what every request has."""
    body = json.loads(exchange(Conversation((USER, *turns), model="m", **fields)).request.body)
    assert body.pop("model") == "m"
    if body["max_tokens"] == AnthropicMessagesOptions().max_tokens:
        del body["max_tokens"]
    return body


def messages(*turns: Turn) -> Any:
    """The messages behind the question."""
    return sent(*turns)["messages"][1:]


def noted(conversation: Conversation, **options: Any) -> list[str]:
    return [notice.rule for notice in exchange(conversation, **options).notices if notice.stage == "encode"]


def test_a_request_has_the_fields_that_the_api_requires_and_no_other() -> None:
    asked = exchange(Conversation((USER,), model="m"))
    assert (asked.request.method, asked.request.path) == ("POST", "/v1/messages")
    assert asked.request.headers == {
        "content-type": "application/json",
        "accept": "application/json",
        "anthropic-version": "2023-06-01",
    }
    assert json.loads(asked.request.body) == {
        "model": "m",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": "Hello"}],
    }
    assert asked.notices == [
        Notice(
            "encode", "added", "MAX_TOKENS_ADDED", "the backend requires a limit; 8192 tokens are sent", level="debug"
        )
    ]


def test_the_options_replace_path_version_and_limit() -> None:
    asked = exchange(
        Conversation((USER,), stream=True), path="/anthropic/v1/messages", version="2030-01-01", max_tokens=5
    )
    assert (asked.request.path, asked.request.headers["anthropic-version"]) == ("/anthropic/v1/messages", "2030-01-01")
    assert asked.request.headers["accept"] == "text/event-stream"
    assert (body := json.loads(asked.request.body))["max_tokens"] == 5 and body["stream"] is True


FIELDS: Final[dict[str, tuple[dict[str, Any], dict[str, Json]]]] = {
    "sampling": (
        {"sampling": Sampling(0.5, 0.9, 7, ("a", "b"), 3), "params": {"top_k": 4, "seed": 3}},
        {"max_tokens": 7, "temperature": 0.5, "top_p": 0.9, "top_k": 4, "stop_sequences": ["a", "b"]},
    ),
    "user": ({"params": {"user": "u"}}, {"metadata": {"user_id": "u"}}),
    "text": ({"params": {"response_format": {"type": "text"}}}, {}),
    "schema": (
        {"params": {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"a": 1}}}}},
        {"output_config": {"format": {"type": "json_schema", "schema": {"a": 1, "title": "x"}}}},
    ),
    "schema and effort": (
        {
            "params": {
                "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"a": 1}}},
                "reasoning_effort": "low",
            }
        },
        {
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"a": 1, "title": "x"}}},
        },
    ),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_is_sent_under_the_apis_own_name(name: str) -> None:
    fields, expected = FIELDS[name]
    assert sent(**fields) == {"messages": [{"role": "user", "content": "Hello"}], **expected}


TOOL: Final[Json] = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
CHOICES: Final[dict[str, tuple[dict[str, Any], Json]]] = {
    "auto": ({}, None),
    "none": ({"tool_choice": "none"}, {"type": "none"}),
    "required": ({"tool_choice": "required"}, {"type": "any"}),
    "named": ({"tool_choice": NamedTool("look")}, {"type": "tool", "name": "look"}),
    "one call": ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
    "one required call": (
        {"tool_choice": "required", "parallel_tool_calls": False},
        {"type": "any", "disable_parallel_tool_use": True},
    ),
    "none, one call": ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
}


@pytest.mark.parametrize("name", CHOICES)
def test_tools_and_their_choice_are_sent(name: str) -> None:
    fields, choice = CHOICES[name]
    body = sent(tools=(LOOK,), **fields)
    assert body["tools"] == [TOOL]
    assert body.get("tool_choice") == choice


def test_without_tools_there_is_no_choice() -> None:
    assert "tool_choice" not in sent(parallel_tool_calls=False)


@pytest.mark.parametrize("parameters", [{}, {"type": None}, {"type": "string"}, {"properties": {}}])
def test_a_schema_of_arguments_is_one_of_an_object(parameters: JsonObject) -> None:
    (tool,) = sent(tools=(ToolSpec("f", "", parameters, strict=True),))["tools"]
    assert tool == {"name": "f", "input_schema": {**parameters, "type": "object"}, "strict": True}


@pytest.mark.parametrize("shape", [{"type": "json_object"}, {"type": "json_schema"}, {"type": "grammar"}])
def test_a_format_without_a_schema_is_refused_unless_the_prompt_asks_for_it(shape: Json) -> None:
    asked = Conversation((USER,), params={"response_format": shape})
    with pytest.raises(Unsupported) as caught:
        exchange(asked)
    assert caught.value.param == "response_format"
    prompted = exchange(asked, prompted=("response_format",))
    body = json.loads(prompted.request.body)
    assert "output_config" not in body and "JSON Schema" in body["system"][0]["text"]
    assert "DEMAND_IN_WORDS" in [notice.rule for notice in prompted.notices]


EFFORTS: Final[dict[str, tuple[Json, Json, Json]]] = {
    "none": ("none", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
    **{
        effort: (
            effort,
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": word}},
            {"thinking": {"type": "enabled", "budget_tokens": budget}},
        )
        for effort, word, budget in (
            *(("minimal", "low", 1024), ("low", "low", 2000), ("medium", "medium", 5000)),
            *(("high", "high", 8000), ("xhigh", "xhigh", 9000), ("max", "max", 9500)),
        )
    },
}


@pytest.mark.parametrize("name", EFFORTS)
def test_an_effort_is_sent_as_a_word_or_as_a_budget(name: str) -> None:
    effort, by_word, by_budget = EFFORTS[name]
    asked = Conversation((USER,), sampling=Sampling(max_tokens=10_000), params={"reasoning_effort": effort})
    for options, expected in (({}, by_word), ({"thinking": "budget"}, by_budget)):
        body = json.loads(exchange(asked, **options).request.body)
        assert {name: body[name] for name in ("thinking", "output_config") if name in body} == expected
        assert noted(asked, **options) == ["EFFORT_CHANGED"] * (effort == "minimal")


@pytest.mark.parametrize(
    ("effort", "limit", "options", "told"),
    [
        ("minimal", 50_000, {}, "reasoning_effort minimal is sent as output_config.effort low"),
        ("minimal", 50_000, {"thinking": "budget"}, None),
        ("low", 2000, {"thinking": "budget"}, "reasoning_effort low is sent as thinking.budget_tokens 1024"),
        ("medium", 2048, {"thinking": "budget"}, None),
    ],
)
def test_an_effort_that_is_sent_as_another_one_is_told(
    effort: str, limit: int, options: dict[str, Any], told: str | None
) -> None:
    asked = Conversation((USER,), sampling=Sampling(max_tokens=limit), params={"reasoning_effort": effort})
    found = [notice for notice in exchange(asked, **options).notices if notice.stage == "encode"]
    assert [(notice.action, notice.rule, notice.detail) for notice in found] == (
        [] if told is None else [("changed", "EFFORT_CHANGED", f"{told}, the least that the API has")]
    )


LOOP: Final = (USER, Turn("assistant", (CALL,), index=1), RESULT)
SIGNED_LOOP: Final = (USER, Turn("assistant", (Reasoning("hm", extra=SIGNED), CALL), index=1), RESULT)
OBSTACLES: Final[dict[str, tuple[Conversation, str]]] = {
    "an unknown effort": (Conversation((USER,), params={"reasoning_effort": "moonrise"}), "effort"),
    "an effort that is no text": (Conversation((USER,), params={"reasoning_effort": 7}), "effort"),
    "a forced call": (
        Conversation((USER,), (LOOK,), "required", params={"reasoning_effort": "low"}),
        "effort",
    ),
    "too few tokens": (
        Conversation((USER,), sampling=Sampling(max_tokens=1024), params={"reasoning_effort": "low"}),
        "budget",
    ),
    "calls without thinking": (Conversation(LOOP, (LOOK,), params={"reasoning_effort": "low"}), "budget"),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_where_the_api_would_refuse_thinking_there_is_none_and_a_notice(name: str) -> None:
    asked, mode = OBSTACLES[name]
    found = exchange(asked, thinking=mode)
    body = json.loads(found.request.body)
    assert "thinking" not in body and "output_config" not in body
    (notice,) = [notice for notice in found.notices if notice.rule == "EFFORT_NOT_SENT"]
    assert (notice.action, notice.level) == ("dropped", "warning")


@pytest.mark.parametrize(
    ("turns", "thinks"),
    [
        (SIGNED_LOOP, True),
        ((*LOOP, Turn("user", (Text("And?"),), index=3)), True),
        ((*LOOP, Turn("assistant", (Reasoning("hm", extra=SIGNED), CALL), index=3), RESULT), False),
    ],
)
def test_thinking_with_a_budget_needs_the_thinking_of_the_running_loop(turns: tuple[Turn, ...], thinks: bool) -> None:
    asked = Conversation(turns, (LOOK,), params={"reasoning_effort": "low"})
    body = json.loads(exchange(asked, thinking="budget").request.body)
    assert ("thinking" in body) == thinks
    assert "thinking" in json.loads(exchange(asked).request.body)


def test_beside_thinking_the_api_accepts_no_temperature() -> None:
    params: JsonObject = {"reasoning_effort": "low", "top_k": 4}
    asked = Conversation((USER,), sampling=Sampling(0.5, 0.9, 7), params=params)
    found = exchange(asked)
    assert not {"temperature", "top_p", "top_k"} & json.loads(found.request.body).keys()
    details = [notice.detail for notice in found.notices if notice.rule == "FIELD_NOT_SENT"]
    assert [detail.split()[4] for detail in details] == ["temperature", "top_p", "top_k"]
    plain = Conversation((USER,), sampling=Sampling(1), params={"reasoning_effort": "low"})
    assert json.loads(exchange(plain).request.body)["temperature"] == 1
    off = Conversation((USER,), sampling=Sampling(0.5), params={"reasoning_effort": "none"})
    assert json.loads(exchange(off).request.body)["temperature"] == 0.5


def test_fields_without_an_equivalent_are_reported_or_refused() -> None:
    params: JsonObject = {"seed": 3, "metadata": {"a": "b"}, "frequency_penalty": 0.5, "service_tier": "flex"}
    asked = Conversation(
        (USER,), params=params, sampling=Sampling(max_tokens=5), other_tools=(OtherTool("web_search"),)
    )
    assert noted(asked) == ["TOOL_NOT_SENT", *["FIELD_NOT_SENT"] * 4]
    with pytest.raises(Unsupported):
        exchange(Conversation((USER,), params={"logprobs": True}))


def test_leading_system_text_stands_apart_and_later_text_stays_at_its_place() -> None:
    turns = (
        Turn("system", (Text("Be brief."),), index=0),
        Turn("developer", (Text("Be kind.", {"cache_control": {"type": "ephemeral"}}),), index=1),
        Turn("user", (Text("Hello"),), index=2),
        Turn("system", (Text("Be quick."),), index=3),
    )
    asked = Conversation(turns, sampling=Sampling(max_tokens=5))
    body = json.loads(exchange(asked).request.body)
    assert body["system"] == [
        {"type": "text", "text": "Be brief."},
        {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}},
    ]
    later = {"type": "text", "text": "<system_message>\nBe quick.\n</system_message>"}
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hello"}, later]}]
    assert [(notice.rule, notice.index) for notice in exchange(asked).notices] == [("SYSTEM_AS_USER", 3)]


def test_neighbours_of_one_role_are_one_message_with_the_results_first() -> None:
    turns = (
        Turn("user", (Text("Please."),), index=1),
        Turn("assistant", (Text("Let me see."),), index=2),
        Turn("assistant", (CALL, ToolCall("b", "look", "")), index=3),
        Turn("tool", (ToolResult("a", (Text("A cat."),)),), index=4),
        Turn("tool", (ToolResult("b", (), is_error=True),), index=5),
        Turn("user", (Text("And?"), Image("https://host/a.png")), index=6),
    )
    assert sent(*turns)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "Please."}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "a", "name": "look", "input": {"n": 1}},
                {"type": "tool_use", "id": "b", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "A cat."},
                {"type": "tool_result", "tool_use_id": "b", "is_error": True},
                {"type": "text", "text": "And?"},
                {"type": "image", "source": {"type": "url", "url": "https://host/a.png"}},
            ],
        },
    ]


def test_reasoning_is_sent_only_with_its_own_signature() -> None:
    answer = Text("Hi.")
    signed: Json = {"type": "thinking", "thinking": "hm", "signature": "s"}
    said: Json = {"type": "text", "text": "Hi."}
    assert messages(Turn("assistant", (Reasoning("hm", extra=SIGNED), answer))) == [
        {"role": "assistant", "content": [signed, said]}
    ]
    # A client may keep the state beside the reasoning, as a field of the message.
    assert messages(Turn("assistant", (Reasoning("hm"), answer), extra=SIGNED)) == [
        {"role": "assistant", "content": [signed, said]}
    ]
    # It may have shown no text, or keep the text twice.
    hidden: Json = {"type": "thinking", "thinking": "", "signature": "s"}
    assert messages(Turn("assistant", (answer,), extra=SIGNED)) == [{"role": "assistant", "content": [hidden, said]}]
    twice = Turn("assistant", (Reasoning("hm"), Reasoning("hm", "reasoning"), answer), extra=SIGNED)
    assert messages(twice) == [{"role": "assistant", "content": [signed, said]}]
    for extra in ({}, OF_GOOGLE, with_provider_state("anthropic", {"signature": ""})):
        turn = Turn("assistant", (Reasoning("hm", extra=extra), answer), index=1)
        assert messages(turn) == [{"role": "assistant", "content": "Hi."}]
        assert "REASONING_NOT_SENT" in noted(Conversation((USER, turn)))


def test_redacted_thinking_returns_to_its_provider() -> None:
    redacted = Reasoning("", extra=with_provider_state("anthropic", {"data": "d"}))
    both = Reasoning("hm", extra=with_provider_state("anthropic", {"data": "d", "signature": "s"}))
    hidden: Json = {"type": "redacted_thinking", "data": "d"}
    assert messages(Turn("assistant", (redacted, Text("Hi.")))) == [
        {"role": "assistant", "content": [hidden, {"type": "text", "text": "Hi."}]}
    ]
    assert messages(Turn("assistant", (both,))) == [
        {"role": "assistant", "content": [hidden, {"type": "thinking", "thinking": "hm", "signature": "s"}]}
    ]


def test_the_state_of_another_provider_is_never_sent() -> None:
    call = ToolCall("a", "look", "{}", OF_GOOGLE)
    turns = (Turn("assistant", (Reasoning("hm", extra=OF_GOOGLE), call), index=1, extra=OF_GOOGLE), RESULT)
    found = exchange(Conversation((USER, *turns), (LOOK,)))
    assert b"thought_signature" not in found.request.body and b"extra_content" not in found.request.body
    details = [notice.detail for notice in found.notices if notice.rule == "FIELD_NOT_SENT"]
    assert details == ["the backend has no field for extra_content.google (3) of messages"]


def test_what_the_api_has_a_place_for_is_not_reported_as_lost() -> None:
    call = Turn("assistant", (Reasoning("hm", extra=SIGNED), CALL), index=1, extra=SIGNED)
    failed = Turn("tool", (ToolResult("a", (Text("No.", {"cache_control": {}}),), is_error=True),), index=2)
    asked = Conversation((USER, call, failed), (LOOK,), sampling=Sampling(max_tokens=5))
    assert noted(asked) == []


@pytest.mark.parametrize(
    ("arguments", "given", "noted_too"),
    [
        ('{"b": 1, "a": [2]}', {"b": 1, "a": [2]}, False),
        ("", {}, False),
        ("[1]", {"arguments": "[1]"}, True),
        ('{"a": ', {"arguments": '{"a": '}, True),
    ],
)
def test_the_input_of_a_call_is_an_object(arguments: str, given: Json, noted_too: bool) -> None:
    turns = (Turn("assistant", (ToolCall("a", "look", arguments),), index=1), RESULT)
    assert sent(*turns)["messages"][1]["content"][0]["input"] == given
    assert ("ARGUMENTS_AS_TEXT" in noted(Conversation((USER, *turns)))) == noted_too


def test_an_id_with_other_characters_is_replaced_in_the_call_and_in_its_result() -> None:
    turns = (
        Turn("assistant", (ToolCall("functions.look:0", "look", "{}"), ToolCall("a_-1", "look", "{}")), index=1),
        Turn("tool", (ToolResult("functions.look:0", ()), ToolResult("a_-1", ())), index=2),
    )
    (_, called, answered) = sent(*turns)["messages"]
    ids = [block["id"] for block in called["content"]]
    assert ids == [block["tool_use_id"] for block in answered["content"]]
    assert ids[1] == "a_-1" and ids[0].replace("_", "").isalnum()
    assert "CALL_ID_RENAMED" in [notice.rule for notice in exchange(Conversation((USER, *turns))).notices]


def test_blank_text_and_empty_messages_are_not_sent() -> None:
    turns = (
        Turn("assistant", (Text("So."), Text(" \n"), Text("")), index=1),
        Turn("user", (Text(""),), index=2),
        Turn("user", (Text("And?"),), name="Aram", index=3),
    )
    assert messages(*turns) == [
        {"role": "assistant", "content": "So."},
        {"role": "user", "content": "And?"},
    ]
    found = exchange(Conversation((USER, *turns), sampling=Sampling(max_tokens=5))).notices
    assert [(notice.rule, notice.index) for notice in found if notice.stage == "encode"] == [
        ("BLANK_TEXT_NOT_SENT", 1),
        ("EMPTY_TURN_NOT_SENT", 2),
        ("TURN_NAME_NOT_SENT", 3),
    ]


@pytest.mark.parametrize("turn", [Turn("system", (Text("Say hi."),)), Turn("user", (Text(" "),), index=0)])
def test_a_request_without_a_message_is_refused(turn: Turn) -> None:
    with pytest.raises(InvalidRequest) as refused:
        exchange(Conversation((turn,), sampling=Sampling(max_tokens=5)))
    assert refused.value.param == "messages"


def test_images_stand_where_the_api_accepts_them() -> None:
    image = Image("data:image/png;base64,aGk=", {"detail": "low"})
    source: Json = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    result = Turn("tool", (ToolResult("a", (Text("This."), image)),), index=2)
    body = sent(Turn("assistant", (CALL,), index=1), result, Turn("user", (image,), index=3))
    assert body["messages"][2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [{"type": "text", "text": "This."}, {"type": "image", "source": source}],
        },
        {"type": "image", "source": source},
    ]
    with pytest.raises(Unsupported):
        sent(Turn("assistant", (image,), index=1))
    with pytest.raises(Unsupported):
        sent(Turn("user", (File("file", {"type": "file"}),), index=1))


@pytest.mark.parametrize(
    "url", ["data:,nothing", "data:image/png,", "data:text/plain;base64,aGk=", "data:image/png;base64,?"]
)
def test_an_image_that_the_api_cannot_read_is_refused_with_its_path(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        sent(Turn("user", (Text("x"), Image(url)), index=1))
    assert caught.value.param == "messages[1].content[1]"
    result = Turn("tool", (ToolResult("a", (Image(url),)),), index=2)
    with pytest.raises(InvalidRequest) as caught:
        sent(Turn("assistant", (CALL,), index=1), result)
    assert caught.value.param == "messages[2].content[0]"


def test_a_source_of_another_dialect_is_not_sent() -> None:
    turn = Turn("user", (Text("x"),), source=Source("openai_chat", {"role": "user", "content": "canary"}))
    asked = Conversation((turn,), dialect="openai_chat", source=Source("openai_chat", {"canary": 1}))
    assert b"canary" not in exchange(asked).request.body


@given(requests())
def test_any_chat_history_breaks_no_rule_of_the_api(request: dict[str, Json]) -> None:
    try:
        asked = exchange(decode(json.dumps({**request, "model": "m"}).encode()))
    except InvalidRequest:
        return
    body = json.loads(asked.request.body)
    for tool in body.get("tools", ()):
        # Names are those of the client, unless a profile is chosen.
        tool["name"] = "look"
    if body["messages"]:
        # An answer that the model is to continue may end in any way.
        ended = body["messages"][-1]["role"] == "user"
        body["messages"] += [] if ended else [{"role": "user", "content": "Go on."}]
        read_request(body)


MARK: Final[JsonObject] = {"cache_control": {"type": "ephemeral"}}


def test_a_mark_of_caching_of_a_message_is_that_of_its_last_block() -> None:
    marked = [
        Turn("system", (Text("Be kind."),), index=0, extra=MARK),
        Turn("user", (Text("a"), Text("b")), index=1, extra=MARK),
        Turn("assistant", (Text("c"),), index=2, extra=MARK),
        Turn("user", (Text("d"),), index=3, extra=MARK),
    ]
    body = json.loads(exchange(Conversation(tuple(marked), model="m")).request.body)
    assert body["system"] == [{"type": "text", "text": "Be kind.", **MARK}]
    assert [message["content"] for message in body["messages"]] == [
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b", **MARK}],
        [{"type": "text", "text": "c", **MARK}],
        [{"type": "text", "text": "d", **MARK}],
    ]


def test_thinking_has_no_mark_of_caching() -> None:
    turn = Turn("assistant", (Reasoning("Hm.", extra=SIGNED),), index=1, extra=MARK)
    assert messages(turn) == [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]}
    ]


@pytest.mark.parametrize("extra", [MARK, {"function": MARK}])
def test_a_mark_of_caching_of_a_tool_is_sent(extra: JsonObject) -> None:
    made = exchange(Conversation((USER,), model="m", tools=(ToolSpec("look", extra={**extra, "x": 1}),)))
    [tool] = json.loads(made.request.body)["tools"]
    assert tool["cache_control"] == MARK["cache_control"]
    told = [notice.detail for notice in made.notices if notice.rule == "FIELD_NOT_SENT"]
    assert told == ["the backend has no field for x (1) of tools"]


@pytest.mark.parametrize(
    ("asked", "tier"),
    [
        ("auto", "auto"),
        ("priority", "auto"),
        ("default", "standard_only"),
        ("standard_only", "standard_only"),
        ("flex", None),
        (["flex"], None),
    ],
)
def test_the_service_tier(asked: Json, tier: str | None) -> None:
    made = exchange(Conversation((USER,), model="m", params={"service_tier": asked}))
    assert json.loads(made.request.body).get("service_tier") == tier
    told = [notice.rule for notice in made.notices if "service_tier" in notice.detail]
    assert told == ([] if tier else ["FIELD_NOT_SENT"])
