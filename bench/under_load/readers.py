"""Clients that ask for much and take nothing -> what they cost, what others notice, and whether they are left."""

import asyncio
from typing import Final

import msgspec

from bench.under_load.asking import Connection, connect
from bench.under_load.figures import Figure
from bench.under_load.house import House
from bench.under_load.service import Service

# The backend would never stop by itself.
ENDLESS: Final = "an answer without end"
GROWN_MB: Final = 64
LATE_S: Final = 2
PAUSED_S: Final = 20
POLL_S: Final = 0.2
# On a busy machine it may wait for its turn longer than it works.
IDLE: Final = 4


async def _ask_and_wait(house: House) -> Connection:
    connection = await connect(house.target)
    body = {"model": ENDLESS, "stream": True, "messages": [{"role": "user", "content": "go"}]}
    await connection.begin(house.target.encode(msgspec.json.encode(body)))
    connection.stop_reading()
    return connection


async def _paused(house: House) -> None:
    """Wait until what can be read ahead has been: then the gateway has nothing more to do for them."""
    idle = 0
    for _ in range(int(PAUSED_S / POLL_S)):
        spent = house.running.cpu_s
        await asyncio.sleep(POLL_S)
        idle = idle + 1 if house.running.cpu_s - spent < POLL_S / 10 else 0
        if idle == IDLE:
            break


async def readers(house: House, many: int, write_timeout_s: float, seconds: float = 2) -> list[Figure]:
    """So many begin to read and stop; `write_timeout_s` is that of the gateway."""
    loop = asyncio.get_running_loop()
    service = Service(house, seconds)
    await service.measure(crowded=False)
    descriptors, before = await house.settled(house.least_descriptors, 0.2), house.running.memory_mb
    connections = await asyncio.gather(*(_ask_and_wait(house) for _ in range(many)))
    begun = loop.time()
    await _paused(house)
    took = loop.time() - begun
    await service.measure(crowded=True)
    grown = house.running.memory_mb - before
    last = await house.settled(descriptors, write_timeout_s + LATE_S)
    left = loop.time() - begun - took - write_timeout_s
    for connection in connections:
        connection.leave()
    return [
        Figure("clients that take nothing", many),
        Figure("reading ahead took, s", took),
        Figure("memory more for all of them, MB", grown, most=GROWN_MB),
        *service.figures(),
        Figure("descriptors after `write_timeout_s`", last, most=descriptors),
        Figure("left later than that by, s", max(0, left), LATE_S),
    ]
