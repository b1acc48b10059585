"""Every fault is reported with the paths and terms of the client's own dialect."""

import json
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.openai_chat.backend import OpenAIChatAdapter
from adapters.openai_chat.backend.adapter import OpenAIChatOptions
from adapters.openai_chat.client.decode import decode
from adapters.text.backend import TextAdapter
from adapters.text.backend.options import TextOptions
from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Image, Json, NamedTool, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.errors import BackendError, GatewayError, InvalidRequest
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.dialects.faults import Faults
from gateway.exchange import Exchange
from gateway.history.validate import validate
from gateway.providers.profile import Profile
from tests.field_paths import CANONICAL, ITEM_PATHS, itemized, resolve, told
from tests.histories import Message, requests
from tests.history.strategies import broken_turns, calling, numbered, result, user

NATIVE: Final = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
TEXT: Final = TextAdapter(TextOptions(wire="llama_cpp"), 1 << 20)
FLAT: Final = WarpAdapter(WarpOptions(), 1 << 20)
STRUCTURED: Final = WarpAdapter(
    WarpOptions(encoding="structured", prompted=("tool_choice", "response_format")), 1 << 20
)
ADAPTERS: Final[dict[str, Adapter]] = {"native": NATIVE, "text": TEXT, "flat": FLAT, "structured": STRUCTURED}
POLICIES: Final = st.builds(
    Policy,
    repair=st.sampled_from(["repair", "strict", "off"]),
    images=st.sampled_from(["refuse", "placeholder"]),
    orphaned_results=st.sampled_from(["note", "drop"]),
    profile=st.sampled_from([Profile(), Profile(first_turn="user", tool_turns="text"), Profile(reused_ids="keep")]),
)


@given(broken_turns(), POLICIES, st.sampled_from(sorted(ADAPTERS)))
def test_no_text_names_a_place_in_the_words_of_another_dialect(
    turns: tuple[Turn, ...], policy: Policy, name: str
) -> None:
    read, _ = itemized(turns)
    error: GatewayError | None = None
    notices: list[Notice] = []
    try:
        notices = Exchange(ADAPTERS[name], Conversation(read, paths=ITEM_PATHS), policy).notices
    except GatewayError as raised:
        error = raised
    assert [
        text for text in told(error, notices) if CANONICAL.search(text) and "Extracted tool result" not in text
    ] == []


@given(broken_turns(), st.sampled_from([Profile(), Profile(first_turn="user")]))
def test_every_violation_names_a_place_of_the_clients_own_document(turns: tuple[Turn, ...], profile: Profile) -> None:
    read, document = itemized(turns)
    for found in validate(Conversation(read, paths=ITEM_PATHS), profile):
        resolve(found.param, document)
        said = f"{found.param} {found.detail} {found.advice}"
        assert not CANONICAL.search(said) and "tool message" not in said


@given(broken_turns())
def test_the_paths_change_the_words_of_a_violation_and_nothing_else(turns: tuple[Turn, ...]) -> None:
    ours = validate(Conversation(turns, paths=ITEM_PATHS))
    theirs = validate(Conversation(turns))
    assert [(one.rule, one.index, one.tool_call_id) for one in ours] == [
        (one.rule, one.index, one.tool_call_id) for one in theirs
    ]


def test_a_call_and_a_result_have_places_of_their_own() -> None:
    turns, document = itemized((user(), calling("a", "b", text="I look."), result("a"), result("c")))
    first, second = validate(Conversation(turns, paths=ITEM_PATHS))
    assert (first.rule, first.param) == ("CALLS_UNANSWERED", "input[3]")
    assert first.detail == "1 of 2 calls have no result item directly after the message: 'b'"
    assert (second.rule, second.param) == ("TOOL_ID_UNKNOWN", "input[5].call_id")
    assert resolve(second.param, document) == "c"
    assert second.detail == "no call of input[1] has the id 'c'"
    assert second.advice == "Copy the id from the assistant message's call items."


@given(requests())
def test_every_violation_of_a_chat_request_names_a_place_of_its_document(request: Message) -> None:
    for found in validate(decode(json.dumps(request).encode())):
        place, dot, _ = found.param.rpartition(".")
        resolve(place if dot else found.param, request)


def test_a_call_behind_an_entry_that_is_no_call_keeps_the_clients_position() -> None:
    entry: Json = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: Json = [{"role": "user", "content": "hello"}, {"role": "assistant", "tool_calls": ["f", entry, entry]}]
    violations = validate(decode(json.dumps({"model": "m", "messages": messages}).encode()))
    assert [(found.rule, found.param) for found in violations] == [
        ("CALL_TYPE", "messages[1].tool_calls[0]"),
        ("CALL_ID_DUPLICATE", "messages[1].tool_calls[2].id"),
        ("CALLS_UNANSWERED", "messages[1].tool_calls"),
    ]


def test_a_fault_of_shape_has_the_paths_of_its_dialect() -> None:
    faults = Faults(paths=ITEM_PATHS)
    faults.add("CONTENT_MISSING", 3, ".output")
    faults.add("TOOLS_NAME", -1, "functions[0].name")
    assert [found.param for found in faults.found] == ["input[3].output", "functions[0].name"]
    assert faults.found[0].advice.startswith("Send text; only an assistant message with call items may leave it out.")


# The forms of known dialects, as they would be written: one item, one content part, one `parts` entry a block.
FORMS: Final = {
    "items": (
        {"call_id": "input[{item}].call_id", "result_call_id": "input[{item}].call_id"},
        ["input[7].call_id", "input[9].call_id"],
    ),
    "content": (
        {
            "call_id": "messages[{turn}].content[{item}].id",
            "result_call_id": "messages[{turn}].content[{item}].tool_use_id",
        },
        ["messages[1].content[7].id", "messages[2].content[9].tool_use_id"],
    ),
    "parts": (
        {
            "call_id": "contents[{turn}].parts[{item}].functionCall.id",
            "result_call_id": "contents[{turn}].parts[{item}].functionResponse.id",
        },
        ["contents[1].parts[7].functionCall.id", "contents[2].parts[9].functionResponse.id"],
    ),
    "canonical": ({}, ["messages[1].tool_calls[7].id", "messages[2].tool_call_id"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_paths_of_known_dialects_can_be_written(form: str) -> None:
    changes, expected = FORMS[form]
    paths = msgspec.structs.replace(CANONICAL_PATHS, **changes)
    turns = numbered(
        user(), Turn("assistant", (ToolCall("", "f", "{}", item=7),)), Turn("tool", (ToolResult("", (), item=9),))
    )
    assert [found.param for found in validate(Conversation(turns, paths=paths))] == expected


@pytest.mark.parametrize("template", ["input[{index}]", "input[{}]", "input[{0}]"])
def test_a_template_with_an_unknown_field_is_refused_at_once(template: str) -> None:
    with pytest.raises(ValueError, match="call_id has an unknown field"):
        msgspec.structs.replace(CANONICAL_PATHS, call_id=template)


ASKED: Final[dict[str, Json]] = {
    "model": "m",
    "messages": [{"role": "user", "content": "hello"}],
    "tools": [{"type": "function", "function": {"name": "f"}}],
}


def sent(fields: dict[str, Json], paths: FieldPaths = ITEM_PATHS) -> Conversation:
    """The request as it would be read in a dialect with these paths."""
    return msgspec.structs.replace(decode(json.dumps({**ASKED, **fields}).encode()), paths=paths)


JSON_WANTED: Final[dict[str, Json]] = {"type": "json_object"}


@pytest.mark.parametrize(
    ("adapter", "fields", "param"),
    [
        (FLAT, {"response_format": JSON_WANTED}, "text.format"),
        (FLAT, {"tool_choice": "required"}, "calling"),
        (FLAT, {"n": 2}, "count"),
        (NATIVE, {"n": 2}, "count"),
        (TEXT, {"response_format": JSON_WANTED}, "text.format"),
        (STRUCTURED, {"tool_choice": "required", "tools": []}, "calling"),
        (FLAT, {"stop": ["x" * 5000]}, "text.ends"),
    ],
)
def test_a_field_that_cannot_be_honoured_has_the_clients_own_name(
    adapter: Adapter, fields: dict[str, Json], param: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Exchange(adapter, sent(fields), Policy())
    assert caught.value.param == param
    assert [text for text in told(caught.value, ()) if CANONICAL.search(text)] == []


def test_a_field_without_effect_and_a_demand_in_words_have_the_clients_own_names() -> None:
    fields: dict[str, Json] = {"user": "u", "tool_choice": "required", "response_format": JSON_WANTED}
    notices = Exchange(STRUCTURED, sent(fields), Policy()).notices
    details = [notice.detail for notice in notices]
    assert "the backend has no field for 'caller'" in details
    assert "calling is requested in the prompt, and the response is checked" in details
    assert "text.format is requested in the prompt, and the response is checked" in details
    assert [text for text in details if CANONICAL.search(text)] == []


def test_too_many_tools_are_counted_under_the_clients_own_name() -> None:
    asked = msgspec.structs.replace(sent({}), tools=(ToolSpec("f"), ToolSpec("g")))
    with pytest.raises(InvalidRequest) as caught:
        Exchange(NATIVE, asked, Policy(profile=Profile(max_tools=1)))
    assert caught.value.param == "functions"


def test_a_choice_of_an_unknown_tool_has_the_clients_own_name() -> None:
    asked = msgspec.structs.replace(sent({}), tool_choice=NamedTool("g"))
    with pytest.raises(InvalidRequest) as caught:
        Exchange(TEXT, asked, Policy())
    assert (caught.value.param, caught.value.message) == (
        "calling",
        "calling names a function that is not among the tools.",
    )


@pytest.mark.parametrize(
    ("param", "client"),
    [
        ("messages[1].content", "input[4]"),
        ("messages.[1].role", "input[4]"),
        ("messages[9].content", "input"),
        ("messages", "input"),
        ("response_format.json_schema.schema", "text.format"),
        ("temperature", "temperature"),
        (None, None),
    ],
)
def test_the_param_of_a_backends_error_becomes_the_clients_own(param: str | None, client: str | None) -> None:
    body = json.dumps({"error": {"message": "No.", "param": param}}).encode()
    turns = (Turn("user", (Text("a"),), index=2), Turn("user", (Text("b"),), index=4))
    errors: list[BackendError] = []
    for paths in (ITEM_PATHS, CANONICAL_PATHS):
        exchange = Exchange(NATIVE, Conversation(turns, model="m", paths=paths), Policy())
        with pytest.raises(BackendError) as caught:
            exchange.on_response_head(400, {}, body)
        errors.append(caught.value)
    assert [error.param for error in errors] == [client, param]


def test_an_error_inside_a_response_has_the_clients_own_param() -> None:
    exchange = Exchange(TEXT, sent({"stream": True}), Policy())
    exchange.on_response_head(200, {"content-type": exchange.request.accepts[0]})
    with pytest.raises(BackendError) as caught:
        exchange.feed(b'data: {"error": {"message": "the request exceeds the context size", "code": 400}}\n\n')
    assert caught.value.param == "input"


def test_the_advice_on_a_known_refusal_is_in_the_clients_own_words() -> None:
    exchange = Exchange(NATIVE, Conversation((Turn("user", (Text("a"),), index=0),), paths=ITEM_PATHS), Policy())
    body = json.dumps({"error": {"message": "No tool call found for function call output with call_id x."}}).encode()
    with pytest.raises(BackendError) as caught:
        exchange.on_response_head(400, {}, body)
    assert caught.value.extra["advice"] == "Copy call_id from the call; never invent one."


@pytest.mark.parametrize("adapter", [TEXT, FLAT, STRUCTURED], ids=["text", "flat", "structured"])
def test_a_part_that_cannot_be_sent_has_the_clients_own_path(adapter: Adapter) -> None:
    turns, document = itemized(
        (user(), calling("a"), Turn("user", (Text("see"), Image("https://host/a.png"))), result("a"))
    )
    with pytest.raises(InvalidRequest) as caught:
        Exchange(adapter, Conversation(turns, paths=ITEM_PATHS), Policy(repair="off"))
    assert caught.value.param == "input[3]"
    resolve("input[3]", document)
