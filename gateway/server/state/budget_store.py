"""Defines where processes reserve what budgets of API keys allow, before they spend it.

A store counts for each window what every process has reserved. A process spends only what it has reserved, so that
all processes together never reserve more than the limit, whatever becomes of one of them or of its connection: what a
process has reserved stays counted until the window ends or the process gives it back. Only what requests turn out to
have used beyond their estimates is added above the limit, since it is spent already.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec

from gateway.server.access.budgets import BudgetName, Window

# A process that has stated nothing for so long may have ended: what it had reserved counts as spent.
ALIVE_S: Final = 10.0
# A process reserves this part of what is left, divided by the number of processes, and gives back what is more than
# twice as much: together they hold about the part unspent, and one that is killed or cut off loses its share of that.
PART: Final = 4
# Statements about a window that has ended are kept so long, for requests that ran beyond its end.
KEPT_S: Final = 3600


class Claim(msgspec.Struct, frozen=True):
    """What one process states of a budget in a window, and asks for. Of its `reserved` number `spent` is spent; it
    keeps all of it in any case. It `needs` so much more than it has spent, for requests that wait; 0: none do. `ends`:
    it begins no more requests in this window, so that it reserves no share."""

    name: BudgetName
    window: Window
    limit: int
    spent: int
    reserved: int
    needs: int = 0
    ends: bool = False


class Standing(msgspec.Struct, frozen=True):
    """How a budget stands after a claim: what the process has `reserved` now, what is `left` for all of them by what
    they have stated to have spent, and the `share` that a process may hold unspent; 0: it gives back what it holds,
    since others do not get what they need."""

    reserved: int
    left: int
    share: int


class Holding(msgspec.Struct, frozen=True):
    """What a store knows of a process in a window: what it has reserved and spent, when it has stated that (seconds
    since 1970), and whether others hold what it needs: it did not get that, although so much is left."""

    reserved: int
    spent: int
    stated: float
    short: bool = False

    def lives(self, now: float) -> bool:
        """Returns whether the process has stated this lately: not at a time to come, of a clock that was set back."""
        return abs(now - self.stated) < ALIVE_S


class BudgetUse(msgspec.Struct, frozen=True):
    """What all processes have `spent` of a budget in a window, as they have stated it, and what they hold `reserved`
    beyond that, those included that have ended."""

    spent: int
    reserved: int


class BudgetStore(Protocol):
    """The reservations of all processes. Every method raises StoreUnavailable and nothing else. A call that raises may
    have had its effect, or have it later; from the next call of the process on it has none."""

    name: str
    at_once: int

    async def reserve(self, key: str, claims: Sequence[Claim]) -> list[Standing]:
        """States and asks for the budgets of a key, in their order (`settle_claim`)."""

    async def use(self, key: str, budgets: Sequence[tuple[BudgetName, Window]]) -> list[BudgetUse]:
        """Returns how budgets stand, in their order."""

    async def ping(self) -> None:
        """Connects where there is no connection, and waits for one reply."""

    async def aclose(self) -> None:
        """Closes the store."""


def settle_claim(claim: Claim, others: Iterable[Holding], now: float) -> tuple[Holding, Standing]:
    """Returns what a store knows of the process after its claim, beside the `others`, and its answer."""
    taken, gone, living, short = 0, 0, 1, False
    for other in others:
        taken += other.reserved
        if other.lives(now):
            living += 1
            gone += other.spent
            short = short or other.short
        else:
            gone += max(other.reserved, other.spent)
    free = claim.limit - taken - claim.spent
    share = 0 if short else max(free // (PART * living), 0)
    granted = min(free, 0 if claim.ends else max(claim.needs, share))
    reserved = max(claim.reserved, claim.spent + max(granted, 0))
    left = claim.limit - gone - claim.spent
    lacks = reserved - claim.spent < claim.needs <= left
    return Holding(reserved, claim.spent, now, lacks), Standing(reserved, left, share)


def use_of(holdings: Iterable[Holding]) -> BudgetUse:
    """Returns how a budget stands by what is known of its processes."""
    spent = reserved = 0
    for one in holdings:
        spent += one.spent
        reserved += max(one.reserved - one.spent, 0)
    return BudgetUse(spent, reserved)
