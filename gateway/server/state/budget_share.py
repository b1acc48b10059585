"""What one process has reserved of a budget in one window, what it has spent of that, and what of it one request."""

from collections.abc import Sequence
from typing import Final

from gateway.server.access.budgets import MOST, Amount, Budget, Window
from gateway.server.state.budget_store import KEPT_S, Claim, Standing

# What was refused for want of a rest is refused again without a question, for so long.
REFUSED_S: Final = 1.0
# A clock that is set back no more than this stays in the window that has begun: the one before may be forgotten here.
BACK_S: Final = 60


class BudgetShare:
    """`spent` grows with each request, at once; `reserved` is what the store has counted for this process. `left` is
    what the store has last said of all processes, and `running` the number of requests whose use is not known yet."""

    __slots__ = (
        "_most",
        "_refused",
        "_refused_at",
        "_stated",
        "_told",
        "budget",
        "left",
        "reserved",
        "running",
        "spent",
        "window",
    )

    def __init__(self, budget: Budget, window: Window) -> None:
        self.budget = budget
        self.window = window
        self.spent = 0
        self.reserved = 0
        self.left = budget.limit
        self.running = 0
        # What the store knows of `spent` and `reserved`, what it lets a process hold, and what it gave when it was last
        # asked.
        self._stated: tuple[int, int] | None = 0, 0
        self._most = 0
        self._told = 0
        self._refused = 0
        self._refused_at = float("-inf")

    @property
    def unspent(self) -> int:
        """What may still be spent without a question."""
        return max(self.reserved - self.spent, 0)

    @property
    def is_low(self) -> bool:
        """Whether more is to be reserved before a request needs it."""
        return self.left > 0 and self.unspent <= self._told // 2

    @property
    def is_wanted(self) -> bool:
        """Whether other processes lack what is unspent here."""
        return self._most == 0 and self.unspent > 0

    @property
    def is_exceeded(self) -> bool:
        """Whether more is spent than the store has counted."""
        return self.spent > self.reserved

    @property
    def is_stated(self) -> bool:
        """Whether the store knows what is spent, and what is given back."""
        return self._stated == (self.spent, self.reserved)

    def holds(self, now: float) -> bool:
        """Returns whether requests of this time count here."""
        return self.window.start - BACK_S <= now < self.window.end

    def is_over(self, now: float) -> bool:
        """Returns whether the window has ended, and nothing more will be spent in it."""
        return now >= self.window.end and ((not self.running and self.is_stated) or self.window.end + KEPT_S < now)

    def has(self, needed: int) -> bool:
        """Returns whether so much may be spent."""
        return not needed or self.spent + needed <= self.reserved

    def change(self, budget: Budget) -> None:
        """Applies another limit: what was reserved or refused under the one before says nothing of it."""
        self.left += budget.limit - self.budget.limit
        self._refused_at = float("-inf")
        if budget.limit < self.budget.limit:
            self.reserved = min(self.reserved, self.spent)
        self.budget = budget

    def claim(self, needed: int = 0) -> Claim:
        """Returns what is stated to the store, and asked for. Until it is settled nobody knows what the store knows: a
        call that fails may have had its effect."""
        self._stated = None
        return Claim(self.budget.name, self.window, self.budget.limit, self.spent, self.reserved, needed)

    def last_claim(self) -> Claim:
        """Returns what is stated once nothing more is spent here but by requests that run. What is unspent is given
        back."""
        self._stated = None
        self.reserved = min(self.reserved, self.spent)
        return Claim(self.budget.name, self.window, self.budget.limit, self.spent, self.reserved, ends=True)

    def settle(self, claim: Claim, standing: Standing) -> None:
        """Takes the store's answer to a claim. Spending may have gone on meanwhile."""
        changed = self.budget.limit - claim.limit
        # What a higher limit has granted is asked for again.
        granted = claim.spent if changed < 0 else standing.reserved
        self.reserved = max(granted, self.reserved, claim.spent)
        self.left = standing.left + changed - (self.spent - claim.spent)
        self._stated = claim.spent, standing.reserved
        self._most = standing.share
        self._told = max(standing.reserved - claim.spent, 0)

    def give_back(self) -> None:
        """Keeps no more than the store lets a process hold. What it no longer keeps it spends no more, before the store
        knows of it."""
        if self.unspent > 2 * self._most:
            self.reserved = self.spent + self._most

    def refuse(self, needed: int, now: float) -> None:
        """Remembers that so much is not left, where that is so."""
        if needed > self.left and not self.has(needed):
            self._refused, self._refused_at = needed, now

    def refuses(self, needed: int, now: float) -> bool:
        """Returns whether so much, or less, was not left a moment ago, or is more than the whole budget."""
        # A clock that was set back does not make a moment long.
        lately = 0 <= now - self._refused_at < REFUSED_S
        return needed > self.budget.limit or (lately and needed >= self._refused)


class Charge:
    """What a request has been charged in the windows in which it was admitted; `expected` until it is settled."""

    __slots__ = ("_shares", "expected")

    def __init__(self, shares: Sequence[BudgetShare], expected: Amount) -> None:
        self._shares = shares
        self.expected = expected
        for share in shares:
            share.running += 1
            share.spent += expected.of(share.budget.name)

    def settle(self, used: Amount) -> None:
        """Replaces what was expected by what was used, once."""
        shares, self._shares = self._shares, ()
        for share in shares:
            share.running -= 1
            used_more = used.of(share.budget.name) - self.expected.of(share.budget.name)
            share.spent = min(share.spent + used_more, MOST)
