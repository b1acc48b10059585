"""Gives one request its view of the store: under the request's tenant, and within one deadline for all reads."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from gateway.core.notices import Notice
from gateway.server.state.guarded_store import GuardedStore
from gateway.server.state.store import Entry, Space, StoreUnavailable

T = TypeVar("T")

SLOW: Final = Notice(
    "state",
    "failed",
    "STORE_SLOW",
    "the store did not answer in time; the request is served without what it remembers",
    level="debug",
)
DOWN: Final = Notice(
    "state",
    "failed",
    "STORE_DOWN",
    "the store cannot be used; the request is served without what it remembers",
    level="debug",
)


class RequestStore:
    """`store` is for work that outlives the request; `tenant` owns everything that the request reads and writes.
    `failed`: a read has failed, so that what seems to be missing may be there. All reads together may take `deadline_s`
    seconds of the store's time."""

    def __init__(self, store: GuardedStore, tenant: str, deadline_s: float) -> None:
        self.store = store
        self.tenant = tenant
        self.failed = False
        self.deadline_s = deadline_s
        self._left_s = deadline_s
        self._notices: list[Notice] = []

    async def get(self, space: Space, keys: Sequence[bytes]) -> list[Entry | None]:
        """Returns the entries in the order of the keys. Where the store fails, or all reads of this request together
        take longer than their deadline, they are missing; `take_notices` says so."""
        if not keys:
            return []
        found = await self._within(lambda left_s: self.store.get(self.tenant, space, keys, within_s=left_s))
        return [None] * len(keys) if found is None else found

    async def epoch(self) -> bytes | None:
        """Returns the epoch of the tenant; None where `get` would find nothing."""
        return await self._within(lambda left_s: self.store.epoch(self.tenant, within_s=left_s))

    def take_notices(self) -> list[Notice]:
        """Returns the notices that were not taken yet."""
        notices, self._notices = self._notices, []
        return notices

    async def _within(self, read: Callable[[float], Awaitable[T]]) -> T | None:
        """Reads within what is left of the deadline; None: the store fails."""
        if self._left_s <= 0:
            self._note(SLOW)
            return None
        clock = self.store.clock
        began = clock.now
        try:
            return await read(self._left_s)
        except StoreUnavailable as failure:
            self._note(SLOW if failure.reason == "slow" else DOWN)
            return None
        finally:
            self._left_s -= clock.now - began

    def _note(self, notice: Notice) -> None:
        self.failed = True
        if notice not in self._notices:
            self._notices.append(notice)
