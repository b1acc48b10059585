"""Shows what API keys have spent of their budgets, by the store of the settings."""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from gateway.commands.terminal import table
from gateway.core.errors import SettingsError
from gateway.server.access.api_keys import ANONYMOUS, DEFAULT_CLIENT, INSPECTOR, load_keys
from gateway.server.access.budgets import Budget, Window, budgets_of, window_of
from gateway.server.state.budget_store import BudgetStore
from gateway.server.state.memory import MemoryStore
from gateway.server.state.open_store import open_budgets
from gateway.server.state.store import StoreUnavailable
from gateway.settings import KeySettings, Settings

FORMAT: Final = 1
_MICROS: Final = 1_000_000


class Spent(msgspec.Struct, frozen=True):
    """One budget of a key in the present window: tokens, or millionths of a unit of money. `reserved` is what the
    workers hold beyond what is `spent`; `starts` and `ends` are times in UTC."""

    key: str
    budget: str
    spent: int
    reserved: int
    limit: int
    starts: str
    ends: str


class UsageReport(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    format: int
    store: str
    usage: tuple[Spent, ...]


def usage_text(settings: Settings, *, as_json: bool, environ: Mapping[str, str] = os.environ) -> str:
    """Returns what to print. Raises SettingsError where the settings name memory, and for a store that cannot be
    reached."""
    store = open_budgets(settings.state, None, environ)
    if store.name == MemoryStore.name:
        raise SettingsError(
            "state.store is memory: what keys have spent is counted in the gateway itself; see"
            " gateway_budget_tokens_total of its metrics"
        )
    report = asyncio.run(_read(store, settings, environ, time.time()))
    if as_json:
        return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
    rows = [
        (one.key, one.budget, *[_amount(one, number) for number in (one.spent, one.reserved, one.limit)], one.ends)
        for one in report.usage
    ]
    return f"{report.store}\n{table([('key', 'budget', 'spent', 'reserved', 'limit', 'until'), *rows])}"


async def _read(store: BudgetStore, settings: Settings, environ: Mapping[str, str], now: float) -> UsageReport:
    found: list[Spent] = []
    try:
        for key, budgets in _keys(settings, environ):
            windows = [(budget, window_of(budget.name, now)) for budget in budgets]
            uses = await store.use(key, [(budget.name, window) for budget, window in windows])
            for (budget, window), use in zip(windows, uses, strict=True):
                found.append(_spent(key, budget, window, use.spent, use.reserved))
    except StoreUnavailable as failure:
        raise SettingsError(f"{store.name}: {failure}") from None
    finally:
        await store.aclose()
    return UsageReport(FORMAT, store.name, tuple(found))


def _keys(settings: Settings, environ: Mapping[str, str]) -> Iterator[tuple[str, tuple[Budget, ...]]]:
    """Yields the keys that have budgets, with them. A store knows only digests of names."""
    named = load_keys(settings.server, environ).names or {ANONYMOUS}
    known = {*named, *settings.keys, *((INSPECTOR,) if settings.inspector.send else ())} - {DEFAULT_CLIENT}
    for key in sorted(known):
        entry = settings.keys.get(key) or settings.keys.get(DEFAULT_CLIENT) or KeySettings()
        if budgets := budgets_of(entry.budget):
            yield key, budgets


def _spent(key: str, budget: Budget, window: Window, spent: int, reserved: int) -> Spent:
    return Spent(key, budget.name, spent, reserved, budget.limit, _time(window.start), _time(window.end))


def _time(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _amount(one: Spent, number: int) -> str:
    return str(number) if one.budget.startswith("tokens") else f"{number // _MICROS}.{number % _MICROS:06d}"
