import pytest

from gateway.core.conversation import ALL_CONTENT, Conversation, Text, Turn
from gateway.core.errors import InvalidToolCall
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
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.response.readable_content import DECLINED, DROPPED, ReadableContentFilter
from tests.scripted import ScriptedAdapter

THOUGHT: list[Event] = [
    ReasoningDelta("hm"),
    ReasoningDelta("so"),
    ReasoningEnd({}),
    TextDelta("x"),
    ReasoningDelta("?"),
]
CALL: list[Event] = [ToolCallStart(0, "k", "f"), ToolCallDelta(0, "{}"), ToolCallEnd(0)]


def test_reasoning_is_dropped_with_one_notice() -> None:
    shown = ReadableContentFilter(frozenset({"calls"}), declined=False)
    assert shown.feed(THOUGHT) == [DROPPED, TextDelta("x")]
    assert shown.feed([ReasoningDelta("more"), Finish("stop")]) == [Finish("stop")]


def test_the_state_of_reasoning_stays_where_the_client_reads_it() -> None:
    shown = ReadableContentFilter(frozenset({"state"}), declined=True)
    assert shown.feed(THOUGHT) == [DECLINED, ReasoningEnd({}), TextDelta("x")]


def test_what_the_client_reads_is_kept() -> None:
    assert ReadableContentFilter(frozenset({"calls"}), declined=True).feed(CALL) == CALL
    assert ReadableContentFilter(ALL_CONTENT, declined=True).feed([*THOUGHT, *CALL]) == [*THOUGHT, *CALL]


def test_a_call_that_the_client_cannot_read_fails_the_response_behind_its_text() -> None:
    with pytest.raises(InvalidToolCall) as caught:
        ReadableContentFilter(frozenset(), declined=False).feed([TextDelta("x"), *CALL, Finish("tool_calls")])
    assert caught.value.take_events() == [TextDelta("x")]


def test_an_exchange_keeps_to_what_the_client_reads() -> None:
    conversation = Conversation((Turn("user", (Text("hi"),)),), reads=frozenset({"calls"}))
    adapter = ScriptedAdapter([ResponseStart()], THOUGHT, CALL, [Finish("tool_calls")])
    events = Exchange(adapter, conversation, Policy()).feed(b"....")
    assert events == [ResponseStart(), DECLINED, TextDelta("x"), *CALL, Finish("tool_calls")]
