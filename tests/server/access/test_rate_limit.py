"""The requests that the limits of a key admit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import GatewayError
from gateway.server.access.rate_limit import Grant, KeyUsage, RateLimits, count_request, grant, refusal
from gateway.settings import KeySettings


@pytest.fixture
def store() -> RateLimits:
    return RateLimits()


def admitted(store: RateLimits, key: str, now: float = 0) -> bool:
    try:
        store.acquire(key, now)
    except GatewayError as error:
        assert (error.status, error.code) == (429, "rate_limit_exceeded")
        assert int(error.headers["retry-after"]) >= 1
        return False
    return True


def wait(store: RateLimits, key: str, now: float) -> int:
    with pytest.raises(GatewayError) as caught:
        store.acquire(key, now)
    return int(caught.value.headers["retry-after"])


@given(st.integers(1, 300), st.lists(st.floats(0, 5), max_size=60))
def test_no_minute_sees_more_than_twice_the_rate(per_minute: int, gaps: list[float]) -> None:
    usage, limits, now, taken = KeyUsage(), KeySettings(requests_per_minute=per_minute), 1000.0, []
    for gap in gaps:
        now += gap
        try:
            usage = count_request(usage, limits, now)
        except GatewayError as error:
            # Whoever waits as long as was said is let in.
            now += int(error.headers["retry-after"])
            usage = count_request(usage, limits, now)
        taken.append(now)
    for begin in taken:
        assert sum(1 for time in taken if begin <= time < begin + 60) <= 2 * per_minute


def test_a_burst_is_allowed_and_then_an_even_pace(store: RateLimits) -> None:
    store.limit("a", KeySettings(requests_per_minute=4))
    assert [admitted(store, "a") for _ in range(5)] == [True, True, True, True, False]
    assert wait(store, "a", 0) == 15
    assert admitted(store, "a", 15)
    assert wait(store, "a", 16) == 14


def test_what_is_refused_uses_nothing_up(store: RateLimits) -> None:
    store.limit("a", KeySettings(requests_per_minute=2, concurrent_streams=1))
    assert [admitted(store, "a") for _ in range(9)] == [True] + 8 * [False]
    store.release("a")
    assert admitted(store, "a")


def test_places_come_back(store: RateLimits) -> None:
    store.limit("a", KeySettings(concurrent_streams=2))
    store.limit("b", KeySettings(concurrent_streams=1))
    for _ in range(3):
        assert [admitted(store, "a") for _ in range(3)] == [True, True, False]
        assert [admitted(store, "b") for _ in range(2)] == [True, False]
        for key in "aab":
            store.release(key)


CHANGES: dict[str, tuple[KeySettings, KeySettings, int]] = {
    "a limit where there was none": (KeySettings(), KeySettings(concurrent_streams=3), 1),
    "a lower one": (KeySettings(concurrent_streams=9), KeySettings(concurrent_streams=1), 0),
    "a higher one": (KeySettings(concurrent_streams=2), KeySettings(concurrent_streams=4), 2),
    "none any more": (KeySettings(concurrent_streams=2), KeySettings(), 9),
    "another rate": (KeySettings(requests_per_minute=3), KeySettings(requests_per_minute=6), 2),
    "a rate besides": (
        KeySettings(concurrent_streams=3),
        KeySettings(concurrent_streams=3, requests_per_minute=9),
        1,
    ),
}


@pytest.mark.parametrize(("before", "after", "more"), CHANGES.values(), ids=CHANGES)
def test_other_limits_count_what_was_before(
    store: RateLimits, before: KeySettings, after: KeySettings, more: int
) -> None:
    """Two requests run when the limits change; of nine further ones so many are let in."""
    store.limit("a", before)
    assert [admitted(store, "a") for _ in range(2)] == [True, True]
    store.limit("a", after)
    assert sum(admitted(store, "a") for _ in range(9)) == more
    for _ in range(2 + more):
        store.release("a")
    assert admitted(store, "a", 100)


@given(
    st.integers(0, 5),
    st.floats(-200, 200),
    st.one_of(st.none(), st.integers(1, 100)),
    st.one_of(st.none(), st.integers(1, 6)),
    st.integers(0, 9),
)
def test_a_grant_for_many_is_that_of_one_after_the_other(
    running: int, due: float, per_minute: int | None, streams: int | None, wanted: int
) -> None:
    limits = KeySettings(requests_per_minute=per_minute, concurrent_streams=streams)
    usage = KeyUsage(running, due)
    found = grant(usage, limits, wanted, 50)
    for _ in range(found.admitted):
        usage = count_request(usage, limits, 50)
    assert found.due_s == pytest.approx(usage.due - 50)
    if found.refused is None:
        assert found.admitted == wanted
        return
    with pytest.raises(GatewayError) as caught:
        count_request(usage, limits, 50)
    error = refusal(found.refused, limits, found.due_s)
    assert (error.message, error.headers) == (caught.value.message, caught.value.headers)


def test_a_grant_for_nothing_counts_nothing() -> None:
    assert grant(KeyUsage(3, 7), KeySettings(concurrent_streams=1), 0, 5) == Grant(0, 2)
