"""Tests the detection of a model that repeats a call, and the configured actions."""

import pytest

from gateway.core.conversation import Conversation, Text, ToolCall, ToolResult, Turn
from gateway.core.policy import LoopGuard
from gateway.history.loop_guard import guard_loop


def rounds(*texts: str) -> Conversation:
    turns = [Turn("user", (Text("hi"),))]
    for number, text in enumerate(texts):
        turns.append(Turn("assistant", (ToolCall(f"call_{number}", "look", "{}"),)))
        turns.append(Turn("tool", (ToolResult(f"call_{number}", (Text(text),)),)))
    return Conversation(tuple(turns))


@pytest.mark.parametrize(
    ("texts", "seen"),
    [(("a", "a"), False), (("a", "a", "a"), True), (("a", "b", "a"), False), (("b", "a", "a"), False)],
)
def test_only_equal_rounds_in_a_row_count(texts: tuple[str, ...], seen: bool) -> None:
    conversation, notices = guard_loop(rounds(*texts), LoopGuard())
    assert [notice.rule for notice in notices] == ["LOOP_SEEN"] * seen
    assert conversation == rounds(*texts)


def test_the_count_is_told() -> None:
    _, notices = guard_loop(rounds("b", "a", "a", "a", "a"), LoopGuard())
    assert notices[0].detail == "look was called 4 times in a row with the same arguments and result"


def test_a_nudge_is_a_user_turn_at_the_end() -> None:
    conversation, notices = guard_loop(rounds("a", "a", "a"), LoopGuard(action="nudge"))
    assert conversation.turns[-1].role == "user"
    assert conversation.turns[-1].index is None
    assert "look 3 times" in conversation.turns[-1].text
    assert [notice.rule for notice in notices] == ["LOOP_SEEN", "LOOP_NUDGED"]


def test_tools_can_be_taken_away_for_one_answer() -> None:
    conversation, notices = guard_loop(rounds("a", "a", "a"), LoopGuard(action="no_tools"))
    assert conversation.tool_choice == "none"
    assert notices[-1].rule == "LOOP_TOOLS_OFF"


def test_it_can_be_switched_off_and_a_finished_loop_is_none() -> None:
    assert guard_loop(rounds("a", "a", "a"), LoopGuard(repeats=0))[1] == []
    finished = rounds("a", "a", "a")
    finished = Conversation((*finished.turns, Turn("user", (Text("thanks"),))))
    assert guard_loop(finished, LoopGuard())[1] == []
