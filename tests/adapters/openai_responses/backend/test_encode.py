"""What reaches a backend: of its own dialect everything, of any other the fields of the published API."""

import json
from typing import Any, Final

import msgspec
import pytest

from gateway.adapter import BackendModel
from gateway.core.conversation import (
    Conversation,
    Image,
    Json,
    JsonObject,
    NamedTool,
    Reasoning,
    Sampling,
    Source,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import Unsupported
from gateway.core.policy import Policy
from gateway.core.provider_state import with_provider_state
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.providers.profile import NEUTRAL
from gateway.providers.registry import PROFILES
from gateway.registry import load_dialect
from tests.adapters.openai_responses.backend.reading import ADAPTER, OTHER, OWN

SAID: Final[dict[str, Json]] = {"type": "message", "role": "assistant", "content": "ok"}
QUESTION: Final = Turn("user", (Text("x"),), index=0)


def exchange(conversation: Conversation, policy: Policy | None = None) -> Exchange:
    return Exchange(ADAPTER, conversation, policy or Policy())


def sent(conversation: Conversation, policy: Policy | None = None) -> Any:  # Any: read with json
    return json.loads(exchange(conversation, policy).request.body)


def asked(turns: tuple[Turn, ...] = (QUESTION,), params: JsonObject | None = None, **fields: Any) -> Conversation:
    """A request of another dialect."""
    return Conversation(turns, model="m", params=params or {}, dialect=OTHER, **fields)


def own(body: JsonObject) -> Conversation:
    """A request of the dialect."""
    document = read_document(json.dumps({"model": "m", **body}).encode())
    return load_dialect(OWN).decode(document, RequestHead("/v1/responses")).conversation


UNKNOWN: Final[dict[str, Json]] = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "x", "mood": "calm"}],
    "x_own": 1,
}


@pytest.mark.parametrize(
    "body",
    [
        {"input": [UNKNOWN]},
        {"input": [UNKNOWN], "instructions": "Be brief.", "x_own": {"a": [1]}, "stream": True},
        {"input": [UNKNOWN], "tools": [{"type": "web_search", "x_own": 1}, {"type": "custom", "name": "run"}]},
        {"input": [UNKNOWN], "include": ["reasoning.encrypted_content"], "store": True, "service_tier": "flex"},
        {
            "input": [
                UNKNOWN,
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
                {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "id": "fc_1"},
                {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "y"}]},
                {"type": "web_search_call", "id": "ws_1", "status": "completed"},
                UNKNOWN,
            ]
        },
    ],
)
def test_a_request_of_the_dialect_is_sent_as_it_was_written(body: dict[str, Json]) -> None:
    assert sent(own(body)) == {**body, "store": False, "model": "m"}


def test_text_is_one_item_of_the_input() -> None:
    assert sent(own({"input": "x"}))["input"] == [{"role": "user", "content": "x"}]


def test_a_turn_that_a_pass_changed_is_written_anew() -> None:
    body: JsonObject = {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "x"},
            {"type": "function_call", "call_id": "a", "name": "look", "namespace": "docs", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "y"},
        ],
        "tools": [{"type": "namespace", "name": "docs", "tools": [{"type": "function", "name": "look"}]}],
    }
    conversation = own(body)
    turns = tuple(msgspec.structs.replace(turn, source=None) for turn in conversation.turns)
    changed = sent(msgspec.structs.replace(conversation, turns=turns))
    assert "instructions" not in changed
    assert changed["input"] == [
        {"type": "message", "role": "system", "content": "Be brief."},
        {"type": "message", "role": "user", "content": "x"},
        {"type": "function_call", "call_id": "a", "name": "look", "namespace": "docs", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "y"},
    ]
    assert changed["tools"] == body["tools"]


def test_what_the_passes_decide_replaces_what_the_client_wrote() -> None:
    conversation = own({"input": "x", "tools": [{"type": "function", "name": "f"}], "tool_choice": "required"})
    decided = msgspec.structs.replace(conversation, tool_choice="none", stream=True, model="inner")
    body = sent(decided)
    assert (body["tool_choice"], body["stream"], body["model"]) == ("none", True, "inner")


TOOL: Final = ToolSpec("f", "Looks.", {"type": "object", "properties": {"a": {}}}, strict=True)


@pytest.mark.parametrize(
    ("conversation", "fields"),
    [
        (asked(), {}),
        (asked(stream=True, include_usage=True), {"stream": True}),
        (
            asked(sampling=Sampling(temperature=0.5, top_p=0.9, max_tokens=70)),
            {"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 70},
        ),
        (asked(params={"reasoning_effort": "low"}), {"reasoning": {"effort": "low"}}),
        (asked(params={"verbosity": "low"}), {"text": {"verbosity": "low"}}),
        (asked(params={"response_format": {"type": "text"}}), {}),
        (asked(params={"response_format": {"type": "json_object"}}), {"text": {"format": {"type": "json_object"}}}),
        (
            asked(params={"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}}),
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}},
        ),
        (
            asked(params={"metadata": {"a": "b"}, "user": "u", "service_tier": None}),
            {"metadata": {"a": "b"}, "user": "u"},
        ),
        (
            asked(tools=(TOOL, ToolSpec("g")), tool_choice=NamedTool("f"), parallel_tool_calls=False),
            {
                "tools": [
                    {
                        "type": "function",
                        "name": "f",
                        "description": "Looks.",
                        "parameters": {"type": "object", "properties": {"a": {}}},
                        "strict": True,
                    },
                    {
                        "type": "function",
                        "name": "g",
                        "parameters": {"type": "object", "properties": {}},
                        "strict": False,
                    },
                ],
                "tool_choice": {"type": "function", "name": "f"},
                "parallel_tool_calls": False,
            },
        ),
        (
            asked(tools=(TOOL,), tool_choice="required"),
            {
                "tools": [
                    {
                        "type": "function",
                        "name": "f",
                        "description": "Looks.",
                        "parameters": {"type": "object", "properties": {"a": {}}},
                        "strict": True,
                    }
                ],
                "tool_choice": "required",
            },
        ),
    ],
)
def test_a_request_of_another_dialect_is_written_in_the_fields_of_the_api(
    conversation: Conversation, fields: JsonObject
) -> None:
    items = [{"type": "message", "role": "user", "content": "x"}]
    assert sent(conversation) == {"model": "m", "input": items, "store": False, **fields}


@pytest.mark.parametrize("param", ["logprobs", "logit_bias", "audio"])
def test_a_field_that_must_have_an_effect_and_has_none_is_refused(param: str) -> None:
    with pytest.raises(Unsupported) as caught:
        exchange(asked(params={param: {"a": 1}}))
    assert caught.value.param == param


def test_fields_without_a_place_are_reported() -> None:
    notices = exchange(asked(params={"seed": 7, "top_k": 4, "store": True})).notices
    assert [notice.detail for notice in notices] == [
        f"the backend has no field for '{name}'" for name in ("seed", "top_k", "store")
    ]


def test_stop_sequences_are_applied_by_the_gateway() -> None:
    exchanged = exchange(asked(sampling=Sampling(stop=("b",)), params={"stop": "b"}))
    assert "stop" not in json.loads(exchanged.request.body)
    assert not exchanged.notices


STATES: Final[JsonObject] = {"extra_content": {"openai": {"id": "rs_1", "encrypted_content": "e"}, "google": {"s": 1}}}


def test_turns_of_another_dialect_become_items() -> None:
    turns = (
        Turn("system", (Text("Be brief."),), index=0),
        Turn("user", (Text("see"), Image("data:image/png;base64,aGk=", {"detail": "low"})), index=1, name="me"),
        Turn("assistant", (Reasoning("hm", extra=STATES), Text("ok"), ToolCall("k", "f", "{}")), index=2),
        Turn("tool", (ToolResult("k", (Text("a cat"), Image("data:image/png;base64,aGk="))),), index=3),
        Turn("assistant", (Reasoning("lost"), Text("No.", {"type": "refusal"})), index=4),
        Turn("user", (Text("Why?"),), index=5),
    )
    exchanged = exchange(asked(turns, tools=(TOOL,)))
    assert json.loads(exchanged.request.body)["input"] == [
        {"type": "message", "role": "system", "content": "Be brief."},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "encrypted_content": "e",
            "summary": [{"type": "summary_text", "text": "hm"}],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "ok", "annotations": []}],
        },
        {"type": "function_call", "call_id": "k", "name": "f", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "k",
            "output": [
                {"type": "input_text", "text": "a cat"},
                {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
            ],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"type": "message", "role": "user", "content": "Why?"},
    ]
    assert [(notice.rule, notice.index) for notice in exchanged.notices] == [
        ("TURN_NAME_NOT_SENT", 1),
        ("REASONING_NOT_SENT", 4),
        ("FIELD_NOT_SENT", None),
    ]
    assert "extra_content.google (1)" in exchanged.notices[-1].detail


@pytest.mark.parametrize("provider", ["anthropic", "google"])
def test_the_state_of_another_provider_is_not_sent(provider: str) -> None:
    state = with_provider_state(provider, {"id": "x", "encrypted_content": "statemarker"})
    blocks = (Reasoning("hm", extra=state), ToolCall("k", "f", "{}", state))
    turns = (QUESTION, Turn("assistant", blocks, index=1), Turn("tool", (ToolResult("k", (Text("y"),)),), index=2))
    exchanged = exchange(asked(turns, tools=(TOOL,)))
    assert b"statemarker" not in exchanged.request.body
    assert any(f"extra_content.{provider} (2)" in notice.detail for notice in exchanged.notices)


def test_a_source_of_another_dialect_is_not_sent() -> None:
    foreign = msgspec.structs.replace(QUESTION, source=Source(OTHER, {"input": [{"role": "sourcemarker"}]}))
    conversation = msgspec.structs.replace(asked((foreign,)), source=Source(OTHER, {"sourcemarker": 1}))
    assert b"sourcemarker" not in exchange(conversation).request.body
    mixed = Conversation((foreign,), model="m", dialect=OWN, source=Source(OTHER, {"sourcemarker": 1}))
    assert sent(mixed) == {
        "model": "m",
        "input": [{"type": "message", "role": "user", "content": "x"}],
        "store": False,
    }


def test_the_request_asks_for_the_form_that_the_client_wants() -> None:
    for stream, accept in ((True, "text/event-stream"), (False, "application/json")):
        request = exchange(asked(stream=stream)).request
        assert (request.path, request.headers["accept"]) == ("/responses", accept)
        assert ADAPTER.describe(request.body) == json.loads(request.body)


def test_models_are_listed() -> None:
    assert ADAPTER.decode_models(b'{"data": [{"id": "a"}, {"id": "b"}]}') == (BackendModel("a"), BackendModel("b"))


@pytest.mark.parametrize(
    ("fields", "state", "kept"),
    [
        ({}, {}, False),
        ({"store": False}, {}, False),
        ({"store": True}, {}, False),
        ({}, {"encrypted_content": "c"}, True),
    ],
)
def test_reasoning_is_sent_only_where_the_backend_can_read_it(
    fields: JsonObject, state: JsonObject, kept: bool
) -> None:
    thought: dict[str, Json] = {"type": "reasoning", "id": "rs_1", "summary": [], **state}
    made = exchange(own({"input": [{"role": "user", "content": "x"}, thought, SAID], **fields}))
    items = [item.get("type") for item in json.loads(made.request.body)["input"]]
    assert ("reasoning" in items) is kept
    assert ("REASONING_NOT_SENT" in [notice.rule for notice in made.notices]) is not kept


THOUGHT: Final[dict[str, Json]] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c"}
ASKED: Final[dict[str, Json]] = {"type": "message", "role": "user", "content": "x"}
CALL: Final[dict[str, Json]] = {"type": "function_call", "call_id": "k", "name": "f", "arguments": "{}"}
OUTPUT: Final[dict[str, Json]] = {"type": "function_call_output", "call_id": "k", "output": "y"}


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        ((ASKED, THOUGHT), 0),
        ((ASKED, THOUGHT, ASKED), 0),
        ((ASKED, THOUGHT, THOUGHT, ASKED), 0),
        ((ASKED, CALL, OUTPUT, THOUGHT, ASKED), 0),
        ((ASKED, THOUGHT, SAID), 1),
        ((ASKED, THOUGHT, THOUGHT, SAID), 2),
        ((ASKED, THOUGHT, CALL, OUTPUT), 1),
        ((ASKED, THOUGHT, CALL, OUTPUT, THOUGHT), 1),
        # By its id OpenAI knows what followed it.
        ((ASKED, {**THOUGHT, "id": None}, ASKED), 1),
    ],
)
def test_reasoning_is_sent_only_with_what_followed_it(items: tuple[dict[str, Json], ...], kept: int) -> None:
    made = exchange(own({"input": [*items]}))
    sent_items = json.loads(made.request.body)["input"]
    assert [item["type"] for item in sent_items].count("reasoning") == kept
    others = [item for item in items if item["type"] != "reasoning"]
    assert [item for item in sent_items if item["type"] != "reasoning"] == others
    left_out = len(items) - len(others) - kept
    assert [notice.rule for notice in made.notices].count("REASONING_NOT_SENT") == left_out


@pytest.mark.parametrize(("limit", "expected"), [(1, 16), (15, 16), (16, 16), (4096, 4096)])
@pytest.mark.parametrize("named", ["none", "openai"])
def test_a_limit_that_openai_refuses_is_raised_and_told(limit: int, expected: int, named: str) -> None:
    policy = Policy(profile=PROFILES.get(named, NEUTRAL))
    for conversation in (asked(sampling=Sampling(max_tokens=limit)), own({"input": "x", "max_output_tokens": limit})):
        opened = exchange(conversation, policy)
        assert json.loads(opened.request.body)["max_output_tokens"] == expected
        told = [notice for notice in opened.notices if notice.rule == "MAX_TOKENS_RAISED"]
        assert len(told) == (limit < expected)
        assert all(conversation.paths.param("max_tokens") in notice.detail for notice in told)


def test_another_provider_gets_a_low_limit_as_it_is() -> None:
    for conversation in (own({"input": "x", "max_output_tokens": 3}), asked(sampling=Sampling(max_tokens=3))):
        assert sent(conversation, Policy(profile=PROFILES["deepseek"]))["max_output_tokens"] == 3
