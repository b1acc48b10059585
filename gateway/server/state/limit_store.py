"""Defines where processes count the usage of API keys together."""

from collections.abc import Mapping
from typing import Protocol

from gateway.server.access.rate_limit import Grant
from gateway.settings import KeySettings


class LimitStore(Protocol):
    """Counts of all processes that use the store, for keys that have limits. Each process states absolute numbers, so
    that the next statement corrects a lost one. Every method raises StoreUnavailable and nothing else.

    The running requests of a process that has ended count no longer: at once where the store can see that, else when
    the process has not stated them for 10 s.
    """

    name: str

    async def take(self, key: str, limits: KeySettings, running: int, wanted: int) -> Grant:
        """Counts as many of the wanted requests as the limits allow (`rate_limit.grant`). `running` is how many this
        process runs besides; what is admitted is added to it."""

    async def state_running(self, running: Mapping[str, int]) -> None:
        """States how many requests this process runs of each key; keys that are not named keep their numbers."""

    async def ping(self) -> None:
        """Connects where there is no connection, and waits for one reply."""

    async def aclose(self) -> None:
        """Closes the store."""
