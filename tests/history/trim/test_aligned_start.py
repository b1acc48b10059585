"""A cut never goes through a group: it moves back to where the group begins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Turn
from gateway.history.groups import groups
from gateway.history.trim.aligned_start import aligned_start
from tests.history.strategies import assistant, broken_turns, calling, result, system, user

# 0 system, 1 user, 2-5 a group with its follow-up, 6 user, 7-8 a group
TURNS = (system(), user(), calling("a", "b"), result("a"), result("b"), assistant(), user(), calling("c"), result("c"))


@pytest.mark.parametrize(
    ("raw_start", "protected", "start"),
    [
        (0, 0, 0),
        (0, 1, 1),
        (1, 1, 1),
        (2, 1, 2),
        (3, 1, 2),
        (4, 1, 2),
        (5, 1, 2),
        (6, 1, 6),
        (8, 1, 7),
        (9, 1, 9),
        (12, 1, 12),
        (3, 3, 6),
        (0, 4, 6),
        (8, 8, 9),
        (2, 9, 9),
        (0, 12, 12),
    ],
)
def test_a_cut_moves_back_to_its_group_and_a_prefix_reaches_to_the_end_of_its_own(
    raw_start: int, protected: int, start: int
) -> None:
    assert aligned_start(groups(TURNS), raw_start, protected) == start


def test_there_is_nothing_to_align_without_turns() -> None:
    assert aligned_start((), 0, 0) == 0
    assert aligned_start((), 3, 1) == 3


@given(broken_turns(), st.integers(0, 30), st.integers(0, 30))
def test_law_an_aligned_cut_is_a_boundary_and_stays_put(
    turns: tuple[Turn, ...], raw_start: int, protected: int
) -> None:
    cut = groups(turns)
    start = aligned_start(cut, raw_start, protected)
    assert start in {*(group.start for group in cut), *range(len(turns), 61)}
    assert aligned_start(cut, start, protected) == start
    assert start <= max(raw_start, protected) or protected < len(turns)
