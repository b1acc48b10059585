"""A mapping that loses a part of some requests is refused at start, and what only some requests lose is told."""

import copy
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.core.conversation import Conversation, Image, Json, Text, ToolResult, Turn
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.policy import Policy
from gateway.core.requirements import broken
from gateway.exchange import Exchange
from tests.adapters.proto.backend.mappings import FORMS, LISTS, SINGLE, TALK, Entry
from tests.adapters.proto.backend.test_encode import USER, adapter, sent
from tests.adapters.proto.backend.test_mistakes import refusal
from tests.adapters.proto.backend.test_names import rules, written
from tests.adapters.proto.backend.test_several_messages import TOOLS, calling, conversation, turns_of

MESSAGES: Final = LISTS["request"]["messages"]
ENTRIES: Final = FORMS["request"]["entries"]
FUNCTION: Final = LISTS["request"]["tools"]["as"]["function"]


def entries(role: str, form: Json) -> Entry:
    """The mapping of `forms` with another form of the turns of one role."""
    return written(FORMS, entries={**copy.deepcopy(ENTRIES), role: form})


def with_parts(**forms: Json) -> Entry:
    """The mapping of `forms` with other forms of a user's parts."""
    user = copy.deepcopy(ENTRIES["user"])
    user["blocks"].update(forms)
    return entries("user", user)


def with_tool(without: str, **more: Json) -> Entry:
    """The mapping of `lists` whose tools lack a field."""
    kept = {key: value for key, value in FUNCTION.items() if key != without}
    return written(LISTS, tools={"$each": "$tools", "as": {"function": {**kept, **more}}})


# The mapping of `lists` without a name for a shape of the response.
SHAPELESS: Final = {key: value for key, value in LISTS["request"].items() if key not in ("json_object", "json_schema")}
BARE: Final[Entry] = {**LISTS, "request": SHAPELESS}
FLAG: Final[Json] = {"$case": "$format", "json_schema": True}
# The user's images only in turns without text.
TEXT_OR_IMAGES: Final[Json] = [
    {"$with": "$text", "role": "person", "blocks": [{"text": "$text"}]},
    {"$without": "$text", **ENTRIES["user"]},
]
WITHOUT_IMAGES: Final = {key: form for key, form in ENTRIES["user"]["blocks"].items() if key != "image"}
IMAGES_WITH_TEXT: Final[Json] = [
    {"$with": "$text", **ENTRIES["user"]},
    {"$without": "$text", "role": "person", "blocks": WITHOUT_IMAGES},
]

REFUSED: Final[list[tuple[Entry, str]]] = [
    (entries("user", TEXT_OR_IMAGES), "no field gets the images of a turn beside text"),
    (with_parts(image={"media": {"type": "$media_type"}}), "no field gets the images of a turn beside text"),
    (with_parts(image=[]), "no field gets the images of a turn beside text"),
    (entries("user", IMAGES_WITH_TEXT), "no field gets the images of a turn without text"),
    (
        turns_of(SINGLE, "assistant", {"content": "$text", "function_call": {"$call": {"name": "$name"}}}),
        "no field gets $arguments of the calls of a turn beside text",
    ),
    (with_tool("name"), "no field gets $name of a tool with a description"),
    (with_tool("parameters"), "no field gets $parameters of the tools"),
    (
        written(LISTS, tools={"$each": "$tools", "as": {"$with": "$description", "function": FUNCTION}}),
        "no field gets $name of a tool without a description",
    ),
    (
        written(LISTS, json_schema={"$case": "$format", "json_schema": {}}),
        "no field gets $schema for 'json_schema', whose requests have a schema",
    ),
    (
        written(BARE, json_schema={"$case": "$format", "json_object": {"schema": "$schema"}}),
        "no field gets $schema for 'json_schema', whose requests have a schema",
    ),
    (written(BARE, json_object={"$with": "$format", "as": True}), "$format is only in conditions"),
    (
        turns_of(LISTS, "tool", {"$with": "$text", **MESSAGES["tool"]}),
        "a trial request loses a turn: no condition of the mapping holds for a turn of the role 'tool'",
    ),
    *(
        (turns_of(LISTS, role, {"$without": name, **MESSAGES[role]}), f"no field gets the text of the role '{role}'")
        for role, name in [
            ("tool", "$is_error"),
            ("user", "$speaker"),
            ("user", "$stop"),
            ("user", "$max_tokens"),
            ("tool", "$seed"),
            ("user", "$effort"),
            ("system", "$top_p"),
            ("system", "$schema"),
        ]
    ),
]


@pytest.mark.parametrize(("entry", "said"), REFUSED, ids=[f"{n} {said[:50]}" for n, (_, said) in enumerate(REFUSED)])
def test_a_mapping_that_loses_a_part_of_some_requests_is_refused(entry: Entry, said: str) -> None:
    assert refusal(entry).startswith(f"backends.x.request: {said}")


def test_a_turn_for_which_no_condition_holds_is_told() -> None:
    entry = turns_of(LISTS, "user", {"$without": "$request.user", **MESSAGES["user"]})
    assert not sent("lists", entry, Conversation((USER,), params={"user": "ann"})).messages
    notices = adapter(entry).encode(Conversation((USER,), params={"user": "ann"}), Policy()).notices
    assert [(one.rule, one.action, one.level, one.index) for one in notices] == [
        ("TURN_NOT_SENT", "dropped", "warning", 0)
    ]
    assert not adapter(entry).encode(Conversation((USER,)), Policy()).notices


def test_a_result_of_no_call_for_which_no_condition_holds_is_told() -> None:
    entry = turns_of(LISTS, "tool", {"$with": "$name", **MESSAGES["tool"]})
    orphan = Turn("tool", (ToolResult("c9", (Text("late"),)),), index=2)
    notices = adapter(entry).encode(conversation(calling(("c1", "look")), orphan), Policy()).notices
    (lost,) = [one for one in notices if one.action == "dropped" and one.level == "warning"]
    assert (lost.rule, lost.index, broken(lost)) == ("TURN_NOT_SENT", 2, ("tools",))


def test_a_turn_without_a_message_is_lost_with_its_calls_and_images() -> None:
    unless = {"$without": "$request.user"}
    picture = Turn("user", (Image("data:image/png;base64,aGk="),), index=1)
    calls = [{**form, **unless} for form in MESSAGES["assistant"]]
    for entry, turn, words in (
        (turns_of(LISTS, "assistant", calls), calling(("c1", "look")), ("tools",)),
        (entries("user", {**ENTRIES["user"], **unless}), picture, ("images",)),
        (entries("user", {**ENTRIES["user"], **unless}), USER, ()),
    ):
        asked = Conversation((USER, turn), params={"user": "ann"})
        lost = [one for one in adapter(entry).encode(asked, Policy()).notices if one.rule == "TURN_NOT_SENT"]
        assert broken(lost[-1]) == words, turn


def test_a_turn_that_says_nothing_may_have_no_message() -> None:
    silent = Turn("assistant", (Text(""),), index=1)
    assert not adapter(LISTS).encode(Conversation((USER, silent, USER)), Policy()).notices


def test_a_condition_alone_sends_nothing_of_a_field() -> None:
    """The client is told that the backend has no field for it, or is refused."""
    options = {**LISTS["request"]["options"], "one_call": {"$with": "$effort", "as": True}}
    entry = written(LISTS, options=options)
    assert "reasoning_effort" not in adapter(entry).capabilities.supported_params
    asked = Conversation((USER,), params={"reasoning_effort": "high"})
    assert rules(entry, asked) == ["FIELD_NOT_SENT: the backend has no field for 'reasoning_effort'"]


def test_a_condition_alone_is_no_place_for_tools_or_state() -> None:
    options = {key: value for key, value in SINGLE["request"]["options"].items() if key != "functions"}
    assert "a rule `call`, but no $tools" in refusal(written(SINGLE, options=options))
    entry = copy.deepcopy(FORMS)
    blocks = entry["request"]["entries"]["assistant"]["blocks"]
    del blocks["call"]["call"]["seal"], blocks["reasoning"]["thought"]["seal"]
    assert "a rule `opaque`, but no $opaque" in refusal(entry)


def test_a_condition_alone_is_no_place_for_details_and_names() -> None:
    picture = Image("data:image/png;base64,aW1hZ2U=", {"detail": "low"})
    entry = with_parts(image={"media": {"data": "$bytes", "type": {"$with": "$detail", "as": "image/png"}}})
    assert "detail" not in adapter(entry).capabilities.carries
    told = rules(entry, Conversation((Turn("user", (Text("See"), picture), index=0),)))
    assert told == ["FIELD_NOT_SENT: the backend has no field for detail (1) of messages"]


def test_a_flag_in_a_condition_counts_as_sent() -> None:
    forms: Json = [
        {"$with": "$is_error", "role": "failure", "text": "$text"},
        {"$without": "$is_error", "role": "result", "text": "$text"},
    ]
    assert "is_error" in adapter(turns_of(LISTS, "tool", forms)).capabilities.carries


def test_a_condition_alone_sends_no_schema_on_a_wire_of_text() -> None:
    entry = written(TALK, seed={"$with": "$schema", "as": 1})
    assert "response_format" not in adapter(entry).capabilities.supported_params
    assert "temperature" in adapter(entry).capabilities.supported_params


def test_a_format_in_conditions_beside_a_schema_is_any_object_or_a_schema() -> None:
    entry = written(BARE, json_schema={"$with": "$format", "schema": "$schema"})
    for kind in ("json_object", "json_schema"):
        asked = Conversation((USER,), params={"response_format": {"type": kind}})
        assert sent("lists", entry, asked).json_schema.schema["type"] == "object"


@pytest.mark.parametrize("kind", ["grammar", "regex"])
def test_an_unknown_shape_is_no_object(kind: str) -> None:
    entry = written(BARE, json_schema={"$with": "$schema", "schema": "$schema"})
    asked = Conversation((USER,), params={"response_format": {"type": kind, kind: "x"}})
    with pytest.raises(Unsupported) as refused:
        Exchange(adapter(entry), asked, Policy())
    assert f"'{kind}' is not supported" in refused.value.message and refused.value.param == "response_format"


STRICT: Final = """syntax = "proto2";
package acme.strict.v1;
message Tool { required string name = 1; DESCRIPTION string description = 2; optional string parameters = 3; }
message Origin { required string user = 1; optional string of = 2; }
message Turn { required string role = 1; optional string text = 2; repeated Call calls = 3; optional Origin by = 4; }
message Call { required string name = 1; required string arguments = 2; }
message Ask { repeated Turn turns = 1; repeated Tool tools = 2; optional Origin origin = 3; }
message Answer { optional string text = 1; repeated Call calls = 2; optional bool done = 3; }
service Strict { rpc Ask(acme.strict.v1.Ask) returns (stream Answer); }
"""


def strict(tmp_path: Path, description: str, **fields: Any) -> Entry:
    """A mapping of a service of proto2. (Any: JSON.)"""
    (tmp_path / "strict.proto").write_text(STRICT.replace("DESCRIPTION", description))
    call: Json = {"name": "$name", "arguments": "$arguments"}
    turns: Json = {
        "$each": "$turns",
        "by": "$role",
        "system": {"role": "system", "text": "$text"},
        "user": {"role": "user", "text": "$text"},
        "assistant": {"role": "assistant", "text": "$text", "calls": {"$each": "$calls", "as": call}},
        "tool": {"role": "tool", "text": "$text"},
    }
    tool = {"name": "$name", "description": "$description", "parameters": "$parameters"}
    return {
        "schema": {"files": [str(tmp_path / "strict.proto")]},
        "carrier": "frames_varint",
        "method": "acme.strict.v1.Strict/Ask",
        "request": {"turns": turns, "tools": {"$each": "$tools", "as": tool}, **fields},
        "read": [
            {"text": "text", "finish": {"at": "done"}},
            {"call": {"each": "calls", "name": "name", "arguments": "arguments"}},
        ],
    }


def test_a_required_field_that_some_requests_lack_is_refused_at_start(tmp_path: Path) -> None:
    assert "missing required fields: tools[1].description" in refusal(strict(tmp_path, "required"))


def test_a_request_without_a_required_field_is_the_clients_fault(tmp_path: Path) -> None:
    origin: Json = {"$with": "$request.metadata_of", "user": "$request.user", "of": "$request.metadata_of"}
    made = adapter(strict(tmp_path, "optional", origin=origin))
    assert made.encode(Conversation((USER,), TOOLS, params={"user": "ann", "metadata_of": "x"}), Policy()).body
    with pytest.raises(InvalidRequest, match=r"no value for origin\.user, which the backend's message requires"):
        made.encode(Conversation((USER,), TOOLS, params={"metadata_of": "x"}), Policy())
