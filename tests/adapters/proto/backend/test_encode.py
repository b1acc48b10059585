"""What a conversation becomes in the message of a declared backend."""

import json
import re
from typing import Any

import pytest

from adapters.proto.backend import ProtoAdapter, ProtoOptions
from adapters.proto.backend.schema import message_class
from gateway.core.conversation import (
    Conversation,
    Json,
    NamedTool,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import InvalidRequest, OptionError
from gateway.core.policy import Policy
from gateway.providers.registry import PROFILES
from gateway.settings import check_options
from tests.adapters.proto.backend.mappings import DELTAS, PARTS, RELAY, TALK, Entry
from tests.adapters.proto.backend.services import METHODS

USER = Turn("user", (Text("Where?"),), index=0)
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})


def adapter(entry: Entry) -> ProtoAdapter:
    return ProtoAdapter(check_options(entry, ProtoOptions, "options"), 1 << 20)


def sent(service: str, entry: Entry, conversation: Conversation) -> Any:
    """The message in the body, of a carrier that adds nothing to it. (Any: its class exists only at run time.)"""
    bare = {**entry, "carrier": "frames_varint"}
    body = adapter(bare).encode(conversation, Policy()).body
    return message_class(METHODS[service].request).FromString(body)


def called(arguments: str) -> tuple[Turn, ...]:
    call = Turn("assistant", (Text("I look."), ToolCall("c1", "look", arguments)), index=1)
    return (USER, call, Turn("tool", (ToolResult("c1", (Text("Nothing."),)),), index=2))


def test_turns_keep_their_order_and_results_know_their_call() -> None:
    message = sent("parts", PARTS, Conversation(called('{"at": "door"}'), (LOOK,), model="m"))
    assert [turn.speaker for turn in message.turns] == [2, 3, 4]
    text, call = message.turns[1].parts
    assert (text.text, call.call.id, call.call.name, dict(call.call.fields)) == (
        "I look.",
        "c1",
        "look",
        {"at": "door"},
    )
    result = message.turns[2].parts[0].result
    assert (result.id, result.name, result.text) == ("c1", "look", "Nothing.")
    assert (message.tools[0].name, message.tools[0].about) == ("look", "Looks.")
    assert dict(message.labels) == {"from": "gateway"}


def test_developers_speak_as_the_system() -> None:
    turns = (Turn("developer", (Text("Rules."),)), USER)
    assert [turn.speaker for turn in sent("parts", PARTS, Conversation(turns)).turns] == [1, 2]


@pytest.mark.parametrize(
    ("choice", "how", "tools"),
    [("auto", None, 1), ("none", "mode", 0), ("required", "mode", 1), (NamedTool("look"), "tool", 1)],
)
def test_a_choice_is_the_variant_of_its_case(choice: ToolChoice, how: str | None, tools: int) -> None:
    message = sent("parts", PARTS, Conversation((USER,), (LOOK,), choice))
    assert (message.choice.WhichOneof("how"), len(message.tools)) == (how, tools)
    assert message.HasField("choice") is (how is not None)


@pytest.mark.parametrize("arguments", ["no JSON", "[1]", '{"a":' * 60 + "1" + "}" * 60])
def test_arguments_that_are_no_object_are_sent_as_text(arguments: str) -> None:
    conversation = Conversation(called(arguments), (LOOK,))
    request = adapter(PARTS).encode(conversation, Policy())
    assert [notice.rule for notice in request.notices] == ["ARGUMENTS_AS_TEXT"]
    fields = sent("parts", PARTS, conversation).turns[1].parts[1].call.fields
    assert dict(fields) == {"arguments": arguments}


def test_empty_arguments_are_an_empty_object() -> None:
    call = sent("parts", PARTS, Conversation(called(""), (LOOK,))).turns[1].parts[1].call
    assert call.HasField("fields") and dict(call.fields) == {}


def test_arguments_in_bytes_stay_as_they_are_and_json_is_text() -> None:
    message = sent("deltas", DELTAS, Conversation(called("no JSON"), (LOOK,)))
    assert message.messages[1].calls[0].arguments == b"no JSON"
    assert message.functions[0].parameters.startswith(b'{"schema":{"type":"object"') and message.max_tokens == 256


def test_what_no_name_stands_for_is_told() -> None:
    turns = (Turn("user", (Text("?"),), name="Ann"), Turn("assistant", (Reasoning("Hm."), Text("!"))), USER)
    request = adapter(PARTS).encode(Conversation(turns), Policy())
    assert [notice.rule for notice in request.notices] == ["FIELD_NOT_SENT"]
    assert "reasoning (1), name (1)" in request.notices[0].detail


def test_zero_is_a_value_and_none_is_not() -> None:
    conversation = Conversation((USER,), sampling=Sampling(temperature=0.0, seed=0))
    message = sent("talk", TALK, conversation)
    assert message.HasField("seed") and not sent("talk", TALK, Conversation((USER,))).HasField("seed")
    wrapped = sent("parts", PARTS, conversation)
    assert wrapped.HasField("temperature") and not wrapped.HasField("most_tokens")


@pytest.mark.parametrize("tokens", [2**31, -(2**31) - 1])
def test_a_number_out_of_range_is_refused(tokens: int) -> None:
    with pytest.raises(InvalidRequest, match="max_tokens is out of the range"):
        sent("talk", TALK, Conversation((USER,), sampling=Sampling(max_tokens=tokens)))


@pytest.mark.parametrize("temperature", [10**400, -(10**400)], ids=["above", "below"])
def test_a_number_that_no_double_holds_is_refused(temperature: int) -> None:
    with pytest.raises(InvalidRequest, match="temperature is out of the range"):
        sent("parts", PARTS, Conversation((USER,), sampling=Sampling(temperature=temperature)))
    entry = {**PARTS, "request": {**PARTS["request"], "temperature": "$request.heat"}}
    with pytest.raises(InvalidRequest, match="heat must be a value of the type"):
        sent("parts", entry, Conversation((USER,), params={"heat": temperature}))


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="half of a surrogate pair"):
        sent("parts", PARTS, Conversation((Turn("user", (Text("\ud800"),)),)))


@pytest.mark.parametrize(("value", "fits"), [("de", True), (7, False), ([], False)])
def test_a_field_of_the_client_must_have_the_type_of_the_backends(value: Json, fits: bool) -> None:
    entry = {**PARTS, "request": {**PARTS["request"], "labels": {"language": "$request.language"}}}
    conversation = Conversation((USER,), params={"language": value})
    assert "language" in adapter(entry).capabilities.supported_params
    if fits:
        assert dict(sent("parts", entry, conversation).labels) == {"language": value}
        return
    with pytest.raises(InvalidRequest, match="language must be a value of the type string") as refused:
        sent("parts", entry, conversation)
    assert refused.value.param == "language"


@pytest.mark.parametrize(
    ("entry", "tools", "params"),
    [
        (TALK, True, {"model", "max_tokens", "temperature", "seed"}),
        (PARTS, True, {"model", "max_tokens", "temperature", "tool_choice"}),
        (DELTAS, True, {"model", "max_tokens", "stop"}),
        ({**DELTAS, "max_stops": 4}, True, {"model", "max_tokens"}),
    ],
)
def test_capabilities_follow_from_the_mapping(entry: Entry, tools: bool, params: set[str]) -> None:
    capabilities = adapter(entry).capabilities
    assert capabilities.tools is tools
    assert capabilities.text_only is (entry is TALK)
    assert capabilities.supported_params - {"max_completion_tokens", "parallel_tool_calls"} == params


def test_a_message_is_described_with_the_names_of_its_fields() -> None:
    made = adapter(PARTS)
    described = made.describe(made.encode(Conversation((USER,), model="m"), Policy()).body)
    assert isinstance(described, dict) and described["model"] == "m"


def test_a_request_as_json_keeps_to_the_rules_of_its_provider() -> None:
    bare = {**RELAY, "carrier": "frames_varint"}
    asked = Conversation((USER,), model="m", sampling=Sampling(max_tokens=9))
    request = adapter(bare).encode(asked, Policy(profile=PROFILES["openai"]))
    message: Any = message_class(METHODS["relay"].request).FromString(request.body)
    body = json.loads(message.body)
    assert body.get("max_completion_tokens") == 9
    assert "max_tokens" not in body
    assert [notice.rule for notice in request.notices] == ["REQUEST_FIELD_RENAMED"]


@pytest.mark.parametrize(
    ("form", "labels"),
    [
        ({"$with": "$model", "a": "b"}, {"a": "b"}),
        ({"$without": "$model", "a": "b"}, {}),
        ({"$with": "$model", "as": {"a": "$model"}}, {"a": "m"}),
        ({"$with": "$seed", "as": {"a": "b"}}, {}),
        ({"$case": "$choice", "auto": {"a": "b"}, "none": {"c": "d"}}, {"a": "b"}),
        ({"a": {"$with": "$seed", "as": "b"}, "c": "d"}, {"c": "d"}),
        ({"$x": "b"}, {"$x": "b"}),
    ],
)
def test_a_map_has_conditions_and_cases(form: Json, labels: dict[str, str]) -> None:
    entry = {**PARTS, "request": {**PARTS["request"], "labels": form}}
    assert dict(sent("parts", entry, Conversation((USER,), (LOOK,), model="m")).labels) == labels


@pytest.mark.parametrize("key", ["$each", "$json", "$call"])
def test_a_form_that_cannot_be_a_map_is_refused(key: str) -> None:
    with pytest.raises(OptionError, match=re.escape(f"request.labels.{key}: it cannot stand in a map")):
        adapter({**PARTS, "request": {**PARTS["request"], "labels": {key: "$model"}}})
