from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from gateway.recording.ddmin import ddmin


@given(st.integers(0, 60), st.sets(st.integers(0, 59), max_size=6))
def test_exactly_what_is_needed_is_left(size: int, needed: set[int]) -> None:
    needed = {item for item in needed if item < size}
    assert ddmin(range(size), lambda items: needed <= set(items)) == tuple(sorted(needed))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=25))
def test_nothing_more_can_be_left_out(items: list[int]) -> None:
    total = sum(items)

    def shows(part: Sequence[int]) -> bool:
        return bool(part) and sum(part) >= min(total, 3) and len(set(part)) >= min(len(set(items)), 2)

    if not shows(items):
        return
    kept = ddmin(items, shows)
    assert shows(kept) and kept == ddmin(items, shows)
    assert not any(shows(kept[:at] + kept[at + 1 :]) for at in range(len(kept)))


def test_few_calls_are_enough_where_few_items_matter() -> None:
    calls = 0

    def shows(items: Sequence[int]) -> bool:
        nonlocal calls
        calls += 1
        return 517 in items

    assert ddmin(range(1024), shows) == (517,)
    assert calls < 60
