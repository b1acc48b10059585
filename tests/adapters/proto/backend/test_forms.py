"""The forms of values that few services have: maps, messages, bytes, tensors, JSON in a field, opaque state."""

import base64
import json
import struct
from typing import Any

import pytest

from adapters.proto.backend.effort_notices import EffortNotices
from gateway.core.conversation import (
    Conversation,
    Image,
    Json,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import BackendError, InvalidRequest
from gateway.core.events import Event, ReasoningDelta, ReasoningEnd, TextDelta, ToolCallDelta, UsageReport
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.provider_state import provider_state, with_provider_state
from gateway.testing.events import fold
from gateway.testing.replay import replay
from tests.adapters.proto.backend.mappings import FORMS, RELAY, TENSORS, Entry
from tests.adapters.proto.backend.services import WRITERS, answer, b64, element, raw, tensor
from tests.adapters.proto.backend.test_encode import USER, adapter, sent
from tests.adapters.proto.backend.test_read_rules import events

LOOK = ToolSpec("look", parameters={"type": "object", "required": ["depth"]})
SEAL = with_provider_state("acme", {"seal": "c2VhbGVk"})


def called(arguments: str, **call: Any) -> Conversation:
    turns = (
        USER,
        Turn("assistant", (Reasoning("Hm.", extra=SEAL), ToolCall("c1", "look", arguments, **call)), index=1),
        Turn("tool", (ToolResult("c1", (Text("A cat."),)),), index=2),
        Turn("user", (Text("And now?"), Image("data:image/png;base64,aW1hZ2U=")), index=3),
    )
    return Conversation(turns, (LOOK,), model="m")


def with_call(**fields: Json) -> Entry:
    """The mapping with another form of a call."""
    entries = FORMS["request"]["entries"]
    blocks = {**entries["assistant"]["blocks"], "call": {"call": {"name": "$name", "seal": "$opaque", **fields}}}
    assistant = {**entries["assistant"], "blocks": blocks}
    return {**FORMS, "request": {**FORMS["request"], "entries": {**entries, "assistant": assistant}}}


def test_results_and_images_are_parts_and_neighbours_are_joined() -> None:
    entries = sent("forms", FORMS, called('{"at": "x", "deep": {"a": 1}}', extra=SEAL)).entries
    assert [entry.role for entry in entries] == ["person", "model", "person"]
    thought, call = entries[1].blocks
    assert (thought.thought.text, thought.thought.seal, call.call.seal) == ("Hm.", b"sealed", b"sealed")
    assert dict(call.call.fields) == {"at": "x", "deep": '{"a":1}'}
    result, text, image = entries[2].blocks
    assert dict(result.result.body) == {"said": "A cat.", "kind": "text"}
    assert (text.text, image.media.type, image.media.data) == ("And now?", "image/png", b"image")


def test_reasoning_of_another_provider_is_dropped_with_a_notice() -> None:
    turns = (USER, Turn("assistant", (Reasoning("Hm."), Text("!")), index=1), USER)
    request = adapter(FORMS).encode(Conversation(turns), Policy())
    assert [notice.rule for notice in request.notices] == ["REASONING_NOT_SENT"]


def test_arguments_fill_a_message_or_are_refused() -> None:
    entry = with_call(input="$arguments")
    (call,) = sent("forms", entry, called('{"at": "x", "depth": 9007199254740993}')).entries[1].blocks[1:]
    assert (call.call.input.at, call.call.input.depth) == ("x", 9007199254740993)
    for arguments in ('{"unknown": 1}', '{"depth": "deep"}', f'{{"heat": {10**400}}}', "no JSON"):
        with pytest.raises(InvalidRequest, match="arguments of a tool or a call do not fit the backend's Input"):
            sent("forms", entry, called(arguments))


def test_state_that_is_not_the_backends_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="not what the backend sent"):
        sent("forms", FORMS, called("{}", extra=with_provider_state("acme", {"seal": "?"})))


@pytest.mark.parametrize(("effort", "value"), [("low", 1), ("high", 2), ("medium", 0), (None, 0)])
def test_an_effort_is_a_value_or_a_notice(effort: str | None, value: int) -> None:
    conversation = Conversation((USER,), params={"reasoning_effort": effort}, sampling=Sampling(temperature=0.5))
    notices = [notice.detail for notice in adapter(FORMS).encode(conversation, Policy()).notices]
    assert sent("forms", FORMS, conversation).effort == value
    assert notices == (["the backend has no value for the reasoning effort 'medium'"] if effort == "medium" else [])


def sealed(mode: str, *messages: dict[str, Any]) -> list[Event]:
    """What these messages become where the seals of thoughts come whole, or in pieces."""
    thought = {"each": "blocks", "reasoning": "thought.text", "text": "text"}
    read = [{**thought, "opaque": {"at": "thought.seal", "on": "reasoning", "mode": mode}}, *FORMS["read"][2:]]
    read[1] = {**read[1], "rules": read[1]["rules"][1:]}
    return events("forms", {**FORMS, "read": read}, *messages, {"labels": {"why": "halt"}})


def thoughts(found: list[Event]) -> list[object]:
    kept = [event for event in found if isinstance(event, ReasoningDelta | ReasoningEnd | TextDelta)]
    return [event.text if not isinstance(event, ReasoningEnd) else state_of(event) for event in kept]


def state_of(ended: ReasoningEnd) -> object:
    state = provider_state(ended.extra, "acme")["seal"]
    assert isinstance(state, str)
    return base64.b64decode(state)


def test_the_pieces_of_a_state_are_one_until_text_follows() -> None:
    """Their bytes are joined, not their base64, and reasoning may stand between them."""
    pieces = [{"thought": {"text": text, "seal": b64(seal)}} for text, seal in (("Hm", "m"), (".", "i"), ("", "nd"))]
    messages = [{"blocks": [piece]} for piece in pieces]
    late = {"blocks": [{"text": "Hi"}, {"thought": {"seal": b64("set")}}]}
    assert thoughts(sealed("delta", *messages, late)) == ["Hm", ".", b"mind", "Hi", b"set"]
    assert thoughts(sealed("whole", *messages, late)) == ["Hm", b"m", ".", b"i", b"nd", "Hi", b"set"]
    assert thoughts(sealed("delta", {"blocks": pieces}, {"blocks": [late["blocks"][0]]})) == ["Hm", ".", b"mind", "Hi"]


def test_the_pieces_of_a_state_are_one_until_a_call_or_the_end_follows() -> None:
    piece = {"blocks": [{"thought": {"seal": b64("x")}}]}
    assert thoughts(sealed("delta", piece, piece)) == [b"xx"]
    assert thoughts(sealed("delta", piece, {"blocks": [{"call": {"name": "look"}}]}, piece)) == [b"x", b"x"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"minimal": "EFFORT_LITTLE", "low": "EFFORT_LITTLE", "high": "EFFORT_MUCH"}, {"minimal": "low"}),
        (
            {"medium": "EFFORT_MUCH", "high": "EFFORT_MUCH", "xhigh": "EFFORT_MUCH"},
            {"high": "medium", "xhigh": "medium"},
        ),
        ({"none": "EFFORT_LITTLE", "low": "EFFORT_LITTLE"}, {"none": "low"}),
        ({"low": "EFFORT_LITTLE", "high": "EFFORT_MUCH"}, {}),
    ],
)
def test_efforts_with_one_value_are_told_but_for_the_middle_one(said: dict[str, Any], told: dict[str, str]) -> None:
    forms = {**FORMS, "request": {**FORMS["request"], "effort": {"$case": "$effort", **said}}}
    for effort in said:
        asked = Conversation((USER,), params={"reasoning_effort": effort})
        assert [(notice.rule, notice.detail) for notice in adapter(forms).encode(asked, Policy()).notices] == [
            ("EFFORT_CHANGED", f"the reasoning effort {effort!r} is sent with the value of {told[one]!r}")
            for one in [effort]
            if one in told
        ]


@pytest.mark.parametrize("value", [0, False, "EFFORT_NONE", "off", {"budget": 0}])
def test_efforts_whose_value_means_no_reasoning_are_sent_as_none(value: Json) -> None:
    told = EffortNotices([{"none": value, "minimal": value, "low": value, "high": 0.5}])
    details = {effort: notice.detail for effort in ("none", "minimal", "low", "high") if (notice := told.of(effort))}
    assert details == {
        effort: f"the reasoning effort {effort!r} is sent with the value of 'none'" for effort in ("minimal", "low")
    }


def test_digits_that_a_float_loses_are_told() -> None:
    request = adapter(FORMS).encode(Conversation((USER,), sampling=Sampling(temperature=0.7)), Policy())
    assert [(notice.rule, notice.level) for notice in request.notices] == [("NUMBER_INEXACT", "debug")]


def test_metadata_name_the_model_and_a_text_may_precede_a_name() -> None:
    request = adapter(FORMS).encode(Conversation((USER,), model="a/b ç"), Policy())
    assert request.headers["x-route"] == "pool=a/b%20%C3%A7"
    assert sent("relay", RELAY, Conversation((USER,), model="m")).engine == "engines/m"


def test_openais_json_has_every_field_of_its_own_client() -> None:
    params: dict[str, Json] = {"min_p": 0.1, "stream": False, "model": "x"}
    body = json.loads(sent("relay", RELAY, Conversation((USER,), model="m", params=params, dialect="openai_chat")).body)
    assert (body["model"], body["min_p"], body["stream"]) == ("m", 0.1, True)
    assert body["messages"] == [{"role": "user", "content": "Where?"}]


def test_a_message_is_read_with_the_fields_that_the_tool_requires() -> None:
    call = {"id": "call.id", "name": "call.name", "arguments": "call.input"}
    rule = {"each": "blocks", "when": {"call": "set"}, "call": call, "opaque": {"at": "call.seal", "on": "call"}}
    found = events(
        "forms",
        {**FORMS, "read": [rule, FORMS["read"][4]]},
        {"blocks": [{"call": {"name": "look", "input": {"at": "x", "depth": 9007199254740993}}}]},
        {"labels": {"why": "halt"}},
    )
    assert [event.arguments for event in found if isinstance(event, ToolCallDelta)] == [
        '{"at":"x","depth":9007199254740993}'
    ]
    assert {event.rule for event in found if isinstance(event, Notice)} == {"NUMBER_INEXACT", "CALL_ID_ADDED"}


@pytest.mark.parametrize("written", ["9" * 5000, "1e999"], ids=["digits", "exponent"])
def test_a_number_of_a_map_that_json_readers_cannot_hold_stays_text(written: str) -> None:
    typed = ToolSpec("look", parameters={"type": "object", "properties": {"depth": {"type": ["integer", "number"]}}})
    call = {"call": {"id": "c1", "name": "look", "fields": {"depth": written}}}
    wire = WRITERS["grpc_web"]([answer("forms", {"blocks": [call]}), answer("forms", {"labels": {"why": "halt"}})])
    found = replay(adapter(FORMS).decoder(Conversation((USER,), (typed,))), [wire])
    assert [json.loads(call.arguments) for call in fold(found).calls] == [{"depth": written}]


JSON_RULE: Entry = {
    "json": "body",
    "text": "choice[0].text",
    "call": {"each": "calls", "name": "name", "arguments": "with"},
    "finish": {"when": {"done": True}, "reason": "stop"},
    "usage": {"completion": "count"},
}


def test_a_json_document_is_read_by_its_own_paths() -> None:
    entry = {**RELAY, "read": [{"json": "body", "openai": True, "when": {"last": True}}, JSON_RULE]}
    entry["read"].insert(0, {"json": "body", "error": {"when": {"oops": "set"}, "message": "oops.words"}})

    def read(*documents: Json) -> Any:
        return events("relay", entry, *({"body": b64(json.dumps(document))} for document in documents))

    end: Json = {"done": True, "count": 3}
    found = read({"choice": [{"text": "Hi"}], "calls": [{"name": "look", "with": {"a": 1}}, 7]}, {"choice": 7}, end)
    assert (fold(found).text, fold(found).usage) == ("Hi", UsageReport(None, 3))
    assert [(call.name, call.arguments) for call in fold(found).calls] == [("look", '{"a":1}')]
    with pytest.raises(BackendError) as failed:
        read({"oops": {"words": "context length exceeded"}})
    assert failed.value.code == "context_length_exceeded"
    with pytest.raises(BackendError) as broken:
        events("relay", entry, {"body": b64('{"choice": [{"text": "Hi"}]}')}, {"body": b64("{")})
    assert broken.value.code == "upstream_invalid_event" and broken.value.events[-1] == TextDelta("Hi")


@pytest.mark.parametrize("halves", [(b"\\ud83d", b"\\ude00"), (b"\xf0\x9f", b"\x98\x80")], ids=["escapes", "bytes"])
@pytest.mark.parametrize("openai", [False, True])
def test_a_character_in_two_documents_is_one_and_half_of_one_is_told(halves: tuple[bytes, bytes], openai: bool) -> None:
    failure = {"json": "body", "error": {"when": {"oops": "set"}, "message": "oops.words"}}
    own = [{"json": "body", "openai": True, "when": {"last": True}}, JSON_RULE]
    entry = {**RELAY, "read": [failure, *(RELAY["read"] if openai else own)]}
    pieces = b'{"choices": [{"delta": {"content": "%b"}}]}' if openai else b'{"choice": [{"text": "%b"}]}'
    end = b'{"choices": [{"delta": {}, "finish_reason": "stop"}]}' if openai else b'{"done": true}'

    def read(*texts: bytes) -> tuple[str, list[str]]:
        documents = [*(pieces % text for text in texts), end]
        found = events("relay", entry, *({"body": base64.b64encode(document).decode()} for document in documents))
        return fold(found).text, [event.rule for event in found if isinstance(event, Notice)]

    first, second = halves
    assert read(b"a" + first, second + b"b") == ("a\U0001f600b", [])
    assert read(b"a" + first, b"b") == ("ab", ["TEXT_MENDED"])
    assert read(b"a" + first + b"b") == ("a\ufffdb", ["TEXT_MENDED"])
    assert read(b"a", first) == ("a", ["TEXT_MENDED"])


END = {"answer": {"outputs": [tensor("why", "BYTES", bytesContents=[b64("stop")])]}}


@pytest.mark.parametrize("datatype", ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"])
def test_a_count_is_read_from_a_tensor_of_any_integer_typed_or_raw(datatype: str) -> None:
    kind = {"INT64": "int64Contents", "UINT64": "uint64Contents"}.get(
        datatype, "uintContents" if datatype.startswith("U") else "intContents"
    )
    count: dict[str, Json] = {kind: [5]}
    size = int(datatype.lstrip("UINT")) // 8
    typed = {"answer": {"outputs": [tensor("count", datatype, **count)]}}
    bare = {"answer": {"outputs": [tensor("count", datatype)], "rawOutputContents": raw((4).to_bytes(size, "little"))}}
    assert fold(events("tensors", TENSORS, typed, bare, END)).usage == UsageReport(None, 9)


@pytest.mark.parametrize(
    ("datatype", "content", "said"),
    [
        ("BYTES", element("abc")[:-1], "half of the tensor text"),
        ("FP32", struct.pack("<f", 1), "the tensor text with the unexpected type 'FP32'"),
    ],
)
def test_a_tensor_that_is_broken_or_of_another_type_is_an_error(datatype: str, content: bytes, said: str) -> None:
    with pytest.raises(BackendError, match=said):
        events(
            "tensors",
            TENSORS,
            {"answer": {"outputs": [tensor("text", datatype)], "rawOutputContents": raw(content)}},
        )
