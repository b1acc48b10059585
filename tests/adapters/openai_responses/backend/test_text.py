"""The text of an answer: complete however it arrives, a refusal among it."""

from collections.abc import Sequence
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import BackendProtocolError
from gateway.core.events import PassthroughFields, TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart
from tests.adapters.openai_responses.backend.reading import OWN, START, STOP, decoded, failure, rules
from tests.adapters.openai_responses.backend.wires import (
    WireEvent,
    added,
    call,
    delta,
    done,
    ended,
    message,
    reasoning,
    streamed,
    text_events,
    whole,
)

REFUSAL: Final[Json] = {"type": "refusal", "refusal": "No."}


@pytest.mark.parametrize(
    ("events", "text"),
    [
        (text_events(0, "a", "b"), "ab"),
        ([added(0, message()), done(0, message("ab"))], "ab"),
        ([added(0, message()), delta("output_text", 0, "a", content_index=0), done(0, message("ab"))], "ab"),
        ([done(0, message("ab"))], "ab"),
        ([*text_events(0, "a"), *text_events(1, "b")], "ab"),
        ([added(0, message()), delta("output_text", 0, "", content_index=0), done(0, message(""))], ""),
    ],
)
def test_a_text_is_complete_however_it_arrives(events: Sequence[WireEvent], text: str) -> None:
    assert decoded(streamed(*events)) == [START, *([TextDelta(text)] if text else []), STOP]


def test_the_last_event_may_hold_the_output_alone() -> None:
    assert decoded(streamed(last=ended(output=[message("ab"), call("{}")]))) == [
        START,
        TextDelta("ab"),
        ToolCallStart(1, "a", "f"),
        ToolCallDelta(1, "{}"),
        ToolCallEnd(1),
        STOP,
    ]


def test_output_that_was_streamed_is_not_read_again() -> None:
    assert decoded(streamed(*text_events(0, "ab"), last=ended(output=[message("ab")]))) == [
        START,
        TextDelta("ab"),
        STOP,
    ]


def test_a_whole_text_that_differs_is_reported() -> None:
    events = [added(0, message()), delta("output_text", 0, "a", content_index=0), done(0, message("b"))]
    assert decoded(streamed(*events)) == [START, TextDelta("a"), STOP]
    assert rules(streamed(*events)) == ["SHOWN_TEXT_REPLACED"]


def test_half_a_character_is_not_compared() -> None:
    wire = streamed(added(0, message()), delta("output_text", 0, "(?)", content_index=0), done(0, message("ä")))
    assert rules(wire.replace(b"(?)", b"\xff")) == ["TEXT_MENDED"]


@pytest.mark.parametrize(
    "wire",
    [
        whole({**message(), "content": [REFUSAL]}),
        streamed(
            added(0, message()),
            delta("refusal", 0, "No", content_index=0),
            delta("refusal", 0, ".", content_index=0),
            done(0, {**message(), "content": [REFUSAL]}),
        ),
    ],
)
def test_a_refusal_is_text(wire: bytes) -> None:
    assert decoded(wire) == [START, TextDelta("No."), STOP]
    assert rules(wire) == ["REFUSAL_AS_TEXT"]


def test_a_part_of_an_unknown_type_is_reported() -> None:
    parts: list[Json] = [{"type": "smell", "smell": "x"}, "text", {"type": "output_text", "text": 7}]
    assert rules(whole({**message(), "content": parts})) == ["PART_UNKNOWN"] * 3


@pytest.mark.parametrize("streams", [True, False])
def test_messages_stay_apart_for_a_client_of_the_dialect(streams: bool) -> None:
    one, two = {**message("a"), "phase": "commentary"}, message("b")
    wire = streamed(added(0, {**one, "content": []}), done(0, one), done(1, two)) if streams else whole(one, two)
    passed = [event.fields for event in decoded(wire, OWN) if isinstance(event, PassthroughFields)]
    items = [fields["item"] for fields in passed if fields["type"] == "response.output_item.added"]
    assert [isinstance(item, dict) and item.get("phase") for item in items] == ["commentary", None]
    assert decoded(wire) == [START, TextDelta("ab"), STOP]


@pytest.mark.parametrize("name", ["output_text", "refusal", "reasoning_text", "reasoning_summary_text"])
def test_a_text_belongs_to_an_item_that_has_not_ended(name: str) -> None:
    place = {"summary_index" if "summary" in name else "content_index": 0}
    item = message() if name in ("output_text", "refusal") else reasoning()
    error = failure(streamed(added(0, item), done(0, item), delta(name, 0, "a", **place)))
    assert isinstance(error, BackendProtocolError) and error.take_events() == [START]
