"""What the gateway asks models for itself counts for the key whose request caused it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, Final

import pytest

from gateway.core.conversation import Conversation, Json, Text, Turn
from gateway.core.errors import GatewayError
from gateway.core.policy import Policy
from gateway.core.tokens import estimate_view
from gateway.server.state.model_calls import ModelCalls
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.completion import Completion, RoutedModel, prepare_completion
from gateway.server.upstream.transport import Transport
from gateway.settings import BackendSettings, BudgetSettings, KeySettings, ModelSettings, Price
from tests.server.backend import END, HEAD, Connection, Script, answer, events, faulty_backend
from tests.server.media.scene import asking, describing_gateway, picture, rules
from tests.server.state.budget_stores import SharedBudgets
from tests.server.state.test_budgets import NOON, Process

HELLO: Final = Conversation((Turn("user", (Text("Hello"),)),), model="inner")
PROMPT: Final = estimate_view(HELLO)
KEYS: Final = {"a": KeySettings(budget=BudgetSettings(tokens_per_day=100, money_per_day=1))}


async def counted(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hi"), events("usage 30 12", "finish"), END)


async def refuses(connection: Connection) -> None:
    await connection.send(answer("400 x", b"no"))


async def breaks(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hi"))
    connection.close()


async def fails(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hi", "error broken"), END)


async def silent(connection: Connection) -> None:
    await connection.gone()


class Asking:
    def __init__(self, stack: AsyncExitStack, transport: Transport) -> None:
        self._stack = stack
        shared = SharedBudgets()
        shared.now = NOON
        self.process = Process(shared, "1", KEYS)
        self.models = ModelCalls(transport)
        self.models.budgets = self.process.budgets

    async def ask(self, script: Script, key: str = "a", deadline_s: float = 20) -> Completion:
        scripted = await self._stack.enter_async_context(faulty_backend(script))
        entry = BackendSettings("tests.server.plain:PlainAdapter", scripted.base_url)
        backend = Backend("plain", entry, 1 << 20)
        route = ModelSettings("plain", "inner", Policy(), price=Price(input=1, output=10))
        request = prepare_completion(RoutedModel("m", route, backend), HELLO, 50)
        return await self.models.ask(key, request, deadline_s)

    def spent(self) -> tuple[int, ...]:
        known = self.process.budgets._keys.get("a")
        shares = () if known is None else tuple(known.shares.values())
        assert all(not share.running for share in shares)
        return tuple(share.spent for share in shares)


@pytest.fixture
async def asked() -> AsyncIterator[Asking]:
    async with AsyncExitStack() as stack:
        yield Asking(stack, await stack.enter_async_context(Transport(1 << 20, 1 << 16)))


async def test_an_answer_counts_with_its_tokens(asked: Asking) -> None:
    assert (await asked.ask(counted)).answer.text == "Hi"
    assert asked.spent() == (42, 30 + 120)
    await asked.ask(counted, key="other")
    assert asked.spent() == (42, 30 + 120)


@pytest.mark.parametrize(
    ("script", "tokens"),
    [(refuses, 0), (breaks, PROMPT), (fails, PROMPT), (silent, PROMPT)],
    ids=["refuses", "breaks", "fails", "silent"],
)
async def test_what_fails_counts_as_far_as_it_may_have_cost(asked: Asking, script: Any, tokens: int) -> None:
    with pytest.raises(GatewayError):
        await asked.ask(script, deadline_s=0.2 if script is silent else 20)
    assert asked.spent() == (tokens, tokens)


async def test_one_that_is_cancelled_counts_with_its_prompt(asked: Asking) -> None:
    begun = asyncio.Event()

    async def stalls(connection: Connection) -> None:
        begun.set()
        await connection.gone()

    task = asyncio.create_task(asked.ask(stalls))
    await begun.wait()
    task.cancel()
    await asyncio.wait((task,))
    assert asked.spent() == (PROMPT, PROMPT)


async def test_a_spent_budget_asks_nobody(asked: Asking) -> None:
    await asked.process.charge(100)
    reached = asyncio.Event()

    async def reaches(connection: Connection) -> None:
        reached.set()

    with pytest.raises(GatewayError) as raised:
        await asked.ask(reaches)
    assert raised.value.code == "insufficient_quota" and not reached.is_set()


async def test_the_description_of_a_picture_counts_for_the_key() -> None:
    keys: dict[str, Json] = {"*": {"budget": {"tokens_per_day": 100_000}}}
    async with describing_gateway(keys=keys) as (client, _):
        state = client.gateway.app.gateway_state
        assert state.spending is not None
        response = await client.chat(asking(picture()))
        assert "IMAGE_DESCRIBED" in rules(response)
        described = sum(sample.value for sample in state.metrics.image_description_tokens.samples())
        [counted] = state.metrics.budget_tokens.samples()
        # Those of the request itself are estimated.
        assert described == 102 and described < counted.value < described + 50
