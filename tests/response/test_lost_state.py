"""State for which a client has no place is told once, behind the first of it."""

from typing import Final

import pytest

from gateway.core.conversation import EMPTY, Conversation, JsonObject, Text, Turn
from gateway.core.events import Event, Finish, ReasoningEnd, TextDelta, ToolCallEnd, ToolCallStart
from gateway.core.policy import Policy
from gateway.core.provider_state import with_provider_state
from gateway.core.state_rule import ALL_STATE, NO_STATE, HeldState
from gateway.exchange import Exchange
from gateway.response.lost_state import STATE_NOT_SHOWN, tell_lost_state
from tests.scripted import ScriptedAdapter

ASKED: Final = (Turn("user", (Text("Hello"),)),)
SIGNED: Final = with_provider_state("google", {"thought_signature": "s"})
TEXT, FINISH = TextDelta("x"), Finish("stop")
OF_REASONING: Final = HeldState(frozenset({"google"}), frozenset())
OF_CALLS: Final = HeldState(frozenset({"other"}), frozenset({"google"}))


@pytest.mark.parametrize(
    ("event", "holds", "lost"),
    [
        (ReasoningEnd(SIGNED), NO_STATE, True),
        (ReasoningEnd(SIGNED), OF_REASONING, False),
        (ReasoningEnd(SIGNED), OF_CALLS, True),
        (ToolCallStart(0, "k", "f", extra=SIGNED), OF_REASONING, True),
        (ToolCallStart(0, "k", "f", extra=SIGNED), OF_CALLS, False),
        (ToolCallStart(0, "k", "f", extra=SIGNED), ALL_STATE, False),
        # No dialect writes what comes at the end of a call.
        (ToolCallEnd(0, SIGNED), ALL_STATE, True),
        (ToolCallEnd(0), NO_STATE, False),
    ],
)
def test_state_without_a_place_is_told(event: Event, holds: HeldState, *, lost: bool) -> None:
    told = [STATE_NOT_SHOWN] if lost else []
    assert tell_lost_state([TEXT, event, FINISH], holds) == [TEXT, event, *told, FINISH]


@pytest.mark.parametrize(
    "extra",
    [
        EMPTY,
        {"type": "custom"},
        {"extra_content": {}},
        with_provider_state("google", {"thought_signature": ""}),
        # What has no label, as an id, is no state.
        with_provider_state("warp", {"message_id": "m"}),
    ],
)
def test_what_is_no_state_is_not_told(extra: JsonObject) -> None:
    events: list[Event] = [ReasoningEnd(extra), ToolCallStart(0, "k", "f", extra=extra), ToolCallEnd(0, extra)]
    assert tell_lost_state(events, NO_STATE) is events


def test_it_is_told_once() -> None:
    script: list[list[Event]] = [[ReasoningEnd(SIGNED), ReasoningEnd(SIGNED)], [ReasoningEnd(SIGNED)], [TEXT, FINISH]]
    exchange = Exchange(ScriptedAdapter(*script), Conversation(ASKED, stream=True, holds=NO_STATE), Policy())
    events = [event for _ in script for event in exchange.feed(b".")]
    assert [position for position, event in enumerate(events) if event == STATE_NOT_SHOWN] == [1]
