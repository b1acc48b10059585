"""Tests the index of a conversation's summaries: sightings, attempts, failures, and what no longer fits."""

import pytest

from gateway.server.summaries.index import (
    BACKOFF_S,
    HOUR_S,
    MOST_AN_HOUR,
    MOST_ENTRIES,
    IndexEntry,
    Outcome,
    SummaryIndex,
    decode_index,
    failed,
    newest,
    seen,
)

NOW = 1_000_000.0


def entry(turns: int = 10, outcome: Outcome = "candidate", generation: int = 0) -> IndexEntry:
    return IndexEntry(turns, b"%016d" % turns, outcome, generation=generation)


def test_an_index_survives_its_bytes_and_other_bytes_are_an_empty_one() -> None:
    index = SummaryIndex().with_entry(entry(outcome="summary", generation=3)).with_attempt(NOW)
    assert decode_index(index.encode()) == index
    assert decode_index(b"\xc1nothing") == SummaryIndex()


def test_a_boundary_counts_from_its_second_sighting() -> None:
    index = SummaryIndex()
    assert index.refusal(entry(), 2, NOW) == "unseen"
    assert index.refusal(seen(entry()), 2, NOW) is None
    assert index.refusal(entry(), 1, NOW) is None


def test_a_failed_attempt_is_repeated_later_and_then_given_up() -> None:
    index, one = SummaryIndex(), seen(entry())
    for pause in BACKOFF_S:
        one = failed(one, NOW)
        assert one.outcome == "candidate"
        assert index.refusal(one, 2, NOW + pause - 1) == "backoff"
        assert index.refusal(one, 2, NOW + pause) is None
    assert failed(one, NOW).outcome == "abandoned"


def test_a_clock_that_was_set_back_ends_no_attempts() -> None:
    one = failed(seen(entry()), NOW)
    assert SummaryIndex().refusal(one, 2, NOW - 365 * 24 * HOUR_S) is None
    index = SummaryIndex()
    for _ in range(MOST_AN_HOUR):
        index = index.with_attempt(NOW)
    assert index.refusal(seen(entry()), 2, NOW - HOUR_S) is None


def test_the_attempts_of_an_hour_are_limited() -> None:
    index = SummaryIndex()
    for number in range(MOST_AN_HOUR):
        assert index.refusal(seen(entry()), 2, NOW + number) is None
        index = index.with_attempt(NOW + number)
    assert index.refusal(seen(entry()), 2, NOW + MOST_AN_HOUR) == "hourly"
    assert index.refusal(seen(entry()), 2, NOW + HOUR_S) is None
    assert len(index.with_attempt(NOW + 2 * HOUR_S).attempts) == 1


def test_an_attempt_that_has_succeeded_does_not_count() -> None:
    index = SummaryIndex()
    for number in range(3 * MOST_AN_HOUR):
        index = index.with_attempt(NOW + number).without_attempt(NOW + number)
    assert index.refusal(seen(entry()), 2, NOW + 3 * MOST_AN_HOUR) is None
    twice = index.with_attempt(NOW).with_attempt(NOW)
    assert twice.without_attempt(NOW).attempts == (NOW,)
    assert twice.without_attempt(NOW + 1) == twice


def test_the_entry_used_least_recently_goes_first() -> None:
    index = SummaryIndex()
    for turns in range(MOST_ENTRIES):
        index = index.with_entry(entry(turns))
    index = index.with_entry(seen(entry(0))).with_entry(entry(MOST_ENTRIES))
    assert len(index.entries) == MOST_ENTRIES
    assert index.find(entry(1).digest) is None
    assert index.find(entry(0).digest) == seen(entry(0))


@pytest.mark.parametrize(("chain", "found"), [((1, 2, 3), 2), ((1,), 1), ((3,), None), ((), None)])
def test_the_newest_summary_in_a_chain_is_used(chain: tuple[int, ...], found: int | None) -> None:
    index = SummaryIndex((entry(2, outcome="summary"), entry(1, outcome="summary"), entry(3)))
    match = newest(index, "summary", frozenset(entry(turns).digest for turns in chain))
    assert (None if match is None else match.turns) == found
    assert newest(index, "candidate", frozenset([entry(3).digest])) == entry(3)
