"""Of a request of another dialect only the values reach an OpenAI-compatible backend."""

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import (
    EMPTY,
    Conversation,
    File,
    Image,
    Json,
    JsonObject,
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
from gateway.core.events import Event, PassthroughFields, TextDelta
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.providers.profile import Profile
from gateway.testing.replay import replay
from tests.adapters.openai_chat.backend.wires import chunk, completion, sse
from tests.histories import ANY_PROFILE, requests

ADAPTER: Final = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
CANARY: Final = "other_dialect"
UNKNOWN: Final[JsonObject] = {CANARY: {"x": 1}}
PLACEHOLDER: Final = Policy(images="placeholder")


def exchange(conversation: Conversation, policy: Policy = PLACEHOLDER) -> Exchange:
    return Exchange(ADAPTER, conversation, policy)


def sent(conversation: Conversation, policy: Policy = PLACEHOLDER) -> Any:  # Any: read with json
    return json.loads(exchange(conversation, policy).request.body)


def of_other_dialect(conversation: Conversation, *, sourced: bool) -> Conversation:
    """The conversation as another dialect would have decoded it, its turns with sources of that dialect or without."""
    turns = tuple(msgspec.structs.replace(turn, source=_retagged(turn, sourced)) for turn in conversation.turns)
    params = {"user": "u", "temperature": 0.5}
    return msgspec.structs.replace(conversation, turns=turns, params=params, dialect="messages")


def _retagged(turn: Turn, sourced: bool) -> Source | None:
    source = turn.source
    if source is None or not sourced:
        return None
    return Source("messages", {**source.value, CANARY: 1}, source.listed, source.unread)


def outcome(conversation: Conversation, policy: Policy) -> bytes | str:
    try:
        return exchange(conversation, policy).request.body
    except InvalidRequest as error:
        return error.message


def test_the_fields_of_another_dialect_keep_their_order_before_the_sampling() -> None:
    params: dict[str, Json] = {"verbosity": "low", "temperature": 0.5, "user": "u", "logit_bias": {"1": 1}}
    conversation = Conversation((Turn("user", (Text("a"),)),), params=params, sampling=Sampling(0.5, seed=1))
    assert [*sent(conversation)][2:] == ["verbosity", "user", "logit_bias", "temperature", "seed"]


@given(requests(), ANY_PROFILE)
def test_a_source_of_another_dialect_is_none(request: dict[str, Json], profile: Profile) -> None:
    policy = Policy(profile=profile, images="placeholder")
    conversation = decode(json.dumps(request).encode())
    with_sources = outcome(of_other_dialect(conversation, sourced=True), policy)
    assert with_sources == outcome(of_other_dialect(conversation, sourced=False), policy)
    assert CANARY not in str(with_sources)


def test_a_source_of_another_dialect_is_not_sent_in_a_request_of_ours() -> None:
    turn = Turn("user", (Text("x"),), source=Source("messages", {"role": "user", CANARY: 1}))
    assert sent(Conversation((turn,), dialect="openai_chat"))["messages"] == [{"role": "user", "content": "x"}]


def test_the_parameters_of_the_published_api_are_sent_and_the_others_are_told() -> None:
    params: JsonObject = {
        "response_format": {"type": "json_object"},
        "reasoning_effort": "low",
        "metadata": {"a": "b"},
        "user": None,
        "top_k": 4,
        CANARY: 1,
    }
    asked = exchange(Conversation((Turn("user", (Text("x"),)),), model="m", params=params, dialect="messages"))
    assert json.loads(asked.request.body) == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "response_format": {"type": "json_object"},
        "reasoning_effort": "low",
        "metadata": {"a": "b"},
    }
    assert [notice.detail for notice in asked.notices] == [
        "the backend has no field for 'top_k'",
        f"the backend has no field for {CANARY!r}",
    ]


STATE: Final[JsonObject] = {"extra_content": {"google": {"thought_signature": "s"}}}


def test_a_providers_state_is_sent_and_fields_of_another_dialect_are_told() -> None:
    extra: JsonObject = {**STATE, **UNKNOWN}
    turns = (
        Turn(
            "user",
            (Text("see", UNKNOWN), Image("data:image/png;base64,aGk=", {"detail": "low", **UNKNOWN})),
            index=0,
            extra=UNKNOWN,
        ),
        Turn("assistant", (Reasoning("hm", extra=extra), ToolCall("k", "look", "{}", extra)), index=1),
        Turn("tool", (ToolResult("k", (Text("a cat", UNKNOWN),)),), index=2, extra=UNKNOWN),
        Turn("assistant", (Text("No.", {"type": "refusal"}), Text("?", {"type": CANARY})), index=3, extra=extra),
    )
    tools = (ToolSpec("look", strict=True, extra={"function": {CANARY: 1}, "cache_control": 1}),)
    asked = exchange(Conversation(turns, tools, dialect="messages", other_tools=(OtherTool("web_search"),)))
    image: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}
    called: Json = {"id": "k", "type": "function", "function": {"name": "look", "arguments": "{}"}, **STATE}
    refusal: Json = {"type": "refusal", "refusal": "No."}
    body = json.loads(asked.request.body)
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "see"}, image]},
        {"role": "assistant", "content": None, "reasoning_content": "hm", **STATE, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "k", "content": "a cat"},
        {"role": "assistant", "content": [refusal, {"type": "text", "text": "?"}], **STATE},
    ]
    assert body["tools"] == [{"type": "function", "function": {"name": "look", "strict": True}}]
    assert [notice.detail for notice in asked.notices if notice.level != "debug"] == [
        "the backend has no tool of type 'web_search'"
    ]
    assert [notice.detail for notice in asked.notices if notice.rule == "FIELD_NOT_SENT"] == [
        f"the backend has no field for {CANARY} (8) of messages",
        f"the backend has no field for cache_control (1), {CANARY} (1) of tools",
    ]


def test_a_part_in_the_words_of_another_dialect_is_refused_or_replaced() -> None:
    part = File("document", {"type": "document", CANARY: 1})
    asked = Conversation((Turn("user", (part,), index=0),), dialect="messages")
    with pytest.raises(Unsupported):
        exchange(asked, Policy())
    assert sent(asked)["messages"] == [{"role": "user", "content": "[document]"}]


def test_a_request_of_no_dialect_is_built_from_its_values() -> None:
    asked = Conversation((Turn("user", (Text("x", UNKNOWN),)),), params={"user": "u", CANARY: 1})
    assert (asked.dialect, asked.turns[0].extra) == ("", EMPTY)
    assert sent(asked) == {"model": "", "messages": [{"role": "user", "content": "x"}], "user": "u"}


def test_only_the_state_of_the_compatible_provider_is_sent() -> None:
    states: JsonObject = {"anthropic": {"signature": "a"}, "openai": {"encrypted_content": "o"}, "google": {"s": "g"}}
    extra: JsonObject = {"extra_content": dict(states)}
    blocks = (Reasoning("hm", extra=extra), Text("x", extra), ToolCall("k", "look", "{}", extra))
    turns = (
        Turn("user", (Text("?"),), index=0),
        Turn("assistant", blocks, index=1, extra=extra),
        Turn("tool", (ToolResult("k", (Text("!", extra),)),), index=2),
    )
    asked = exchange(Conversation(turns, (ToolSpec("look"),), dialect="messages"))
    assert b"signature" not in asked.request.body and b"encrypted" not in asked.request.body
    assert asked.request.body.count(b'"google"') == 4
    (notice,) = [notice for notice in asked.notices if notice.rule == "FIELD_NOT_SENT"]
    assert "extra_content.anthropic (5), extra_content.openai (5)" in notice.detail


def answered(wire: bytes, dialect: str) -> list[Event]:
    conversation = Conversation((Turn("user", (Text("x"),)),), dialect=dialect)
    return replay(ADAPTER.decoder(conversation), [wire])


UNKNOWN_DELTA: Final = chunk({"content": "a", "mood": "calm"}, service_tier="fast")


@pytest.mark.parametrize("streams", [True, False])
def test_fields_of_the_wire_reach_its_own_dialect_alone(streams: bool) -> None:
    wire = sse(UNKNOWN_DELTA, UNKNOWN_DELTA, chunk(finish="stop"))
    if not streams:
        wire = completion({"content": "a", "mood": "calm"}, service_tier="fast")
    passed = [event for event in answered(wire, "openai_chat") if isinstance(event, PassthroughFields)]
    assert PassthroughFields("delta", {"mood": "calm"}) in passed
    told = answered(wire, "messages")
    assert not any(isinstance(event, PassthroughFields) for event in told)
    assert [event.detail for event in told if isinstance(event, Notice)] == [
        "the client's dialect has no field for service_tier",
        "the client's dialect has no field for mood",
    ]


@pytest.mark.parametrize("streams", [True, False])
def test_a_refusal_is_the_text_of_another_dialect(streams: bool) -> None:
    wire = completion({"content": None, "refusal": "No."})
    if streams:
        wire = sse(chunk({"refusal": "No"}), chunk({"refusal": "."}), chunk(finish="stop"))
    assert PassthroughFields("delta", {"refusal": "No" if streams else "No."}) in answered(wire, "openai_chat")
    told = answered(wire, "messages")
    assert "".join(event.text for event in told if isinstance(event, TextDelta)) == "No."
    assert [event.rule for event in told if isinstance(event, Notice)] == ["REFUSAL_AS_TEXT"]
