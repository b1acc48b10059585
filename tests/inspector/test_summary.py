import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.core.events import UsageReport
from gateway.inspector.summary import Cost, cost_of, token_counts
from gateway.settings import Price, read_settings
from gateway.testing.gateway import running_gateway
from tests.server.api.inspect.test_request_routes import asked, shown
from tests.server.api.inspect.test_routes import DEMO, settings

PRICE = Price(2, 8, 0.5, "EUR")


def used(prompt: int | None, completion: int | None, cached: Json = None, estimated: bool = False) -> UsageReport:
    extra: dict[str, Json] = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return UsageReport(prompt, completion, None, estimated, extra)


@pytest.mark.parametrize(
    ("usage", "price", "expected"),
    [
        (used(1_000_000, 500_000), PRICE, Cost(6, "EUR")),
        (used(1_000_000, 0, cached=400_000), PRICE, Cost(1.4, "EUR")),
        (used(1_000_000, 0, cached=400_000), Price(2, 8), Cost(2, "USD")),
        (used(100, 0, cached=400_000), PRICE, Cost(0.00005, "EUR")),
        (used(1, 1, estimated=True), PRICE, Cost(0.00001, "EUR", True)),
        (used(None, 5), PRICE, None),
        (used(5, None), PRICE, None),
        (used(5, 5), None, None),
        (None, PRICE, None),
    ],
)
def test_the_cost_follows_from_the_tokens(
    usage: UsageReport | None, price: Price | None, expected: Cost | None
) -> None:
    assert cost_of(None if usage is None else token_counts(usage), price) == expected


@pytest.mark.parametrize("cached", ["many", True, [1]])
def test_a_strange_count_is_none(cached: Json) -> None:
    assert token_counts(used(1, 1, cached)).cached is None


@pytest.mark.parametrize(
    ("price", "said"),
    [
        ({"input": 1}, "output"),
        ({"input": -1, "output": 1}, "input"),
        ({"input": 1, "output": 1, "in": 2}, "in"),
        (3, "price"),
    ],
)
def test_a_wrong_price_is_told(price: Json, said: str) -> None:
    raw: dict[str, Json] = {
        "backends": {"b": {"adapter": "openai_chat", "base_url": "http://localhost"}},
        "models": {"m": {"backend": "b", "price": price}},
    }
    with pytest.raises(SettingsError, match=said):
        read_settings(raw)


async def test_a_request_shows_its_cost_where_its_model_has_a_price() -> None:
    models: dict[str, Json] = {
        "dear": {"backend": "demo-chat", "price": {"input": 3, "output": 15}},
        "demo-chat": {"backend": "demo-chat"},
    }
    async with running_gateway({**settings(), "backends": DEMO["backends"], "models": models}) as gateway:
        summary = (await shown(gateway, await asked(gateway, "dear")))["summary"]
        amount = (summary["prompt_tokens"] * 3 + summary["completion_tokens"] * 15) / 1e6
        assert summary["cost"] == {"amount": pytest.approx(amount), "currency": "USD", "estimated": False}
        assert (await shown(gateway, await asked(gateway, "demo-chat")))["summary"]["cost"] is None
