"""Tests what a number of agents is said to need: the formula, the simulation, and both beside real processes."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from bench.load_test.figures import quantile
from bench.scale.check import work
from bench.scale.demand import Agents, Figures, Machine, demand, fleet, read_figures
from bench.scale.simulation import Outcome, Simulation
from bench.scale.tables import compared, with_tables
from tests.paths import ROOT

# 10 ms for each request, of which a thousandth is the store's calls; 100 chunks of 50 us; 2 MB while it is open.
FIGURES = Figures("here", {"500": 9.0}, {"500": 9.0}, {"500": 2.0}, 60.0, 50.0, 2.0, 0.3, 100.0, 1.0)
AGENTS = Agents({"500": 1.0}, chunks=100, answer_s=10.0, tools_s=10.0)


def test_the_demand_of_agents_is_that_of_their_requests() -> None:
    needed = demand(2000, FIGURES, AGENTS)
    assert needed.requests == pytest.approx(100)
    assert needed.open == pytest.approx(1000)
    assert needed.cores == pytest.approx(100 * (0.009 + 0.001 + 100 * 50e-6))
    assert needed.memory_mb == pytest.approx(2000)
    assert needed.network_gbit == pytest.approx(100 * 0.5 * 8 / 1000)
    assert needed.commands == pytest.approx(100 * 2 + 1000 * 0.3)
    assert needed.store_cores == pytest.approx(500 * 100e-6)


@pytest.mark.parametrize(
    ("machine", "first", "machines"),
    [
        (Machine(cores=1, memory_gb=1000, network_gbit=1000), "cores", 3),
        (Machine(cores=100, memory_gb=0.5, network_gbit=1000), "memory", 5),
        (Machine(cores=100, memory_gb=1000, network_gbit=0.1), "network", 4),
    ],
)
def test_what_a_machine_has_least_of_decides_how_many_there_are(machine: Machine, first: str, machines: int) -> None:
    found = fleet(demand(2000, FIGURES, AGENTS), FIGURES, machine)
    assert (found.workers, found.first, found.machines, found.stores) == (3, first, machines, 1)


def test_a_server_of_the_store_is_added_when_one_is_busy() -> None:
    assert [fleet(demand(many, FIGURES, AGENTS), FIGURES).stores for many in (20_000, 200_000)] == [1, 9]


def simulate(workers: int, seed: int = 1) -> Outcome:
    return Simulation(2000, workers, 40.0, FIGURES, AGENTS, seed).run()


def test_with_enough_workers_the_simulation_has_the_means_of_the_formula() -> None:
    needed, seen = demand(2000, FIGURES, AGENTS), simulate(4)
    for name in ("requests", "cores", "commands", "store_cores"):
        assert getattr(seen, name) == pytest.approx(getattr(needed, name), rel=0.05)
    assert needed.open < seen.open < 1.2 * needed.open
    assert needed.memory_mb < seen.memory_mb < 1.2 * needed.memory_mb


def test_requests_wait_for_one_another_where_workers_are_few() -> None:
    one, two, four = (quantile(simulate(workers).waits, 0.99) for workers in (1, 2, 4))
    assert one > 10 * two and two > 2 * four and four > 0.01
    assert simulate(1).cores == pytest.approx(1, abs=0.001)


def test_the_same_seed_gives_the_same_waits() -> None:
    assert simulate(2).waits == simulate(2).waits != simulate(2, seed=2).waits


@pytest.mark.full
def test_the_page_shows_the_tables_of_the_last_measurement() -> None:
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert with_tables(page, read_figures()) == page
    other = msgspec.structs.replace(read_figures(), where="elsewhere", chunk_us=1.0)
    assert with_tables(with_tables(page, other), read_figures()) == page != with_tables(page, other)


def test_figures_are_compared_side_by_side() -> None:
    seen = Outcome(99.0, 1.5, 1010, 2020.0, 498.0, 0.05, [0.01, 0.02])
    lines = compared(2000, read_figures(), seen, msgspec.structs.replace(seen, requests=98.0)).splitlines()
    assert lines[2] == "| requests/s | 133 | 99 | 98 |"
    assert lines[-1].startswith("| until passed on, longest, ms | - | 20 | 20 |")


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_few_real_agents_cause_what_is_computed(tmp_path: Path) -> None:
    """Each has a key of its own, whose limits are counted in a real store: two calls for each request."""
    agents = Agents({"60": 1.0}, chunks=4, answer_s=0.4, tools_s=0.2)
    seen = asyncio.run(work(tmp_path, 4, agents, 2.0, pinned=False))
    assert 0 < seen.requests <= 4 / 0.4
    assert len(seen.waits) >= 4
    assert 1 <= seen.open <= 4
    assert seen.cores > 0 and seen.store_cores > 0
    assert seen.commands == pytest.approx(2 * seen.requests, rel=0.5)
