"""Formats what agents need as the tables of docs/scale.md."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from bench.load_test.figures import number, quantile
from bench.scale.demand import AGENTS, BUSY, Figures, demand, fleet
from bench.scale.simulation import Outcome, Simulation

NUMBERS: Final = (1_000, 100_000, 10_000_000)
# Of so many agents, as many as a simulation takes a minute for.
_SIMULATED: Final = 1_000
_SIMULATED_S: Final = 60.0


def with_tables(page: str, figures: Figures) -> str:
    """Returns the page with the table below each of these headings made anew."""
    for heading, make in _TABLES.items():
        old = re.search(rf"^#+ {heading}\n.*?\n\n(\|.*?\n)(?!\|)", page, re.MULTILINE | re.DOTALL)
        assert old is not None, heading
        page = page[: old.start(1)] + make(figures) + page[old.end(1) - 1 :]
    return page


def _figures(figures: Figures) -> str:
    rows = [
        (
            f"request of {size} KB: processor time of the first turn, of a next one, ms; memory while it is open, MB",
            f"{figures.first_ms[size]:.3g}, {figures.next_ms[size]:.3g}; {figures.open_mb[size]:.3g}",
        )
        for size in AGENTS.mix
    ]
    rows += [
        ("chunk that arrives alone, us", f"{figures.chunk_us:.3g}"),
        ("idle worker, MB", number(figures.idle_mb)),
        (
            "calls of the store for a request; for each open response and second",
            f"{figures.commands:.3g}; {figures.repeated:.3g}",
        ),
        (
            "call of the store, its processor time, us; that of the gateway for a request, ms",
            f"{figures.command_us:.3g}; {figures.store_ms:.3g}",
        ),
    ]
    return _table(("measured", figures.where), rows)


def _demands(figures: Figures) -> str:
    needs = [demand(many, figures) for many in NUMBERS]
    fleets = [fleet(needed, figures) for needed in needs]
    rows: list[tuple[str, Sequence[float]]] = [
        ("requests/s", [need.requests for need in needs]),
        ("responses open at once", [need.open for need in needs]),
        ("busy cores", [need.cores for need in needs]),
        (f"workers, each busy for {BUSY:.0%} of its time", [each.workers for each in fleets]),
        (
            "memory, GB",
            [
                (need.memory_mb + each.workers * figures.idle_mb) / 1024
                for need, each in zip(needs, fleets, strict=True)
            ],
        ),
        ("network each way, Gbit/s", [need.network_gbit for need in needs]),
        ("calls of the store/s", [need.commands for need in needs]),
        ("busy cores of the store", [need.store_cores for need in needs]),
        ("machines", [each.machines for each in fleets]),
        ("servers of the store", [each.stores for each in fleets]),
    ]
    lines = [(what, *map(number, values)) for what, values in rows]
    lines.insert(9, ("used up first on a machine", *(each.first for each in fleets)))
    return _table(("agents", *(f"{many:,}" for many in NUMBERS)), lines)


def _waits(figures: Figures) -> str:
    needed = fleet(demand(_SIMULATED, figures), figures).workers
    rows = []
    for workers in sorted({1, 2, needed, 2 * needed}):
        seen = Simulation(_SIMULATED, workers, _SIMULATED_S, figures).run()
        rows.append((str(workers), f"{seen.cores / workers:.0%}", *_quantiles(seen)))
    return _table((f"workers for {_SIMULATED:,} agents, simulated", "busy", "p50, ms", "p99, ms", "longest, ms"), rows)


def _quantiles(seen: Outcome) -> tuple[str, str, str]:
    p50, p99, longest = (number(1e3 * quantile(seen.waits, share)) for share in (0.5, 0.99, 1.0))
    return p50, p99, longest


_TABLES: Final[Mapping[str, Callable[[Figures], str]]] = {
    "What was measured": _figures,
    "What agents need": _demands,
    "How long requests wait": _waits,
}


def compared(agents: int, figures: Figures, simulated: Outcome, measured: Outcome) -> str:
    """Returns what was computed, simulated and measured for so many agents, side by side."""
    computed = demand(agents, figures)
    rows = [
        (
            what,
            *(f"{value:.3g}" for value in (getattr(computed, name), getattr(simulated, name), getattr(measured, name))),
        )
        for what, name in (
            ("requests/s", "requests"),
            ("busy cores", "cores"),
            ("responses open at once, mean; most", "open"),
            ("memory beyond idle, MB", "memory_mb"),
            ("calls of the store/s", "commands"),
            ("busy cores of the store", "store_cores"),
        )
    ]
    waits = [_quantiles(seen) for seen in (simulated, measured)]
    rows += [
        (f"until passed on, {name}, ms", "-", *each)
        for name, *each in zip(("p50", "p99", "longest"), *waits, strict=True)
    ]
    return _table((f"{agents:,} agents", "computed", "simulated", "measured"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([_line(head), f"|{'---|' * len(head)}", *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
