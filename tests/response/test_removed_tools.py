"""A call of a tool that the client has removed never reaches it, and a response of such calls alone is no success."""

from collections.abc import Sequence
from typing import Final

import pytest

from gateway.core.errors import InvalidToolCall
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    Reason,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.field_paths import CANONICAL_PATHS
from gateway.core.notices import Notice
from gateway.response.removed_tools import RemovedToolFilter

REFUSED: Final = Notice(
    "backend",
    "dropped",
    "REMOVED_TOOL_CALLED",
    "a call of the tool 'look', which messages[4] removes, does not reach the client",
    tool_call_id="a",
    level="warning",
)


def call(index: int, identity: str, name: str) -> list[Event]:
    return [ToolCallStart(index, identity, name), ToolCallDelta(index, "{}"), ToolCallEnd(index)]


def shown(*lists: Sequence[Event]) -> list[Event]:
    """What the client gets of these lists of events."""
    checked = RemovedToolFilter({"look": 4}, CANONICAL_PATHS)
    return [event for events in lists for event in checked.feed([*events])]


@pytest.mark.parametrize("together", [True, False])
def test_of_several_calls_the_others_arrive(together: bool) -> None:
    events = [TextDelta("Hm."), *call(0, "a", "look"), *call(1, "b", "read"), Finish("tool_calls")]
    found = shown(events) if together else shown(*[[event] for event in events])
    assert found == [TextDelta("Hm."), REFUSED, *call(1, "b", "read"), Finish("tool_calls")]


def test_calls_whose_pieces_interleave_are_told_apart() -> None:
    first, second = call(0, "a", "look"), call(1, "b", "read")
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    assert shown(mixed, [Finish("tool_calls")]) == [REFUSED, *second, Finish("tool_calls")]


@pytest.mark.parametrize("reason", ["tool_calls", "stop"])
def test_a_response_of_refused_calls_alone_fails(reason: Reason) -> None:
    checked = RemovedToolFilter({"look": 4}, CANONICAL_PATHS)
    assert checked.feed(call(0, "a", "look")) == [REFUSED]
    with pytest.raises(InvalidToolCall, match=r"called the tool 'look', which messages\[4\] removes") as failed:
        checked.feed([TextDelta("Bye."), Finish(reason)])
    assert failed.value.take_events() == [TextDelta("Bye.")]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_response_that_was_cut_off_stays_incomplete(reason: Reason) -> None:
    assert shown(call(0, "a", "look"), [Finish(reason)]) == [REFUSED, Finish(reason)]


def test_a_call_in_a_form_of_the_api_is_refused_too() -> None:
    own = PassthroughFields("event", {"x": 1}, call="look")
    found = shown([own, *call(1, "b", "read"), Finish("tool_calls")])
    assert [type(event) for event in found] == [Notice, ToolCallStart, ToolCallDelta, ToolCallEnd, Finish]


def test_other_answers_pass() -> None:
    events = [TextDelta("Hm."), *call(0, "b", "read"), Finish("tool_calls")]
    assert shown(events) == events
    assert shown([TextDelta("Hm."), Finish("stop")]) == [TextDelta("Hm."), Finish("stop")]
