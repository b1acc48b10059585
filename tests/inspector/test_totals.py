"""The sums of requests, and how their backends have answered lately."""

from typing import Any

import msgspec
import pytest

from gateway.inspector.summary import Cost, Summary
from gateway.inspector.totals import BackendTotals, Totals, joined, totals_of
from gateway.testing.gateway import running_gateway
from tests.server.api.inspect.test_routes import DEMO, settings

ONE = Summary(1, "r", 5.0, "POST", "/", "openai_chat", "-", "m", "b", False, 5.0, 200)


def request(**fields: Any) -> Summary:
    return msgspec.structs.replace(ONE, **fields)


def test_requests_are_added_up() -> None:
    found = totals_of(
        [
            request(live=True, status=0, began=9.0),
            request(prompt_tokens=10, completion_tokens=2, cost=Cost(0.5, "EUR"), began=7.0),
            request(
                prompt_tokens=1, completion_tokens=1, cost=Cost(0.25, "EUR", True), tokens_estimated=True, began=6.0
            ),
            request(prompt_tokens=3, completion_tokens=0, cost=Cost(2, "USD"), began=3.0),
            request(code="invalid_type", status=400, backend="-", prompt_tokens=4, began=4.0),
        ]
    )
    assert found == Totals(
        5, 1, 1, 18, 3, True, (Cost(0.75, "EUR", True), Cost(2, "USD")), 1, 3.0, (BackendTotals("b", 4, 0, 3),)
    )
    assert totals_of([]) == Totals()


@pytest.mark.parametrize(
    ("code", "status", "fault"),
    [
        ("upstream_timeout", 504, True),
        ("upstream_stream_truncated", 200, True),
        ("rate_limit_exceeded", 429, True),
        ("insufficient_quota", 429, True),
        ("", 200, False),
        ("client_gone", 499, False),
        ("invalid_type", 400, False),
        ("context_length_exceeded", 400, False),
        ("internal_error", 500, False),
        ("overloaded", 503, False),
        ("server_shutdown", 503, False),
        ("store_unavailable", 503, False),
    ],
)
def test_a_backend_is_to_blame_for_what_is_its_own(code: str, status: int, fault: bool) -> None:
    (backend,) = totals_of([request(code=code, status=status)]).backends
    assert (backend.failed, backend.failed_lately, bool(backend.outcome)) == (fault, fault, fault)


def test_the_newest_answers_say_how_it_is_now() -> None:
    failure = request(code="upstream_timeout", status=504)
    old = request(code="upstream_error", status=502)
    (backend,) = totals_of([request(live=True), failure, *[request()] * 19, old, old]).backends
    assert backend == BackendTotals("b", 23, 3, 20, 1, "backend too slow")
    (backend,) = totals_of([*[request()] * 20, failure]).backends
    assert backend == BackendTotals("b", 21, 1, 20, 0, "")


def test_those_of_workers_are_joined() -> None:
    requests = [
        request(prompt_tokens=1, completion_tokens=2, cost=Cost(0.1, "EUR"), backend=name, began=began, code=code)
        for name, began, code in (("b", 9.0, ""), ("a", 8.0, "upstream_error"), ("b", 7.0, "upstream_timeout"))
    ]
    apart = joined([totals_of([one]) for one in requests])
    assert apart == totals_of(requests) and joined([]) == Totals()


async def test_the_page_gets_them_by_the_filter() -> None:
    models = {
        "dear": {"backend": "demo-chat", "price": {"input": 3, "output": 15}},
        "demo-chat": {"backend": "demo-chat"},
    }
    own: Any = {**settings(), "backends": DEMO["backends"], "models": models}
    async with running_gateway(own) as gateway:
        for model in ("dear", "demo-chat", "none"):
            await gateway.chat(model=model, messages=[{"role": "user", "content": "Weltraumbahnhof"}])

        async def totals(filter: str) -> dict[str, Any]:
            answer = await gateway.client.get("/inspect/api/totals", params={"filter": filter})
            found: dict[str, Any] = answer.json()
            return found

        found = await totals("")
        assert (found["requests"], found["failed"], found["unpriced"]) == (3, 1, 1)
        assert [one["name"] for one in found["backends"]] == ["demo-chat"] and found["costs"][0]["amount"] > 0
        assert (await totals("model:dear"))["requests"] == (await totals("weltraum model:dear"))["requests"] == 1
        assert (await totals("nothing"))["requests"] == 0
        assert (await gateway.client.get("/inspect/api/totals?filter=non:sense")).status_code == 400
