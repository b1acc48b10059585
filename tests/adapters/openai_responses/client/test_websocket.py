"""The events of a WebSocket: what is read of a client's, and how an answer's are written."""

import json
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from adapters.openai_responses.client.stored_answer import CHAIN
from gateway.core.conversation import Json
from gateway.core.errors import GatewayError
from gateway.dialects.steering import RefusedSteer
from gateway.dialects.websocket import CreateEvent, IgnoredEvent, RefusedEvent, WebSocketDialect

DIALECT: Final = OpenAIResponsesDialect()
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_the_dialect_is_spoken_over_a_websocket() -> None:
    assert isinstance(DIALECT, WebSocketDialect)


def test_a_create_is_the_body_of_a_post_whose_answer_is_streamed() -> None:
    said = {"type": "response.create", "model": "m", "input": "é \ud83d", "stream": False, "stream_id": "a"}
    event = DIALECT.read_event(json.dumps(said))
    assert isinstance(event, CreateEvent) and event.lane == "a"
    assert json.loads(event.body) == {"model": "m", "input": "é \ud83d", "stream": True}


def test_a_lane_of_null_is_none() -> None:
    event = DIALECT.read_event('{"type": "response.create", "model": "m", "stream_id": null}')
    assert event == CreateEvent(b'{"model":"m","stream":true}')


def test_a_create_names_the_entry_of_what_it_continues() -> None:
    event = DIALECT.read_event('{"type": "response.create", "previous_response_id": "resp_1"}')
    assert isinstance(event, CreateEvent) and event.continues == CHAIN.answer_entry("resp_1")


@pytest.mark.parametrize("value", ["null", "7", "{}"])
def test_a_create_that_names_no_text_continues_nothing(value: str) -> None:
    event = DIALECT.read_event(f'{{"type": "response.create", "previous_response_id": {value}}}')
    assert isinstance(event, CreateEvent) and event.continues is None


def test_what_codex_has_processed_needs_no_answer() -> None:
    assert DIALECT.read_event('{"type": "response.processed", "response_id": "r"}') == IgnoredEvent()


@given(st.text(max_size=40) | JSON.map(json.dumps))
def test_anything_is_read_or_refused(text: str) -> None:
    event = DIALECT.read_event(text)
    assert isinstance(event, CreateEvent | RefusedEvent | RefusedSteer | IgnoredEvent)
    if isinstance(event, RefusedEvent):
        answer = DIALECT.encode_error(event.error)
        told = json.loads(DIALECT.error_text(answer, event.lane))
        assert told["type"] == "error" and told["status"] == 400


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=5), st.none() | st.text(min_size=1, max_size=20))
def test_the_fields_of_a_create_stay_as_they_are(fields: dict[str, Json], lane: str | None) -> None:
    said = {**fields, "type": "response.create"} | ({} if lane is None else {"stream_id": lane})
    if lane is None:
        said.pop("stream_id", None)
    event = DIALECT.read_event(json.dumps(said))
    assert isinstance(event, CreateEvent) and event.lane == lane
    left = {name: value for name, value in fields.items() if name not in ("type", "stream_id")}
    assert json.loads(event.body) == {**left, "stream": True}


@given(st.lists(st.dictionaries(st.text(max_size=8), JSON, max_size=4), max_size=5), st.none() | st.text(min_size=1))
def test_the_events_of_an_answer_are_its_texts(events: list[dict[str, Json]], lane: str | None) -> None:
    said: list[dict[str, Json]] = [
        {"type": "response.x", **{f"_{name}": one for name, one in event.items()}} for event in events
    ]
    stream = b"".join(b"event: response.x\ndata: %b\n\n" % json.dumps(event).encode() for event in said)
    texts = DIALECT.event_texts(lane)(b": ping\n\n" + stream)
    if texts:
        texts[0] = DIALECT.with_headers(texts[0], {"x-request-id": "r"})
    first: dict[str, Json] = {"headers": {"x-request-id": "r"}}
    more: dict[str, Json] = {} if lane is None else {"stream_id": lane}
    expected = [{**event, **(first if number == 0 else {}), **more} for number, event in enumerate(said)]
    assert [json.loads(text) for text in texts] == expected


_KINDS = st.sampled_from(["response.output_text.delta", "response.output_text.done", "response.completed"])


@given(st.lists(st.tuples(_KINDS, JSON, st.integers(1, 12)), max_size=12))
def test_events_in_any_order_and_number_are_found_one_by_one(runs: list[tuple[str, Json, int]]) -> None:
    said = [
        (kind, msgspec.json.encode({"type": kind, "delta": delta})) for kind, delta, times in runs for _ in range(times)
    ]
    stream = b"".join(b"event: %b\ndata: %b\n\n" % (kind.encode(), text) for kind, text in said)
    assert DIALECT.event_texts(None)(stream) == [text for _, text in said]
    assert DIALECT.event_texts(None)(b": ping\n\n" + stream) == [text for _, text in said]


def test_a_keep_alive_is_no_event() -> None:
    assert DIALECT.event_texts("a")(b": ping\n\n") == DIALECT.event_texts(None)(b": ping\n\n") == []


def test_no_headers_change_nothing() -> None:
    assert DIALECT.with_headers(b'{"type":"response.x"}', {}) == b'{"type":"response.x"}'


@pytest.mark.parametrize("lane", [None, "a"])
def test_an_error_has_its_status_and_its_headers_for_both_readers(lane: str | None) -> None:
    error = GatewayError("full", status=429, code="rate_limit_exceeded", headers={"retry-after": "3"})
    told = json.loads(DIALECT.error_text(DIALECT.encode_error(error), lane))
    assert (told["type"], told["status"], told["error"]["code"]) == ("error", 429, "rate_limit_exceeded")
    assert told["headers"] == told["error"]["headers"] == {"retry-after": "3"}
    assert told.get("stream_id") == lane
