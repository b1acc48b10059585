"""Simulates agents before workers and a store, event by event, with the costs that were measured.

A worker and the store do one thing at a time, in the order in which it arrives. So the simulation shows what the means
of `demand` do not: how long requests wait for one another, and how many responses are open at once at most.
"""

import heapq
import random
from collections.abc import Iterator
from itertools import count
from typing import Final

import msgspec

from bench.scale.demand import AGENTS, Agents, Figures, request_ms

# The chunks of a response reach a worker in so many parts.
_PARTS: Final = 10


class Outcome(msgspec.Struct, frozen=True):
    """What agents caused, in the units of `Demand`: `open` is the most at once. `waits` are the seconds from each
    request until the gateway passed it on."""

    requests: float
    cores: float
    open: float
    memory_mb: float
    commands: float
    store_cores: float
    waits: list[float]


class _Server:
    """Does one thing at a time. `busy` counts its seconds of work between two moments."""

    def __init__(self, begin: float, end: float) -> None:
        self.busy = 0.0
        self._begin = begin
        self._end = end
        self._free = 0.0

    def work(self, now: float, seconds: float) -> float:
        """Returns when this work, which begins behind what arrived before, is done."""
        begun = max(now, self._free)
        self._free = begun + seconds
        self.busy += max(0.0, min(self._free, self._end) - max(begun, self._begin))
        return self._free


class Simulation:
    """So many agents, each at one of the workers. The first period, in which they begin, is not measured."""

    def __init__(
        self, number: int, workers: int, seconds: float, figures: Figures, agents: Agents = AGENTS, seed: int = 1
    ) -> None:
        self._number = number
        self._agents = agents
        self._figures = figures
        self._chance = random.Random(seed)
        self._seconds = seconds
        self._begin = agents.period_s
        self._end = self._begin + seconds
        self._workers = [_Server(self._begin, self._end) for _ in range(workers)]
        self._store = _Server(self._begin, self._end)
        self._now = 0.0
        self._counted = False
        self._commands = 0.0
        self._open, self._memory_mb, self._most_open, self._most_mb = 0, 0.0, 0, 0.0
        self._waits: list[float] = []

    def run(self) -> Outcome:
        """Returns what happens in the `seconds` behind the first period."""
        order = count()
        waiting = [
            (self._agents.next_s(self._chance), next(order), self._agent(self._workers[number % len(self._workers)]))
            for number in range(self._number)
        ]
        heapq.heapify(waiting)
        while waiting[0][0] < self._end:
            self._now, _, agent = waiting[0]
            self._counted = self._now >= self._begin
            heapq.heapreplace(waiting, (next(agent), next(order), agent))
        return Outcome(
            requests=len(self._waits) / self._seconds,
            cores=sum(worker.busy for worker in self._workers) / self._seconds,
            open=self._most_open,
            memory_mb=self._most_mb,
            commands=self._commands / self._seconds,
            store_cores=self._store.busy / self._seconds,
            waits=self._waits,
        )

    def _agent(self, worker: _Server) -> Iterator[float]:
        """Yields the time at which it goes on, each time."""
        agents, part_s = self._agents, self._agents.answer_s / _PARTS
        sizes, shares = zip(*agents.mix.items(), strict=True)
        while True:
            (size,) = self._chance.choices(sizes, shares)
            arrived, memory_mb = self._now, self._figures.open_mb[size]
            self._hold(1, memory_mb)
            yield self._command(self._figures.commands)
            passed = worker.work(self._now, request_ms(self._figures, agents, size) / 1e3)
            yield passed
            if self._counted:
                self._waits.append(passed - arrived)
            for part in range(1, _PARTS + 1):
                yield max(self._now, passed + part * part_s)
                self._command(self._figures.repeated * part_s)
                worker.work(self._now, agents.chunks / _PARTS * self._figures.chunk_us / 1e6)
            self._hold(-1, -memory_mb)
            yield self._now + self._chance.expovariate(1 / agents.tools_s)

    def _command(self, number: float) -> float:
        """Returns when the store has run so many commands."""
        self._commands += number if self._counted else 0
        return self._store.work(self._now, number * self._figures.command_us / 1e6)

    def _hold(self, number: int, memory_mb: float) -> None:
        self._open += number
        self._memory_mb += memory_mb
        self._most_open = max(self._most_open, self._open)
        self._most_mb = max(self._most_mb, self._memory_mb)
