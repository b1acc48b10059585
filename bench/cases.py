"""Defines the measurements: each case is a request, its repetition, and the figure computed from the responses."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from bench import payload
from bench.gateways import Running
from bench.load import Load, Target, connect, drive, middle

Case = Callable[[Target, Running, str, float], Awaitable[float]]
MANY: Final = 64
OPEN: Final = 500
# The backend and the load share a core: while the backend writes, the load cannot see what has arrived. So few deltas
# are written before any gateway has read the first of them.
FEW: Final = 8


async def requests_per_second(target: Target, _: Running, model: str, seconds: float) -> float:
    """Whole responses, small request, 64 connections."""
    load = await drive(target, payload.request(model, stream=False), connections=MANY, seconds=seconds, stream=False)
    return _sound(load, load.rate)


async def request_cpu_us(target: Target, running: Running, model: str, seconds: float) -> float:
    """Processor time for each of these requests."""
    before = running.cpu_s
    load = await drive(target, payload.request(model, stream=False), connections=MANY, seconds=seconds, stream=False)
    spent = running.cpu_s - before
    return _sound(load, 1e6 * spent / len(load.whole) if spent and load.whole else math.nan)


async def request_ms(target: Target, _: Running, model: str, seconds: float) -> float:
    """Median time of a whole response, one connection."""
    load = await drive(target, payload.request(model, stream=False), connections=1, seconds=seconds, stream=False)
    return _sound(load, 1000 * middle(load.whole))


async def chunks_per_second(target: Target, _: Running, model: str, seconds: float) -> float:
    """Events of streamed responses of 100, 64 connections."""
    load = await drive(target, target.request(model, stream=True), connections=MANY, seconds=seconds, stream=True)
    return _sound(load, load.event_rate)


async def chunk_cpu_us(target: Target, running: Running, model: str, seconds: float) -> float:
    """Processor time for each of these events."""
    before = running.cpu_s
    load = await drive(target, target.request(model, stream=True), connections=MANY, seconds=seconds, stream=True)
    spent = running.cpu_s - before
    return _sound(load, 1e6 * spent / load.events if spent and load.events else math.nan)


async def first_byte_ms(target: Target, _: Running, model: str, seconds: float) -> float:
    """Median time to the first byte of a streamed response of `FEW` deltas, one connection."""
    body = target.request(model, stream=True, deltas=FEW)
    load = await drive(target, body, connections=1, seconds=seconds, stream=True, events=FEW)
    return _sound(load, 1000 * middle(load.first))


async def history_200_ms(target: Target, _: Running, model: str, seconds: float) -> float:
    """The same as `request_ms` with 200 messages in 330 KB."""
    return await _history(target, model, seconds, 200, 2100)


async def history_20000_ms(target: Target, _: Running, model: str, seconds: float) -> float:
    """With 20,000 messages in 3.7 MB."""
    return await _history(target, model, seconds, 20_000, 100)


async def ten_megabytes_ms(target: Target, _: Running, model: str, seconds: float) -> float:
    """With 10 MB in 40 messages."""
    return await _history(target, model, seconds, 40, 350_000)


async def _history(target: Target, model: str, seconds: float, messages: int, size: int) -> float:
    body = payload.request(model, stream=False, messages=messages, size=size)
    load = await drive(target, body, connections=1, seconds=seconds, stream=False)
    return _sound(load, 1000 * middle(load.whole))


async def stall_ms(target: Target, __: Running, model: str, seconds: float) -> float:
    """The longest time of a small request while requests of 20,000 messages are sent one after the other."""
    large = payload.request(model, stream=False, messages=20_000, size=100)
    small = payload.request(model, stream=False)
    _, load = await asyncio.gather(
        drive(target, large, connections=1, seconds=seconds, stream=False),
        drive(target, small, connections=1, seconds=seconds, stream=False),
    )
    return _sound(load, 1000 * max(load.whole, default=math.nan))


async def stream_kb(target: Target, running: Running, model: str, _: float) -> float:
    """Memory for each of 500 open streams."""
    before = running.memory_mb
    slow = payload.model(20, 200) if model.startswith("bench") else model
    request = target.encode(payload.request(slow, stream=True))
    load = Load()
    connections = await asyncio.gather(*(connect(target, load) for _ in range(OPEN)))
    asking = [asyncio.ensure_future(connection.ask(request)) for connection in connections]
    await asyncio.sleep(2)
    grown = running.memory_mb - before
    await asyncio.gather(*asking)
    for connection in connections:
        connection.close()
    return _sound(load, 1024 * grown / OPEN if before else math.nan)


async def start_s(_: Target, running: Running, __: str, ___: float) -> float:
    """From the command to the first connection."""
    return running.start_s if running.pid else math.nan


async def idle_mb(_: Target, running: Running, __: str, ___: float) -> float:
    """Resident memory after the start."""
    return running.idle_mb if running.pid else math.nan


def _sound(load: Load, value: float) -> float:
    """Returns the figure, which counts only if every response was whole."""
    return math.nan if load.errors else value


CASES: Final[Mapping[str, Case]] = {
    "start, s": start_s,
    "idle, MB": idle_mb,
    "per open stream, KB": stream_kb,
    "requests/s": requests_per_second,
    "request, ms": request_ms,
    "first byte, ms": first_byte_ms,
    "chunks/s": chunks_per_second,
    "CPU/chunk, us": chunk_cpu_us,
    "200 messages, ms": history_200_ms,
    "20,000 messages, ms": history_20000_ms,
    "10 MB, ms": ten_megabytes_ms,
    "longest stall, ms": stall_ms,
}
# For the paths beside the native one: the cases that differ on them.
STREAMED: Final = ("first byte, ms", "chunks/s", "CPU/chunk, us")


async def warm(target: Target, model: str) -> None:
    """Fills the connection pools and runs every code path once."""
    for stream in (False, True):
        await drive(target, target.request(model, stream=stream), connections=8, seconds=0.7, stream=stream)
