"""Measures the cost of many idle connections beside active clients, and tests the limit of connections."""

import asyncio
from typing import Final

from bench.load_test.figures import Figure
from bench.load_test.gateway_process import GatewayProcess
from bench.load_test.http_client import HEALTH, HttpConnection, WholeResponse, connect
from bench.load_test.service import Service

KB_EACH: Final = 20
# The memory of the first round is reused in the others: more than this for each connection is a leak. It is a figure of
# its own, because what the first round costs depends on what the process has allocated before.
LEFT_KB: Final = 1
# The connections that are opened at a time, because the kernel's backlog is limited.
BATCH: Final = 200
LATE_S: Final = 2


async def crowd(gateway_process: GatewayProcess, many: int, speaking: bool) -> list[HttpConnection]:
    """Opens this many connections; with `speaking`, each has received one response before it becomes idle."""

    async def one() -> HttpConnection:
        connection = await connect(gateway_process.target)
        if speaking:
            await connection.ask(HEALTH)
        return connection

    found: list[HttpConnection] = []
    while len(found) < many:
        found += await asyncio.gather(*(one() for _ in range(min(BATCH, many - len(found)))))
    return found


async def abort_all(connections: list[HttpConnection]) -> None:
    """Closes all connections."""
    for connection in connections:
        connection.abort()
    await asyncio.gather(*(connection.gone for connection in connections))


async def one_too_many(gateway_process: GatewayProcess) -> tuple[WholeResponse | None, bool]:
    """Returns the unrequested response to a connection above the limit, and whether the connection is closed."""
    connection = await connect(gateway_process.target)
    try:
        async with asyncio.timeout(5):
            answer = await connection.answer()
            await connection.gone
    except (TimeoutError, ConnectionError):
        return None, connection.gone.done()
    finally:
        connection.abort()
    return answer, True


async def idle(
    gateway_process: GatewayProcess, many: int, header_timeout_s: float, rounds: int = 3, seconds: float = 2
) -> list[Figure]:
    """Measures idle connections. `many` is `server.max_connections` of the gateway; a few are left for the active
    clients."""
    service = Service(gateway_process, seconds)
    spare = 8
    idle_count = many - spare
    costs, peaks = [], []
    for _ in range(rounds):
        await service.measure(crowded=False)
        descriptors, empty = (
            await gateway_process.settled(gateway_process.least_descriptors, 0.2),
            gateway_process.running.memory_mb,
        )
        speaking = await crowd(gateway_process, idle_count, speaking=True)
        peaks.append(gateway_process.running.memory_mb)
        costs.append((peaks[-1] - empty) * 1024 / idle_count)
        await service.measure(crowded=True)
        still = sum(not connection.gone.done() for connection in speaking)
        await abort_all(speaking)
        last = await gateway_process.settled(descriptors)
    return [
        Figure("connections idle after a request", idle_count),
        Figure("of them open after the round", still, idle_count, idle_count),
        Figure("a connection, KB (first round)", costs[0], KB_EACH),
        Figure("more for a connection, KB (last round)", (peaks[-1] - peaks[0]) * 1024 / idle_count, LEFT_KB),
        *service.figures(),
        Figure("memory in the first round, MB", peaks[0]),
        Figure("memory afterwards, MB", gateway_process.running.memory_mb),
        Figure("descriptors afterwards", last, most=descriptors),
        *await silent(gateway_process, many, header_timeout_s),
    ]


async def silent(gateway_process: GatewayProcess, many: int, header_timeout_s: float) -> list[Figure]:
    """Fills the gateway with connections that never send anything, and opens one more."""
    loop = asyncio.get_running_loop()
    descriptors = await gateway_process.settled(gateway_process.least_descriptors, 0.2)
    begun = loop.time()
    connections = await crowd(gateway_process, many, speaking=False)
    told, closed = await one_too_many(gateway_process)
    opened = loop.time()
    in_time = opened - begun < header_timeout_s
    async with asyncio.timeout(header_timeout_s + 30):
        await asyncio.gather(*(connection.gone for connection in connections))
    late = loop.time() - opened - header_timeout_s
    return [
        Figure("connections that never say anything", many),
        Figure("status for one too many", told.status if told else 0, 503, 503 if in_time else 0),
        Figure("and it is closed", closed, 1, 1 if in_time else 0),
        Figure("closed later than the head's deadline by, s", max(late, 0), LATE_S),
        Figure("descriptors after that", await gateway_process.settled(descriptors), most=descriptors),
    ]
