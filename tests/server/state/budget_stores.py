"""The stores of budgets that one contract holds for. Each opens handles as several processes have them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

from bench.load_test.store_servers import PROGRAMS, server
from gateway.server.access.budgets import BudgetName, Window
from gateway.server.state.budget_store import BudgetStore, BudgetUse, Claim, Holding, Standing, settle_claim, use_of
from gateway.server.state.sqlite import SqliteBudgets
from gateway.server.state.store import StoreUnavailable
from gateway.server.state.valkey.address import read_address
from gateway.server.state.valkey.budgets import ValkeyBudgets

MOST: Final = 3
BudgetStores: TypeAlias = Sequence[BudgetStore]


@asynccontextmanager
async def sqlite(folder: Path) -> AsyncIterator[BudgetStores]:
    stores = [SqliteBudgets(folder / "limits.db") for _ in range(MOST)]
    yield stores
    for store in stores:
        await store.aclose()


def on_server(kind: str) -> Callable[[Path], AbstractAsyncContextManager[BudgetStores]]:
    """Clients of a real server of this kind."""

    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[BudgetStores]:
        async with server(kind, folder) as running, AsyncExitStack() as stack:
            address = read_address(running.url)
            yield [await stack.enter_async_context(aclosing(ValkeyBudgets(address))) for _ in range(MOST)]

    return opened


BUDGET_STORES: Final[dict[str, Callable[[Path], AbstractAsyncContextManager[BudgetStores]]]] = {
    "sqlite": sqlite,
    **{kind: on_server(kind) for kind in PROGRAMS},
}


class SharedBudgets:
    """What several processes share in a test."""

    def __init__(self) -> None:
        self.now = 0.0
        self.held: dict[tuple[str, BudgetName, Window], dict[str, Holding]] = {}

    def total(self) -> int:
        """All that is reserved."""
        return sum(one.reserved for of_all in self.held.values() for one in of_all.values())


class ScriptedBudgets:
    """The store of one process. While `fails`, calls fail, with their effect where `acts`; while `gate` is not set,
    they wait before they have it."""

    name = "scripted"
    at_once = 4

    def __init__(self, shared: SharedBudgets, process: str) -> None:
        self.shared = shared
        self.fails = False
        self.acts = False
        self.calls = 0
        self.closed = False
        self.gate = asyncio.Event()
        self.gate.set()
        self._process = process

    async def reserve(self, key: str, claims: Sequence[Claim]) -> list[Standing]:
        self.calls += 1
        await self.gate.wait()
        if self.fails and not self.acts:
            raise StoreUnavailable("down", "as the test wants")
        found = []
        for claim in claims:
            of_all = self.shared.held.setdefault((key, claim.name, claim.window), {})
            others = [one for process, one in of_all.items() if process != self._process]
            of_all[self._process], standing = settle_claim(claim, others, self.shared.now)
            found.append(standing)
        if self.fails:
            raise StoreUnavailable("down", "after it has acted")
        return found

    async def use(self, key: str, budgets: Sequence[tuple[BudgetName, Window]]) -> list[BudgetUse]:
        return [use_of(self.shared.held.get((key, name, window), {}).values()) for name, window in budgets]

    async def ping(self) -> None:
        if self.fails:
            raise StoreUnavailable("down", "as the test wants")

    async def aclose(self) -> None:
        self.closed = True
