"""Tests atomic groups: their members stay together, also in a history without repair."""

import pytest
from hypothesis import given

from gateway.core.conversation import Turn
from gateway.history.groups import Group, groups, groups_before
from tests.history.strategies import (
    assistant,
    broken_turns,
    calling,
    result,
    system,
    user,
    valid_turns,
)


def spans(*turns: Turn) -> list[tuple[int, int]]:
    return [(group.start, group.stop) for group in groups(turns)]


def test_no_turns_are_no_groups() -> None:
    assert groups(()) == ()


def test_plain_turns_stand_alone() -> None:
    assert spans(system(), user(), assistant(), user()) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_calls_results_and_follow_up_are_one_group() -> None:
    found = groups((user(), calling("a", "b"), result("b"), result("a"), assistant(), user()))
    assert found[1] == Group(1, 5, ("a", "b"), (2, 3), 4)
    assert [(group.start, group.stop) for group in found] == [(0, 1), (1, 5), (5, 6)]


def test_a_follow_up_is_optional() -> None:
    assert groups((calling("a"), result("a"), user()))[0] == Group(0, 2, ("a",), (1,), None)


def test_an_assistant_with_calls_of_its_own_opens_the_next_group() -> None:
    turns = (user(), calling("a"), result("a"), calling("b"), result("b"), assistant(), assistant())
    assert spans(*turns) == [(0, 1), (1, 3), (3, 6), (6, 7)]


def test_only_one_assistant_turn_follows_up() -> None:
    assert spans(calling("a"), result("a"), assistant(), assistant()) == [(0, 3), (3, 4)]


def test_an_unanswered_call_is_a_group_without_a_follow_up() -> None:
    assert spans(calling("a"), assistant()) == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param((calling("a"), system(), result("a"), assistant()), [(0, 4)], id="system turn inside"),
        pytest.param((calling("a"), user(), result("a")), [(0, 3)], id="user turn inside"),
        pytest.param((calling("a", "b"), result("a"), assistant(), result("b")), [(0, 4)], id="early follow-up"),
        pytest.param((calling("a"), calling("b"), result("a"), result("b")), [(0, 4)], id="interlocked"),
        pytest.param((result("a"), calling("a"), user()), [(0, 2), (2, 3)], id="result before its call"),
        pytest.param((calling("a"), result("x"), result("a")), [(0, 3)], id="foreign result inside"),
        pytest.param((calling("a"), result("a"), user(), result("a")), [(0, 4)], id="second answer far behind"),
        pytest.param((calling("a"), result("a"), result("x")), [(0, 2), (2, 3)], id="foreign result behind"),
        pytest.param((result("x"), user()), [(0, 1), (1, 2)], id="orphan alone"),
    ],
)
def test_membership_goes_by_id_when_the_order_is_broken(
    turns: tuple[Turn, ...], expected: list[tuple[int, int]]
) -> None:
    assert spans(*turns) == expected


def test_the_same_id_in_every_round_makes_a_group_per_round() -> None:
    turns = (calling("call_1"), result("call_1"), calling("call_1"), result("call_1"), calling("call_1"))
    assert spans(*turns) == [(0, 2), (2, 4), (4, 5)]


@given(broken_turns())
def test_groups_cover_every_turn_once_and_in_order(turns: tuple[Turn, ...]) -> None:
    covered = [position for group in groups(turns) for position in range(group.start, group.stop)]
    assert covered == list(range(len(turns)))


@given(valid_turns())
def test_a_result_is_in_the_group_of_its_call(turns: tuple[Turn, ...]) -> None:
    for group in groups(turns):
        answered = [result.call_id for position in group.results for result in turns[position].results]
        assert sorted(answered) == sorted(group.call_ids)


@pytest.mark.full
def test_long_histories_are_grouped_in_one_sweep() -> None:
    rounds = [turn for n in range(7_000) for turn in (calling(f"c{n}"), result(f"c{n}"), assistant())]
    assert len(groups(rounds)) == 7_000
    assert spans(calling(*(f"c{n}" for n in range(20_000))), *(result(f"c{n}") for n in range(20_000))) == [(0, 20_001)]


@given(broken_turns() | valid_turns())
def test_the_groups_of_a_beginning_follow_from_those_of_the_whole(turns: tuple[Turn, ...]) -> None:
    found = groups(turns)
    for end in range(len(turns) + 1):
        assert groups_before(found, turns, end) == groups(turns[:end])
