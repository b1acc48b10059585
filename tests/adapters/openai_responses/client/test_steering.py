"""What the dialect reads and writes of steering. OpenAI's published types decide whether an event is one."""

import json
from typing import Any, Final

import pytest
from hypothesis import given, strategies
from openai.types.responses import (
    ResponseSteerAcceptedEvent,
    ResponseSteerFailedEvent,
    ResponseSteerPendingEvent,
)

from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.dialects.steering import RefusedSteer, Steer, SteerError, SteerEvent, SteerPlace
from gateway.dialects.websocket import RefusedEvent

DIALECT: Final = OpenAIResponsesDialect()
STEERING: Final = DIALECT.steering
TEXT: Final = {"type": "message", "role": "user", "content": "Faster."}
STEER: Final = Steer("steer_1", SteerEvent("resp_1", b'"Faster."'))
LOOK: Final[dict[str, Json]] = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "look",
    "arguments": "{}",
}


def read(**said: Json) -> Any:
    return DIALECT.read_event(json.dumps({"type": "response.steer", **said}))


def read_text(fields: str) -> Any:
    return DIALECT.read_event(f'{{"type":"response.steer","previous_response_id":"resp_1",{fields}}}')


def succeeded(event: SteerEvent) -> Any:
    """The input of the request that follows an answer which this event steered."""
    body = STEERING.successor(b'{"model":"m","input":"Hello"}', "resp_1", [Steer("steer_1", event)])
    return json.loads(body)["input"]


def returned(event: RefusedSteer) -> Any:
    """The event that gives the input of another one back."""
    return json.loads(STEERING.failed(event.event, event.error, SteerPlace(7)))


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
    assert (event.answer, json.loads(event.input)) == ("resp_1", given)
    assert succeeded(event) == messages


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
    assert isinstance(event, RefusedSteer)
    failed = returned(event)
    assert failed["error"]["code"] == "invalid_input" and "id" not in failed["steer"]
    given = said.get("input")
    assert failed["steer"]["input"] == (given if isinstance(given, str | list) else [])
    if isinstance(given, str):
        ResponseSteerFailedEvent.model_validate(failed, strict=True)


def test_half_a_character_goes_back_as_it_came() -> None:
    event = DIALECT.read_event(r'{"type":"response.steer","previous_response_id":"resp_1","input":"\ud83d"}')
    assert isinstance(event, RefusedSteer) and event.event.input == rb'"\ud83d"'


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("place", ['"input":%s', '"input":[{"role":"user","content":%s}]', '"input":"x","more":%s'])
def test_what_is_no_json_is_refused_and_no_part_of_an_answer(place: str, value: str) -> None:
    # RFC 8259, section 6.
    event = read_text(place % value)
    assert isinstance(event, RefusedEvent)
    assert isinstance(event.error, InvalidRequest) and event.error.code == "invalid_json"


def test_a_number_that_is_too_large_goes_back_as_it_came() -> None:
    event = read_text('"input":[{"role":"user","content":1e999}]')
    assert isinstance(event, RefusedSteer) and event.error.code == "invalid_input"
    assert event.event.input == b'[{"role":"user","content":1e999}]'


def test_what_is_kept_of_an_event_is_counted_as_it_came() -> None:
    spaces = " " * 1000
    event = read_text(f'"input":[{{"role":"user",{spaces}"content":"x"}}]')
    assert isinstance(event, SteerEvent) and event.size == len(event.input) > 1000
    assert succeeded(event) == [{"role": "user", "content": "x"}]


@pytest.mark.parametrize("lane", [None, "a"])
def test_the_events_are_of_the_published_types(lane: str | None) -> None:
    place = SteerPlace(3, lane)
    accepted = ResponseSteerAcceptedEvent.model_validate_json(STEERING.accepted(STEER, place), strict=True)
    owed = STEERING.owed(_ended("completed", LOOK))
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
    owed = [*STEERING.owed(_ended("completed", item))]
    assert owed == ([] if stub is None else [stub])
    if owed:
        event = STEERING.pending(STEER, owed, SteerPlace(1))
        ResponseSteerPendingEvent.model_validate_json(event, strict=True)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b'{"type":"ping"}', b'{"response":7}', b'{"response":{"status":"failed"}}']
)
def test_an_answer_without_an_end_has_failed(text: bytes) -> None:
    assert STEERING.answer_status(text) == "failed"


@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_an_answer_says_how_it_ended(status: str) -> None:
    assert STEERING.answer_status(_ended(status, LOOK)) == status


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
        messages = succeeded(event)
        assert messages and all(message["role"] == "user" for message in messages)
        given = json.loads(event.input)
        assert messages == (given if isinstance(given, list) else [{**TEXT, "content": given}])
    else:
        assert isinstance(event, RefusedSteer)
        assert returned(event)["error"]["code"] == "invalid_input"


def _ended(status: str, *items: dict[str, Json]) -> bytes:
    return json.dumps({"type": "response.completed", "response": {"status": status, "output": [*items]}}).encode()
