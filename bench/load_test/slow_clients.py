"""Measures clients that do not read a large response: their cost, their effect on others, their disconnection."""

import asyncio
from typing import Final

import msgspec

from bench.load_test.figures import Figure
from bench.load_test.gateway_process import ENDLESS, GatewayProcess
from bench.load_test.http_client import HttpConnection, connect
from bench.load_test.service import Service

GROWN_MB: Final = 64
LATE_S: Final = 2
PAUSED_S: Final = 20
POLL_S: Final = 0.2
# On a busy machine the process may wait longer for the processor than it runs.
IDLE: Final = 4


async def _ask_and_wait(gateway_process: GatewayProcess) -> HttpConnection:
    connection = await connect(gateway_process.target)
    body = {"model": ENDLESS, "stream": True, "messages": [{"role": "user", "content": "go"}]}
    await connection.begin(gateway_process.target.encode(msgspec.json.encode(body)))
    connection.stop_reading()
    return connection


async def _paused(gateway_process: GatewayProcess) -> None:
    """Waits until the gateway has read ahead as far as it can: then it has no more work for these clients."""
    idle = 0
    for _ in range(int(PAUSED_S / POLL_S)):
        spent = gateway_process.running.cpu_s
        await asyncio.sleep(POLL_S)
        idle = idle + 1 if gateway_process.running.cpu_s - spent < POLL_S / 10 else 0
        if idle == IDLE:
            break


async def readers(
    gateway_process: GatewayProcess, many: int, write_timeout_s: float, seconds: float = 2
) -> list[Figure]:
    """Lets this many clients begin to read and stop; `write_timeout_s` is that of the gateway."""
    loop = asyncio.get_running_loop()
    service = Service(gateway_process, seconds)
    await service.measure(crowded=False)
    descriptors, before = (
        await gateway_process.settled(gateway_process.least_descriptors, 0.2),
        gateway_process.running.memory_mb,
    )
    connections = await asyncio.gather(*(_ask_and_wait(gateway_process) for _ in range(many)))
    begun = loop.time()
    await _paused(gateway_process)
    took = loop.time() - begun
    await service.measure(crowded=True)
    grown = gateway_process.running.memory_mb - before
    last = await gateway_process.settled(descriptors, write_timeout_s + LATE_S)
    left = loop.time() - begun - took - write_timeout_s
    for connection in connections:
        connection.abort()
    return [
        Figure("clients that read nothing", many),
        Figure("reading ahead took, s", took),
        Figure("memory more for all of them, MB", grown, most=GROWN_MB),
        *service.figures(),
        Figure("descriptors after `write_timeout_s`", last, most=descriptors),
        Figure("left later than that by, s", max(0, left), LATE_S),
    ]
