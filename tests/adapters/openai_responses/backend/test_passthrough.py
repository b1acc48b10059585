"""What only a client of the dialect gets: items of the backend's own tools, annotations, fields of the response."""

from typing import Final

import pytest

from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import BackendProtocolError
from gateway.core.events import PassthroughFields, TextDelta
from tests.adapters.openai_responses.backend.reading import OTHER, OWN, START, STOP, decoded, failure, rules
from tests.adapters.openai_responses.backend.wires import (
    CUSTOM,
    WireEvent,
    added,
    delta,
    done,
    ended,
    message,
    streamed,
    text_events,
    whole,
)

SEARCH: Final[WireEvent] = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
SEARCHED: Final[list[WireEvent]] = [
    added(0, {**SEARCH, "status": "in_progress"}),
    {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"},
    done(0, SEARCH),
]


def test_items_of_the_backends_own_tools_reach_a_client_of_the_dialect() -> None:
    passed = [event for event in decoded(streamed(*SEARCHED), OWN) if isinstance(event, PassthroughFields)]
    assert [event.fields["type"] for event in passed] == [event["type"] for event in SEARCHED]
    assert all(event.scope == "event" for event in passed)
    (alone,) = [event for event in decoded(whole(SEARCH), OWN) if isinstance(event, PassthroughFields)]
    assert alone.fields == {"type": "response.output_item.done", "output_index": 0, "item": SEARCH}


def test_any_other_client_is_told_that_it_does_not_get_them() -> None:
    assert decoded(streamed(*SEARCHED, *text_events(1, "a"))) == [START, TextDelta("a"), STOP]
    assert rules(streamed(*SEARCHED)) == ["UNKNOWN_EVENT", "UNKNOWN_EVENT"]


ANNOTATION: Final[WireEvent] = {"type": "url_citation", "url": "https://x"}
LOGPROBS: Final[Json] = [{"token": "a", "logprob": -0.1}]


def annotated() -> list[bytes]:
    part: WireEvent = {"type": "output_text", "text": "a", "annotations": [ANNOTATION]}
    item: WireEvent = {**message(), "content": [part]}
    event: WireEvent = {
        "type": "response.output_text.annotation.added",
        "output_index": 0,
        "content_index": 0,
        "annotation": ANNOTATION,
    }
    stream = streamed(added(0, message()), delta("output_text", 0, "a", content_index=0), event, done(0, item))
    return [stream, whole(item)]


@pytest.mark.parametrize("wire", annotated(), ids=["streamed", "whole"])
def test_annotations_reach_a_client_of_the_dialect_once(wire: bytes) -> None:
    passed = [event.fields for event in decoded(wire, OWN) if isinstance(event, PassthroughFields)]
    assert [fields["annotation"] for fields in passed if "annotation" in fields] == [ANNOTATION]
    assert rules(wire) == ["UNKNOWN_EVENT"]


NOTE: Final[WireEvent] = {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": ANNOTATION}


@pytest.mark.parametrize(
    "before",
    [[], [added(0, CUSTOM), done(0, CUSTOM)], [added(0, message()), done(0, message("a"))]],
    ids=["nothing", "call", "ended"],
)
@pytest.mark.parametrize("dialect", [OWN, OTHER])
def test_an_annotation_belongs_to_an_open_message(before: list[WireEvent], dialect: str) -> None:
    error = failure(streamed(*before, NOTE), dialect)
    assert isinstance(error, BackendProtocolError)


@pytest.mark.parametrize(
    "wire",
    [
        streamed(
            added(0, message()),
            delta("output_text", 0, "a", content_index=0, logprobs=LOGPROBS),
            done(0, message("a")),
        ),
        whole({**message(), "content": [{"type": "output_text", "text": "a", "logprobs": LOGPROBS}]}),
    ],
    ids=["streamed", "whole"],
)
def test_log_probabilities_reach_a_client_of_the_dialect(wire: bytes) -> None:
    events = decoded(wire, OWN)
    text = events.index(TextDelta("a"))
    assert events[text - 1] == PassthroughFields("delta", {"logprobs": LOGPROBS})
    assert (decoded(wire), rules(wire)) == ([START, TextDelta("a"), STOP], ["FIELD_NOT_SHOWN"])


def test_fields_of_the_response_reach_a_client_of_the_dialect() -> None:
    wire = streamed(last=ended(service_tier="flex", temperature=1.0, x_own={"a": 1}, store=True, background=False))
    (passed,) = [event for event in decoded(wire, OWN) if isinstance(event, PassthroughFields)]
    said: JsonObject = {"service_tier": "flex", "temperature": 1.0, "x_own": {"a": 1}}
    assert passed == PassthroughFields("response", said)
    assert not any(isinstance(event, PassthroughFields) for event in decoded(wire))
