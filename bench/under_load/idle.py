"""Many connections that say nothing, beside service -> what they cost, and what happens to one too many."""

import asyncio
import math
from typing import Final

from bench import payload
from bench.load import drive
from bench.under_load.asking import HEALTH, Answer, Connection, connect
from bench.under_load.figures import Figure, quantile
from bench.under_load.house import House

KB_EACH: Final = 20
SERVED_MS: Final = 1500
# So many are opened at a time: the kernel keeps only so many waiting.
BATCH: Final = 200
LATE_S: Final = 2


class _Service:
    """How long small requests took, in rounds with the crowd and without."""

    def __init__(self, house: House, seconds: float) -> None:
        self._house = house
        self._seconds = seconds
        self.times: dict[bool, list[float]] = {False: [], True: []}
        self.errors = 0

    async def measure(self, crowded: bool) -> None:
        body = payload.request("native", stream=False)
        load = await drive(self._house.target, body, connections=4, seconds=self._seconds, stream=False)
        self.times[crowded] += load.whole
        self.errors += load.errors

    def figure(self, share: float, crowded: bool, most: float) -> Figure:
        beside = "beside them" if crowded else "without them"
        return Figure(
            f"p{100 * share:.0f} of a small request {beside}, ms", 1000 * quantile(self.times[crowded], share), most
        )


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
    service = _Service(house, seconds)
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
        *(
            service.figure(share, crowded, SERVED_MS if crowded else math.inf)
            for share in (0.5, 0.99)
            for crowded in (False, True)
        ),
        Figure("failed requests beside them", service.errors, most=0),
        Figure("memory before, MB", before),
        Figure("memory afterwards, MB", house.running.memory_mb),
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
