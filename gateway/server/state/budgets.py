"""Admits requests within the budgets of their keys, together with the other processes that use the store.

A process reserves a share of each budget in the store, and spends from it without a question: a request waits for the
store only where the share does not suffice. So a process that the store does not answer, and one that others no longer
hear of, spends nothing that is not counted: at most its last share. What it cannot know it does not admit (503), and
what is spent stays refused (429).
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from gateway.server.access.api_keys import DEFAULT_CLIENT
from gateway.server.access.budgets import Amount, Budget, BudgetName, budgets_of, refusal, unconfirmed, window_of
from gateway.server.state.budget_share import BudgetShare, Charge
from gateway.server.state.budget_store import BudgetStore
from gateway.server.state.guard import Guard
from gateway.server.state.store import StoreUnavailable
from gateway.server.telemetry.metrics import Metrics
from gateway.settings import KeySettings

LOSS: Final = "each worker admits what it has reserved of the budgets of API keys, and nothing more"
# Statements are repeated so often, and what is too much given back.
REPEAT_S: Final = 3.0
# What others hold unspent is back after two statements.
HELD_S: Final = 5
_DOWN_S: Final = 1
_HELD: Final = "other workers have reserved the rest of it, and give it back"


class _Key:
    """A key with budgets: its shares in the present windows, those of windows that have ended and that the store does
    not know whole, and the task that reserves more before it is needed."""

    __slots__ = ("lock", "past", "shares", "task")

    def __init__(self) -> None:
        self.shares: dict[BudgetName, BudgetShare] = {}
        self.past: list[BudgetShare] = []
        self.lock = asyncio.Lock()
        self.task: asyncio.Task[None] | None = None

    def all(self) -> Iterator[BudgetShare]:
        """Yields the shares of all windows."""
        yield from self.shares.values()
        yield from self.past

    def share(self, budget: Budget, now: float) -> BudgetShare:
        """Returns the share of a budget in the present window: an empty one, or that of before a reload of the settings
        that was without this budget."""
        for share in self.past:
            if share.budget.name == budget.name and share.window.holds(now):
                self.past.remove(share)
                return share
        return BudgetShare(budget, window_of(budget.name, now))


class Budgets:
    """The budgets of all keys in one process. `open_store` is called when the first request needs it, `patience_s` is
    how long one waits for the store, and `clock` tells the time in seconds since 1970."""

    def __init__(
        self,
        open_store: Callable[[], BudgetStore],
        patience_s: Callable[[], float],
        metrics: Metrics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._open_store = open_store
        self._patience_s = patience_s
        self._metrics = metrics
        self._clock = clock
        self._settings: Mapping[str, KeySettings] = {}
        self._limits: dict[str, tuple[Budget, ...]] = {}
        self._keys: dict[str, _Key] = {}
        self._opened: tuple[BudgetStore, Guard] | None = None
        self._repeated = float("-inf")

    def change(self, settings: Mapping[str, KeySettings]) -> None:
        """Applies other budgets, from the next request on. What is spent stays spent."""
        self._settings = settings
        self._limits.clear()

    def of(self, key: str) -> tuple[Budget, ...]:
        """Returns the budgets of a key."""
        found = self._limits.get(key)
        if found is None:
            entry = self._settings.get(key) or self._settings.get(DEFAULT_CLIENT)
            found = self._limits[key] = () if entry is None else budgets_of(entry.budget)
        return found

    async def charge(self, key: str, expected: Amount) -> Charge:
        """Charges a key for what a request is expected to use. Raises GatewayError: 429 where a budget is spent, 503
        where nobody can say now whether it is."""
        known = self._keys.get(key)
        if known is None:
            known = self._keys[key] = _Key()
        shares = self._present(key, known)
        if not _have(shares, expected):
            # One at a time: what another one has reserved may suffice.
            async with known.lock:
                shares = self._present(key, known)
                if not _have(shares, expected):
                    shares = await self._reserve(key, known, shares, expected)
        charge = Charge(shares, expected)
        if known.task is None and not known.lock.locked() and any(share.is_low for share in shares):
            known.task = asyncio.create_task(self._refill(key, known))
        return charge

    def settle(self, key: str, charge: Charge, used: Amount) -> None:
        """Replaces what a request was expected to use by what it has used, and counts that in the metrics. What exceeds
        a share is stated at once: until then others take it for unspent."""
        charge.settle(used)
        self._metrics.budget_tokens.inc(key, by=used.tokens)
        self._metrics.budget_micros.inc(key, by=used.micros)
        known = self._keys[key]
        if known.task is None and any(share.is_exceeded for share in known.all()):
            known.task = asyncio.create_task(self._refill(key, known))

    def tick(self, now: float) -> None:
        """Does the work that is due about once a second; `now` is a monotonic time. States what was spent, and gives
        back what others need more."""
        repeats = now - self._repeated >= REPEAT_S
        if repeats:
            self._repeated = now
        for key, known in tuple(self._keys.items()):
            shares = self._present(key, known)
            if not (repeats or any(share.is_wanted for share in shares)) or known.task is not None:
                continue
            if any(share.reserved or share.spent or not share.is_stated for share in shares) or known.past:
                known.task = asyncio.create_task(self._refill(key, known))
        self._metrics.budget_share.replace(
            {
                (key, share.budget.name): share.unspent
                for key, known in self._keys.items()
                for share in known.shares.values()
            }
        )

    async def aclose(self) -> None:
        """States what was spent and gives everything else back, then closes the store."""
        tasks = [known.task for known in self._keys.values() if known.task is not None]
        if tasks:
            await asyncio.wait(tasks)
        for key, known in self._keys.items():
            known.past += known.shares.values()
            known.shares.clear()
            with contextlib.suppress(StoreUnavailable):
                await self._state(key, known, ())
        if self._opened is not None:
            store, guard = self._opened
            await guard.aclose()
            await store.aclose()

    def _present(self, key: str, known: _Key) -> tuple[BudgetShare, ...]:
        """Returns the shares of the present windows."""
        now, shares = self._clock(), known.shares
        budgets = self.of(key)
        for budget in budgets:
            share = shares.get(budget.name)
            if share is None or not share.holds(now):
                if share is not None:
                    known.past.append(share)
                share = shares[budget.name] = known.share(budget, now)
            if share.budget != budget:
                share.change(budget)
        if len(shares) > len(budgets):
            for name in shares.keys() - {budget.name for budget in budgets}:
                known.past.append(shares.pop(name))
        return tuple(shares.values())

    async def _reserve(
        self, key: str, known: _Key, shares: tuple[BudgetShare, ...], expected: Amount
    ) -> tuple[BudgetShare, ...]:
        """Asks the store for what the shares lack. Returns the present shares, which suffice. Raises GatewayError."""
        self._check(key, shares, expected)
        try:
            await self._state(key, known, shares, expected)
        except StoreUnavailable as failure:
            self._metrics.budget_refusals.inc(key, "-", "unknown")
            raise unconfirmed(f"the store is {failure.reason}", _DOWN_S) from None
        present = self._present(key, known)
        if present != shares:
            # A window has ended meanwhile.
            return present if _have(present, expected) else await self._reserve(key, known, present, expected)
        for share in shares:
            share.refuse(expected.of(share.budget.name), self._clock())
        self._check(key, shares, expected)
        if not _have(shares, expected):
            self._metrics.budget_refusals.inc(key, "-", "held")
            raise unconfirmed(_HELD, HELD_S)
        return shares

    def _check(self, key: str, shares: Sequence[BudgetShare], expected: Amount) -> None:
        """Raises GatewayError for the budget, of those that are spent, which is spent for the longest."""
        now = self._clock()
        refusing = [share for share in shares if share.refuses(expected.of(share.budget.name), now)]
        if refusing:
            last = max(refusing, key=lambda share: share.window.end)
            self._metrics.budget_refusals.inc(key, last.budget.name, "spent")
            raise refusal(last.budget, last.window, expected.of(last.budget.name), now)

    async def _refill(self, key: str, known: _Key) -> None:
        """Reserves more, or less, before a request asks for it."""
        try:
            async with known.lock:
                again = True
                while again:
                    shares = self._present(key, known)
                    for share in shares:
                        share.give_back()
                    await self._state(key, known, shares)
                    again = any(share.is_exceeded for share in known.all())
        except StoreUnavailable:
            # `tick` begins again.
            pass
        finally:
            known.task = None

    async def _state(
        self, key: str, known: _Key, shares: Sequence[BudgetShare], expected: Amount | None = None
    ) -> None:
        """States these shares, and those of windows that have ended, to the store. Raises StoreUnavailable."""
        now = self._clock()
        known.past = [share for share in known.past if not share.is_over(now)]
        past = [share for share in known.past if share.unspent or not share.is_stated]
        claims = [
            *(share.claim(0 if expected is None else expected.of(share.budget.name)) for share in shares),
            *(share.last_claim() for share in past),
        ]
        if not claims:
            return
        store, guard = self._store()
        found = await guard.run("reserve", "-", lambda: store.reserve(key, claims), self._patience_s())
        guard.count("reserve", "-", "done")
        for share, claim, standing in zip((*shares, *past), claims, found, strict=True):
            share.settle(claim, standing)

    def _store(self) -> tuple[BudgetStore, Guard]:
        if self._opened is None:
            store = self._open_store()
            self._opened = store, Guard(store.name, store.at_once, store.ping, LOSS, self._metrics)
        return self._opened


def _have(shares: Sequence[BudgetShare], expected: Amount) -> bool:
    return all([share.has(expected.of(share.budget.name)) for share in shares])
