"""Keeps the reservations of budgets on the server, for the gateways of all machines."""

import secrets
from collections.abc import Sequence
from itertools import count
from typing import Final

from gateway.server.access.budgets import BudgetName, Window
from gateway.server.state.budget_store import ALIVE_S, KEPT_S, PART, BudgetUse, Claim, Standing
from gateway.server.state.store import StoreUnavailable
from gateway.server.state.valkey.address import ServerAddress
from gateway.server.state.valkey.connections import CONNECTIONS, Connections, Reply
from gateway.server.state.valkey.names import budget_name
from gateway.server.state.valkey.scripts import RESERVE, USE

_MICROS: Final = 1_000_000


class ValkeyBudgets:
    """See `BudgetStore`."""

    def __init__(self, address: ServerAddress, alive_s: float = ALIVE_S) -> None:
        self.name = str(address)
        self.at_once = CONNECTIONS
        self._connections = Connections(address)
        self._alive = round(alive_s * _MICROS)
        # Process ids of several machines may be equal.
        self._process = secrets.token_bytes(8).hex().encode()
        self._numbers = count(1)

    async def reserve(self, key: str, claims: Sequence[Claim]) -> list[Standing]:
        """See `BudgetStore`."""
        arguments = [
            part
            for claim in claims
            for part in (
                *(claim.limit, claim.spent, claim.reserved),
                -1 if claim.ends else claim.needs,
                claim.window.end + KEPT_S,
            )
        ]
        names = [budget_name(key, claim.name, claim.window.start) for claim in claims]
        head = (self._process, next(self._numbers), self._alive, PART)
        found = await self._connections.call(RESERVE, names, *head, *arguments)
        if found == [b"late"]:
            raise StoreUnavailable("slow", "the call was given up")
        numbers = _numbers(found, 3 * len(claims))
        return [
            Standing(max(reserved, claim.reserved), left, share)
            for claim, (reserved, left, share) in zip(
                claims, zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True), strict=True
            )
        ]

    async def use(self, key: str, budgets: Sequence[tuple[BudgetName, Window]]) -> list[BudgetUse]:
        """See `BudgetStore`."""
        names = [budget_name(key, name, window.start) for name, window in budgets]
        numbers = _numbers(await self._connections.call(USE, names), 2 * len(budgets))
        return [BudgetUse(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]

    async def ping(self) -> None:
        """See `BudgetStore`."""
        await self._connections.command("PING")

    async def aclose(self) -> None:
        """See `BudgetStore`."""
        await self._connections.aclose()


def _numbers(reply: Sequence[Reply], expected: int) -> list[int]:
    numbers = [part for part in reply[1:] if isinstance(part, int)]
    if reply[0] != b"ok" or len(numbers) != expected or len(reply) != expected + 1:
        raise StoreUnavailable("invalid", "a reply that does not fit its call")
    return numbers
