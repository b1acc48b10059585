"""Arguments that are no JSON object are reported to a client that reads them as one, however they arrive."""

import pytest

from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from tests.scripted import ScriptedAdapter


def answer(*pieces: str) -> list[list[Event]]:
    """A response with one call; each list is what one piece of the body holds."""
    deltas: list[list[Event]] = [[ToolCallDelta(3, piece)] for piece in pieces]
    return [
        [ResponseStart(), ReasoningDelta("hm"), TextDelta("x")],
        [ToolCallStart(3, "k", "f")],
        *deltas,
        [ToolCallEnd(3)],
        [Finish("tool_calls")],
    ]


def events_of(script: list[list[Event]], *, object_arguments: bool | frozenset[str]) -> list[Event]:
    asked = Conversation((Turn("user", (Text("hi"),)),), stream=True, object_arguments=object_arguments)
    exchange = Exchange(ScriptedAdapter(*script), asked, Policy())
    return [event for _ in script for event in exchange.feed(b".")]


@pytest.mark.parametrize("functions", [True, frozenset("f")], ids=["all", "one"])
@pytest.mark.parametrize(
    ("pieces", "reported"),
    [
        (('{"n":', "1}"), False),
        ((), False),
        ((" ", "\n"), False),
        (("[1", "]"), True),
        (("7",), True),
        (("null",), True),
        (('{"n":', "1"), True),
        (("{} {}",), True),
        (("no",), True),
    ],
)
def test_the_notice_stands_behind_the_end_of_the_call(
    pieces: tuple[str, ...], reported: bool, functions: bool | frozenset[str]
) -> None:
    script = answer(*pieces)
    plain = [event for events in script for event in events]
    got = events_of(script, object_arguments=functions)
    notices = [event for event in got if isinstance(event, Notice)]
    assert [event for event in got if event not in notices] == plain
    assert [(one.action, one.rule, one.tool_call_id) for one in notices] == reported * [
        ("changed", "ARGUMENTS_AS_TEXT", "k")
    ]
    if reported:
        assert got[got.index(ToolCallEnd(3)) + 1] is notices[0]


@pytest.mark.parametrize("functions", [False, frozenset("g")], ids=["none", "another"])
def test_a_client_that_reads_text_gets_no_notice(functions: bool | frozenset[str]) -> None:
    script = answer("no")
    assert events_of(script, object_arguments=functions) == [event for events in script for event in events]


def test_calls_that_interleave_are_told_apart() -> None:
    script: list[list[Event]] = [
        [ResponseStart(), ToolCallStart(0, "a", "f"), ToolCallStart(1, "b", "f")],
        [ToolCallDelta(1, "["), ToolCallDelta(0, "{")],
        [ToolCallDelta(0, "}"), ToolCallDelta(1, "]")],
        [ToolCallEnd(0), ToolCallEnd(1), Finish("tool_calls")],
    ]
    got = events_of(script, object_arguments=True)
    assert [event.tool_call_id for event in got if isinstance(event, Notice)] == ["b"]
