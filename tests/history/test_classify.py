"""Tests the beginning of the current exchange, and whether the model has to continue."""

import pytest
from hypothesis import given

from gateway.core.conversation import Image, Turn
from gateway.core.policy import CONTINUATION, Policy
from gateway.history.classify import Classification, classify
from gateway.history.repair import repair
from tests.history.strategies import assistant, broken_turns, calling, conversation, result, system, user


def test_no_turns() -> None:
    assert classify(()) == Classification(0, None, (), False)


def test_only_system_turns() -> None:
    assert classify((system(), Turn("developer", ()))) == Classification(2, None, (), False)


def test_the_system_prefix_ends_at_the_first_other_turn() -> None:
    assert classify((system(), system(), user(), system())).system_prefix == 2


def test_results_of_every_round_since_the_last_user_turn_count() -> None:
    turns = (user(), calling("a"), result("a"), calling("b"), result("b"))
    assert classify(turns) == Classification(0, 0, (2, 4), True)


def test_results_before_the_last_user_turn_are_history() -> None:
    turns = (user(), calling("a"), result("a"), user(), calling("b"), result("b"))
    assert classify(turns) == Classification(0, 3, (5,), True)


def test_without_a_user_turn_all_results_count() -> None:
    assert classify((calling("a"), result("a"))) == Classification(0, None, (1,), True)


@pytest.mark.parametrize(
    ("turns", "awaiting"),
    [
        pytest.param((user(), calling("a"), result("a")), True, id="tool last"),
        pytest.param((user(), calling("a"), result("a"), system()), True, id="system after tool"),
        pytest.param((user(), calling("a"), result("a"), user("next")), False, id="user after tool"),
        pytest.param((user(), calling("a"), result("a"), user("")), False, id="empty user after tool"),
        pytest.param((user(""),), False, id="empty user without results"),
        pytest.param((user(), assistant()), False, id="assistant last"),
        pytest.param((user(), calling("a"), result("a"), user(CONTINUATION)), False, id="user writes the sentence"),
        pytest.param((user(CONTINUATION), calling("a"), result("a")), True, id="the sentence earlier on"),
    ],
)
def test_the_last_turn_that_is_no_system_turn_decides_who_speaks(turns: tuple[Turn, ...], awaiting: bool) -> None:
    assert classify(turns).awaiting_continuation is awaiting


def test_an_empty_user_turn_does_not_hide_the_question() -> None:
    turns = (user("the question"), calling("a"), result("a"), user(" \n"), Turn("user", ()))
    assert classify(turns) == Classification(0, 0, (2,), False)


def test_an_empty_user_turn_is_the_last_when_there_is_no_other() -> None:
    assert classify((user(""), assistant(), user(""))).last_user == 2


def test_a_user_turn_with_only_an_image_says_something() -> None:
    assert classify((user(), Turn("user", (Image("https://example.org/a.png"),)))).last_user == 1


def test_an_orphaned_result_kept_as_a_note_is_not_the_users_word_but_awaits_the_model() -> None:
    """A client that loses tool_calls turns every result of its loop into an orphan; the question stays the question."""
    repaired, _ = repair(conversation(user("the question"), assistant("I look."), result("a"), result("b")), Policy())
    assert [turn.role for turn in repaired.turns] == ["user", "assistant", "user", "user"]
    assert classify(repaired.turns) == Classification(0, 0, (), True)


@given(broken_turns())
def test_every_turn_is_either_history_or_current(turns: tuple[Turn, ...]) -> None:
    found = classify(turns)
    since = 0 if found.last_user is None else found.last_user + 1
    assert all(turn.role != "user" or not turn.text for turn in turns[since:])
    assert found.results_since == tuple(n for n, turn in enumerate(turns) if turn.role == "tool" and n >= since)
