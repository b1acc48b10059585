"""Keeps the reservations of one process, which shares its budgets with no other one. They end with it."""

import time
from collections.abc import Callable, Sequence

from gateway.server.access.budgets import BudgetName, Window
from gateway.server.state.budget_store import (
    KEPT_S,
    BudgetUse,
    Claim,
    Holding,
    Standing,
    settle_claim,
    use_of,
)


class MemoryBudgets:
    """See `BudgetStore`."""

    name = "memory"
    at_once = 1

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._held: dict[tuple[str, BudgetName, Window], Holding] = {}

    async def reserve(self, key: str, claims: Sequence[Claim]) -> list[Standing]:
        """See `BudgetStore`."""
        now = self._clock()
        for place in [place for place in self._held if place[2].end + KEPT_S < now]:
            del self._held[place]
        found = []
        for claim in claims:
            held, standing = settle_claim(claim, (), now)
            self._held[key, claim.name, claim.window] = held
            found.append(standing)
        return found

    async def use(self, key: str, budgets: Sequence[tuple[BudgetName, Window]]) -> list[BudgetUse]:
        """See `BudgetStore`."""
        places = [(key, name, window) for name, window in budgets]
        return [use_of([self._held[place]] if place in self._held else []) for place in places]

    async def ping(self) -> None:
        """See `BudgetStore`."""

    async def aclose(self) -> None:
        """See `BudgetStore`."""
