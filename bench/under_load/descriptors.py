"""More connections than the process has descriptors for, on both of its sides -> whether it lives and comes back."""

import asyncio
from collections import Counter
from typing import Final

from bench.load import Target
from bench.under_load.asking import HEALTH, Connection, connect
from bench.under_load.figures import Figure
from bench.under_load.house import House
from bench.under_load.streams import ask, verdict

# Far below what such a gateway is asked for, far above what it needs to start.
LIMIT: Final = 128
CPU_SHARE: Final = 0.3
RECOVERED_S: Final = 10
LOG_KB_PER_S: Final = 50


async def _knock(target: Target) -> Connection | None:
    try:
        return await connect(target)
    except OSError:
        return None


async def is_healthy(target: Target, seconds: float = 2) -> bool:
    """Whether a new connection is told that all is well."""
    if (connection := await _knock(target)) is None:
        return False
    try:
        async with asyncio.timeout(seconds):
            return (await connection.ask(HEALTH)).status == 200
    except (TimeoutError, ConnectionError):
        return False
    finally:
        connection.leave()


async def descriptors(house: House, seconds: float = 5, share: float = CPU_SHARE) -> list[Figure]:
    """The gateway may open LIMIT of them. `share` of a core is what it may use meanwhile."""
    streaming = await _streaming(house)
    opened = [await _knock(house.target) for _ in range(4 * LIMIT)]
    connections = [connection for connection in opened if connection is not None]
    await asyncio.sleep(0.3)  # the streams' own lines are written behind them
    cpu, log = house.running.cpu_s, house.log_bytes
    most = 0
    for _ in range(10):
        await asyncio.sleep(seconds / 10)
        most = max(most, house.running.descriptors)
    used = (house.running.cpu_s - cpu) / seconds
    written = (house.log_bytes - log) / 1024 / seconds
    told = sum(connection.gone.done() for connection in connections)
    for connection in connections:
        connection.leave()
    recovered = await _recovered(house)
    return [
        *streaming,
        Figure("connections opened at a limit of so many descriptors", LIMIT),
        Figure("connections asked for", len(opened)),
        Figure("of them sent away at once", told, least=1),
        Figure("descriptors in use", most, most=LIMIT),
        Figure("share of a core meanwhile", used, share),
        Figure("log meanwhile, KB/s", written, LOG_KB_PER_S),
        Figure("healthy again after, s", recovered, RECOVERED_S),
    ]


async def _streaming(house: House) -> list[Figure]:
    """Streams need two descriptors each: some have no room for the second."""
    many = LIMIT
    marks = [f"mark-{number}" for number in range(many)]
    answers = await asyncio.gather(*(ask(house.target, "native", mark, 5, 100) for mark in marks))
    verdicts = Counter(verdict(answer, mark, 5) for answer, mark in zip(answers, marks, strict=True))
    complete, shed = verdicts.pop("complete", 0), verdicts.pop("shed", 0)
    return [
        Figure("streams asked for", many),
        Figure("complete", complete, least=1),
        Figure("shed with retry-after", shed),
        *(Figure(what, count, most=0) for what, count in verdicts.items()),
    ]


async def _recovered(house: House) -> float:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for _ in range(100 * RECOVERED_S):
        if await is_healthy(house.target) or loop.time() > begun + 2 * RECOVERED_S:
            break
        await asyncio.sleep(0.05)
    return loop.time() - begun
