"""Computes what a number of agents needs from what one request, one chunk and one open response cost."""

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from bench.agent_body import SIZES

FIGURES: Final = Path(__file__).with_name("figures.json")
# Above this share of its time a worker, or a server of a store, makes requests wait for one another.
BUSY: Final = 0.6


class Figures(msgspec.Struct, frozen=True):
    """What was measured, and `where`: date, machine, load. By size of the request: processor time of a whole response
    (`first_ms`, `next_ms`) and memory of an open one (`open_mb`). `chunk_us` is the processor time of a chunk that
    arrives alone. `commands` are those of the store for a request, and `repeated` those for each open response and
    second; each takes the store `command_us`, and all of a request take the gateway `store_ms`."""

    where: str
    first_ms: Mapping[str, float]
    next_ms: Mapping[str, float]
    open_mb: Mapping[str, float]
    idle_mb: float
    chunk_us: float
    commands: float
    repeated: float
    command_us: float
    store_ms: float


class Agents(msgspec.Struct, frozen=True):
    """What agents do: of each size so many of all requests (`mix`, whose parts add up to 1), so many of them first
    turns (`new`), each answered in `answer_s` with so many chunks, and `tools_s` later the next one."""

    mix: Mapping[str, float]
    new: float = 0.01
    chunks: int = 200
    answer_s: float = 10.0
    tools_s: float = 5.0

    @property
    def period_s(self) -> float:
        """From one request of an agent to its next."""
        return self.answer_s + self.tools_s

    @property
    def body_mb(self) -> float:
        """The mean size of a request."""
        return self.mean({size: SIZES[size].size / 1e6 for size in self.mix})

    def next_s(self, chance: random.Random) -> float:
        """Returns after how many seconds an agent sends its next request, seen from any moment: it may be answered."""
        answered_s = chance.uniform(0, self.answer_s) if chance.random() < self.answer_s / self.period_s else 0.0
        return answered_s + chance.expovariate(1 / self.tools_s)

    def mean(self, by_size: Mapping[str, float]) -> float:
        """Returns the mean of a figure over all requests."""
        return sum(share * by_size[size] for size, share in self.mix.items())


# A long job of an agent sends a hundred requests and more, from some ten KB to 1.3 MB and beyond.
AGENTS: Final = Agents({"60": 0.3, "500": 0.5, "2000": 0.2})


class Machine(msgspec.Struct, frozen=True):
    """A machine that runs a worker on each core."""

    cores: int = 16
    memory_gb: float = 64.0
    network_gbit: float = 25.0


MACHINE: Final = Machine()


class Demand(msgspec.Struct, frozen=True):
    """What agents need: requests a second, busy cores of the gateway, responses that are open at once, memory in MB
    without that of idle workers, network in Gbit/s each way, commands a second of the store, and its busy cores."""

    requests: float
    cores: float
    open: float
    memory_mb: float
    network_gbit: float
    commands: float
    store_cores: float


class Fleet(msgspec.Struct, frozen=True):
    """The workers, machines and servers of the store that carry a demand, and what decides the number of machines."""

    workers: int
    machines: int
    first: str
    stores: int


def request_ms(figures: Figures, agents: Agents, size: str) -> float:
    """Returns the mean processor time of a request of this size, with its calls of the store."""
    return agents.new * figures.first_ms[size] + (1 - agents.new) * figures.next_ms[size] + figures.store_ms


def demand(number: int, figures: Figures, agents: Agents = AGENTS) -> Demand:
    """Returns what so many agents need."""
    requests = number / agents.period_s
    request_s = agents.mean({size: request_ms(figures, agents, size) for size in agents.mix}) / 1e3
    opened = requests * agents.answer_s
    commands = requests * figures.commands + opened * figures.repeated
    return Demand(
        requests=requests,
        cores=requests * (request_s + agents.chunks * figures.chunk_us / 1e6),
        open=opened,
        memory_mb=opened * agents.mean(figures.open_mb),
        network_gbit=requests * agents.body_mb * 8 / 1e3,
        commands=commands,
        store_cores=commands * figures.command_us / 1e6,
    )


def fleet(needed: Demand, figures: Figures, machine: Machine = MACHINE) -> Fleet:
    """Returns how many machines carry this, and which of their parts is used up first."""
    workers = math.ceil(needed.cores / BUSY)
    memory_gb = (needed.memory_mb + workers * figures.idle_mb) / 1024
    parts = {
        "cores": workers / machine.cores,
        "memory": memory_gb / machine.memory_gb,
        "network": needed.network_gbit / machine.network_gbit,
    }
    first = max(parts, key=lambda part: parts[part])
    return Fleet(workers, math.ceil(parts[first]), first, math.ceil(needed.store_cores / BUSY))


def read_figures() -> Figures:
    """Returns the figures of the last measurement."""
    return msgspec.json.decode(FIGURES.read_bytes(), type=Figures)
