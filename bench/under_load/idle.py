"""Many connections that say nothing, beside service -> what they cost, and what happens to one too many."""

import asyncio
from typing import Final

from bench.under_load.asking import HEALTH, Answer, Connection, connect
from bench.under_load.figures import Figure
from bench.under_load.house import House
from bench.under_load.service import Service

KB_EACH: Final = 20
# What the first round took serves the others, too.
KEPT: Final = 1.3
# So many are opened at a time: the kernel keeps only so many waiting.
BATCH: Final = 200
LATE_S: Final = 2


async def crowd(house: House, many: int, speaking: bool) -> list[Connection]:
    """Open so many; those that speak have had one answer before they fall silent."""

    async def one() -> Connection:
        connection = await connect(house.target)
        if speaking:
            await connection.ask(HEALTH)
        return connection

    found: list[Connection] = []
    while len(found) < many:
        found += await asyncio.gather(*(one() for _ in range(min(BATCH, many - len(found)))))
    return found


async def leave(connections: list[Connection]) -> None:
    """Hang up, all of them."""
    for connection in connections:
        connection.leave()
    await asyncio.gather(*(connection.gone for connection in connections))


async def one_too_many(house: House) -> tuple[Answer | None, bool]:
    """What a connection beyond the limit is told without asking, and whether it is closed."""
    connection = await connect(house.target)
    try:
        async with asyncio.timeout(5):
            answer = await connection.answer()
            await connection.gone
    except (TimeoutError, ConnectionError):
        return None, connection.gone.done()
    finally:
        connection.leave()
    return answer, True


async def idle(house: House, many: int, head_timeout_s: float, rounds: int = 3, seconds: float = 2) -> list[Figure]:
    """`many` is `server.max_connections` of the gateway; a few are left for the service beside."""
    service = Service(house, seconds)
    spare = 8
    before = house.running.memory_mb
    costs = []
    for _ in range(rounds):
        await service.measure(crowded=False)
        descriptors, empty = await house.settled(house.least_descriptors, 0.2), house.running.memory_mb
        speaking = await crowd(house, many - spare, speaking=True)
        costs.append((house.running.memory_mb - empty) * 1024 / (many - spare))
        await service.measure(crowded=True)
        still = sum(not connection.gone.done() for connection in speaking)
        await leave(speaking)
        last = await house.settled(descriptors)
    return [
        Figure("connections idle after a request", many - spare),
        Figure("of them open after the round", still, many - spare, many - spare),
        Figure("a connection, KB (first round)", costs[0], KB_EACH),
        *service.figures(),
        Figure("memory before, MB", before),
        Figure("memory afterwards, MB", house.running.memory_mb, most=before + KEPT * costs[0] * many / 1024),
        Figure("descriptors afterwards", last, most=descriptors),
        *await silent(house, many, head_timeout_s),
    ]


async def silent(house: House, many: int, head_timeout_s: float) -> list[Figure]:
    """Fill the gateway with connections that never say anything, and knock once more."""
    loop = asyncio.get_running_loop()
    descriptors = await house.settled(house.least_descriptors, 0.2)
    begun = loop.time()
    connections = await crowd(house, many, speaking=False)
    told, closed = await one_too_many(house)
    opened = loop.time()
    in_time = opened - begun < head_timeout_s
    async with asyncio.timeout(head_timeout_s + 30):
        await asyncio.gather(*(connection.gone for connection in connections))
    late = loop.time() - opened - head_timeout_s
    return [
        Figure("connections that never say anything", many),
        Figure("status for one too many", told.status if told else 0, 503, 503 if in_time else 0),
        Figure("and it is closed", closed, 1, 1 if in_time else 0),
        Figure("closed later than the head's deadline by, s", max(late, 0), LATE_S),
        Figure("descriptors after that", await house.settled(descriptors), most=descriptors),
    ]
