"""Budgets count whole numbers in windows of UTC."""

from datetime import UTC, datetime
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.server.access.budgets import (
    BUDGETS,
    MOST,
    Amount,
    Budget,
    BudgetName,
    Window,
    amount_of,
    budgets_of,
    expected_of,
    refusal,
    unconfirmed,
    window_of,
)
from gateway.settings import BudgetSettings, Price

PRICE: Final = Price(input=3, output=15, cached_input=0.3)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("name", "now", "start", "end"),
    [
        ("tokens_per_minute", "2026-11-27T14:18:59.999", "2026-11-27T14:18:00", "2026-11-27T14:19:00"),
        ("tokens_per_minute", "2026-12-31T23:59:00", "2026-12-31T23:59:00", "2027-01-01T00:00:00"),
        ("tokens_per_day", "2026-11-27T00:00:00", "2026-11-27", "2026-11-28"),
        ("money_per_day", "2028-02-29T23:59:59", "2028-02-29", "2028-03-01"),
        ("tokens_per_month", "2026-11-30T12:00:00", "2026-11-01", "2026-12-01"),
        ("money_per_month", "2026-12-01T00:00:00", "2026-12-01", "2027-01-01"),
        ("money_per_month", "2027-02-28T23:59:59", "2027-02-01", "2027-03-01"),
    ],
)
def test_windows_are_those_of_the_calendar(name: BudgetName, now: str, start: str, end: str) -> None:
    assert window_of(name, at(now)) == Window(int(at(start)), int(at(end)))


@given(name=st.sampled_from(BUDGETS), now=st.floats(0, 4_000_000_000))
def test_each_time_lies_in_its_window_and_the_next_one_begins_at_its_end(name: BudgetName, now: float) -> None:
    window = window_of(name, now)
    assert window.holds(now) and not window.holds(window.end)
    assert window_of(name, window.end).start == window.end
    assert window_of(name, window.start) == window


@pytest.mark.parametrize(
    ("tokens", "micros"),
    [
        ((1_000_000, 0, 0), 3_000_000),
        ((1_000_000, 0, 1_000_000), 300_000),
        ((0, 1_000_000, 0), 15_000_000),
        ((1000, 10, 400), 600 * 3 + 400 * 0.3 + 10 * 15),
        ((1, 0, 1), 1),  # 0.3 micros
        ((10, 0, 500), 3),  # no more than the prompt is cached
        ((0, 0, 0), 0),
    ],
)
def test_what_tokens_cost_in_millionths(tokens: tuple[int, int, int], micros: float) -> None:
    prompt, completion, cached = tokens
    assert amount_of(PRICE, prompt, completion, cached) == Amount(prompt + completion, int(micros))


def test_cached_tokens_cost_as_much_where_the_price_names_none() -> None:
    assert amount_of(Price(input=2, output=1), 100, 0, 100) == Amount(100, 200)


def test_no_count_of_a_backend_is_more_than_a_store_holds() -> None:
    won = Price(input=4000, output=20_000)
    assert amount_of(won, MOST, MOST) == amount_of(won, 10**30, 0) == Amount(MOST, MOST)


def test_without_a_price_tokens_count_and_no_money() -> None:
    assert amount_of(None, 70, 7) == Amount(77, 0)


@given(
    price=st.floats(0, 1000).map(lambda value: Price(input=value, output=2 * value)),
    parts=st.lists(st.integers(0, 10**9), min_size=1, max_size=5),
)
def test_parts_of_a_prompt_never_cost_less_than_the_whole(price: Price, parts: list[int]) -> None:
    whole = amount_of(price, sum(parts), 0).micros
    apart = sum(amount_of(price, part, 0).micros for part in parts)
    assert whole <= apart <= whole + len(parts)


def test_what_is_expected_is_never_nothing_where_the_answer_costs_something() -> None:
    """Else a budget that is spent would refuse nothing of a model whose prompts are free."""
    assert expected_of(PRICE, 1000) == Amount(1000, 3000)
    assert expected_of(Price(input=0, output=5), 1000) == Amount(1000, 1)
    assert expected_of(Price(input=0, output=0), 0) == Amount(1, 0)
    assert expected_of(None, 7) == Amount(7, 0)


def test_budgets_are_tokens_and_micros() -> None:
    settings = BudgetSettings(tokens_per_minute=5, money_per_month=12.345678)
    assert budgets_of(settings) == (Budget("tokens_per_minute", 5), Budget("money_per_month", 12_345_678))
    assert budgets_of(BudgetSettings()) == ()
    amount = Amount(3, 4)
    assert [amount.of(name) for name in BUDGETS] == [3, 3, 3, 4, 4]


def test_a_spent_budget_is_refused_until_its_window_ends() -> None:
    now = at("2026-11-27T23:59:58.500")
    error = refusal(Budget("tokens_per_day", 100), window_of("tokens_per_day", now), 7, now)
    assert (error.status, error.code, error.kind) == (429, "insufficient_quota", "rate_limit")
    assert error.headers == {"x-should-retry": "false", "retry-after": "2"}
    assert "tokens_per_day" in error.message and "2026-11-28T00:00:00Z" in error.message
    assert not error.transient


def test_a_prompt_beyond_the_whole_budget_is_told_so() -> None:
    error = refusal(Budget("money_per_day", 10), Window(0, 60), 11, 0)
    assert "whole budget money_per_day" in error.message


def test_what_nobody_knows_is_transient() -> None:
    error = unconfirmed("the store is down", 1)
    assert (error.status, error.code, error.headers["retry-after"]) == (503, "budget_unavailable", "1")
    assert error.transient
