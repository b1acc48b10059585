"""A budget of money needs the price of every model that its key's requests may use."""

import json
from typing import Any

import pytest

from gateway.core.errors import SettingsError
from gateway.settings import BudgetSettings, parse_settings
from gateway.settings.faults import settings_faults

PRICED = {"backend": "b", "price": {"input": 1, "output": 2}}
FREE = {"backend": "b"}


def settings(budget: dict[str, Any], models: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {
        "backends": {"b": {"adapter": "openai_chat", "base_url": "http://localhost/v1"}},
        "models": models,
        "keys": {"alice": {"budget": budget, **parts.pop("key", {})}},
        **parts,
    }


def problem(raw: dict[str, Any]) -> str:
    with pytest.raises(SettingsError) as raised:
        parse_settings(json.dumps(raw))
    return raised.value.message


def test_a_budget_is_read() -> None:
    read = parse_settings(json.dumps(settings({"tokens_per_day": 5, "money_per_month": 0.5}, {"m": PRICED})))
    assert read.keys["alice"].budget == BudgetSettings(tokens_per_day=5, money_per_month=0.5)


@pytest.mark.parametrize("limit", ["money_per_day", "money_per_month"])
def test_a_model_without_a_price_is_refused(limit: str) -> None:
    found = problem(settings({limit: 5}, {"m": PRICED, "free": FREE}))
    assert "models.free.price is missing: keys.alice.budget limits money" in found


def test_a_model_that_the_key_may_not_use_needs_none() -> None:
    parse_settings(json.dumps(settings({"money_per_day": 5}, {"m": PRICED, "free": FREE}, key={"models": ["m"]})))


def test_a_budget_of_tokens_needs_none() -> None:
    parse_settings(json.dumps(settings({"tokens_per_day": 5}, {"free": FREE})))


def test_a_candidate_needs_one_where_the_key_may_use_it() -> None:
    models = {"m": {**PRICED, "candidates": ["free"], "longer": "free"}, "free": FREE}
    assert "models.free.price is missing" in problem(settings({"money_per_day": 5}, models))
    both = settings({"money_per_day": 5}, models, key={"models": ["m", "free"]})
    assert "models.free.price is missing" in problem(both)
    # It is not asked for another key.
    parse_settings(json.dumps(settings({"money_per_day": 5}, models, key={"models": ["m"]})))


def test_the_model_that_writes_summaries_needs_one() -> None:
    models = {"m": {**PRICED, "context_length": 1000}, "writer": {**FREE, "context_length": 1000}}
    raw = settings({"money_per_day": 5}, models, key={"models": ["m"]}, compress={"enabled": True, "model": "writer"})
    assert "models.writer.price is missing" in problem(raw)


def test_the_model_that_describes_pictures_needs_one() -> None:
    models = {"m": {**PRICED, "images": "describe"}, "seeing": {**FREE, "images": "refuse"}}
    raw = settings({"money_per_day": 5}, models, key={"models": ["m"]}, vision={"model": "seeing"})
    assert "models.seeing.price is missing" in problem(raw)


def test_one_currency_is_counted() -> None:
    euro = {**PRICED, "price": {"input": 1, "output": 2, "currency": "EUR"}}
    found = problem(settings({"money_per_day": 5}, {"m": PRICED, "other": euro}))
    assert "models.other.price.currency is not that of 'm'" in found


@pytest.mark.parametrize("limit", [0, -1, 0.0000001])
def test_money_is_at_least_a_millionth(limit: float) -> None:
    assert "keys.alice.budget.money_per_day" in problem(settings({"money_per_day": limit}, {"m": PRICED}))


def test_the_check_finds_the_missing_price_beside_other_faults() -> None:
    raw = settings({"money_per_day": 5}, {"m": FREE}, server={"port": "x"})
    found = [error.message for error in settings_faults(raw).errors]
    assert any("models.m.price is missing" in message for message in found), found
    assert any("server.port" in message for message in found), found
