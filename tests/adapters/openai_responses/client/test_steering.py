"""What the dialect reads and writes of steering. OpenAI's published types decide whether an event is one."""

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, strategies
from openai.types.responses import (
    ResponseSteerAcceptedEvent,
    ResponseSteerFailedEvent,
    ResponseSteerPendingEvent,
)

from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.core.conversation import Json
from gateway.dialects.steering import AnswerEnd, Steer, SteerError, SteerEvent, SteerPlace
from gateway.dialects.websocket import AnsweredEvent

DIALECT: Final = OpenAIResponsesDialect()
STEERING: Final = DIALECT.steering
TEXT: Final = {"type": "message", "role": "user", "content": "Faster."}
STEER: Final = Steer("steer_1", SteerEvent("resp_1", b'"Faster."', msgspec.json.encode([TEXT])))
LOOK: Final[dict[str, Json]] = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "look",
    "arguments": "{}",
}


def read(**said: Json) -> Any:
    return DIALECT.read_event(json.dumps({"type": "response.steer", **said}))


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        ("Faster.", [TEXT]),
        ([{"role": "user", "content": "Faster."}], [{"role": "user", "content": "Faster."}]),
        ([TEXT, TEXT], [TEXT, TEXT]),
        (
            [{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image"}]}],
            [{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image"}]}],
        ),
    ],
)
def test_messages_of_the_user_steer(given: Json, messages: Json) -> None:
    event = read(previous_response_id="resp_1", input=given)
    assert isinstance(event, SteerEvent)
    assert (event.answer, json.loads(event.input), json.loads(event.messages)) == ("resp_1", given, messages)


@pytest.mark.parametrize(
    "said",
    [
        {"previous_response_id": 1, "input": "Faster."},
        {"previous_response_id": "resp_1"},
        {"input": "Faster."},
        {"previous_response_id": "resp_1", "input": {}},
        {"previous_response_id": "resp_1", "input": []},
        {"previous_response_id": "resp_1", "input": "Faster.", "stream_id": "a"},
        {"previous_response_id": "resp_1", "input": [{**TEXT, "role": "developer"}]},
        {"previous_response_id": "resp_1", "input": [{**TEXT, "status": "completed"}]},
    ],
)
def test_anything_else_goes_back(said: dict[str, Json]) -> None:
    event = read(**said)
    assert isinstance(event, AnsweredEvent)
    failed = json.loads(event.text)
    assert failed["error"]["code"] == "invalid_input" and "id" not in failed["steer"]
    given = said.get("input")
    assert failed["steer"]["input"] == (given if isinstance(given, str | list) else [])
    if isinstance(given, str):
        ResponseSteerFailedEvent.model_validate(failed, strict=True)


def test_half_a_character_goes_back_as_it_came() -> None:
    event = DIALECT.read_event(r'{"type":"response.steer","previous_response_id":"resp_1","input":"\ud83d"}')
    assert isinstance(event, AnsweredEvent) and rb'"input":"\ud83d"' in event.text


@pytest.mark.parametrize("lane", [None, "a"])
def test_the_events_are_of_the_published_types(lane: str | None) -> None:
    place = SteerPlace(3, lane)
    accepted = ResponseSteerAcceptedEvent.model_validate_json(STEERING.accepted(STEER, place), strict=True)
    owed = STEERING.answer_end(_ended("completed", LOOK)).owed
    pending = ResponseSteerPendingEvent.model_validate_json(STEERING.pending(STEER, owed, place), strict=True)
    error = SteerError("response_not_active", "It has ended.")
    failed = ResponseSteerFailedEvent.model_validate_json(
        STEERING.failed(STEER.event, error, place, STEER.id), strict=True
    )
    for event in (accepted, pending, failed):
        assert (event.sequence_number, event.stream_id, event.steer.id) == (3, lane, "steer_1")
    assert pending.required_input[0].to_dict() == {"type": "function_call_output", "call_id": "call_1", "name": "look"}
    assert (failed.error.code, failed.steer.input) == ("response_not_active", "Faster.")


@pytest.mark.parametrize(
    ("item", "stub"),
    [
        ({"type": "custom_tool_call", "call_id": "c"}, {"type": "custom_tool_call_output", "call_id": "c"}),
        ({"type": "computer_call", "call_id": "c"}, {"type": "computer_call_output", "call_id": "c"}),
        ({"type": "shell_call", "call_id": "c"}, {"type": "shell_call_output", "call_id": "c"}),
        ({"type": "apply_patch_call", "call_id": "c"}, {"type": "apply_patch_call_output", "call_id": "c"}),
        (
            {"type": "tool_search_call", "call_id": "c", "execution": "client"},
            {"type": "tool_search_output", "call_id": "c", "execution": "client"},
        ),
        ({"type": "mcp_approval_request", "id": "m"}, {"type": "mcp_approval_response", "approval_request_id": "m"}),
        ({"type": "tool_search_call", "call_id": None, "execution": "server"}, None),
        ({"type": "web_search_call", "id": "w"}, None),
        ({"type": "message"}, None),
    ],
)
def test_what_the_client_owes_is_named_as_published(item: dict[str, Json], stub: Json) -> None:
    owed = [*STEERING.answer_end(_ended("completed", item)).owed]
    assert owed == ([] if stub is None else [stub])
    if owed:
        event = STEERING.pending(STEER, owed, SteerPlace(1))
        ResponseSteerPendingEvent.model_validate_json(event, strict=True)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b'{"type":"ping"}', b'{"response":7}', b'{"response":{"status":"failed"}}']
)
def test_an_answer_without_an_end_has_failed(text: bytes) -> None:
    assert STEERING.answer_end(text) == AnswerEnd("failed")


def test_the_successor_has_the_settings_and_the_messages() -> None:
    asked = {"model": "m", "input": "Hello", "store": False, "previous_response_id": "resp_0", "metadata": {"a": "b"}}
    body = json.loads(STEERING.successor(json.dumps(asked).encode(), "resp_1", [STEER, STEER]))
    assert body == {**asked, "previous_response_id": "resp_1", "input": [TEXT, TEXT]}


@pytest.mark.parametrize(("own", "behind"), [("Hello", [{**TEXT, "content": "Hello"}]), ([LOOK], [LOOK]), ([], [])])
def test_the_messages_stand_before_those_of_a_request(own: Json, behind: list[Json]) -> None:
    asked = {"model": "m", "input": own, "previous_response_id": "resp_1"}
    assert STEERING.continued(json.dumps(asked).encode()) == "resp_1"
    body = json.loads(STEERING.with_steers(json.dumps(asked).encode(), [STEER]))
    assert body == {**asked, "input": [TEXT, *behind]}


def test_half_a_character_of_a_request_is_kept_and_any_other_input_is_refused_as_it_is() -> None:
    body = rb'{"model":"m","input":"\ud83d"}'
    assert rb'"content":"\ud83d"}]' in STEERING.with_steers(body, [STEER]) and STEERING.can_steer(body)
    assert STEERING.with_steers(b'{"input":7}', [STEER]) == b'{"input":7}'


WORDS: Final = strategies.sampled_from(
    ["message", "user", "input_text", "resp_1", "", "\ud83d", "x" * 300, "input_image", "assistant"]
)
ANY: Final = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | WORDS,
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.dictionaries(strategies.sampled_from(["type", "role", "content", "text", "id"]), inner, max_size=4)
    ),
    max_leaves=8,
)
FIELDS: Final = strategies.dictionaries(
    strategies.sampled_from(["previous_response_id", "input", "stream_id", "model"]), ANY, max_size=4
)


@given(FIELDS)
def test_any_fields_steer_or_go_back(said: dict[str, Any]) -> None:
    event = read(**said)
    if isinstance(event, SteerEvent):
        messages = json.loads(event.messages)
        assert messages and all(message["role"] == "user" for message in messages)
        successor = json.loads(
            STEERING.successor(b'{"model":"m","input":"Hello"}', "resp_1", [Steer("steer_1", event)])
        )
        assert successor["input"] == messages
    else:
        assert isinstance(event, AnsweredEvent)
        assert json.loads(event.text)["error"]["code"] == "invalid_input"


def _ended(status: str, *items: dict[str, Json]) -> bytes:
    return json.dumps({"type": "response.completed", "response": {"status": status, "output": [*items]}}).encode()
