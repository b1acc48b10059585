"""Opens more connections than the process has descriptors, and checks that it survives and recovers.

The test covers both sides of the gateway, the clients and the backends.
"""

import asyncio
from collections import Counter
from typing import Final

from bench.load import Target
from bench.load_test.figures import Figure
from bench.load_test.gateway_process import GatewayProcess
from bench.load_test.http_client import HEALTH, HttpConnection, connect
from bench.load_test.streams import ask, verdict

# Far below the usual load of such a gateway, far above what it needs to start.
LIMIT: Final = 128
CPU_SHARE: Final = 0.3
RECOVERED_S: Final = 10
LOG_KB_PER_S: Final = 50


async def _try_connect(target: Target) -> HttpConnection | None:
    try:
        return await connect(target)
    except OSError:
        return None


async def is_healthy(target: Target, seconds: float = 2) -> bool:
    """Returns whether the health endpoint responds with 200 on a new connection."""
    if (connection := await _try_connect(target)) is None:
        return False
    try:
        async with asyncio.timeout(seconds):
            return (await connection.ask(HEALTH)).status == 200
    except (TimeoutError, ConnectionError):
        return False
    finally:
        connection.abort()


async def descriptors(gateway_process: GatewayProcess, seconds: float = 5, share: float = CPU_SHARE) -> list[Figure]:
    """Exceeds the gateway's limit of LIMIT open descriptors. `share` is the permitted share of a core meanwhile."""
    streaming = await _streaming(gateway_process)
    opened = [await _try_connect(gateway_process.target) for _ in range(4 * LIMIT)]
    connections = [connection for connection in opened if connection is not None]
    await asyncio.sleep(0.3)  # the access log writes the streams' lines with a delay
    cpu, log = gateway_process.running.cpu_s, gateway_process.log_bytes
    most = 0
    for _ in range(10):
        await asyncio.sleep(seconds / 10)
        most = max(most, gateway_process.running.descriptors)
    used = (gateway_process.running.cpu_s - cpu) / seconds
    written = (gateway_process.log_bytes - log) / 1024 / seconds
    told = sum(connection.gone.done() for connection in connections)
    for connection in connections:
        connection.abort()
    recovered = await _recovered(gateway_process)
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


async def _streaming(gateway_process: GatewayProcess) -> list[Figure]:
    """Opens streams, which need two descriptors each, so that some find none for the second."""
    many = LIMIT
    marks = [f"mark-{number}" for number in range(many)]
    answers = await asyncio.gather(*(ask(gateway_process.target, "native", mark, 5, 100) for mark in marks))
    verdicts = Counter(verdict(answer, mark, 5) for answer, mark in zip(answers, marks, strict=True))
    complete, shed = verdicts.pop("complete", 0), verdicts.pop("shed", 0)
    return [
        Figure("streams asked for", many),
        Figure("complete", complete, least=1),
        Figure("shed with retry-after", shed),
        *(Figure(what, count, most=0) for what, count in verdicts.items()),
    ]


async def _recovered(gateway_process: GatewayProcess) -> float:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for _ in range(100 * RECOVERED_S):
        if await is_healthy(gateway_process.target) or loop.time() > begun + 2 * RECOVERED_S:
            break
        await asyncio.sleep(0.05)
    return loop.time() - begun
