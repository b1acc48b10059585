"""Tests the first excess of each limit, and long conversations with failing calls at every limit."""

from collections.abc import Iterator
from itertools import count

import msgspec
import pytest

from gateway.core.conversation import Conversation, ToolResult, Turn
from gateway.core.policy import Policy
from gateway.history.groups import groups
from gateway.history.prepare import prepare
from gateway.history.trim.apply import trim
from gateway.history.trim.truncate import is_elided
from gateway.history.validate import validate
from tests.history.strategies import assistant, calling, conversation, result, system, user

UNLIMITED = Policy(max_tool_results=None, max_history_messages=None, trim_step=1)


def _limit(name: str, limit: int, overflow: str = "elide") -> Policy:
    return msgspec.structs.replace(UNLIMITED, **{name: limit, "tool_result_overflow": overflow})


def _failed(call_id: str) -> Turn:
    content = result(call_id, "Error: no such file").results[0].content
    return Turn("tool", (ToolResult(call_id, content, is_error=True),))


def _long() -> Iterator[Turn]:
    """Eight rounds of work: parallel calls of which one fails, one call that was interrupted, a follow-up, a word."""
    numbers = count()
    yield system()
    for _ in range(8):
        a, b, c = (f"call_{next(numbers)}" for _ in range(3))
        yield from (user(f"question {a}"), calling(a, b), _failed(b), result(a), calling(c), assistant(f"answer {c}"))
    yield user("and now?")


LONG = tuple(_long())


def _rounds(number: int) -> Iterator[Turn]:
    yield user("question")
    for n in range(number):
        yield from (calling(f"c{n}"), result(f"c{n}", f"body {n}"))


def test_results_up_to_the_limit_are_left_alone() -> None:
    asked = conversation(*_rounds(5))
    assert trim(asked, _limit("max_tool_results", 5)) == (asked, [])


def test_the_first_result_beyond_the_limit_takes_the_oldest() -> None:
    trimmed, notices = trim(conversation(*_rounds(6)), _limit("max_tool_results", 5))
    assert [is_elided(found.text) for turn in trimmed.turns for found in turn.results] == [True, *[False] * 5]
    assert notices[0].detail == "Limiting tool results from 6 to 5"


def test_the_first_result_beyond_the_limit_takes_the_oldest_round_when_the_policy_drops() -> None:
    trimmed, _ = trim(conversation(*_rounds(6)), _limit("max_tool_results", 5, "drop"))
    assert [turn.index for turn in trimmed.turns] == [0, *range(3, 13)]


def test_messages_up_to_the_limit_are_left_alone() -> None:
    asked = conversation(user("1"), assistant("2"), user("3"), assistant("4"), user("now"))
    assert trim(asked, _limit("max_history_messages", 4)) == (asked, [])


def test_the_first_message_beyond_the_limit_takes_the_oldest() -> None:
    asked = conversation(assistant("0"), user("1"), user("2"), assistant("3"), assistant("4"), user("now"))
    trimmed, notices = trim(asked, _limit("max_history_messages", 4))
    assert [turn.index for turn in trimmed.turns] == [1, 2, 3, 4, 5]
    assert notices[0].detail == "Limiting history messages from 5 to 4"


def test_the_first_message_beyond_the_limit_is_kept_where_it_is_pinned() -> None:
    asked = conversation(user("0"), assistant("1"), user("2"), assistant("3"), assistant("4"), user("now"))
    trimmed, notices = trim(asked, _limit("max_history_messages", 4))
    assert trimmed == asked
    assert [notice.rule for notice in notices] == ["USER_TURNS_PINNED"]


def test_the_first_message_beyond_the_limit_takes_no_part_of_a_group() -> None:
    asked = conversation(calling("a"), result("a"), assistant("1"), user("2"), assistant("3"), user("now"))
    assert trim(asked, _limit("max_history_messages", 4)) == (asked, [])
    trimmed, _ = trim(asked, _limit("max_history_messages", 2))
    assert [turn.index for turn in trimmed.turns] == [3, 4, 5]


@pytest.mark.parametrize("name", ["max_tool_results", "max_history_messages"])
@pytest.mark.parametrize("overflow", ["elide", "drop"])
def test_a_long_conversation_with_failing_calls_stays_whole_at_every_limit(name: str, overflow: str) -> None:
    given = conversation(*LONG)
    assert len(given.turns) > 30
    kept = []
    for limit in range(len(LONG) + 1):
        turns = prepare(given, _limit(name, limit, overflow)).conversation.turns
        assert validate(Conversation(turns)) == ()
        assert (turns[0].role, turns[-1].text) == ("system", "and now?")
        for group in groups(turns):
            assert len(group.call_ids) == len(group.results)
        bodies = sum(not is_elided(found.text) for turn in turns for found in turn.results)
        kept.append((len(turns), bodies))
    assert kept == sorted(kept), "a larger limit never keeps less"
    assert kept[0] < kept[-1]


def test_what_failed_and_what_never_ran_still_look_like_it_after_trimming() -> None:
    turns = prepare(conversation(*LONG), _limit("max_tool_results", 5)).conversation.turns
    found = {found.call_id: found for turn in turns for found in turn.results}
    assert found["call_1"].is_error and found["call_22"].is_error
    assert found["call_23"].is_error and found["call_23"].synthesized
    assert not found["call_0"].is_error
