"""Counts the usage of API keys on the server, for the gateways of all machines.

The rate of a key is one number, by the server's clock. Its running requests are one number for each process, with the
time until which the process is believed to be alive: the requests of one that was killed stop counting then. Processes
write absolute numbers, never differences, so that the next write corrects a lost one.
"""

import secrets
from collections.abc import Mapping
from typing import Final

from gateway.server.access.rate_limit import KeyUsage, Limited, limit_error
from gateway.server.state.store import StoreUnavailable
from gateway.server.state.valkey.connections import Connections
from gateway.server.state.valkey.names import rate_name, running_name
from gateway.server.state.valkey.scripts import ADMIT, COUNT
from gateway.settings import KeySettings

# A process writes its running requests at least three times within this.
ALIVE_S: Final = 10.0
_MICROS: Final = 1_000_000


class ValkeyRateLimits:
    """The usage of API keys as this process sees and changes it on the server."""

    def __init__(self, connections: Connections, alive_s: float = ALIVE_S) -> None:
        self._connections = connections
        self._alive = round(alive_s * _MICROS)
        # Process ids of several machines may be equal.
        self._process = secrets.token_bytes(8).hex().encode()

    async def acquire(self, key: str, own: KeyUsage, limits: KeySettings, now: float) -> KeyUsage:
        """Returns this process's usage with one more request, `due` by this machine's clock, which shows `now`. Raises
        GatewayError 429 when all processes together exceed a limit, and StoreUnavailable."""
        status, *found = await self._connections.call(
            ADMIT,
            (rate_name(key), running_name(key)),
            limits.requests_per_minute or 0,
            limits.concurrent_streams or 0,
            self._process,
            own.running,
            self._alive,
        )
        match status, found:
            case b"ok", [int(until_due)]:
                due = own.due if limits.requests_per_minute is None else now + until_due / _MICROS
                return KeyUsage(own.running + 1, due)
            case b"no", [b"concurrent_streams" | b"requests_per_minute" as limit, int(wait)]:
                raise limit_error(LIMITS[limit], wait / _MICROS)
            case _:
                raise StoreUnavailable("invalid", "an unknown outcome")

    async def write(self, running: Mapping[str, int]) -> None:
        """Writes the numbers of this process's running requests by key, and that it is alive. Raises
        StoreUnavailable."""
        for key, number in running.items():
            await self._connections.call(COUNT, (running_name(key),), self._process, number, self._alive)


LIMITS: Final[Mapping[bytes, Limited]] = {
    b"concurrent_streams": "concurrent_streams",
    b"requests_per_minute": "requests_per_minute",
}
