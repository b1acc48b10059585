"""A stream in which the events of some items are missing is complete where nothing of it is lost, and is reported.

Servers of other makers write pieces of text without the item around them. OpenAI itself ends only the last of two
`mcp_list_tools`.
"""

from collections.abc import Sequence
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import BackendTruncated
from gateway.core.events import PassthroughFields, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart
from tests.adapters.openai_responses.backend.reading import OTHER, OWN, START, STOP, decoded, failure, rules
from tests.adapters.openai_responses.backend.wires import (
    CUSTOM,
    WireEvent,
    added,
    call,
    created,
    delta,
    done,
    ended,
    message,
    reasoning,
    sse,
    streamed,
)

TEXT: Final = delta("output_text", 0, "a", content_index=0)
CALL: Final[list[object]] = [ToolCallStart(0, "a", "f"), ToolCallDelta(0, '{"x":1}'), ToolCallEnd(0)]
ARGUMENTS: Final = delta("function_call_arguments", 0, '{"x":1}')

COMPLETE: Final[dict[str, tuple[list[WireEvent], list[Json], list[object]]]] = {
    "text without an item": ([TEXT], [message("a")], [TextDelta("a")]),
    "text without any item": ([TEXT], [], [TextDelta("a")]),
    "text of which pieces are missing": ([TEXT], [message("ab")], [TextDelta("ab")]),
    "a refusal": ([delta("refusal", 0, "a", content_index=0)], [], [TextDelta("a")]),
    "reasoning": ([delta("reasoning_text", 0, "a", content_index=0)], [], [ReasoningDelta("a")]),
    "a summary": ([delta("reasoning_summary_text", 0, "a", summary_index=0)], [], [ReasoningDelta("a")]),
    "a message without an end": ([added(0, message()), TEXT], [], [TextDelta("a")]),
    "a message that only the response ends": ([added(0, message()), TEXT], [message("a")], [TextDelta("a")]),
    "an empty message without an end": ([added(0, message())], [], []),
    "a call without an end": ([added(0, call()), ARGUMENTS], [], CALL),
    "a call that only the response ends": ([added(0, call()), ARGUMENTS], [call('{"x":1}')], CALL),
    "a call without its pieces": ([added(0, call())], [call('{"x":1}')], CALL),
    "a call without an item": ([ARGUMENTS], [call('{"x":1}')], CALL),
    "a text behind a call without an item": (
        [ARGUMENTS, added(1, message()), delta("output_text", 1, "a", content_index=0), done(1, message("a"))],
        [call('{"x":1}'), message("a")],
        [TextDelta("a"), *CALL],
    ),
}


@pytest.mark.parametrize("name", COMPLETE)
def test_an_answer_of_which_nothing_is_lost_is_complete(name: str) -> None:
    events, output, expected = COMPLETE[name]
    wire = streamed(*events, last=ended("completed", output))
    assert decoded(wire) == [START, *expected, STOP]
    assert "STREAM_MENDED" in rules(wire)


@pytest.mark.parametrize("name", COMPLETE)
@pytest.mark.parametrize("dialect", [OWN, OTHER])
def test_a_stream_that_is_cut_stays_an_error(name: str, dialect: str) -> None:
    error = failure(sse(created(), *COMPLETE[name][0]), dialect)
    assert isinstance(error, BackendTruncated)


LOST: Final[dict[str, Sequence[WireEvent]]] = {
    "a call without a name": [ARGUMENTS],
    "half of a call": [added(0, call()), delta("function_call_arguments", 0, '{"x"')],
    "a custom call": [added(0, CUSTOM), delta("custom_tool_call_input", 0, "a")],
}


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("dialect", [OWN, OTHER])
def test_a_call_that_may_lack_something_is_an_error(name: str, dialect: str) -> None:
    error = failure(streamed(*LOST[name]), dialect)
    assert error is not None and error.code == "upstream_invalid_tool_call"


def test_a_custom_call_whose_whole_input_came_is_complete() -> None:
    whole: WireEvent = {"type": "response.custom_tool_call_input.done", "output_index": 0, "input": "a"}
    wire = streamed(*LOST["a custom call"], whole)
    assert decoded(wire)[1:-1] == [ToolCallStart(0, "a", "run"), ToolCallDelta(0, '{"input":"a"}'), ToolCallEnd(0)]


LISTS: Final[list[WireEvent]] = [
    {"type": "mcp_list_tools", "id": f"mcpl_{n}", "server_label": str(n), "tools": []} for n in range(2)
]


@pytest.mark.parametrize("output", [LISTS, []], ids=["listed", "not listed"])
def test_an_item_of_the_backend_without_an_end_gets_one(output: list[Json]) -> None:
    wire = streamed(added(0, LISTS[0]), added(1, LISTS[1]), done(1, LISTS[1]), last=ended("completed", output))
    assert decoded(wire) == [START, STOP]
    passed = [event.fields for event in decoded(wire, OWN) if isinstance(event, PassthroughFields)]
    assert [(fields["type"], fields["output_index"]) for fields in passed] == [
        ("response.output_item.added", 0),
        ("response.output_item.added", 1),
        ("response.output_item.done", 1),
        ("response.output_item.done", 0),
    ]
    assert passed[-1]["item"] == LISTS[0]
    assert "STREAM_MENDED" in rules(wire, OWN)


def test_an_item_in_the_place_of_another_does_not_end_it() -> None:
    """Some servers leave items out of the last response, so that the places of the others change."""
    wire = streamed(
        added(0, reasoning()),
        done(0, reasoning()),
        added(1, message()),
        delta("output_text", 1, "a", content_index=0),
        last=ended("completed", [message("a")]),
    )
    assert decoded(wire) == [START, TextDelta("a"), STOP]
