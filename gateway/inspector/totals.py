"""Adds up requests: how many there are, what failed, their tokens and costs, and how each backend answers now."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from gateway.inspector.outcomes import outcome_of
from gateway.inspector.summary import Cost, Summary

# So many of its newest requests say how a backend is now.
_LATELY: Final = 20
# The name of a backend that was not chosen.
_NO_BACKEND: Final = "-"
# The codes with which the gateway fails by itself, also where a backend was chosen.
_OWN_CODES: Final = frozenset({"internal_error", "overloaded", "server_shutdown", "store_unavailable"})
# The statuses of a backend that serves nobody now, whatever its other codes.
_OUT_OF_ORDER: Final = frozenset((429, *range(500, 600)))


class BackendTotals(msgspec.Struct, frozen=True):
    """The requests of one backend. `failed` are those that failed because of it, of all and of the `lately` newest that
    have ended; `outcome` says what became of the newest of those, and is empty where none failed."""

    name: str
    requests: int = 0
    failed: int = 0
    lately: int = 0
    failed_lately: int = 0
    outcome: str = ""


class Totals(msgspec.Struct, frozen=True):
    """The sums of some requests. Tokens are those that are known, `estimated`: some were not counted by a backend.
    `costs` has one sum for each currency, and `unpriced` counts the requests with tokens and no cost. `began` is the
    Unix time at which the first of them began; 0: there are none."""

    requests: int = 0
    live: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False
    costs: tuple[Cost, ...] = ()
    unpriced: int = 0
    began: float = 0.0
    backends: tuple[BackendTotals, ...] = ()


class Sum:
    """Adds up requests, which come newest first."""

    def __init__(self) -> None:
        self._requests = self._live = self._failed = self._prompt = self._completion = self._unpriced = 0
        self._estimated = False
        self._began = 0.0
        self._costs: dict[str, Cost] = {}
        self._backends: dict[str, BackendTotals] = {}

    def add(self, one: Summary) -> None:
        """Adds a request."""
        self._requests += 1
        self._live += one.live
        self._failed += bool(one.code)
        self._prompt += one.prompt_tokens or 0
        self._completion += one.completion_tokens or 0
        self._estimated = self._estimated or one.tokens_estimated
        self._began = min(self._began or one.began, one.began)
        if one.cost is not None:
            self._costs[one.cost.currency] = _joined_cost(self._costs.get(one.cost.currency), one.cost)
        elif one.prompt_tokens or one.completion_tokens:
            self._unpriced += 1
        if one.backend != _NO_BACKEND:
            self._add_backend(one)

    def _add_backend(self, one: Summary) -> None:
        known = self._backends.get(one.backend) or BackendTotals(one.backend)
        fault = _is_fault(one)
        lately = not one.live and known.lately < _LATELY
        self._backends[one.backend] = BackendTotals(
            one.backend,
            known.requests + 1,
            known.failed + fault,
            known.lately + lately,
            known.failed_lately + (fault and lately),
            known.outcome or (outcome_of(one.status, one.code) if fault and lately else ""),
        )

    @property
    def totals(self) -> Totals:
        """The sums so far."""
        return Totals(
            self._requests,
            self._live,
            self._failed,
            self._prompt,
            self._completion,
            self._estimated,
            tuple(self._costs.values()),
            self._unpriced,
            self._began,
            tuple(sorted(self._backends.values(), key=lambda one: one.name)),
        )


def totals_of(summaries: Iterable[Summary]) -> Totals:
    """Returns the sums of some requests, newest first."""
    found = Sum()
    for one in summaries:
        found.add(one)
    return found.totals


def _is_fault(one: Summary) -> bool:
    """Returns whether a request failed because of its backend, as far as its code and status tell."""
    if one.code in _OWN_CODES:
        return False
    return one.code.startswith("upstream_") or (bool(one.code) and one.status in _OUT_OF_ORDER)


def joined(some: Sequence[Totals]) -> Totals:
    """Returns the sums of the requests of several workers."""
    costs: dict[str, Cost] = {}
    backends: dict[str, BackendTotals] = {}
    for each in some:
        for cost in each.costs:
            costs[cost.currency] = _joined_cost(costs.get(cost.currency), cost)
        for backend in each.backends:
            backends[backend.name] = _joined_backend(backends.get(backend.name), backend)
    return Totals(
        sum(each.requests for each in some),
        sum(each.live for each in some),
        sum(each.failed for each in some),
        sum(each.prompt_tokens for each in some),
        sum(each.completion_tokens for each in some),
        any(each.estimated for each in some),
        tuple(costs.values()),
        sum(each.unpriced for each in some),
        min((each.began for each in some if each.began), default=0.0),
        tuple(backends[name] for name in sorted(backends)),
    )


def _joined_cost(one: Cost | None, other: Cost) -> Cost:
    if one is None:
        return other
    return Cost(round(one.amount + other.amount, 9), other.currency, one.estimated or other.estimated)


def _joined_backend(one: BackendTotals | None, other: BackendTotals) -> BackendTotals:
    if one is None:
        return other
    return BackendTotals(
        one.name,
        one.requests + other.requests,
        one.failed + other.failed,
        one.lately + other.lately,
        one.failed_lately + other.failed_lately,
        one.outcome or other.outcome,
    )
