"""What a client's request costs its key: by the counts of its backend, else by what is known of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import msgspec
import pytest

from gateway.core.conversation import Conversation, Json, Text, Turn
from gateway.core.events import Finish, TextDelta, UsageReport
from gateway.core.tokens import estimate_text
from gateway.registry import DIALECTS
from gateway.server.state.store import StoreUnavailable
from gateway.server.telemetry.request_context import RequestContext
from gateway.settings import BudgetSettings, KeySettings, Price
from gateway.testing.faulty import FaultyBackend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.backend import END, HEAD, Connection, answer, events, faulty_backend
from tests.server.conftest import HASTY, PATIENT, settings_for
from tests.server.state.test_budgets import NOON

LIMIT: Final = 1000
PRICE: Final = {"input": 3, "output": 15}
# `Hello` in one message.
PROMPT: Final = 5
TEXT: Final = "Several words of an answer, of some length."
WRITTEN: Final = estimate_text(TEXT)


async def counted(connection: Connection) -> None:
    await connection.send(HEAD, events(f"text {TEXT}"), events("usage 30 12", "finish"), END)


async def uncounted(connection: Connection) -> None:
    await connection.send(HEAD, events(f"text {TEXT}", "finish"), END)


async def zeros(connection: Connection) -> None:
    await connection.send(HEAD, events(f"text {TEXT}", "usage 0 0", "finish"), END)


async def cut(connection: Connection) -> None:
    await connection.send(HEAD, events(f"text {TEXT}"))
    connection.close()


async def cut_behind_a_count(connection: Connection) -> None:
    await connection.send(HEAD, events("usage 30 1", f"text {TEXT}"))
    connection.close()


async def fails(connection: Connection) -> None:
    await connection.send(HEAD, events(f"text {TEXT}", "error it has failed"))
    await connection.gone()


async def refuses(connection: Connection) -> None:
    await connection.send(answer("400 Bad Request", b"no"))


async def overloaded(connection: Connection) -> None:
    await connection.send(answer("503 Service Unavailable", b"no"))


async def redirects(connection: Connection) -> None:
    await connection.send(answer("302 Found", b"", b"location: /elsewhere"))


async def silent(connection: Connection) -> None:
    await connection.gone()


Served = tuple[RunningGateway, FaultyBackend]


@asynccontextmanager
async def serving(
    script: Callable[[Connection], Any], timeouts: Any = PATIENT, budget: Json = None, **more: Json
) -> AsyncIterator[Served]:
    async with faulty_backend(script) as backend:
        whole: dict[str, Json] = {
            **settings_for(backend.base_url, timeouts),
            "models": {name: {"backend": "plain", "price": dict(PRICE)} for name in ("m", "n")},
            "keys": {"*": {"budget": budget or {"tokens_per_day": LIMIT}}},
            **more,
        }
        async with running_gateway(whole) as gateway:
            spending = gateway.app.gateway_state.spending
            assert spending is not None
            spending.budgets._clock = lambda: NOON
            yield gateway, backend


def spent(gateway: RunningGateway, key: str = "-") -> dict[str, int]:
    spending = gateway.app.gateway_state.spending
    assert spending is not None
    known = spending.budgets._keys.get(key)
    shares = {} if known is None else known.shares
    assert all(not share.running for share in shares.values())
    return {name: share.spent for name, share in shares.items()}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("script", "tokens"),
    [
        (counted, 42),
        (uncounted, PROMPT + WRITTEN),
        (zeros, PROMPT + WRITTEN),
        (cut, PROMPT + WRITTEN),
        (cut_behind_a_count, 30 + WRITTEN),
        # Nothing of it was an answer: text before a fault in the same read is not sent.
        (fails, PROMPT),
        (refuses, 0),
        (overloaded, 0),
        (redirects, PROMPT),
        (silent, PROMPT),
    ],
)
async def test_what_counts(script: Any, tokens: int, stream: bool) -> None:
    async with serving(script, HASTY if script is silent else PATIENT) as (gateway, _):
        await gateway.chat(stream=stream)
        assert spent(gateway) == {"tokens_per_day": tokens}
        metrics = gateway.app.gateway_state.metrics
        assert [sample.value for sample in metrics.budget_tokens.samples()] == [tokens]


async def test_a_client_that_leaves_pays_for_what_has_come() -> None:
    arrived = asyncio.Event()

    async def stalls(connection: Connection) -> None:
        await connection.send(HEAD, events(f"text {TEXT}"))
        arrived.set()
        await connection.gone()

    async with serving(stalls) as (gateway, _):
        body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
        async with gateway.client.stream("POST", "/v1/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                if TEXT in line:
                    break
        context = gateway.app.gateway_state.scheduler
        while context.size:  # noqa: ASYNC110 (the request ends by itself)
            await asyncio.sleep(0.001)
        assert spent(gateway) == {"tokens_per_day": PROMPT + WRITTEN}


async def test_a_backend_that_cannot_be_reached_costs_nothing() -> None:
    gone = settings_for("http://127.0.0.1:1")["backends"]
    async with serving(counted, backends=gone) as (gateway, _):
        assert (await gateway.chat()).status_code == 502
        assert spent(gateway) == {"tokens_per_day": 0}


async def test_money_is_that_of_the_price_of_the_model_with_its_cache() -> None:
    usage: Json = {
        **{"prompt_tokens": 1000, "completion_tokens": 100},
        "prompt_tokens_details": {"cached_tokens": 600},
    }
    async with AsyncExitStack() as stack:
        gateway, _ = await stack.enter_async_context(chatting(usage))
        assert (await gateway.chat()).status_code == 200
        # 400 at 3, 600 at 0.3, 100 at 15 for a million: in millionths.
        assert spent(gateway) == {"money_per_month": 1200 + 180 + 1500}
        metrics = gateway.app.gateway_state.metrics
        assert [sample.value for sample in metrics.budget_micros.samples()] == [2880]


@asynccontextmanager
async def chatting(usage: Json, seen: list[Any] | None = None) -> AsyncIterator[Served]:
    """A gateway before a backend of chat completions, with a budget of money."""

    async def reply(connection: Connection) -> None:
        body = json.loads(connection.body)
        if seen is not None:
            seen.append(body)
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
            whole = {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}
            await connection.send(answer("200 OK", json.dumps(whole).encode(), b"content-type: application/json"))
            return
        delta = {"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}
        parts: list[Any] = [{"choices": [delta]}]
        if (body.get("stream_options") or {}).get("include_usage"):
            parts.append({"choices": [], "usage": usage})
        lines = [f"data: {json.dumps(part)}\n\n" for part in parts]
        stream = ("".join(lines) + "data: [DONE]\n\n").encode()
        await connection.send(answer("200 OK", stream, b"content-type: text/event-stream"))

    async with faulty_backend(reply) as backend:
        price: Json = {"input": 3, "output": 15, "cached_input": 0.3}
        settings: dict[str, Json] = {
            "backends": {"b": {"adapter": "openai_chat", "base_url": backend.base_url}},
            "models": {"m": {"backend": "b", "price": price}},
            "keys": {"*": {"budget": {"money_per_month": 1}}},
        }
        async with running_gateway(settings) as gateway:
            yield gateway, backend


async def test_counts_of_a_stream_are_asked_for_and_not_shown_to_a_client_that_has_not_asked() -> None:
    seen: list[Any] = []
    usage: Json = {"prompt_tokens": 1000, "completion_tokens": 100}
    async with chatting(usage, seen) as (gateway, _):
        streamed = await gateway.chat(stream=True)
        assert seen[0]["stream_options"] == {"include_usage": True}
        assert '"usage"' not in streamed.text and "[DONE]" in streamed.text
        assert spent(gateway) == {"money_per_month": 4500}
        explained = await gateway.client.post(
            "/v1/chat/completions",
            json={"model": "m", "messages": [{"role": "user", "content": "Hello"}], "stream": True},
            headers={"x-dragoman-explain": "1"},
        )
        assert "USAGE_REQUESTED" in explained.text
        asked = await gateway.chat(stream=True, stream_options={"include_usage": True})
        assert '"prompt_tokens":1000' in asked.text and "USAGE_REQUESTED" not in asked.text


@pytest.mark.parametrize(
    ("usage", "micros"),
    [
        # What exceeds the estimate of the prompt is the answer.
        ({"total_tokens": 500}, 3 * PROMPT + 15 * (500 - PROMPT)),
        ({"prompt_tokens": 400, "total_tokens": 500}, 3 * 400 + 15 * 100),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 50}}, 3 + 75),
        ({"prompt_tokens": -1, "completion_tokens": 1e300, "total_tokens": 2.5}, 3 * PROMPT + 15 * estimate_text("Hi")),
    ],
)
async def test_counts_that_are_incomplete_or_impossible(usage: Json, micros: int) -> None:
    async with chatting(usage) as (gateway, _):
        assert (await gateway.chat()).status_code == 200
        assert spent(gateway) == {"money_per_month": micros}


async def test_a_key_without_a_budget_is_charged_nothing() -> None:
    async with serving(counted) as (gateway, _):
        spending = gateway.app.gateway_state.spending
        assert spending is not None
        spending.budgets.change({"-": KeySettings(concurrent_streams=5), **spending.budgets._settings})
        explained = {"x-dragoman-explain": "1"}
        body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
        found = await gateway.client.post("/v1/chat/completions", json=body, headers=explained)
        assert found.status_code == 200 and "USAGE_REQUESTED" not in found.text
        assert spent(gateway) == {}


REQUESTS: Final[dict[str, tuple[str, Json]]] = {
    "openai_chat": ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}),
    "openai_completions": ("/v1/completions", {"model": "m", "prompt": "Hello"}),
    "openai_responses": ("/v1/responses", {"model": "m", "input": "Hello"}),
    "anthropic_messages": (
        "/v1/messages",
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]},
    ),
    "gemini": ("/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}),
    "gemini_interactions": ("/v1beta/interactions", {"model": "m", "input": "Hello"}),
    "ollama": ("/api/chat", {"model": "m", "stream": False, "messages": [{"role": "user", "content": "Hello"}]}),
}


def code_of(dialect: str, body: Any) -> Any:
    match dialect:
        case "gemini":
            return body["error"]["details"][0]["reason"]
        case "ollama":
            return body["code"]
        case _:
            return body["error"]["code"]


def test_every_dialect_has_its_request() -> None:
    assert REQUESTS.keys() == DIALECTS.keys()


@pytest.mark.parametrize("dialect", REQUESTS)
async def test_a_spent_budget_is_told_in_every_api_before_the_backend_is_asked(dialect: str) -> None:
    path, body = REQUESTS[dialect]
    async with serving(counted, budget={"tokens_per_day": 40}) as (gateway, backend):
        first = await gateway.client.post(path, json=body)
        assert first.status_code == 200, first.text
        assert spent(gateway) == {"tokens_per_day": 42}
        for stream in (False, True):
            where, what = asking(dialect, path, body, stream)
            refused = await gateway.client.post(where, json=what)
            assert refused.status_code == 429
            assert refused.headers["retry-after"] == "43200"
            assert refused.headers["x-should-retry"] == "false"
            assert code_of(dialect, refused.json()) == "insufficient_quota"
            assert "tokens_per_day" in refused.text
        assert len(backend.seen) == 1
        metrics = gateway.app.gateway_state.metrics
        [sample] = metrics.budget_refusals.samples()
        assert (sample.labels, sample.value) == (("-", "tokens_per_day", "spent"), 2)


def asking(dialect: str, path: str, body: Any, stream: bool) -> tuple[str, Any]:
    if dialect == "gemini":
        return path.replace("generate", "streamGenerate") if stream else path, body
    return path, {**body, "stream": stream}


async def test_what_the_store_does_not_say_is_a_503_that_clients_repeat() -> None:
    async with serving(counted) as (gateway, backend):
        spending = gateway.app.gateway_state.spending
        assert spending is not None
        store, _ = spending.budgets._store()

        async def fails(*_: object) -> None:
            raise StoreUnavailable("down", "as the test wants")

        store.reserve = fails  # type: ignore[assignment,method-assign]  # it fails from here on
        refused = await gateway.chat()
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "budget_unavailable")
        assert refused.headers["retry-after"] == "1" and "x-should-retry" not in refused.headers
        assert backend.seen == []


async def test_counts_of_tokens_and_lists_cost_nothing() -> None:
    async with serving(counted) as (gateway, _):
        body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
        assert (await gateway.client.post("/v1/messages/count_tokens", json=body)).status_code == 200
        assert (await gateway.client.get("/v1/models")).status_code == 200
        assert spent(gateway) == {}


@pytest.mark.parametrize(
    ("body", "budget", "tokens"),
    [
        (b'{"data": [], "usage": {"prompt_tokens": 8, "total_tokens": 8}}', "tokens_per_day", 8),
        (
            b'{"usage": {"input_tokens": 5, "output_tokens": 6, "input_token_details": {"text_tokens": 5}}}',
            "tokens_per_day",
            11,
        ),
        (b'{"text": "\\"usage\\": {\\"total_tokens\\": 900}"}', "tokens_per_day", 8),
        (b'{"usage": "none"}', "tokens_per_day", 8),
        (b'{"usage": {"total_tokens": "many"}}', "tokens_per_day", 8),
        (b"\x00\x01", "tokens_per_day", 8),
        (None, "tokens_per_day", 0),
        (b"{}", "money_per_day", None),
    ],
)
async def test_a_route_that_is_passed_on_counts_by_the_end_of_its_answer(
    body: bytes | None, budget: str, tokens: int | None
) -> None:
    """Else by the size of its body: 32 bytes are 8 tokens. No budget of money can count it."""

    async def reply(connection: Connection) -> None:
        refused = answer("400 Bad Request", b"{}", b"content-type: application/json")
        whole = refused if body is None else answer("200 OK", body, b"content-type: application/json")
        await connection.send(whole)

    async with faulty_backend(reply) as backend:
        entry: dict[str, Json] = {
            "adapter": "openai_chat",
            "base_url": backend.base_url,
            "routes": {"POST /v1/embeddings": "/embeddings"},
        }
        settings: dict[str, Json] = {
            "backends": {"b": entry},
            "models": {"m": {"backend": "b", "price": {"input": 1, "output": 1}}},
            "keys": {"*": {"budget": {budget: 1000}}},
        }
        async with running_gateway(settings) as gateway:
            asked = b'{"model": "m", "input": "Hello"}'
            headers = {"content-type": "application/json"}
            found = await gateway.client.post("/v1/embeddings", content=asked, headers=headers)
            if tokens is None:
                assert (found.status_code, found.json()["error"]["code"]) == (400, "unsupported_operation")
                assert backend.seen == []
            else:
                assert found.status_code == (400 if body is None else 200), found.text
                assert spent(gateway) == {"tokens_per_day": tokens}


@asynccontextmanager
async def passing(reply: Callable[[Connection], Any]) -> AsyncIterator[RunningGateway]:
    async with faulty_backend(reply) as backend:
        routes: Json = {"POST /v1/embeddings": "/embeddings"}
        settings: dict[str, Json] = {
            "backends": {"b": {"adapter": "openai_chat", "base_url": backend.base_url, "routes": routes}},
            "models": {"m": {"backend": "b"}},
            "keys": {"*": {"budget": {"tokens_per_day": 1_000_000}}},
        }
        async with running_gateway(settings) as gateway:
            yield gateway


@pytest.mark.parametrize(
    "head", [b"204 No Content", b"200 OK\r\ncontent-length: 0", b"200 OK\r\ncontent-length: 9", b"200 OK"]
)
async def test_a_passed_answer_without_a_body_is_not_free(head: bytes) -> None:
    async def reply(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 " + head + b"\r\n\r\n")
        connection.close()

    async with passing(reply) as gateway:
        asked, headers = b'{"model": "m", "input": "Hello"}', {"content-type": "application/json"}
        await gateway.client.post("/v1/embeddings", content=asked, headers=headers)
        assert spent(gateway) == {"tokens_per_day": 8}


async def test_a_passed_body_of_undeclared_size_counts_whole() -> None:
    async def reply(connection: Connection) -> None:
        body = b""
        while not body.endswith(b"\r\n0\r\n\r\n"):
            body += await connection.reader.read(65_536)
        await connection.send(answer("200 OK", b"{}", b"content-type: application/json"))

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"model": "m", "input": "'
        for _ in range(40):
            yield b"x" * 10_000
        yield b'"}'

    async with passing(reply) as gateway:
        headers = {"content-type": "application/json"}
        found = await gateway.client.post("/v1/embeddings", content=pieces(), headers=headers)
        assert found.status_code == 200, found.text
        assert spent(gateway) == {"tokens_per_day": 400_027 // 4}


async def test_a_further_try_of_a_request_is_charged_beside_the_first() -> None:
    """The first one is cut after some text, the second one tells its tokens, at another price."""
    async with serving(counted, budget={"tokens_per_day": 1000, "money_per_day": 1}) as (gateway, _):
        state = gateway.app.gateway_state
        assert state.spending is not None
        conversation = Conversation((Turn("user", (Text("Hello"),)),), model="m")
        context = RequestContext("POST", "/", "chat", {}, state.observers)
        response: Any = type("Response", (), {"status": 200})
        for price, events_of_try in [(Price(input=1, output=2), [TextDelta(TEXT)]), (Price(input=3, output=4), [])]:
            charge = state.spending.begin(context)
            assert charge is not None
            await charge.begin_try(price, conversation)
            context.await_head()
            for wrap in context.observers.answer:
                assert wrap(context, response) is response
            for observe in context.observers.events:
                observe(context, events_of_try)
        context.record([UsageReport(70, 7), Finish("stop")])
        context.conclude(200)
        assert spent(gateway) == {"tokens_per_day": PROMPT + WRITTEN + 77, "money_per_day": PROMPT + 2 * WRITTEN + 238}


async def test_a_reload_gives_and_takes_a_budget() -> None:
    async with faulty_backend(counted) as backend, running_gateway(settings_for(backend.base_url)) as gateway:
        state = gateway.app.gateway_state
        assert state.spending is None
        limited = {"*": KeySettings(budget=BudgetSettings(tokens_per_day=40))}
        await state.change(msgspec.structs.replace(state.settings, keys=limited))
        assert [(await gateway.chat()).status_code for _ in range(2)] == [200, 429]
        await state.change(msgspec.structs.replace(state.settings, keys={}))
        assert (await gateway.chat()).status_code == 200
