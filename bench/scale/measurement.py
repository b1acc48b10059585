"""Measures the figures from which `demand` computes what agents need."""

import asyncio
import math
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

import valkey.asyncio

from bench import payload
from bench.agent_body import agent_body
from bench.agents import AT_ONCE, CONNECTIONS, DELTAS, converse, grown_mb
from bench.load import drive
from bench.scale.demand import AGENTS, Figures
from bench.scale.processes import Gateway, Store, backend, gateways, store

_STREAMS: Final = 64
# A chunk arrives alone: as many a second as an agent's answer has.
_PACE_MS: Final = round(1000 * AGENTS.answer_s / AGENTS.chunks)
_SETTLED_S: Final = 0.5
# Long enough for ten of what each worker repeats while a response is open.
_SLOW_MS: Final = 300


async def measure(folder: Path, seconds: float, rounds: int, tell: Callable[[str], None]) -> Figures:
    """Returns the figures; those of processor time are medians of so many rounds of so many seconds. Raises
    RuntimeError when a response was not whole."""
    first, later, opened = {}, {}, {}
    for size in AGENTS.mix:
        first[size], later[size] = await _turns_ms(folder, size, seconds, rounds)
        tell(f"{size}: first {first[size]:.3g} ms, next {later[size]:.3g} ms")
        opened[size] = await _open_mb(folder, size)
        tell(f"{size}: {opened[size]:.3g} MB open")
    chunk_us, idle_mb = await _chunk_us(folder, rounds)
    tell(f"{chunk_us:.3g} us a chunk, {idle_mb:.3g} MB idle")
    each, repeated, command_us, store_ms = await _store(folder, seconds, rounds)
    tell(f"{each:.3g} commands, {repeated:.3g} a second, {command_us:.3g} us each, {store_ms:.3g} ms")
    return Figures(where(), first, later, opened, idle_mb, chunk_us, each, repeated, command_us, store_ms)


def where() -> str:
    """Returns the date, the machine and its load."""
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    return f"{time.strftime('%Y-%m-%d')}, {machine}, load average {os.getloadavg()[0]:.1f}"


async def _turns_ms(folder: Path, size: str, seconds: float, rounds: int) -> tuple[float, float]:
    body = agent_body(size, "any", stream=False)
    with backend(folder, DELTAS) as base_url, gateways(folder, 1, base_url, 1, None) as (gateway,):
        await converse(gateway.target(0), gateway.running, body, CONNECTIONS, 0)
        found = [await converse(gateway.target(0), gateway.running, body, CONNECTIONS, seconds) for _ in range(rounds)]
    _require_whole(sum(turns.errors for both in found for turns in both))
    return median(1e3 * first.cpu_s for first, _ in found), median(1e3 * later.cpu_s for _, later in found)


async def _open_mb(folder: Path, size: str) -> float:
    with backend(folder, DELTAS, AT_ONCE) as base_url, gateways(folder, 1, base_url, 1, None) as (gateway,):
        grown = await grown_mb(gateway.target(0), gateway.running, agent_body(size, "any", stream=True), AT_ONCE)
    _require_whole(int(math.isnan(grown)))
    return grown / AT_ONCE


async def _chunk_us(folder: Path, rounds: int) -> tuple[float, float]:
    """Returns the processor time of a chunk that arrives alone, its share of a small request included, and the memory
    of the gateway before."""
    body = payload.request(payload.model(payload.CHUNKS, _PACE_MS), stream=True)
    with backend(folder, DELTAS) as base_url, gateways(folder, 1, base_url, 1, None) as (gateway,):
        found = []
        for _ in range(rounds):
            before = gateway.running.cpu_s
            load = await drive(gateway.target(0), body, connections=_STREAMS, seconds=0.1, stream=True)
            _require_whole(load.errors)
            found.append(1e6 * (gateway.running.cpu_s - before) / load.events)
        return median(found), gateway.running.idle_mb


async def _store(folder: Path, seconds: float, rounds: int) -> tuple[float, float, float, float]:
    """Returns the commands of a request, those of an open response in a second, the store's processor time of one, and
    the gateway's for those of a request: by small requests with the store and without it, in turns."""
    small = payload.request(payload.model(), stream=False)
    slow = payload.request(payload.model(payload.CHUNKS, _SLOW_MS), stream=True)
    async with store(folder) as opened:
        with (
            backend(folder, DELTAS) as base_url,
            gateways(folder, 1, base_url, CONNECTIONS, None) as (alone,),
            gateways(folder, 1, base_url, CONNECTIONS, opened.port) as (sharing,),
        ):
            added, ran_each, costs = [], [], []
            for _ in range(rounds + 1):
                before, spent = await commands(opened), opened.running.cpu_s
                plain, _ = await _request_ms(alone, small, seconds)
                shared, requests = await _request_ms(sharing, small, seconds)
                await asyncio.sleep(_SETTLED_S)
                ran = await commands(opened) - before
                added.append(shared - plain)
                ran_each.append(ran / requests)
                costs.append(1e6 * (opened.running.cpu_s - spent) / ran)
            before = await commands(opened)
            begun = time.perf_counter()
            loads = await asyncio.gather(
                *(drive(sharing.target(at), slow, connections=1, seconds=0.1, stream=True) for at in range(CONNECTIONS))
            )
            _require_whole(sum(load.errors for load in loads))
            open_s = CONNECTIONS * (time.perf_counter() - begun)
            # The first round is not warm.
            a_request = median(ran_each[1:])
            repeated = (await commands(opened) - before - a_request * CONNECTIONS) / open_s
    return a_request, max(0.0, repeated), median(costs[1:]), max(0.0, median(added[1:]))


async def _request_ms(gateway: Gateway, body: bytes, seconds: float) -> tuple[float, int]:
    before = gateway.running.cpu_s
    loads = await asyncio.gather(
        *(drive(gateway.target(at), body, connections=1, seconds=seconds, stream=False) for at in range(CONNECTIONS))
    )
    _require_whole(sum(load.errors for load in loads))
    requests = sum(len(load.whole) for load in loads)
    return 1e3 * (gateway.running.cpu_s - before) / requests, requests


def _require_whole(errors: int) -> None:
    if errors:
        raise RuntimeError("a response was not whole")


async def commands(opened: Store) -> int:
    """Returns how many commands of clients the server has run: a script is one, what it calls is part of it."""
    async with valkey.asyncio.Valkey(port=opened.port) as client:
        counted: dict[str, Any] = await client.info("commandstats")
    return sum(stats["calls"] for name, stats in counted.items() if name in ("cmdstat_evalsha", "cmdstat_eval"))
