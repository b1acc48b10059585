"""Measures what a chunk over a WebSocket costs beside one over server-sent events: `python -m bench.websocket_turns`.

The two take turns of a moment each before the same process, so that whatever else slows the machine slows both, and
each round has a process of its own. A figure is the median of the rounds, and the ratio that of their ratios: the
processor time of server-sent events, as a part of that of WebSockets. `--beside` measures another checkout in the same
rounds.

The gateway is pinned to core 0, the backend and the load to core 1.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import uvloop

from bench import payload
from bench.agents import of_checkout
from bench.cases import chunk_cpu_us, warm
from bench.gateways import MeasuredGateway, Running, Streams, backend, known, started

# The rows of `python -m bench cases`: over server-sent events, and over a WebSocket.
_PAIRS: Final = {
    "native": ("Responses client", "Responses client over WebSocket"),
    "of the same API": ("Responses client and backend", "Responses client over WebSocket, and backend"),
}
# So many milliseconds lie between two chunks of a backend that is read chunk by chunk.
_PACE_MS: Final = 10
_TURNS: Final = 4

# The figures of each round, over server-sent events and over a WebSocket.
Figures: TypeAlias = list[tuple[float, float]]


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.websocket_turns", description="Measure chunks by turns.")
    parser.add_argument("--rounds", type=int, default=9, help="the table shows the medians of so many")
    parser.add_argument("--seconds", type=float, default=1, help="how long each row of a round is measured")
    parser.add_argument("--beside", type=Path, help="another checkout of Dragoman, shown as `before`")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {(os.cpu_count() or 1) - 1})
    found: dict[tuple[str, str], Figures] = {}
    with tempfile.TemporaryDirectory() as name, backend(folder := Path(name)):
        own = known(folder)["dragoman"]
        gateways = {"now": own} if options.beside is None else {"before": of_checkout(own, options.beside), "now": own}
        for number in range(options.rounds):
            for gateway in gateways:
                print(f"round {number + 1}, {gateway}", file=sys.stderr)
                for case, figures in _round(gateways[gateway], options.seconds, folder).items():
                    found.setdefault((gateway, case), []).append(figures)
    print(_table(found))
    print(f"\nload average {os.getloadavg()[0]:.1f} at the end")


def _round(gateway: MeasuredGateway, seconds: float, folder: Path) -> Mapping[str, tuple[float, float]]:
    """Returns the figures of a new process."""
    port = urlsplit(gateway.target.url).port or 80
    with started(gateway.command or (), port, 0, gateway.environ, folder / "gateway.log") as running:
        return {case: uvloop.run(_turns(pair, running, seconds)) for case, pair in _pairs(gateway)}


def _pairs(gateway: MeasuredGateway) -> Iterator[tuple[str, tuple[Streams, Streams]]]:
    for case, (events, messages) in _PAIRS.items():
        yield case, (gateway.streams[events], gateway.streams[messages])
    over_events, over_websocket = (gateway.streams[name].target for name in _PAIRS["native"])
    paced = payload.model(delay_ms=_PACE_MS)
    yield "native, each chunk alone in its read", (Streams(over_events, paced), Streams(over_websocket, paced))


async def _turns(pair: tuple[Streams, Streams], running: Running, seconds: float) -> tuple[float, float]:
    """Returns the microseconds of both, the medians of their turns."""
    for streams in pair:
        await warm(streams.target, streams.model)
    turns = [
        [await chunk_cpu_us(streams.target, running, streams.model, seconds / _TURNS) for streams in pair]
        for _ in range(_TURNS)
    ]
    events, messages = (median(figures) for figures in zip(*turns, strict=True))
    return events, messages


def _table(found: Mapping[tuple[str, str], Figures]) -> str:
    lines = ["| | backend | events, us a chunk | WebSocket, us a chunk | ratio | rounds |", "|---|---|---|---|---|---|"]
    for (gateway, case), figures in found.items():
        events, messages = (median(times) for times in zip(*figures, strict=True))
        ratios = sorted(one / other for one, other in figures)
        rounds = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        lines.append(f"| {gateway} | {case} | {events:.2f} | {messages:.2f} | {median(ratios):.2f} | {rounds} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
