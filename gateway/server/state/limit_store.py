"""Defines where processes count the usage of API keys together."""

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from gateway.server.access.rate_limit import Grant
from gateway.settings import KeySettings


class Unconfirmed(msgspec.Struct, frozen=True):
    """The requests of a key with a rate that a process has admitted without an answer of the store, since its last one.
    Of these `requests` the latest `counting` still count: the process was not idle between them, and by its own count
    the next one is due in `due_s` seconds."""

    requests: int = 0
    counting: int = 0
    due_s: float = 0


NONE_UNCONFIRMED: Final = Unconfirmed()


class LimitStore(Protocol):
    """Counts of all processes that use the store, for keys that have limits. Each process states absolute numbers, so
    that the next statement corrects a lost one. Every method raises StoreUnavailable and nothing else.

    A call that raises may have had its effect, or have it later. Its caller admits what it has wanted, and states that
    as `Unconfirmed` with the next call, which counts each of these requests once in any case; and from then on a call
    before it has no effect any more.

    The running requests of a process that has ended count no longer: at once where the store can see that, else when
    the process has not stated them for 10 s.

    `at_once` is how many calls it works on at the same time.
    """

    name: str
    at_once: int

    async def take(
        self, key: str, limits: KeySettings, running: int, wanted: int, unconfirmed: Unconfirmed = NONE_UNCONFIRMED
    ) -> Grant:
        """Counts as many of the wanted requests as the limits allow (`rate_limit.grant`), on top of those that were
        admitted without it (`rate_limit.charge`). `running` is how many this process runs besides; what is admitted is
        added to it."""

    async def state_running(self, running: Mapping[str, int]) -> None:
        """States how many requests this process runs of each key; keys that are not named keep their numbers."""

    async def ping(self) -> None:
        """Connects where there is no connection, and waits for one reply."""

    async def aclose(self) -> None:
        """Closes the store."""
