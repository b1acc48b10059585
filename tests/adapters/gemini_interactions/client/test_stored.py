"""An interaction is stored, continued, read and deleted, and one that is not stored is told."""

import json
from typing import Any, Final

import pytest

from gateway.core.conversation import Reasoning, Text, ToolCall
from gateway.core.errors import InvalidRequest
from gateway.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.notices import Notice
from gateway.core.provider_state import with_provider_state
from gateway.dialect import AnswerHead
from tests.adapters.gemini_interactions.client.stored import DIALECT, HELLO, Shelf

STATE: Final = with_provider_state("google", {"thought_signature": "c2ln"})
CALLED: Final[tuple[Event, ...]] = (
    ResponseStart(),
    ReasoningDelta("Hm."),
    ReasoningEnd(STATE),
    TextDelta("So."),
    ToolCallStart(0, "k", "look", extra=STATE),
    ToolCallDelta(0, '{"at":"sky"}'),
    ToolCallEnd(0),
    Finish("tool_calls"),
)
RESULT: Final = [{"type": "function_result", "call_id": "k", "result": "A cloud."}]


def test_the_steps_of_all_interactions_stand_before_those_of_the_request() -> None:
    shelf = Shelf()
    first = shelf.answer("Hello", system_instruction="Be brief.")
    second = shelf.answer("Look up.", CALLED, previous_interaction_id=first)
    conversation = shelf.read(RESULT, previous_interaction_id=second).conversation
    assert [(turn.role, turn.text, turn.index) for turn in conversation.turns] == [
        ("user", "Hello", -6),
        ("assistant", "Hello.", -5),
        ("user", "Look up.", -4),
        ("assistant", "So.", -3),
        ("tool", "", 0),
    ]
    assert conversation.turns[3].blocks == (
        Reasoning("Hm.", extra=STATE),
        Text("So."),
        ToolCall("k", "look", '{"at":"sky"}', STATE, item=-1),
    )
    assert conversation.faults == ()


def test_two_requests_may_continue_one_interaction() -> None:
    shelf = Shelf()
    first = shelf.answer("Hello")
    forks = [shelf.answer(text, previous_interaction_id=first) for text in ("One", "Two")]
    for fork, text in zip(forks, ("One", "Two"), strict=True):
        turns = shelf.read("More", previous_interaction_id=fork).conversation.turns
        assert [turn.text for turn in turns] == ["Hello", "Hello.", text, "Hello.", "More"]


@pytest.mark.parametrize("identity", ["int_x", "", "resp_000000000000000000000001"])
def test_one_that_is_not_stored_is_refused(identity: str) -> None:
    shelf = Shelf()
    shelf.answer("Hello")
    if not identity:
        assert len(shelf.read(previous_interaction_id=identity).conversation.turns) == 1
        return
    with pytest.raises(InvalidRequest) as caught:
        shelf.read(previous_interaction_id=identity)
    error = caught.value
    assert (error.status, error.code, error.param) == (400, "interaction_not_found", "previous_interaction_id")


def test_a_missing_link_is_an_error_and_never_a_shorter_history() -> None:
    shelf = Shelf()
    first = shelf.answer("Hello")
    second = shelf.answer("More", previous_interaction_id=first)
    _, deleted = shelf.query("DELETE", first)
    for name in deleted:
        del shelf.entries[name]
    with pytest.raises(InvalidRequest, match="is incomplete") as caught:
        shelf.read("And?", previous_interaction_id=second)
    assert (caught.value.status, caught.value.code) == (400, "interaction_not_found")


def test_a_stored_interaction_has_its_own_input_and_its_answer() -> None:
    shelf = Shelf()
    first = shelf.answer("Hello")
    second = shelf.answer("Look up.", CALLED, previous_interaction_id=first)
    body, deletes = shelf.query("GET", second)
    assert (body["id"], body["status"], body["previous_interaction_id"]) == (second, "requires_action", first)
    assert [step["type"] for step in body["steps"]] == ["user_input", "thought", "model_output", "function_call"]
    assert "input" not in body and not deletes
    with_input, _ = shelf.query("GET", second, "include_input=true")
    assert with_input == {**body, "input": body["steps"][:1]}


def test_turns_of_the_older_form_are_stored_as_steps() -> None:
    shelf = Shelf()
    called = {"type": "function_call", "id": "k", "name": "look", "arguments": {}}
    body, _ = shelf.query(
        "GET", shelf.answer([{"role": "user", "content": "Hi"}, {"role": "model", "content": [called]}])
    )
    assert body["steps"][:2] == [{"type": "user_input", "content": "Hi"}, called]


@pytest.mark.parametrize(
    ("method", "behind"), [("GET", ""), ("DELETE", ""), ("POST", "/cancel")], ids=["get", "delete", "cancel"]
)
def test_an_unknown_id_is_not_found(method: str, behind: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Shelf().query(method, "int_x", behind=behind)
    assert (caught.value.status, caught.value.code) == (404, "interaction_not_found")


def test_one_that_has_ended_cannot_be_cancelled() -> None:
    shelf = Shelf()
    with pytest.raises(InvalidRequest) as caught:
        shelf.query("POST", shelf.answer(), behind="/cancel")
    assert (caught.value.status, caught.value.code) == (400, "unsupported_operation")


def test_a_deleted_interaction_is_gone() -> None:
    shelf = Shelf()
    first = shelf.answer()
    body, deleted = shelf.query("DELETE", first)
    assert (body, set(deleted)) == ({}, set(shelf.entries))


@pytest.mark.parametrize(
    ("parameters", "param"),
    [
        ("stream=true", "stream"),
        ("stream=1", "stream"),
        ("last_event_id=e1", "stream"),
        ("include_input=yes", "include_input"),
    ],
)
def test_a_wrong_parameter_is_refused(parameters: str, param: str) -> None:
    shelf = Shelf()
    with pytest.raises(InvalidRequest) as caught:
        shelf.query("GET", shelf.answer(), parameters)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_an_answer_that_is_not_stored_after_all_says_so() -> None:
    request = Shelf().read("Hello")
    encoder = DIALECT.stream_encoder(request, AnswerHead("0" * 24, 1, "m", lambda: 1, diagnostics=True, stored=True))
    begun = encoder.feed(HELLO)
    encoder.deny(Notice("encode", "failed", "RESPONSE_NOT_STORED", "the store is full"))
    (ended,) = [event for event in events(encoder.close()) if "interaction" in event]
    assert [event["interaction"]["store"] for event in events(begun) if "interaction" in event] == [True]
    assert ended["interaction"]["store"] is False
    assert [notice["rule"] for notice in ended["interaction"]["dragoman"]["diagnostics"]] == ["RESPONSE_NOT_STORED"]


def events(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix(b"data: ")) for line in data.split(b"\n") if line.startswith(b"data: {")]
