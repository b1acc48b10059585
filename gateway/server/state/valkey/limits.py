"""Counts the usage of API keys on the server, for the gateways of all machines.

The rate of a key is one number, by the server's clock. Its running requests are one number for each process, with the
time until which the process is believed to be alive: the requests of one that was killed stop counting then.
"""

import secrets
from collections import Counter
from collections.abc import Mapping
from typing import Final

from gateway.server.access.rate_limit import Grant, LimitName
from gateway.server.state.limit_store import NONE_UNCONFIRMED, Unconfirmed
from gateway.server.state.store import StoreUnavailable
from gateway.server.state.valkey.address import ServerAddress
from gateway.server.state.valkey.connections import CONNECTIONS, Connections
from gateway.server.state.valkey.names import counted_name, rate_name, running_name
from gateway.server.state.valkey.scripts import ADMIT, COUNT
from gateway.settings import KeySettings

# A process states its running requests at least three times within this.
ALIVE_S: Final = 10.0
_MICROS: Final = 1_000_000
_REFUSED: Final[Mapping[bytes, LimitName | None]] = {
    b"": None,
    b"concurrent_streams": "concurrent_streams",
    b"requests_per_minute": "requests_per_minute",
}


class ValkeyLimits:
    """See `LimitStore`."""

    def __init__(self, address: ServerAddress, alive_s: float = ALIVE_S) -> None:
        self.name = str(address)
        self.at_once = CONNECTIONS
        self._connections = Connections(address)
        self._alive = round(alive_s * _MICROS)
        # Process ids of several machines may be equal.
        self._process = secrets.token_bytes(8).hex().encode()
        # By key, how many requests of this process the last answer has confirmed.
        self._confirmed = Counter[str]()

    async def take(
        self, key: str, limits: KeySettings, running: int, wanted: int, unconfirmed: Unconfirmed = NONE_UNCONFIRMED
    ) -> Grant:
        """See `LimitStore`."""
        confirmed = self._confirmed[key]
        found = await self._connections.call(
            ADMIT,
            (rate_name(key), running_name(key), counted_name(key, self._process)),
            limits.requests_per_minute or 0,
            limits.concurrent_streams or 0,
            self._process,
            running,
            self._alive,
            wanted,
            confirmed,
            unconfirmed.requests,
            unconfirmed.counting,
            round(unconfirmed.due_s * _MICROS),
        )
        match found:
            case [b"ok", int(admitted), bytes(refused), int(due)] if 0 <= admitted <= wanted and refused in _REFUSED:
                self._confirmed[key] = confirmed + unconfirmed.requests + admitted
                return Grant(admitted, due / _MICROS, _REFUSED[refused])
            case [b"late"]:
                raise StoreUnavailable("slow", "the call was given up")
            case _:
                raise StoreUnavailable("invalid", "an unknown outcome")

    async def state_running(self, running: Mapping[str, int]) -> None:
        """See `LimitStore`."""
        for key, number in running.items():
            await self._connections.call(COUNT, (running_name(key),), self._process, number, self._alive)

    async def ping(self) -> None:
        """See `LimitStore`."""
        await self._connections.command("PING")

    async def aclose(self) -> None:
        """See `LimitStore`."""
        await self._connections.aclose()
