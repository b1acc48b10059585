"""Tests the pairing of results and calls."""

import pytest

from gateway.core.conversation import ToolCall, Turn
from gateway.history.pairing import ResultAt, pair
from tests.history.strategies import assistant, calling, result, user


def bound(*turns: Turn) -> dict[tuple[int, int], int]:
    """(turn, ordinal) of each answered call -> the turn that answers it."""
    return {(call.turn, call.ordinal): answer.turn for call, answer in pair(turns).answers.items()}


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param((calling("a", "b"), result("b"), result("a")), {(0, 0): 2, (0, 1): 1}, id="any order"),
        pytest.param((calling("a"), user(), assistant(), result("a")), {(0, 0): 3}, id="far behind"),
        pytest.param((calling("a"), calling("b"), result("a"), result("b")), {(0, 0): 2, (1, 0): 3}, id="interlocked"),
        pytest.param((result("a"), user(), calling("a")), {(2, 0): 0}, id="before the only call with its id"),
        pytest.param((calling("a", "a"), result("a"), result("a")), {(0, 0): 1, (0, 1): 2}, id="one id twice"),
        pytest.param((calling("a"), result("b")), {}, id="foreign id"),
        pytest.param((calling("a"), assistant(), result("")), {}, id="no id and apart"),
    ],
)
def test_ids_bind_wherever_the_result_stands(turns: tuple[Turn, ...], expected: dict[tuple[int, int], int]) -> None:
    assert bound(*turns) == expected


def test_an_id_binds_inside_the_span_up_to_the_next_call_with_that_id() -> None:
    turns = (calling("a"), result("a"), calling("a"), user(), result("a"), calling("a"))
    assert bound(*turns) == {(0, 0): 1, (2, 0): 4}


def test_the_latest_call_with_an_id_takes_the_result_although_an_earlier_one_is_open() -> None:
    assert bound(calling("a"), user(), calling("a"), result("a")) == {(2, 0): 3}


def test_a_second_answer_belongs_to_the_first_call_and_is_never_given_to_the_next() -> None:
    pairing = pair((calling("a"), result("a"), result("a"), calling("a")))
    assert len(pairing.answers) == 1
    assert [(place.turn, call.turn) for place, call in pairing.duplicates.items()] == [(2, 0)]


def test_an_early_result_is_not_guessed_to_a_call_when_the_id_is_used_again() -> None:
    assert bound(result("a"), calling("a"), calling("a")) == {}


def test_an_early_result_loses_to_the_one_in_its_place() -> None:
    assert bound(result("a"), calling("a"), result("a")) == {(1, 0): 2}


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param((calling("", ""), result(""), result("")), {(0, 0): 1, (0, 1): 2}, id="both sides, in order"),
        pytest.param((calling("a", "b"), result(""), result("a")), {(0, 0): 2, (0, 1): 1}, id="ids first"),
        pytest.param((calling("", "b"), result("x"), result("b")), {(0, 0): 1, (0, 1): 2}, id="only the call lacks it"),
        pytest.param((calling("", "b"), result("x"), result("")), {(0, 0): 1, (0, 1): 2}, id="foreign, then none"),
        pytest.param((calling("a"), result("x")), {}, id="two ids that differ"),
        pytest.param((calling("a"), result(""), result("")), {(0, 0): 1}, id="one too many"),
        pytest.param((calling(""), user(), result("")), {}, id="not behind its call"),
    ],
)
def test_position_binds_where_an_id_is_missing(turns: tuple[Turn, ...], expected: dict[tuple[int, int], int]) -> None:
    assert bound(*turns) == expected


def test_a_result_leads_back_to_the_name_and_arguments_of_its_call() -> None:
    call = ToolCall("b", "shell", '{"command": "ls"}')
    pairing = pair((Turn("assistant", (*calling("a").blocks, call)), result("b"), result("x"), result("b")))
    assert pairing.call_of(ResultAt(1, 0)) == call
    assert pairing.call_of(ResultAt(2, 0)) is None
    assert pairing.call_of(ResultAt(3, 0)) is None


def test_calls_of_other_roles_and_results_of_other_roles_bind_nothing() -> None:
    call, answer = calling("a"), result("a")
    assert bound(Turn("user", call.blocks), answer) == {}
    assert bound(call, Turn("user", answer.blocks)) == {}
