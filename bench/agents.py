"""Measures the requests of agents, and the next turns of the same conversations, beside a relay, nginx and LiteLLM:
`make bench ARGS=agents`.

Every conversation is new to the gateway at its first turn, and each later turn is longer by one call and its result. So
what a gateway keeps of a conversation can make its later turns cheaper, and never its first.
"""

import argparse
import asyncio
import contextlib
import math
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import msgspec
import uvloop

from bench.agent_body import SIZES, AgentBody, agent_body
from bench.gateways import (
    BACKEND,
    CHAT,
    KEY,
    OWN_PORT,
    MeasuredGateway,
    Running,
    backend,
    known,
    litellm,
    serve_command,
    started,
)
from bench.load import Connection, Load, Target, connect
from gateway.core.conversation import Json

WIRES: Final = ("native", "messages", "text", "warp")
LIMITS: Final = ("off", "on")
CONNECTIONS: Final = 8
NEXT_TURNS: Final = 4
AT_ONCE: Final = 64
DELTAS: Final = 8
RELAY: Final = "relay"
COLUMNS: Final = ("first turn, CPU ms", "next turn, CPU ms", "first turn, first byte ms", "next turn, first byte ms")
# What is still done behind a response, as its line in the log, is done by then.
_SETTLED_S: Final = 0.05
# LiteLLM takes half a minute to start on a busy machine.
_PATIENCE_S: Final = 120.0
_ADAPTERS: Final[Mapping[str, Mapping[str, Json]]] = {
    "native": {"adapter": "openai_chat"},
    "messages": {"adapter": "anthropic_messages"},
    "text": {"adapter": "text", "wire": "llama_cpp"},
    "warp": {"adapter": "warp", "rollback": "stream"},
}
_LIMITED: Final[Mapping[str, Mapping[str, Json]]] = {
    "off": {"max_tool_results": None, "max_history_messages": None},
    "on": {"max_tool_results": 10, "max_history_messages": 50},
}
# The wires that other gateways are measured with.
_OTHERS: Final[Mapping[str, Sequence[str]]] = {
    RELAY: ("native",),
    "nginx": ("native",),
    "litellm": ("native", "messages"),
}
# The conversations of one run of the benchmark, each with a number of its own.
_CONVERSATIONS: Final = count()


class Way(msgspec.Struct, frozen=True):
    """A way through a gateway: to a backend of this wire, with limits of the history or without."""

    gateway: str
    wire: str
    limits: str = "off"

    @property
    def name(self) -> str:
        return f"{self.gateway}, {self.wire}" + (", limits" if self.limits == "on" else "")

    @property
    def model(self) -> str:
        return f"{self.wire}-limited" if self.limits == "on" else self.wire


# What was measured on a way with requests of one size, once for each round.
Rows: TypeAlias = dict[tuple[Way, str], list[tuple[float, ...]]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that choose among the rows of agents, and add some."""
    parser.add_argument("--size", nargs="*", choices=SIZES, default=list(SIZES), help="agents: of a request, in KB")
    parser.add_argument("--wire", nargs="*", choices=WIRES, default=list(WIRES), help="agents: of the backend")
    parser.add_argument("--limits", nargs="*", choices=LIMITS, default=list(LIMITS), help="agents: of the history")
    beside = "agents: another checkout of Dragoman, to be measured beside this one under this name"
    parser.add_argument("--beside", nargs=2, action="append", default=[], metavar=("NAME", "FOLDER"), help=beside)


def measure_agents(options: argparse.Namespace, folder: Path) -> str:
    """Returns the tables of the chosen rows."""
    rows: Rows = {}
    with backend(folder, DELTAS):
        for _ in range(options.rounds):
            for name, gateway in _gateways(folder, options).items():
                with _running(name, gateway, folder) as running:
                    for way, size in chosen(name, options):
                        row = uvloop.run(_row(gateway.target, running, way.model, size, options.seconds))
                        rows.setdefault((way, size), []).append(row)
                        _tell(f"{way.name}, {size}: {' '.join(f'{value:.4g}' for value in row)}")
    return "\n\n".join(table(size, COLUMNS, medians(rows, size)) for size in options.size)


def measure_memory(options: argparse.Namespace, folder: Path) -> str:
    """Returns the tables of the memory for `AT_ONCE` of the chosen requests, each time of a gateway that has served
    nothing before."""
    rows: Rows = {}
    with backend(folder, DELTAS, held=AT_ONCE):
        for name, gateway in _gateways(folder, options).items():
            for way, size in chosen(name, options):
                with _running(name, gateway, folder) as running:
                    body = agent_body(size, way.model, stream=True)
                    row = (uvloop.run(grown_mb(gateway.target, running, body, AT_ONCE)),)
                    rows.setdefault((way, size), []).append(row)
                    _tell(f"{way.name}, {size}: {row[0]:.4g} MB")
    column = f"{AT_ONCE} requests at once, MB"
    return "\n\n".join(table(size, (column,), medians(rows, size)) for size in options.size)


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _gateways(folder: Path, options: argparse.Namespace) -> dict[str, MeasuredGateway]:
    file = folder / "agents.json"
    file.write_bytes(msgspec.json.encode(settings(OWN_PORT, BACKEND, folder / "gateway.log")))
    target = Target(f"http://127.0.0.1:{OWN_PORT}{CHAT}", (("authorization", f"Bearer {KEY}"),))
    own = MeasuredGateway(target, serve_command(file), {"DRAGOMAN_API_KEYS": KEY})
    controls = {name: gateway for name, gateway in known(folder).items() if name in (RELAY, "nginx")}
    found = {**controls, **{name: of_checkout(own, Path(other)) for name, other in options.beside}, "dragoman": own}
    if (other := litellm(folder)) is not None:
        found["litellm"] = other
    return {name: gateway for name, gateway in found.items() if not options.only or name in options.only}


def of_checkout(gateway: MeasuredGateway, checkout: Path) -> MeasuredGateway:
    """Returns the gateway as it is in this folder."""
    # The safe path leaves out the working directory, which is this checkout.
    python = {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(checkout.resolve())}
    return msgspec.structs.replace(gateway, environ={**gateway.environ, **python})


def settings(port: int, backend_url: str, log: Path) -> Mapping[str, Json]:
    """Returns the settings of a Dragoman with a model for each `Way` to this backend."""
    backends: dict[str, Json] = {}
    models: dict[str, Json] = {}
    for wire, adapter in _ADAPTERS.items():
        for limits, limited in _LIMITED.items():
            name = Way("dragoman", wire, limits).model
            base_url = f"{backend_url}/v1" if wire == "native" else backend_url
            backends[name] = {**adapter, **limited, "base_url": base_url}
            # The agent wire has models of its own.
            models[name] = {"backend": name, **({"name": "auto"} if wire == "warp" else {})}
    return {"server": {"port": port}, "log": {"file": str(log)}, "backends": backends, "models": models}


def chosen(gateway: str, options: argparse.Namespace) -> Iterator[tuple[Way, str]]:
    """Yields the chosen ways through this gateway, with each chosen size: a relay knows one wire and no limits."""
    for size in options.size:
        if (others := _OTHERS.get(gateway)) is not None:
            # What the rows of any wire are compared with.
            yield from ((Way(gateway, wire), size) for wire in others)
        else:
            yield from ((Way(gateway, wire, limits), size) for wire in options.wire for limits in options.limits)


@contextlib.contextmanager
def _running(name: str, gateway: MeasuredGateway, folder: Path) -> Iterator[Running]:
    assert gateway.command is not None
    port = urlsplit(gateway.target.url).port or 80
    with started(gateway.command, port, 0, gateway.environ, folder / f"{name}.log", _PATIENCE_S) as running:
        yield running


async def _row(target: Target, running: Running, model: str, size: str, seconds: float) -> tuple[float, ...]:
    """Returns the figures of `COLUMNS`."""
    await converse(target, running, agent_body(size, model, stream=False), CONNECTIONS, 0)
    whole = await converse(target, running, agent_body(size, model, stream=False), CONNECTIONS, seconds)
    streamed = await converse(target, running, agent_body(size, model, stream=True), 1, seconds)
    return (*(1000 * turn.cpu_s for turn in whole), *(1000 * turn.first_byte_s for turn in streamed))


class Turns(msgspec.Struct):
    """What the first turns of all conversations took, or their next ones. Times are in seconds."""

    spent: float = 0.0
    first_bytes: list[float] = []
    errors: int = 0

    @property
    def cpu_s(self) -> float:
        """Processor time of a request, which counts only if every response was whole."""
        return math.nan if self.errors else self.spent / len(self.first_bytes)

    @property
    def first_byte_s(self) -> float:
        """Median time to the first byte of a response's body."""
        return math.nan if self.errors else median(self.first_bytes)


async def converse(
    target: Target, running: Running, body: AgentBody, connections: int, seconds: float
) -> tuple[Turns, Turns]:
    """Returns the first turns, and the `NEXT_TURNS` after each, of as many conversations as these seconds allow; at
    least one on each connection."""
    load = Load()
    first, later = Turns(), Turns()
    events = DELTAS if body.stream else 0
    async with _connections(target, load, connections, events) as opened:
        until = time.perf_counter() + seconds
        while True:
            conversations = [next(_CONVERSATIONS) for _ in opened]
            for turns, numbers in ((first, range(1)), (later, range(1, 1 + NEXT_TURNS))):
                opened[:] = [await _still_open(connection, target, load, events) for connection in opened]
                asked = [[target.encode(body.request(number, turn)) for turn in numbers] for number in conversations]
                before, known, failed = running.cpu_s, len(load.first), load.errors
                await asyncio.gather(*(_ask(*pair) for pair in zip(opened, asked, strict=True)))
                await asyncio.sleep(_SETTLED_S)
                turns.spent += running.cpu_s - before
                turns.first_bytes += load.first[known:]
                turns.errors += load.errors - failed
            if time.perf_counter() >= until or load.errors:
                return first, later


@contextlib.asynccontextmanager
async def _connections(target: Target, load: Load, many: int, events: int) -> AsyncIterator[list[Connection]]:
    opened = [await connect(target, load, events) for _ in range(many)]
    try:
        yield opened
    finally:
        for connection in opened:
            connection.close()


async def _still_open(connection: Connection, target: Target, load: Load, events: int) -> Connection:
    """Returns the connection, or a new one where the gateway has closed it because it was idle."""
    return await connect(target, load, events) if connection.closed else connection


async def _ask(connection: Connection, requests: Sequence[bytes]) -> None:
    for request in requests:
        if not connection.closed:
            await connection.ask(request)


async def grown_mb(target: Target, running: Running, body: AgentBody, requests: int) -> float:
    """Returns by how much memory grows at most while so many first requests, whose responses begin together, are
    answered."""
    load = Load()
    most = running.memory_mb
    asked = [target.encode(body.request(next(_CONVERSATIONS), 0)) for _ in range(requests)]
    async with _connections(target, load, requests, DELTAS) as opened, asyncio.TaskGroup() as group:
        asking = [
            group.create_task(_ask(connection, [request])) for connection, request in zip(opened, asked, strict=True)
        ]
        while not all(task.done() for task in asking):
            await asyncio.sleep(0.01)
            most = max(most, running.memory_mb)
    return math.nan if load.errors else most - running.idle_mb


def medians(rows: Rows, size: str) -> dict[Way, tuple[float, ...]]:
    return {
        way: tuple(median(values) for values in zip(*found, strict=True))
        for (way, of), found in rows.items()
        if of == size
    }


def table(size: str, columns: Sequence[str], rows: Mapping[Way, tuple[float, ...]]) -> str:
    """Returns the figures in Markdown, in brackets as many times those of the relay."""
    body = agent_body(size, "any", stream=False)
    kilobytes = f"{len(body.request(0, 0)) / 1000:,.0f} KB" if SIZES[size].size else "small"
    title = f"{kilobytes}, {body.messages} message{'s' if body.messages > 1 else ''}, {SIZES[size].tools} tools"
    relay = rows.get(Way(RELAY, "native"), (math.nan,) * len(columns))
    lines = [f"| {title} | {' | '.join(columns)} |", f"|{'---|' * (len(columns) + 1)}"]
    for way, row in rows.items():
        cells = (
            _cell(value, math.nan if way.gateway == RELAY else base) for value, base in zip(row, relay, strict=True)
        )
        lines.append(f"| {way.name} | {' | '.join(cells)} |")
    if not any(way.gateway == "litellm" for way in rows):
        lines.append(f"| litellm | {' | '.join(['not measured'] * len(columns))} |")
    return "\n".join(lines)


def _cell(value: float, relay: float) -> str:
    if math.isnan(value):
        return "failed"
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return shown if math.isnan(relay) or relay <= 0 else f"{shown} ({value / relay:.3g})"
